//! The judge of compute limits: whether the contract holds for adversarial programs, whatever the card's behaviour.
//!
//! Some properties of cards have not been measured, so these are [switches](Switches), and each cell has to hold
//! under all of them. **Simulated, virtual time: not a measurement of any GPU.**
//!
//! * [`job`]: what a thread does, as data. * [`scene`]: containers under switches, and the contract. * [`named`]:
//!   cells that once showed a defect. * [`search`]: random cells.

mod job;
pub mod named;
pub mod scene;
pub mod search;
mod switches;
mod table;
#[cfg(test)]
mod tests;

use crate::files::Files;
use crate::report::Report;
use crate::run::{Effort, Result, Stop};
use scene::{Found, Scene};
pub use switches::Switches;
use table::{HEADER, line};

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
