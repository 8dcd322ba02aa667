//! One cell: a program under a percentage on a card of its own, and what it got.

use crate::files::Files;
use crate::run::{Effort, Result};
use crate::world::{Answer, Client, World};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most that a program may get beyond what was asked for, in points.
pub(super) const ABOVE: f64 = 3.0;

/// A typical program: the client's commands.
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) command: &'static str,
    pub(super) processes: usize,
    /// Full runs: how long a cell takes. A quarter of it is not counted.
    pub(super) milliseconds: u32,
    /// What a launch call takes on the host.
    pub(super) launch_ns: u32,
    /// Is in quick runs too.
    pub(super) quick: bool,
}

pub(super) const fn workload(name: &'static str, command: &'static str) -> Workload {
    Workload { name, command, processes: 1, milliseconds: 1800, launch_ns: 2000, quick: false }
}

/// What cells are made of.
pub(super) struct Bench<'a> {
    pub(super) files: &'a Files,
    pub(super) driver: PathBuf,
    pub(super) effort: Effort,
}

/// What a workload got. Times are nanoseconds, shares percent of the card.
pub(super) struct Cell {
    pub(super) name: &'static str,
    percent: Option<u16>,
    pub(super) share: f64,
    /// Of the windows of a second, the one with the least.
    lowest: f64,
    /// And the one with the most.
    highest: f64,
    /// What the ledger was charged, as a part of the time that the card was busy; 0 without a limit.
    charged: f64,
    /// Launches in a second.
    rate: f64,
    /// How long calls of a launch took: half of them, 99 of a hundred, all of them.
    waits: [f64; 3],
    /// Time of processors for a launch, of the whole process: the program's own and the stub's are in it.
    processor: f64,
}

impl Bench<'_> {
    pub(super) fn cell(&self, workload: &Workload, percent: Option<u16>) -> Result<Cell> {
        let card = self.card()?;
        let world = percent.map_or(World::Bare, World::Shared);
        let client = |_| self.client(world, &card, "ledger", workload.launch_ns);
        let mut clients: Vec<_> = (0..workload.processes).map(client).collect::<Result<_>>()?;
        let command = format!("{} {}", workload.command, self.length(workload.milliseconds));
        let answers = ask_all(&mut clients, &vec![command; workload.processes])?;
        let cell = Cell::of(workload.name, percent, &answers);
        drop(clients);
        fs::remove_dir_all(&card)?;
        Ok(cell)
    }

    /// An unused card.
    pub(super) fn card(&self) -> Result<PathBuf> {
        let card = self.files.ledger("card");
        fs::create_dir_all(&card)?;
        Ok(card)
    }

    /// A program on it, with a ledger of this name.
    pub(super) fn client(
        &self,
        world: World,
        card: &Path,
        ledger: &str,
        launch_ns: u32,
    ) -> Result<Client> {
        self.client_with(world, &[], card, ledger, launch_ns)
    }

    /// The same with these variables.
    pub(super) fn client_with(
        &self,
        world: World,
        variables: &[(&str, &str)],
        card: &Path,
        ledger: &str,
        launch_ns: u32,
    ) -> Result<Client> {
        let mut command = Command::new(&self.files.client);
        world.dress(&mut command, self.files, &format!("card/{ledger}"));
        command.envs(variables.iter().copied());
        command.env("LD_LIBRARY_PATH", &self.driver).env("STUB_GPU_DIR", card);
        command.env("STUB_GPU_LAUNCH_NS", launch_ns.to_string());
        command.env("STUB_GPU_COPY_BYTES_PER_US", "1000");
        let mut client = Client::spawn(&mut command)?;
        client.ask("open")?;
        Ok(client)
    }

    pub(super) fn length(&self, milliseconds: u32) -> u32 {
        if self.effort == Effort::Full { milliseconds } else { 800 }
    }
}

/// Has all of them work at once.
pub(super) fn ask_all(clients: &mut [Client], commands: &[String]) -> Result<Vec<Answer>> {
    clients.iter_mut().zip(commands).try_for_each(|(client, command)| client.order(command))?;
    clients.iter_mut().zip(commands).map(|(client, command)| client.hear(command)).collect()
}

impl Cell {
    /// Each process has looked at the whole card; launches are its own.
    fn of(name: &'static str, percent: Option<u16>, answers: &[Answer]) -> Self {
        let all = |name| answers.iter().map(move |answer| answer.get(name));
        #[expect(clippy::cast_precision_loss, reason = "a handful of processes")]
        let mean = |name| all(name).sum::<f64>() / answers.len() as f64;
        let most = |name| all(name).fold(0.0, f64::max);
        Self {
            name,
            percent,
            share: mean("share"),
            lowest: all("lowest").fold(f64::INFINITY, f64::min),
            highest: most("highest"),
            charged: mean("charged"),
            rate: all("rate").sum(),
            waits: [mean("p50"), most("p99"), most("most")],
            processor: mean("cpu"),
        }
    }

    /// What it should get: what was asked for, or what it can use.
    fn goal(&self, solo: &Self) -> f64 {
        self.percent.map_or(solo.share, |percent| solo.share.min(f64::from(percent)))
    }

    pub(super) fn to_json(&self, solo: &Self) -> Value {
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let goal = self.goal(solo);
        json!({
            "kind": "share on the stub",
            "workload": self.name,
            "percent": self.percent,
            "goal": round(goal),
            "share": round(self.share),
            "lowest_second": round(self.lowest),
            "highest_second": round(self.highest),
            "charged": self.percent.map(|_| round(self.charged)),
            "throughput": round(self.rate / (solo.rate * goal / solo.share)),
            "wait_us": self.waits.map(|ns| round(ns / 1e3)),
            "processor_us": round(self.processor / 1e3),
            "processor_us_unlimited": round(solo.processor / 1e3),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(percent: Option<u16>, share: f64, rate: f64) -> Cell {
        let (lowest, highest, waits, processor) = (share, share, [0.0; 3], 0.0);
        Cell { name: "W", percent, share, lowest, highest, charged: 1.0, rate, waits, processor }
    }

    #[test]
    fn throughput_is_measured_against_what_a_share_of_the_whole_would_do() {
        let solo = cell(None, 80.0, 800.0);
        assert_eq!(cell(Some(40), 40.0, 400.0).to_json(&solo)["throughput"], 1.0);
        assert_eq!(cell(Some(40), 40.0, 200.0).to_json(&solo)["throughput"], 0.5);
        // Who cannot use what it asked for is compared with what it can use.
        assert_eq!(cell(Some(90), 80.0, 800.0).to_json(&solo)["throughput"], 1.0);
    }
}
