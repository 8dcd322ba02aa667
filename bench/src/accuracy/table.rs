//! The lines of a run as a Markdown table.

use serde_json::Value;
use std::fmt::Write as _;

/// A row per workload, a pair of columns per percentage: the mean's error and the worst second.
#[must_use]
pub fn text(lines: &[Value]) -> String {
    let cells: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "share").collect();
    let mut text = String::new();
    if cells.is_empty() {
        return text;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "**Shares, simulated, virtual time**: points of the card.\n");
    let _ = writeln!(
        text,
        "| workload | asked | goal | mean error | worst second | throughput | charged / busy | \
         metered launches | wait p50, p99, most (ms) | spun, longest (ms) | within its bound (mean, second, throughput) |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    );
    for cell in cells {
        let number = |name: &str| cell[name].as_f64().unwrap_or(f64::NAN);
        let wait = |place: usize| cell["wait_ms"][place].as_f64().unwrap_or(f64::NAN);
        let bound = |name: &str| cell["bound"][name].as_f64().unwrap_or(f64::NAN);
        let workload = cell["workload"].as_str().unwrap_or_default();
        let Some(percent) = cell["percent"].as_u64() else {
            let share = number("share");
            let _ = writeln!(text, "| {workload} | unset | {share:.1} | | | | | | | | |");
            continue;
        };
        let spun = |place: usize| cell["spun"][place].as_f64().unwrap_or(0.0);
        let spun = match spun(1) > 0.0 {
            true => format!("{:.1}, {:.1}", spun(0), spun(1)),
            false => String::new(),
        };
        let met = if cell["met"] == true { "yes" } else { "**no**" };
        let _ = writeln!(
            text,
            "| {workload} | {percent} % | {:.1} | {:+.2} | {:+.2} | {:.3} | {:.3} | {:.1} % | \
             {:.1}, {:.1}, {:.1} | {spun} | {met} (+{} -{}, {}, {}) |",
            number("goal"),
            number("error"),
            number("worst_second"),
            number("throughput"),
            number("charged"),
            100.0 * number("metered_launches"),
            wait(0),
            wait(1),
            wait(2),
            bound("mean"),
            bound("below"),
            bound("window"),
            bound("throughput"),
        );
    }
    text
}
