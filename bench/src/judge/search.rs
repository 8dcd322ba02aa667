//! Random cells: programs, containers and switches beyond the named ones.
//!
//! A seed determines a cell. Each is judged as the named ones are, in both directions: containers that get more than
//! their share, and containers that get less though an oracle would get it. The worst are printed with their seeds;
//! one that shows a defect becomes a named cell.

use super::job::{End, Job, Length, Names};
use super::scene::{Container, Found, Member, Scene, scene};
use super::switches::Switches;
use super::table::{HEADER, line};
use crate::simulator::dice::Dice;
use crate::simulator::{Page, Says, Setup};

/// A cell of the search.
#[derive(Debug)]
pub struct Chance {
    /// Its seed.
    pub seed: u64,
    switches: Switches,
    scene: Scene,
}

/// A cell and its result.
#[derive(Debug)]
pub struct Judged {
    chance: Chance,
    found: Vec<Found>,
}

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
/// The number of cells that are printed.
const WORST: usize = 12;

/// Judges `count` cells, and prints the worst. Returns true if the contract holds in all.
#[must_use]
pub fn run(cells: u64, seed: u64) -> bool {
    let mut seeds = Dice::new(seed);
    let all: Vec<_> = (0..cells).map(|_| Chance::new(seeds.roll()).judge()).collect();
    let over = print(&all, "more than their share", |found| found.over);
    let under = print(&all, "less than they can use", |found| found.under);
    println!("\n{cells} cells: {over} with more than the share, {under} with less");
    over + under == 0
}

/// Judges one cell again, and prints its parts. Returns true if the contract holds.
#[must_use]
pub fn again(seed: u64) -> bool {
    let judged = Chance::new(seed).judge();
    println!("{:#?}\n{HEADER}", judged.chance.scene);
    judged.print();
    judged.found.iter().all(Found::holds)
}

/// Prints the worst by this measure. Returns how many are beyond their bound.
fn print(all: &[Judged], what: &str, by: fn(&Found) -> f64) -> usize {
    let worst = |judged: &Judged| judged.found.iter().map(by).fold(f64::MIN, f64::max);
    let mut bad: Vec<_> = all.iter().filter(|judged| worst(judged) > 0.0).collect();
    bad.sort_by(|a, b| worst(b).total_cmp(&worst(a)));
    println!("\nThe worst that have {what}:\n\n{HEADER}");
    bad.iter().take(WORST).for_each(|judged| judged.print());
    bad.len()
}

impl Judged {
    fn print(&self) {
        let Chance { switches, scene, seed } = &self.chance;
        let name = format!("{seed} {}", scene.name);
        self.found.iter().for_each(|found| println!("{}", line(&name, *switches, found)));
    }
}

impl Chance {
    /// Returns the cell of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let dice = &mut Dice::new(seed);
        let switches = Switches {
            at_once: one_in(dice, 2),
            slice_ms: *pick(dice, &[1, 2, 4]),
            switch_us: *pick(dice, &[0, 100, 500]),
            drops: one_in(dice, 2),
        };
        let mut left = 100;
        let mut containers = Vec::new();
        let count = *pick(dice, &[1, 1, 2, 2, 3]);
        for _ in 0..count {
            let percent = *pick(dice, &[5, 10, 20, 30, 40, 50, 70, 90]);
            // The card has room for all.
            if percent <= left {
                left -= percent;
                containers.push(container(dice, percent));
            }
        }
        let pages = (0..if one_in(dice, 8) { dice.between(1, 4) } else { 0 }).map(|_| page(dice));
        let pages = pages.collect();
        let jobs = || containers.iter().flat_map(|it| &it.members).flat_map(|it| &it.jobs);
        let longest = jobs().map(|job| job.length.most()).max().unwrap_or(0);
        // A container that waits for the host, or runs for a part of the time, does not use its share as an oracle
        // would.
        let is_honest = !jobs().any(|job| job.holds);
        let seconds = (longest * 50 / S).clamp(11, 120);
        let name = name(&containers);
        let scene = Scene { seconds, is_honest, pages, ..scene(name, containers) };
        Self { seed, switches, scene }
    }

    fn judge(self) -> Judged {
        let setup = Setup { seed: self.seed, ..self.switches.setup() };
        let found = self.scene.run(&setup);
        Judged { chance: self, found }
    }
}

fn pick<'a, T>(dice: &mut Dice, of: &'a [T]) -> &'a T {
    let place = dice.between(0, of.len() as u64 - 1);
    &of[usize::try_from(place).unwrap_or(0)]
}

const fn one_in(dice: &mut Dice, count: u64) -> bool {
    dice.between(1, count) == 1
}

