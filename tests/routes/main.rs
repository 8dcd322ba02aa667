//! Every way by which a program can come to a function of the driver, and whether the shim is met on it.
//!
//! A row of [`table`] is a program and the parts of the shim that catch it. It is judged in these worlds:
//!
//! * bare: the route leads to the driver itself, so the program tests what it says;
//! * with the shim: caught;
//! * with a shim that lacks every part that could catch it: missed, so the row is known to bite;
//! * with a shim that has only one set of parts that is said to suffice: caught.
//!
//! On the stub and beside a card, where only the first two are judged, caught means that the limit holds. A real driver has no card here and refuses `cuInit` by itself, so
//! there the limit is one that cannot be used, and caught means that `cuInit` refuses with our code for that.
//! [`effects`] tests what the redirect must not change.

mod effects;
mod table;

use gpucap_tests::{Driver, Output, Result, Run, Stop, World, main as harness, project, trial};
use libtest_mimic::Trial;
use std::process::ExitCode;
use table::{Api, Row};

/// The limit that the programs know as `LIMIT`.
const LIMIT: u64 = 4 << 30;
/// `CUDA_ERROR_OUT_OF_MEMORY`
const OUT_OF_MEMORY: u64 = 2;
/// `CUDA_ERROR_SYSTEM_NOT_READY`
const NOT_READY: u64 = 802;

/// The parts of the shim that `GPUCAP_TEST_OMIT` can name.
const PARTS: [&str; 9] =
    ["dlsym", "dlvsym", "dlopen", "dlmopen", "gmon", "sched", "constructor", "sweep", "pin"];

/// Whether a program met the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Caught,
    Missed,
}

fn main() -> ExitCode {
    let mut trials = effects::trials();
    if Driver::available() == Driver::Stub {
        trials.push(trial(
            "the documentation lists each route, and no other",
            the_documentation_lists_them,
        ));
    }
    for row in table::rows() {
        for driver in drivers() {
            trials.extend(trials_of(row, &driver));
        }
    }
    harness(trials)
}

/// The stub and real ones without a card, or the one with a card.
fn drivers() -> Vec<Driver> {
    match Driver::available() {
        Driver::Card => vec![Driver::Card],
        stub => [stub].into_iter().chain(Driver::REAL).collect(),
    }
}

/// The page on interception names the rows here: `| name | ...` between two marks.
fn the_documentation_lists_them() -> Result {
    let page = std::fs::read_to_string(project().join("docs/src/design/interception.md"))
        .map_err(|error| Stop::fail(error.to_string()))?;
    let table =
        page.split("<!-- routes").nth(1).and_then(|rest| rest.split("<!-- end of routes").next());
    let lines = table.unwrap_or("").lines().filter(|line| line.starts_with("| ")).skip(1);
    let listed: Vec<&str> =
        lines.filter_map(|line| line.split('|').nth(1)).map(str::trim).collect();
    let rows: Vec<&str> = table::rows().iter().map(|row| row.name).collect();
    let missing: Vec<_> = rows.iter().filter(|name| !listed.contains(name)).collect();
    let unknown: Vec<_> = listed.iter().filter(|name| !rows.contains(name)).collect();
    if missing.is_empty() && unknown.is_empty() {
        Ok(())
    } else {
        Err(Stop::fail(format!("not on the page: {missing:?}; only on the page: {unknown:?}")))
    }
}

fn trials_of(row: Row, driver: &Driver) -> Vec<Trial> {
    let test = |rule: &str, parts: Option<Vec<&'static str>>, expected: Verdict| {
        let driver = driver.clone();
        trial(format!("{}: {rule} ({driver})", row.name), move || {
            let world = match &parts {
                None => World::with_shim(driver.clone())?,
                Some(parts) => World::with_shim_lacking(driver.clone(), parts)?,
            };
            expect(row, &world, expected)
        })
    };
    let bare = driver.clone();
    let mut trials = vec![
        trial(format!("{}: reaches the driver ({driver})", row.name), move || {
            expect(row, &World::bare(bare.clone()), Verdict::Missed)
        }),
        test("caught", None, Verdict::Caught),
    ];
    if *driver == Driver::Card {
        return trials; // a shim that lacks parts is nothing to take to a card
    }
    if !row.cures.is_empty() {
        let mut all = row.cures.concat();
        all.sort_unstable();
        all.dedup();
        trials.push(test(
            &format!("missed without {}", all.join(", ")),
            Some(all),
            Verdict::Missed,
        ));
    }
    for cure in row.cures {
        let others = PARTS.into_iter().filter(|part| !cure.contains(part)).collect();
        let rule = format!("caught by {} alone", cure.join(" and "));
        trials.push(test(&rule, Some(others), Verdict::Caught));
    }
    trials
}

fn expect(row: Row, world: &World, expected: Verdict) -> Result {
    let run = limited(row.api, world.driver(), (row.prepare)(world)?);
    let output = run.output()?.success()?;
    let verdict = judge(row.api, world.driver(), &output)?;
    if verdict == expected { Ok(()) } else { Err(Stop::fail(format!("{verdict:?}: {output}"))) }
}

/// Sets the limit by which the driver's programs can be told caught or missed.
fn limited(api: Api, driver: &Driver, run: Run) -> Run {
    match (api, driver) {
        (Api::Cuda, Driver::Real(_)) => run.env("GPU_MEM_LIMIT", "not-a-size"),
        _ => run.env("GPU_MEM_LIMIT", LIMIT.to_string()),
    }
}

fn judge(api: Api, driver: &Driver, output: &Output) -> Result<Verdict> {
    let caught = match (api, driver) {
        (Api::Cuda, Driver::Real(_)) => output.number("init")? == NOT_READY,
        (Api::Cuda, _) => {
            for must_fit in ["init", "small", "large"] {
                if output.number(must_fit)? != 0 {
                    return Err(Stop::fail(format!("{must_fit} is not 0: {output}")));
                }
            }
            match output.number("over")? {
                0 => false,
                OUT_OF_MEMORY => true,
                _ => return Err(Stop::fail(format!("over is neither 0 nor 2: {output}"))),
            }
        }
        (Api::Nvml, Driver::Real(_)) => match output.value("where")? {
            "libgpucap.so" => true,
            "libnvidia-ml.so.1" | "other.so" => false,
            _ => return Err(Stop::fail(format!("an address in neither: {output}"))),
        },
        (Api::Nvml, _) => output.number("total")? == LIMIT,
    };
    Ok(if caught { Verdict::Caught } else { Verdict::Missed })
}
