//! What a run found: rows, self-checks, JSON lines, and a table for people.
//!
//! A row is a difference between two samples of the same run, or a single quantity where there is
//! nothing to compare it with. The table is made from the JSON lines, so that one from last year
//! prints like one from just now.

mod accuracy;
mod share;

use crate::measure::Sample;
use serde_json::{Value, json};
use std::cell::Cell;
use std::fmt::Write as _;

/// What a row counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Instructions of the processor.
    Instructions,
    /// Bytes.
    Bytes,
    /// Things.
    Count,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Instructions => "instructions",
            Self::Bytes => "bytes",
            Self::Count => "",
        }
    }
}

/// One measurement.
#[derive(Debug)]
pub struct Row {
    what: String,
    unit: Unit,
    bare: Option<Sample>,
    shim: Sample,
    at_most: Option<f64>,
}

impl Row {
    /// The difference that the shim makes.
    #[must_use]
    pub fn difference(what: impl Into<String>, unit: Unit, bare: &Sample, shim: &Sample) -> Self {
        let (bare, shim) = (Some(bare.clone()), shim.clone());
        Self { what: what.into(), unit, bare, shim, at_most: None }
    }

    /// A quantity by itself.
    #[must_use]
    pub fn single(what: impl Into<String>, unit: Unit, sample: Sample) -> Self {
        Self { what: what.into(), unit, bare: None, shim: sample, at_most: None }
    }

    /// Sets what the difference of the medians must not exceed.
    #[must_use]
    pub const fn at_most(mut self, target: f64) -> Self {
        self.at_most = Some(target);
        self
    }

    fn to_json(&self, bench: &str) -> Value {
        let bare = self.bare.as_ref().map_or(0.0, Sample::median);
        let difference = self.shim.median() - bare;
        json!({
            "kind": "row",
            "bench": bench,
            "what": self.what,
            "unit": self.unit.name(),
            "bare": self.bare.as_ref().map(sample_to_json),
            "shim": sample_to_json(&self.shim),
            "difference": round(difference),
            "at_most": self.at_most,
            "met": self.at_most.map(|target| difference <= target),
        })
    }
}

