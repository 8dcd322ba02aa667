//! The shares of the cells on the stub, as Markdown tables.

use serde_json::Value;
use std::fmt::Write as _;

/// The tables of one program alone, and of two containers.
pub(super) fn text(lines: &[Value]) -> String {
    let mut text = String::new();
    cells(lines, &mut text);
    pairs(lines, &mut text);
    text
}

/// A row per cell; the unlimited one begins each workload.
fn cells(lines: &[Value], text: &mut String) {
    let mut cells = lines.iter().filter(|line| line["kind"] == "share on the stub").peekable();
    if cells.peek().is_none() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "**Shares of the stub's card, real clock**: percent of the card. A busy machine leaves less.\n\n\
         | workload | asked | goal | share | error | lowest, highest second | charged / busy | throughput | \
         launch p50, p99, most (us) | processor per launch, unlimited (us) |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for cell in cells {
        let number = |name: &str| cell[name].as_f64().unwrap_or(f64::NAN);
        let wait = |place: usize| cell["wait_us"][place].as_f64().unwrap_or(f64::NAN);
        let asked = cell["percent"]
            .as_u64()
            .map_or_else(|| "unset".into(), |percent| format!("{percent} %"));
        let charged =
            cell["charged"].as_f64().map_or_else(String::new, |part| format!("{part:.3}"));
        let _ = writeln!(
            text,
            "| {} | {asked} | {:.1} | {:.2} | {:+.2} | {:.2}, {:.2} | {charged} | {:.3} | \
             {:.1}, {:.1}, {:.0} | {:.2}, {:.2} |",
            cell["workload"].as_str().unwrap_or_default(),
            number("goal"),
            number("share"),
            number("share") - number("goal"),
            number("lowest_second"),
            number("highest_second"),
            number("throughput"),
            wait(0),
            wait(1),
            wait(2),
            number("processor_us"),
            number("processor_us_unlimited"),
        );
    }
}

/// A row for two containers with their pages, and one without.
fn pairs(lines: &[Value], text: &mut String) {
    let mut rows =
        lines.iter().filter(|line| line["kind"] == "two containers on the stub").peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(
        text,
        "\n**Two containers on the stub's card, at 30 and 70 %**: percent of the card.\n\n\
         | workload | usage page | share at 30, at 70 % | charged / busy |\n\
         |---|---|---:|---:|"
    );
    for row in rows {
        let number = |name: &str, place: usize| row[name][place].as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "| {} | {} | {:.2}, {:.2} | {:.3}, {:.3} |",
            row["workload"].as_str().unwrap_or_default(),
            if row["page"] == true { "yes" } else { "no" },
            number("share", 0),
            number("share", 1),
            number("charged", 0),
            number("charged", 1),
        );
    }
}
