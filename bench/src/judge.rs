//! The judge of compute limits: whether the contract holds for adversarial programs, whatever the card's behaviour.
//!
//! Some properties of cards have not been measured, so these are [switches](Switches), and each cell has to hold
//! under all of them. **Simulated, virtual time: not a measurement of any GPU.**
//!
//! * [`job`]: what a thread does, as data. * [`scene`]: containers under switches, and the contract. * [`named`]:
//!   cells that once showed a defect. * [`search`]: random cells.

pub mod job;
pub mod named;
pub mod scene;
pub mod search;
#[cfg(test)]
mod tests;

use crate::files::Files;
use crate::report::Report;
use crate::simulator::Setup;
use crate::{Effort, Result, Stop};
use job::End;
use scene::{Found, Scene};
use std::fmt;

/// Properties of cards that have not been measured.
#[derive(Debug, Clone, Copy)]
pub struct Switches {
    /// A timing event is reached as soon as its stream comes to it.
    pub at_once: bool,
    /// Time slices, in milliseconds.
    pub slice_ms: u64,
    /// A switch between processes, in microseconds.
    pub switch_us: u64,
    /// The end of a context drops its work.
    pub drops: bool,
}

/// Time slices in milliseconds, and switches in microseconds; the first ones are those of quick runs.
const CARDS: [(u64, u64); 9] =
    [(2, 0), (1, 100), (4, 500), (1, 0), (4, 0), (2, 100), (4, 100), (2, 500), (1, 500)];
const CORNERS: usize = 3;

impl fmt::Display for Switches {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {} ms {} us {}",
            if self.at_once { "at-once" } else { "in-turn" },
            self.slice_ms,
            self.switch_us,
            if self.drops { "drops" } else { "waits" },
        )
    }
}

impl Switches {
    /// Returns a machine with these switches.
    #[must_use]
    pub fn setup(self) -> Setup {
        Setup {
            events_at_once: self.at_once,
            slice_ns: self.slice_ms * 1_000_000,
            switch_ns: self.switch_us * 1_000,
            end_waits: !self.drops,
            look_ns: 8_000,
            ..Setup::default()
        }
    }

    /// Returns all switches that matter to a scene.
    fn of(scene: &Scene, effort: Effort) -> Vec<Self> {
        let jobs = scene.containers.iter().flat_map(|it| &it.members).flat_map(|it| &it.jobs);
        let ends = jobs.into_iter().any(|job| job.end == End::Context);
        let is_alone = scene.containers.iter().map(|it| it.members.len()).sum::<usize>() < 2;
        let mut all = Vec::new();
        for at_once in [true, false] {
            for (slice_ms, switch_us) in CARDS {
                let is_first = (slice_ms, switch_us) == CARDS[0];
                let is_corner = CARDS[..CORNERS].contains(&(slice_ms, switch_us));
                if is_alone && !is_first || effort == Effort::Quick && !is_corner {
                    continue;
                }
                for drops in [false, true] {
                    if ends || !drops {
                        all.push(Self { at_once, slice_ms, switch_us, drops });
                    }
                }
            }
        }
        all
    }
}

/// Runs every named cell under all switches.
///
/// # Errors
/// Never: a broken contract is a check that does not hold.
pub fn run(_: &Files, effort: Effort, report: &mut Report) -> Result {
    for scene in named::all() {
        let (switches, found) = worst(&scene, effort);
        let holds = found.iter().all(Found::holds);
        report.check(&format!("{} ({switches}): {}", scene.name, text(&found)), holds);
    }
    Ok(())
}

/// Runs the cells with `only` in their names, and prints a table. Returns true if the contract holds in all.
///
/// # Errors
/// If there are no such cells.
pub fn print(only: &str, effort: Effort, every: bool) -> Result<bool> {
    println!("{HEADER}");
    let (mut count, mut missed) = (0, 0);
    for scene in named::all().into_iter().filter(|scene| scene.name.contains(only)) {
        let rows = if every { each(&scene, effort) } else { vec![worst(&scene, effort)] };
        for (switches, found) in rows {
            count += 1;
            missed += usize::from(!found.iter().all(Found::holds));
            for row in &found {
                println!("{}", line(&scene.name, switches, row));
            }
        }
    }
    println!("\n{missed} of {count} cells miss their bound");
    if count == 0 { Err(Stop::fail(format!("no cell is named {only}"))) } else { Ok(missed == 0) }
}

const HEADER: &str = "| cell | switches of the card | asked | can use | got | poorest second | richest second | \
                      richest 10 s | charged / busy | beyond its bound | besides (ms) | holds |\n\
                      |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|";

fn line(name: &str, switches: Switches, found: &Found) -> String {
    let extra = found.extra.map_or_else(String::new, |(is, most)| format!("{is:.3} of {most:.3}"));
    format!(
        "| {name} | {switches} | {} | {:.1} | {:.2} | {:.1} | {:.1} | {:.1} | {:.2} | {:+.1} | {extra} | {} |",
        found.asked,
        found.goal,
        found.got,
        found.seconds.0,
        found.seconds.1,
        found.most,
        found.charged,
        found.over.max(found.under),
        if found.holds() { "yes" } else { "**no**" },
    )
}

/// Describes a result in words.
fn text(found: &[Found]) -> String {
    let one = |found: &Found| {
        let extra =
            found.extra.map_or_else(String::new, |(is, most)| format!(", {is:.2} ms of {most}"));
        format!("{:.2} of {} (can use {:.1}){extra}", found.got, found.asked, found.goal)
    };
    found.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn each(scene: &Scene, effort: Effort) -> Vec<(Switches, Vec<Found>)> {
    let all = Switches::of(scene, effort).into_iter();
    all.map(|switches| (switches, scene.run(&switches.setup()))).collect()
}

/// Returns the switches under which a scene has its worst result.
fn worst(scene: &Scene, effort: Effort) -> (Switches, Vec<Found>) {
    let badness = |found: &[Found]| found.iter().map(Found::badness).fold(f64::MIN, f64::max);
    let all = each(scene, effort).into_iter();
    // There is always one.
    all.max_by(|(_, a), (_, b)| badness(a).total_cmp(&badness(b))).unwrap_or_else(|| {
        let first = Switches { at_once: true, slice_ms: 2, switch_us: 0, drops: false };
        (first, Vec::new())
    })
}
