//! The shares of cells in virtual time, as a Markdown table.

use serde_json::Value;
use std::fmt::Write as _;

/// Containers alone, then those beside each other.
pub(super) fn text(lines: &[Value]) -> String {
    [alone(lines), side_by_side(lines)]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// A row per container of each group.
fn side_by_side(lines: &[Value]) -> String {
    let groups = lines.iter().filter(|line| line["kind"] == "shares side by side");
    let groups = groups.filter_map(|line| line["containers"].as_array());
    let mut text = String::new();
    for (place, containers) in groups.enumerate() {
        if place == 0 {
            text.push_str(
                "**Containers side by side (W17), simulated, virtual time**: points of the card.\n\n\
                 | beside each other | asked | goal | share | mean error | worst second | throughput | charged / busy | \
                 within its bound (mean, second, throughput) |\n\
                 |---|---:|---:|---:|---:|---:|---:|---:|---|\n",
            );
        }
        for (place, cell) in containers.iter().enumerate() {
            let number = |name: &str| cell[name].as_f64().unwrap_or(f64::NAN);
            let bound = |name: &str| cell["bound"][name].as_f64().unwrap_or(f64::NAN);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {}{} | {} % | {:.1} | {:.2} | {:+.2} | {:+.2} | {:.3} | {:.3} | {} (+{} -{}, {}, {}) |",
                if place == 0 { "" } else { "and " },
                cell["workload"].as_str().unwrap_or_default(),
                cell["percent"],
                number("goal"),
                number("share"),
                number("error"),
                number("worst_second"),
                number("throughput"),
                number("charged"),
                if cell["met"] == true { "yes" } else { "**no**" },
                bound("mean"),
                bound("below"),
                bound("window"),
                bound("throughput"),
            );
        }
    }
    text
}

/// A row per workload and percentage: the mean's error and the worst second.
fn alone(lines: &[Value]) -> String {
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
