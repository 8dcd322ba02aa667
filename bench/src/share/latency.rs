//! How long the requests of a container take that finds the card lent: a kernel of 4 ms each 30 ms, waited for, under a
//! guarantee of 70 %.
//!
//! Beside another container with kernels of 10 us without end: of low priority, of 30 % that borrows, and of a fixed 30 %.

use super::cell::Bench;
use crate::report::Report;
use crate::run::{Effort, Result};
use crate::world::World;
use serde_json::json;
use std::fs;

/// The other container, and its variables.
const OTHERS: [(&str, &[(&str, &str)]); 4] = [
    ("nothing", &[]),
    ("low priority", &[("GPU_CORE_PRIORITY", "low")]),
    ("30 % that borrows", &[("GPU_CORE_POLICY", "burst")]),
    ("a fixed 30 %", &[]),
];
/// How much longer the 99th percentile may be beside low priority: a kernel of 4 ms waits for 0.5 ms of borrowed work, and
/// for it to be seen.
const LONGER: f64 = 1.3;

/// Measures them.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result {
    let mut alone = None;
    for (name, variables) in OTHERS {
        let [half, most] = requests(bench, name != "nothing", variables)?;
        report.line(json!({
            "kind": "requests on the stub",
            "beside": name,
            "p50_ms": (half / 1e3).round() / 1e3,
            "p99_ms": (most / 1e3).round() / 1e3,
        }));
        let alone = *alone.get_or_insert(most);
        if name == "low priority" && bench.effort == Effort::Full {
            let what = format!("p99 of a request beside {name}: {:.2} of alone", most / alone);
            report.check(&what, most <= alone * LONGER);
        }
    }
    Ok(())
}

/// Half of the requests take at most this long, and 99 of a hundred, in nanoseconds.
fn requests(bench: &Bench, is_beside: bool, variables: &[(&str, &str)]) -> Result<[f64; 2]> {
    let card = bench.card()?;
    let length = bench.length(10_000);
    let mut owner = bench.client(World::Shared(70), &card, "ledger-0", 2000)?;
    let mut other = match is_beside {
        true => Some(bench.client_with(World::Shared(30), variables, &card, "ledger-1", 2000)?),
        false => None,
    };
    let command = format!("share-requests 4000 {length}");
    let beside = format!("share-async 10 {length}");
    owner.order(&command)?;
    other.iter_mut().try_for_each(|other| other.order(&beside))?;
    let answer = owner.hear(&command)?;
    other.iter_mut().try_for_each(|other| other.hear(&beside).map(drop))?;
    drop((owner, other));
    fs::remove_dir_all(&card)?;
    Ok([answer.get("p50"), answer.get("p99")])
}
