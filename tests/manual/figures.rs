//! The figures of the page on accuracy are those of the simulation that was kept.

use gpucap_tests::{Result, Stop, project};
use serde_json::Value;
use std::fs;

/// The cells of a simulation, each as the bench wrote it.
struct Kept {
    alone: Vec<Value>,
    groups: Vec<Vec<Value>>,
}

impl Kept {
    /// Those of the latest file.
    fn latest() -> Result<Self> {
        let results = fs::read_dir(project().join("bench/results"))?.flatten();
        let is_one = |name: &str| name.starts_with("accuracy-") && name.ends_with(".jsonl");
        let mut files: Vec<_> = results
            .map(|entry| entry.path())
            .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_one))
            .collect();
        files.sort();
        let file = files.pop().ok_or_else(|| Stop::fail("no simulation was kept"))?;
        let (mut alone, mut groups) = (Vec::new(), Vec::new());
        for line in fs::read_to_string(file)?.lines() {
            let line: Value = serde_json::from_str(line).map_err(Stop::fail)?;
            match line["containers"].as_array() {
                Some(containers) => groups.push(containers.clone()),
                None if line["percent"].is_number() => alone.push(line),
                None => {}
            }
        }
        Ok(Self { alone, groups })
    }

    /// A figure of each cell of a workload alone.
    fn of(&self, workload: &str, figure: &str) -> impl Iterator<Item = f64> {
        let is_it = |cell: &&Value| {
            cell["workload"].as_str().is_some_and(|name| name.starts_with(workload))
        };
        self.alone
            .iter()
            .filter(is_it)
            .map(|cell| number(cell, figure))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The error of one container of the group of these workloads and percentages.
    fn error(&self, group: &[(&str, u64)], at: usize) -> Result<f64> {
        let is_it = |containers: &&Vec<Value>| {
            containers.len() == group.len()
                && containers.iter().zip(group).all(|(it, (workload, percent))| {
                    it["workload"] == *workload && it["percent"] == *percent
                })
        };
        let found = self.groups.iter().find(is_it);
        let found = found.ok_or_else(|| Stop::fail(format!("no group of {group:?}")))?;
        Ok(number(&found[at], "error"))
    }
}

fn number(cell: &Value, figure: &str) -> f64 {
    cell[figure].as_f64().unwrap_or(f64::NAN)
}

/// Each sentence with a figure that a simulation gives is on the page, in the line that is about it.
pub(crate) fn of_the_accuracy() -> Result {
    let kept = Kept::latest()?;
    let page = fs::read_to_string(project().join("docs/src/design/accuracy.md"))?;
    let is_said = |of: &str, sentence: &str| {
        page.lines().any(|line| line.contains(of) && line.contains(sentence))
    };
    let mut missing = sentences(&kept)?;
    missing.retain(|(of, sentence)| !is_said(of, sentence));
    if missing.is_empty() {
        return Ok(());
    }
    Err(Stop::fail(format!("the page on accuracy does not say:\n{missing:#?}")))
}

/// What a line has to say, after what shows which line that is.
fn sentences(kept: &Kept) -> Result<Vec<(&'static str, String)>> {
    let most = |workload: &str, figure: &str| {
        let figures = kept.of(workload, figure).map(f64::abs);
        figures.reduce(f64::max).ok_or_else(|| Stop::fail(format!("no cells of {workload}")))
    };
    let less = |workload: &str| -> Result<String> {
        let mean = -kept.of(workload, "error").fold(0.0, f64::min);
        let second = most(workload, "worst_second")?;
        Ok(format!("the mean up to {mean:.1} points less, a second up to {second:.1} |"))
    };
    let within = |workload: &str| -> Result<String> {
        let (mean, second) = (most(workload, "error")?, most(workload, "worst_second")?);
        Ok(format!("the mean within {mean:.1} points; a second by up to {second:.1} points |"))
    };
    let sum: f64 = kept.alone.iter().map(|cell| number(cell, "error").abs()).sum();
    #[allow(clippy::cast_precision_loss, reason = "a few hundred cells")]
    let mean = sum / kept.alone.len() as f64;
    let errors = || kept.groups.iter().flatten().map(|cell| number(cell, "error"));
    let (above, below) = (errors().fold(0.0, f64::max), errors().fold(0.0, f64::min));
    let both = |group: &[(&str, u64)]| -> Result<String> {
        let (one, two) = (kept.error(group, 0)?, kept.error(group, 1)?);
        Ok(format!("| {one:.1} points above, {:.1} below |", -two))
    };
    let mixed = kept.error(&[("1 ms kernels", 30), ("W6 25 kernels mixed", 60)], 1)?;
    let long = kept.error(&[("W10 inference 4 ms", 30), ("W2 40 ms kernels", 70)], 1)?;
    Ok(vec![
        ("miss their goal", format!("by {mean:.2} points in the mean of all cells")),
        ("25 groups", format!("gets at most {above:.1} points above its share in the mean")),
        ("| limits of more than 100 %", format!("up to {:.1} points below its limit", -below)),
        ("| three threads", less("W18 3 threads")?),
        ("| two processes of a pipeline", less("H3 two processes")?),
        ("| kernels of 10 us of which one in ten takes 10 ms", within("W19 10 us, some 10 ms")?),
        ("| kernels of 10 us of which one in ten takes 1 ms", within("W20 10 us, some 1 ms")?),
        (
            "| kernels of 300 us, two containers of 50 %",
            both(&[("300 us kernels", 50), ("300 us kernels", 50)])?,
        ),
        (
            "| kernels of 300 us at 50 % beside kernels of 40 ms",
            both(&[("300 us kernels", 50), ("W2 40 ms kernels", 50)])?,
        ),
        ("| kernels of 1 ms at 30 %", format!("the mixed ones {mixed:.1} points above")),
        ("| requests of 4 ms", format!("the long ones {:.1} points below", -long)),
    ])
}
