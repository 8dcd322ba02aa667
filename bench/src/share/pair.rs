//! Two containers on one card, at 30 and 70 %, that can see each other's page and that cannot.
//!
//! The card goes round its processes, and what is measured of one holds turns of the other. What the second one got is
//! counted in its kernels, which run one after the other and whose length is known; the first one got the rest of what the
//! card has worked. What each was charged is in its ledger.

use super::cell::{ABOVE, Bench, ask_all};
use crate::report::Report;
use crate::run::Result;
use crate::world::{Answer, World};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// The percentages of the two.
const PERCENTAGES: [u16; 2] = [30, 70];

/// What the two do, and how long a kernel of the second one is.
struct Pair {
    name: &'static str,
    commands: [&'static str; 2],
    us: u32,
}

const PAIRS: [Pair; 3] = [
    Pair { name: "10 us beside 10 us", commands: ["share-async 10", "share-async 10"], us: 10 },
    Pair {
        name: "40 ms, sync beside 10 us",
        commands: ["share-synced 40000", "share-async 10"],
        us: 10,
    },
    Pair {
        name: "4 streams x 50 us beside training step",
        commands: ["share-streams 50", "share-training 1600"],
        us: 1600,
    },
];

/// Measures them.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result {
    for pair in &PAIRS {
        for seen in [true, false] {
            let two = measure(bench, pair, seen)?;
            for (side, percent) in two.iter().zip(PERCENTAGES) {
                let what = format!("{} at {percent} %: {:.2}", pair.name, side.share);
                report.check(
                    &format!("{what}, no more than asked"),
                    side.share > 0.0 && side.share <= f64::from(percent) + ABOVE,
                );
            }
            report.line(to_json(pair, seen, &two));
        }
    }
    Ok(())
}

/// What one of the two got, in percent of the card, and what it was charged for each percent.
struct Side {
    share: f64,
    charged: f64,
}

fn measure(bench: &Bench, pair: &Pair, seen: bool) -> Result<[Side; 2]> {
    let card = bench.card()?;
    if !seen {
        // In the place of the directory of pages there is something else.
        let user = fs::metadata(&card)?.uid();
        fs::write(card.join(format!("gpucap-{user}-pages")), "")?;
    }
    let world = |place: usize| World::Shared(PERCENTAGES[place]);
    let client = |place| bench.client(world(place), &card, &format!("ledger-{place}"), 2000);
    let mut clients = [client(0)?, client(1)?];
    let length = bench.length(4000);
    let commands = pair.commands.map(|command| format!("{command} {length}"));
    let answers = ask_all(&mut clients, &commands)?;
    drop(clients);
    fs::remove_dir_all(&card)?;
    let second = answers[1].get("rate") * f64::from(pair.us) / 1e4;
    Ok([Side::of(&answers[0], answers[0].get("share") - second), Side::of(&answers[1], second)])
}

impl Side {
    /// The client has looked at the whole card, and at its own ledger.
    fn of(answer: &Answer, share: f64) -> Self {
        Self { share, charged: answer.get("charged") * answer.get("share") / share }
    }
}

fn to_json(pair: &Pair, seen: bool, two: &[Side; 2]) -> Value {
    let round = |value: f64| (value * 1000.0).round() / 1000.0;
    json!({
        "kind": "two containers on the stub",
        "workload": pair.name,
        "percent": PERCENTAGES,
        "page": seen,
        "share": two.each_ref().map(|side| round(side.share)),
        "charged": two.each_ref().map(|side| round(side.charged)),
    })
}
