//! Names of the driver that a limit would have to know, and does not.
//!
//! Every name that real drivers export, or that newer ones are known to have, and whose form speaks
//! of memory, of launching or of sizes, is a row of the shim's tables or stands in `reasons.txt`. A
//! name that must be a row cannot be excused, only put off: `later:`. So a new driver's names
//! cannot pass unseen, and every gap is counted.
//!
//! The names are facts in `tests/fixtures`; a driver that has been fetched is asked for its own.

mod reasons;

use gpucap_tests::{Driver, Result, Stop, main as harness, project, rows, trial};
use reasons::Reason;
use std::collections::BTreeSet;
use std::process::{Command, ExitCode};

/// What makes a name of libcuda one that a limit may have to know.
const CUDA_FORMS: &[&str] = &[
    "Alloc",
    "Array",
    "Capture",
    "Checkpoint",
    "Create",
    "Ctx",
    "Destroy",
    "Free",
    "Graph",
    "Heap",
    "Import",
    "Instantiate",
    "Launch",
    "Limit",
    "Load",
    "Map",
    "Mem",
    "Pool",
    "Release",
    "Unload",
];
/// The same for libnvidia-ml.
const NVML_FORMS: &[&str] = &["Accounting", "Memory", "Process", "Sample", "Utilization"];

fn main() -> ExitCode {
    let mut trials = vec![
        trial("every name of the fixtures has a row or a reason", fixtures),
        trial("no line of the list is superfluous", needed),
        trial("a name that must have a row is excused only for later", musts),
        trial("every row is a name of a known driver", known),
        trial("a name without a row or a reason is found", bites),
    ];
    for driver in Driver::REAL {
        let name = format!("every name that is exported has a row or a reason ({driver})");
        trials.push(trial(name, move || exported(&driver)));
    }
    if let Ok((gaps, forms)) = gaps() {
        println!(
            "coverage: {gaps} lines of tests/coverage/reasons.txt say `later:`, for {forms} names"
        );
    }
    harness(trials)
}

fn fixtures() -> Result {
    complain(&uncovered(&fixture_names()?, &list()?))
}

fn exported(driver: &Driver) -> Result {
    let Some(libraries) = driver.libraries()? else { return Err(Stop::skip("no driver")) };
    let mut names = BTreeSet::new();
    for library in ["libcuda.so.1", "libnvidia-ml.so.1"] {
        let output = Command::new("nm")
            .args(["--dynamic", "--defined-only", "--format=posix"])
            .arg(libraries.join(library))
            .output()
            .map_err(|error| Stop::skip(format!("nm: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let symbols = text.lines().filter_map(|line| line.split([' ', '@']).next());
        names.extend(symbols.map(str::to_owned));
    }
    if names.len() < 500 {
        return Err(Stop::fail(format!("only {} names", names.len())));
    }
    complain(&uncovered(&names, &list()?))
}

/// A line that no name needs, or a name that two lines claim, is a slip.
fn needed() -> Result {
    let (names, list) = (fixture_names()?, list()?);
    let open = |name: &&String| is_shaped(name) && !rows::has(name);
    let mut faults = Vec::new();
    for reason in &list {
        let pattern = reason.pattern();
        if !names.iter().filter(open).any(|name| reason.covers(name)) {
            faults.push(format!("{pattern}: nothing needs this line; take it off the list"));
        }
    }
    for name in names.iter().filter(open) {
        let claims: Vec<_> = list.iter().filter(|reason| reason.covers(name)).collect();
        if claims.len() > 1 {
            let lines = claims.iter().map(|reason| reason.pattern()).collect::<Vec<_>>();
            faults.push(format!("{name}: more than one line: {}", lines.join(", ")));
        }
    }
    complain(&faults)
}

fn musts() -> Result {
    let list = list()?;
    let faults: Vec<_> = lines("coverage/must.txt")?
        .into_iter()
        .filter(|name| !rows::has(name))
        .filter(|name| !list.iter().any(|reason| reason.covers(name) && reason.is_gap()))
        .map(|name| format!("{name}: must have a row, or a line that says `later:`"))
        .collect();
    complain(&faults)
}

fn known() -> Result {
    let names = fixture_names()?;
    let faults: Vec<_> = rows::CUDA
        .iter()
        .chain(rows::NVML)
        .filter(|row| !names.contains(row.symbol))
        .map(|row| format!("{}: no driver has it", row.symbol))
        .collect();
    complain(&faults)
}

/// The test can fail: a list that lacks a line is noticed, and so is a name from a driver to come.
fn bites() -> Result {
    let mut names = fixture_names()?;
    names.insert("cuMemAllocFromTheFuture_v7_ptsz".into());
    let mut list = list()?;
    list.retain(|reason| !reason.covers("cuLinkCreate_v2"));
    let found = uncovered(&names, &list);
    let expected = ["cuLinkCreate", "cuLinkCreate_v2", "cuMemAllocFromTheFuture_v7_ptsz"];
    let named = |name: &&str| found.iter().any(|fault| fault.starts_with(&format!("{name}:")));
    if found.len() == expected.len() && expected.iter().all(named) {
        Ok(())
    } else {
        Err(Stop::fail(found.join("\n")))
    }
}

/// How many lines say `later:`, and for how many names.
fn gaps() -> Result<(usize, usize)> {
    let (names, list) = (fixture_names()?, list()?);
    let gaps: Vec<_> = list.iter().filter(|reason| reason.is_gap()).collect();
    let open = |name: &&String| {
        is_shaped(name) && !rows::has(name) && gaps.iter().any(|reason| reason.covers(name))
    };
    Ok((gaps.len(), names.iter().filter(open).count()))
}

fn uncovered(names: &BTreeSet<String>, list: &[Reason]) -> Vec<String> {
    names
        .iter()
        .filter(|name| is_shaped(name) && !rows::has(name))
        .filter(|name| !list.iter().any(|reason| reason.covers(name)))
        .map(|name| format!("{name}: neither a row nor on the list of reasons"))
        .collect()
}

fn is_shaped(name: &str) -> bool {
    let forms = match name {
        _ if name.starts_with("cu") => CUDA_FORMS,
        _ if name.starts_with("nvml") => NVML_FORMS,
        _ => &[],
    };
    forms.iter().any(|form| name.contains(form))
}

/// Every name that a driver is known to have.
fn fixture_names() -> Result<BTreeSet<String>> {
    let files = ["libcuda_555.txt", "libnvidia_ml_535.txt", "surface_13.5.txt"];
    let mut names = BTreeSet::new();
    for file in files {
        names.extend(lines(&format!("fixtures/{file}"))?);
    }
    Ok(names)
}

fn list() -> Result<Vec<Reason>> {
    reasons::read(&std::fs::read_to_string(project().join("tests/coverage/reasons.txt"))?)
}

fn lines(file: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(project().join("tests").join(file))?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn complain(faults: &[String]) -> Result {
    if faults.is_empty() { Ok(()) } else { Err(Stop::fail(faults.join("\n"))) }
}
