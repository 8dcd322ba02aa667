//! The table of cells, a line for each result.

use super::scene::Found;
use super::switches::Switches;

pub(super) const HEADER: &str = "| cell | switches of the card | asked | can use | got | with switches | poorest second | richest second | \
                      richest 10 s | charged / busy | beyond its bound | besides (ms) | holds |\n\
                      |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|";

pub(super) fn line(name: &str, switches: Switches, found: &Found) -> String {
    let extra = found.extra.map_or_else(String::new, |(is, most)| format!("{is:.3} of {most:.3}"));
    format!(
        "| {name} | {switches} | {} | {:.1} | {:.2} | {:.2} | {:.1} | {:.1} | {:.1} | {:.2} | {:+.1} | {extra} | {} |",
        found.asked,
        found.goal,
        found.got,
        found.with_switches,
        found.seconds.0,
        found.seconds.1,
        found.most,
        found.charged,
        found.over.max(found.under),
        match (found.holds(), found.by_switches) {
            (true, _) => "yes",
            (false, true) => "**no**: switches",
            (false, false) => "**no**",
        },
    )
}