fn sample_to_json(sample: &Sample) -> Value {
    json!({
        "median": round(sample.median()),
        "p99": round(sample.p99()),
        "least": round(sample.least()),
        "samples": sample.count(),
    })
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Everything a run found.
#[derive(Debug, Default)]
pub struct Report {
    lines: Vec<Value>,
    bench: String,
    only: String,
    wanted: Cell<usize>,
}

impl Report {
    /// Begins with the facts of the machine.
    #[must_use]
    pub fn new(machine: Value) -> Self {
        Self { lines: vec![machine], ..Self::default() }
    }

    /// Simulated cells without this in their names are left out; of some benches, whole parts.
    #[must_use]
    pub fn with_only(self, only: String) -> Self {
        Self { only, ..self }
    }

    /// Returns whether a simulated cell is to be run.
    #[must_use]
    pub fn wants(&self, cell: &str) -> bool {
        let is_wanted = cell.contains(&self.only);
        self.wanted.set(self.wanted.get() + usize::from(is_wanted));
        is_wanted
    }

    /// How many were to be run so far.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.wanted.get()
    }

    /// Returns whether a part is to be run, or some of its cells, which are named `part: cell`.
    #[must_use]
    pub fn wants_of(&self, part: &str) -> bool {
        self.wants(part) || self.only.starts_with(&format!("{part}: "))
    }

    /// What follows belongs to this bench.
    pub fn begin(&mut self, bench: &str) {
        bench.clone_into(&mut self.bench);
    }

    /// Adds a measurement.
    pub fn row(&mut self, row: &Row) {
        self.lines.push(row.to_json(&self.bench));
    }

    /// Adds a line of another kind than a row.
    pub fn line(&mut self, line: Value) {
        self.lines.push(line);
    }

    /// Adds a self-check: whether what was measured is what was meant.
    pub fn check(&mut self, what: &str, holds: bool) {
        let bench = &self.bench;
        self.lines.push(json!({"kind": "check", "bench": bench, "what": what, "holds": holds}));
    }

    /// Notes that a bench, or a part of it, could not be done.
    pub fn skip(&mut self, why: &str) {
        self.lines.push(json!({"kind": "skipped", "bench": self.bench, "why": why}));
    }

    /// All of it as JSON lines.
    #[must_use]
    pub fn json_lines(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// All of it for people.
    #[must_use]
    pub fn text(&self) -> String {
        text(&self.lines)
    }

    /// How many self-checks held, did not hold, and could not be made.
    #[must_use]
    pub fn checks(&self) -> (usize, usize, usize) {
        let count =
            |wanted: &dyn Fn(&Value) -> bool| self.lines.iter().filter(|line| wanted(line)).count();
        (
            count(&|line| line["holds"] == json!(true)),
            count(&|line| line["holds"] == json!(false)),
            count(&|line| line["kind"] == "skipped"),
        )
    }
}

/// Lines of an earlier run, for people.
///
/// # Errors
/// The first line that is not JSON.
pub fn text_of_lines(lines: &str) -> serde_json::Result<String> {
    lines.lines().map(serde_json::from_str).collect::<Result<Vec<_>, _>>().map(|all| text(&all))
}

fn text(lines: &[Value]) -> String {
    let mut text = String::new();
    for line in lines.iter().filter(|line| line["kind"] == "machine") {
        let word = |name: &str| match &line[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "**{}**, shim {}. {}, {} processors, load {}; Linux {}, {}, {}; commit {}, {}.\n",
            word("driver"),
            word("shim"),
            word("cpu"),
            word("processors"),
            word("load"),
            word("kernel"),
            word("libc"),
            word("compiler"),
            word("commit"),
            word("date"),
        );
    }
    let rows: Vec<_> = lines.iter().filter(|line| line["kind"] == "row").map(cells).collect();
    if !rows.is_empty() {
        text.push_str(&table(&rows));
    }
    let mut is_first = rows.is_empty();
    for shares in [accuracy::text(lines), share::text(lines)] {
        if !is_first && !shares.is_empty() {
            text.push('\n');
        }
        is_first &= shares.is_empty();
        text.push_str(&shares);
    }
    for line in lines {
        let _ = match line["kind"].as_str() {
            Some("check") if line["holds"] != json!(true) => {
                writeln!(text, "\n**FAILED**: {}: {}", plain(&line["bench"]), plain(&line["what"]))
            }
            Some("skipped") => {
                writeln!(text, "\nskipped: {}: {}", plain(&line["bench"]), plain(&line["why"]))
            }
            _ => Ok(()),
        };
    }
    text
}

const HEADINGS: [&str; 8] =
    ["bench", "what", "bare", "with the shim", "difference", "unit", "target", "met"];

fn cells(row: &Value) -> [String; 8] {
    let number = |value: &Value| value.as_f64().map_or_else(|| "-".into(), short);
    let met = match row["met"].as_bool() {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "",
    };
    [
        plain(&row["bench"]),
        plain(&row["what"]),
        number(&row["bare"]["median"]),
        number(&row["shim"]["median"]),
        number(&row["difference"]),
        plain(&row["unit"]),
        row["at_most"].as_f64().map_or_else(String::new, |most| format!("<= {}", short(most))),
        met.into(),
    ]
}

/// Three digits that count, no more behind the point than that.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value == value.round() => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A Markdown table with its columns in line, so that it reads well as it is.
fn table(rows: &[[String; 8]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([HEADINGS[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 8] = std::array::from_fn(width);
    let line = |cells: &[String; 8]| {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            // Numbers stand to the right.
            let _ = match column {
                2..=4 | 6 => write!(line, "| {cell:>width$} "),
                _ => write!(line, "| {cell:<width$} "),
            };
        }
        line + "|\n"
    };
    let mut table = line(&HEADINGS.map(str::to_owned));
    for (column, width) in widths.iter().enumerate() {
        let right = matches!(column, 2..=4 | 6);
        let _ = write!(table, "|{}{}", "-".repeat(width + 1), if right { ":" } else { "-" });
    }
    table.push_str("|\n");
    rows.iter().for_each(|row| table.push_str(&line(row)));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        let mut sample = Sample::default();
        values.iter().for_each(|value| sample.add(*value));
        sample
    }

    #[test]
    fn a_row_compares_medians() {
        let (bare, shim) = (sample(&[1.0, 2.0, 90.0]), sample(&[10.0, 12.0, 13.0]));
        let row = Row::difference("a", Unit::Ns, &bare, &shim).at_most(9.0).to_json("b");
        assert_eq!(row["difference"], 10.0);
        assert_eq!(row["met"], false);
        let row = Row::difference("a", Unit::Ns, &bare, &shim).at_most(10.0).to_json("b");
        assert_eq!(row["met"], true);
    }

    #[test]
    fn a_check_that_does_not_hold_is_counted_and_shown() {
        let mut report = Report::new(json!({"kind": "machine"}));
        report.begin("alloc");
        report.check("is limited", false);
        report.check("is bare", true);
        report.skip("no valgrind");
        assert_eq!(report.checks(), (1, 1, 1));
        let text = report.text();
        assert!(text.contains("**FAILED**: alloc: is limited"), "{text}");
        assert!(text.contains("skipped: alloc: no valgrind") && !text.contains("is bare"));
    }

    #[test]
    fn a_table_is_the_same_from_the_lines_of_a_file() {
        let mut report = Report::new(json!({"kind": "machine", "driver": "null"}));
        report.row(&Row::single("x", Unit::Bytes, Sample::exact(4096.0)));
        assert_eq!(text_of_lines(&report.json_lines()).expect("JSON"), report.text());
        assert!(report.text().contains("4096"));
    }
}
