//! Every row of the tables of intercepted functions, with the shim and without: what the application sees is equal,
//! and the driver is called as often. Caps of the size of the card, so that no limit has a say.
//!
//! Two kinds of calls: the useful ones of [`cases`], which has at least one for every row; and every row's function
//! with nothing but zeros, in each state in which a program can be. The latter also on real drivers, which without a
//! card refuse `cuInit`, so that there the states are those before and after a refusal.
//!
//! With `--cases` it only prints the cases, a line `row TAB command` each: `ci/gpu` takes them to a card.

mod cases;

use gpucap_tests::{Driver, Program, Result, Run, Stop, World, main as harness, trial};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

macro_rules! cuda_symbols {
    ($($(#[$doc:meta])* fn $symbol:ident($($arguments:tt)*) => $module:ident::$handler:ident, $class:ident,
        $base:literal @ $since:literal $($stream:ident)?;)*) => {
        const CUDA: &[&str] = &[$(stringify!($symbol)),*];
    };
}
gpucap_abi::cuda_api!(cuda_symbols);

macro_rules! nvml_symbols {
    ($($(#[$doc:meta])* fn $symbol:ident($($arguments:tt)*) => $module:ident::$handler:ident, $class:ident;)*) => {
        const NVML: &[&str] = &[$(stringify!($symbol)),*];
    };
}
gpucap_abi::nvml_api!(nvml_symbols);

/// What a program has done before.
const STATES: [(&str, &[&str]); 3] = [
    ("before cuInit", &[]),
    ("without a context", &["call cuInit 0", "call nvmlInit_v2"]),
    (
        "with a context",
        &[
            "call cuInit 0",
            "call nvmlInit_v2",
            "call cuDevicePrimaryCtxRetain &h 0",
            "call cuCtxSetCurrent h",
        ],
    ),
];

/// What the shim asks the driver by itself: the size of a card, of which a cap may be a share, how much of it is in use
/// while code is loaded, and the pool that an allocation will come from. These may be called more often, never less. Lists of processes are made from the book, so
/// NVML's may be called less often.
const OWN_QUESTIONS: &[&str] = &[
    "cuDeviceTotalMem_v2",
    "cuDeviceGetGraphMemAttribute",
    "cuMemPoolGetAttribute",
    "cuDeviceGetMemPool",
    "cuMemGetInfo_v2",
    "nvmlDeviceGetMemoryInfo",
];

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some("--cases") {
        return print_cases();
    }
    let mut trials = vec![trial("every row has a case", every_row_has_a_case)];
    for (symbol, script) in cases::all() {
        trials.push(trial(format!("{symbol}: a useful call is as without the shim"), move || {
            let context = STATES[2].1;
            same(&Driver::Stub, &[context, script].concat()).map(drop)
        }));
    }
    for (state, before) in STATES {
        for driver in [Driver::Stub].into_iter().chain(Driver::REAL) {
            let name = format!("all rows: zeros {state} are as without the shim ({driver})");
            trials.push(trial(name, move || zeros(&driver, before)));
        }
    }
    harness(trials)
}

fn print_cases() -> ExitCode {
    for (symbol, script) in cases::all() {
        for command in script {
            println!("{symbol}\t{command}");
        }
    }
    ExitCode::SUCCESS
}

fn every_row_has_a_case() -> Result {
    let cases = cases::all();
    let lacks = |symbol: &&&str| !cases.iter().any(|(covered, _)| covered == *symbol);
    let missing: Vec<_> = CUDA.iter().chain(NVML).filter(lacks).collect();
    if missing.is_empty() { Ok(()) } else { Err(Stop::fail(format!("{missing:?}"))) }
}

/// All rows in one process; where it crashes, as it must in both worlds, a new one goes on. The stub is brought into
/// the state before each row, which may have ended it; a real driver has no context to lose, and refuses slowly.
fn zeros(driver: &Driver, before: &[&str]) -> Result {
    let symbols = CUDA.iter().chain(NVML);
    let calls: Vec<String> = symbols.map(|it| format!("call {it} 0 0 0 0 0 0 0 0")).collect();
    let mut rest: Vec<&str> = calls.iter().map(String::as_str).collect();
    while !rest.is_empty() {
        let (script, step) = if *driver == Driver::Stub {
            let each = rest.iter().flat_map(|call| before.iter().chain([call]));
            (each.copied().collect(), before.len() + 1)
        } else {
            ([before, &rest].concat(), 1)
        };
        let answered = same(driver, &script)?;
        let first = script.len() - rest.len() * step;
        let done = answered.saturating_sub(first) / step + 1;
        rest.drain(..done.min(rest.len()));
    }
    Ok(())
}

/// Runs the script in both worlds and compares. How many of its lines were answered.
fn same(driver: &Driver, script: &[&str]) -> Result<usize> {
    let bare = obey(&World::bare(driver.clone()), script)?;
    let capped = obey(&World::capped(driver.clone())?, script)?;
    for (line, (bare, capped)) in script.iter().zip(bare.answers.iter().zip(&capped.answers)) {
        if bare != capped {
            return Err(Stop::fail(format!(
                "{script:#?}\n{line}\nwithout the shim: {bare}\nwith it: {capped}"
            )));
        }
    }
    let ends = |seen: &Seen| (seen.answers.len(), seen.signal);
    if ends(&bare) != ends(&capped) {
        let (bare, capped) = (ends(&bare), ends(&capped));
        return Err(Stop::fail(format!(
            "{script:#?}\nanswers, signal: {bare:?} became {capped:?}"
        )));
    }
    let calls = |seen: &Seen, symbol| seen.calls.get(symbol).copied().unwrap_or_default();
    for symbol in CUDA.iter().chain(NVML) {
        let (bare, capped) = (calls(&bare, *symbol), calls(&capped, *symbol));
        let asked = OWN_QUESTIONS.contains(symbol) && bare < capped;
        let answered = symbol.contains("Process") && bare > capped;
        if bare != capped && !asked && !answered {
            return Err(Stop::fail(format!(
                "{script:#?}\n{bare} calls of {symbol} became {capped}"
            )));
        }
    }
    Ok(bare.answers.len())
}

/// What a program can see of a run, and what the driver saw.
struct Seen {
    answers: Vec<String>,
    signal: Option<i32>,
    calls: BTreeMap<String, usize>,
}

fn obey(world: &World, script: &[&str]) -> Result<Seen> {
    let run = card(world.run(&Program::new("caller").build()?)?);
    let trace = run.directory().join("trace");
    let mut caller = run.env("STUB_GPU_TRACE", &trace).start()?;
    for line in script {
        // A call may be the program's last, as it is without the shim; then nobody reads on.
        drop(caller.order(line));
    }
    let output = caller.end()?;
    let answers = output.stdout.lines().map(comparable).collect();
    Ok(Seen { answers, signal: output.signal(), calls: calls(&trace)? })
}

/// A small card, so that no size can be taken for an address, with caps of its size, all of its time and contexts free
/// of charge.
fn card(run: Run) -> Run {
    run.env("STUB_GPU_MEM", "2GiB")
        .env("GPU_MEM_LIMIT", "2Gi")
        .env("GPU_CORE_PCT", "100")
        .env("GPUCAP_CONTEXT_MEM", "0")
        .env("STUB_GPU_CONTEXT_MEM", "0")
}

/// An answer without what may differ from run to run: addresses.
fn comparable(answer: &str) -> String {
    let word = |word: &str| match u64::from_str_radix(word, 16) {
        Ok(0x1111_1111_1111_1111) => "unwritten".into(),
        Ok(value) if value >= 1 << 40 => "address".into(),
        _ => word.to_owned(),
    };
    answer.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// How often the stub was called by each name; a real driver keeps no trace.
fn calls(trace: &Path) -> Result<BTreeMap<String, usize>> {
    let mut calls = BTreeMap::new();
    if trace.exists() {
        for line in fs::read_to_string(trace)?.lines() {
            let symbol = line.split(' ').nth(1).unwrap_or_default();
            *calls.entry(symbol.to_owned()).or_default() += 1;
        }
    }
    Ok(calls)
}