/// Returns a time between two, each order of magnitude with equal probability.
fn time(dice: &mut Dice, least: u64, most: u64) -> u64 {
    let octaves = u64::from((most / least).ilog2());
    let low = least << dice.between(0, octaves);
    dice.between(low, 2 * low).min(most)
}

fn container(dice: &mut Dice, percent: u16) -> Container {
    let count = *pick(dice, &[1, 1, 1, 2, 3, 4, 8]);
    // Processes of one container mostly do the same.
    let first = member(dice, percent);
    let members =
        (0..count).map(|_| if one_in(dice, 3) { member(dice, percent) } else { first.clone() });
    Container { percent: Some(percent), members: members.collect() }
}

fn member(dice: &mut Dice, percent: u16) -> Member {
    let threads = *pick(dice, &[1, 1, 1, 2, 4]);
    let first = job(dice, threads == 1);
    let shared = one_in(dice, 4);
    let jobs = (0..threads).map(|thread| {
        let job = if one_in(dice, 3) { job(dice, threads == 1) } else { first.clone() };
        // A job that holds a stream does not share it.
        Job { stream: if shared && !job.holds { 0 } else { thread }, ..job }
    });
    let jobs = jobs.collect();
    let percent = if one_in(dice, 12) { Some((percent / 2).max(1)) } else { None };
    Member { jobs, percent }
}

fn job(dice: &mut Dice, is_alone: bool) -> Job {
    let usual_ns = match dice.between(0, 9) {
        0..4 => time(dice, 4 * US, 200 * US),
        4..8 => time(dice, 100 * US, 10 * MS),
        8 => time(dice, 10 * MS, 100 * MS),
        _ => time(dice, 100 * MS, 2 * S),
    };
    let length = match dice.between(0, 9) {
        0..6 => Length::Of(usual_ns),
        6 | 7 => Length::Around(usual_ns.min(10 * MS)),
        8 => Length::Rarely {
            usual_ns: usual_ns.min(MS),
            long_ns: time(dice, 100 * US, 50 * MS),
            one_in: dice.between(5, 500),
        },
        _ => Length::Turns {
            at_ns: dice.between(S, 6 * S),
            before_ns: usual_ns,
            after_ns: time(dice, 10 * US, 20 * MS),
        },
    };
    let names = match dice.between(0, 9) {
        0 => Names::Fresh,
        1..4 => Names::Of(dice.between(2, 40)),
        _ => Names::Of(1),
    };
    let batch = *pick(dice, &[1, 1, 1, 5, 20, 100]);
    let end = match dice.between(0, 19) {
        0 if is_alone => End::Context,
        1 if is_alone => End::Process(time(dice, MS, 100 * MS)),
        _ => End::Goes,
    };
    let holds = end == End::Goes && one_in(dice, 30);
    let (from_ns, until_ns) = match dice.between(0, 9) {
        0 => (dice.between(0, 4 * S), u64::MAX),
        1 => (0, dice.between(4 * S, 9 * S)),
        _ => (0, u64::MAX),
    };
    Job {
        stream: 0,
        length,
        names,
        width: *pick(dice, &[1000, 1000, 1000, 500, 250]),
        nodes: one_in(dice, 10).then(|| dice.between(2, 2_000)),
        is_collective: one_in(dice, 60),
        batch,
        waits: holds || one_in(dice, 2),
        holds,
        copy_ns: if one_in(dice, 8) { time(dice, 10 * US, 2 * MS) } else { 0 },
        pause_ns: if one_in(dice, 3) { time(dice, 10 * US, 50 * MS) } else { 0 },
        end,
        from_ns,
        until_ns,
        period_ns: 0,
        is_silent: false,
    }
}

fn page(dice: &mut Dice) -> Page {
    let says = match dice.between(0, 5) {
        0 => Says::Nothing,
        1 => Says::Busy(dice.between(1, 400)),
        2 => Says::Unseen(dice.between(1, 400)),
        3 => Says::Now(time(dice, 100 * US, 50 * MS)),
        4 => Says::Swings,
        _ => Says::Most,
    };
    Page::of_one_percent(dice.between(1, 64), says)
}

/// Describes the containers in short.
fn name(containers: &[Container]) -> String {
    let of = |container: &Container| {
        let jobs: Vec<_> = container.members.iter().flat_map(|member| &member.jobs).collect();
        let length = jobs.first().map_or(0, |job| job.length.most());
        format!("{} x {} us", jobs.len(), length / US)
    };
    containers.iter().map(of).collect::<Vec<_>>().join(" + ")
}
