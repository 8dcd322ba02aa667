//! The driver itself as the judge of what `cuGetProcAddress` answers, with the shim and without it.
//!
//! A real libcuda answers look-ups without a card. What the CUDA runtimes ask for when they start
//! was recorded (`tests/fixtures`), and is asked again of each driver, once bare and once behind
//! the shim: code and status are the driver's own, and the address is the driver's own too, unless
//! the function is one that the shim intercepts; then it is the hook of that very function. The
//! stub is held to the answers of the real driver ([`forms`]).

mod forms;
mod replay;

use forms::Forms;
use gpucap_tests::{Driver, Result, Stop, World, main as harness, project, rows, trial};
use replay::{Place, Replay};
use std::fmt::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for driver in [Driver::Stub].into_iter().chain(Driver::REAL) {
        let each = |rule: &str, body: fn(Driver) -> Result| {
            let driver = driver.clone();
            trial(format!("{rule} ({driver})"), move || body(driver.clone()))
        };
        trials.push(each("what a runtime asks for changes in nothing but our functions", runtimes));
        trials
            .push(each("any name at any version changes in nothing but our functions", all_names));
        trials.push(each("dlsym finds a hook for our functions and for no other", symbols));
    }
    for (driver, version) in [
        (Driver::Stub, 11_040),
        (Driver::Stub, 12_050),
        (Driver::Stub, 13_050),
        (Driver::Real("555"), 12_050),
    ] {
        let rule = format!("a name at a version means what the fixture says ({driver}, {version})");
        trials.push(trial(rule, move || meanings(driver.clone(), version)));
    }
    trials.push(trial("the stub exports every function that a driver does", exports));
    harness(trials)
}

/// The functions of the public headers, up to CUDA 13.5, and those that a real library exports beside them.
fn exports() -> Result {
    let stub = Replay::new(&World::bare(Driver::Stub), "", "")?;
    let fixture = |file: &str| std::fs::read_to_string(project().join("tests/fixtures").join(file));
    let names = fixture("libcuda_555.txt")? + &fixture("surface_13.5.txt")?;
    // Those for debuggers are variables and entries of no header.
    let functions = |name: &&str| name.starts_with("cu") && !name.starts_with("cudbg");
    let functions: Vec<_> = names.lines().filter(functions).collect();
    enough(functions.len(), 700)?;
    let lacks = functions.into_iter().filter(|name| !stub.symbols.contains_key(*name));
    complain(&lacks.map(str::to_owned).collect::<Vec<_>>())
}

fn runtimes(driver: Driver) -> Result {
    let requests = std::fs::read_to_string(project().join("tests/fixtures/runtime_requests.txt"))?;
    compare(driver, &requests)
}

fn all_names(driver: Driver) -> Result {
    compare(driver, &requests(&Forms::read()?))
}

/// Each name, shortly before, at and after each version that changes its meaning, for each kind of
/// caller.
fn requests(forms: &Forms) -> String {
    let mut text = String::new();
    for (name, versions) in forms.versions() {
        for version in versions {
            for flags in [0, 1, 2] {
                writeln!(text, "{name} {version} {flags}").unwrap_or_default();
            }
        }
    }
    text
}

/// The same requests in both worlds.
fn compare(driver: Driver, requests: &str) -> Result {
    let bare = Replay::new(&World::bare(driver.clone()), requests, "")?;
    let limited = Replay::new(&World::with_shim(driver)?, requests, "")?;
    if bare.answers.len() != limited.answers.len() {
        return Err(Stop::fail("not as many answers with the shim as without it"));
    }
    let mut faults = Vec::new();
    let mut hooked = 0;
    for (without, with) in bare.answers.iter().zip(&limited.answers) {
        if (&without.request, without.code, without.status)
            != (&with.request, with.code, with.status)
        {
            faults.push(format!("{without:?} became {with:?}"));
        } else if let Err(why) = same_place(&bare, &without.place, &limited, &with.place) {
            faults.push(format!("{}: {why}", with.request));
        }
        hooked += usize::from(with.place.object == replay::SHIM);
    }
    enough(hooked, 10)?;
    complain(&faults)
}

fn symbols(driver: Driver) -> Result {
    let bare = Replay::new(&World::bare(driver.clone()), "", "")?;
    let limited = Replay::new(&World::with_shim(driver)?, "", "")?;
    let mut faults = Vec::new();
    for (name, place) in &bare.symbols {
        let verdict = limited.symbols.get(name).ok_or_else(|| "not found".to_owned());
        if let Err(why) = verdict.and_then(|with| same_place(&bare, place, &limited, with)) {
            faults.push(format!("{name}: {why}"));
        }
    }
    enough(bare.symbols.len(), rows::CUDA.len())?;
    complain(&faults)
}

/// Whether an address with the shim is what it has to be, given the address without it.
fn same_place(
    bare: &Replay,
    without: &Place,
    limited: &Replay,
    with: &Place,
) -> std::result::Result<(), String> {
    let name = bare.name_at(without);
    match name.filter(|name| rows::has(name)) {
        Some(row) if with.object != replay::SHIM => Err(format!("{row} is not intercepted")),
        Some(row) if !limited.is_hook_of(with, row) => {
            Err(format!("not the hook of {row}: {with:?}"))
        }
        None if with != without => Err(format!("{without:?} ({name:?}) became {with:?}")),
        _ => Ok(()),
    }
}

/// The driver, of which the newest known version is `newest`, against the fixture.
fn meanings(driver: Driver, newest: u32) -> Result {
    let forms = Forms::read()?;
    let asked = requests(&forms);
    let replay = Replay::new(&World::bare(driver), &asked, &newest.to_string())?;
    let mut faults = Vec::new();
    for answer in &replay.answers {
        let expected = forms.meaning(&answer.name, answer.version, answer.flags, newest);
        if let Err(why) = answer.check(&replay, expected) {
            faults.push(format!("{}: {why}", answer.request));
        }
    }
    enough(replay.answers.len(), 1000)?;
    complain(&faults)
}

/// A comparison of nothing would pass.
fn enough(count: usize, least: usize) -> Result {
    if count >= least { Ok(()) } else { Err(Stop::fail(format!("only {count} to compare"))) }
}

fn complain(faults: &[String]) -> Result {
    if faults.is_empty() {
        return Ok(());
    }
    let shown = faults.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    Err(Stop::fail(format!("{} faults\n{shown}", faults.len())))
}
