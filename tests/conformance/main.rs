//! Every row of the tables of intercepted functions, with the shim and without: what the application sees is equal,
//! and the driver is called as often. Limits of the size of the card, so that no limit has a say.
//!
//! Two kinds of calls: the useful ones of [`cases`], which has at least one for every row; and every row's function
//! with nothing but zeros, in each state in which a program can be. The latter also on real drivers, which without a
//! card refuse `cuInit`, so that there the states are those before and after a refusal.
//!
//! Beside a card both are asked of it, and of the stub whether it answers as the card: where it does not, the stub is
//! wrong. Figures of the whole card are left out then, since others may use it; [`figures`] knows which.

mod cases;
mod figures;

use gpucap_tests::{Driver, Machine, Program, Result, Run, Stop, World, main as harness, trial};
use std::collections::BTreeMap;
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

/// What the shim asks the driver by itself: the size of a card, of which a limit may be a share, how much of it is in use
/// while code is loaded, and the pool that an allocation will come from; and what a pool only kept when it is destroyed. These may
/// be called more often, never less. Lists of processes are made from the book, so NVML's may be called less often.
const OWN_QUESTIONS: &[&str] = &[
    "cuDeviceTotalMem_v2",
    "cuDeviceGetGraphMemAttribute",
    "cuMemPoolGetAttribute",
    "cuMemPoolTrimTo",
    "cuDeviceGetMemPool",
    "cuMemGetInfo_v2",
    "nvmlDeviceGetMemoryInfo",
];

fn main() -> ExitCode {
    let available = Driver::available();
    let mut trials = vec![trial("every row has a case", every_row_has_a_case)];
    for (symbol, script) in cases::all() {
        let (driver, script) = (available.clone(), [STATES[2].1, script].concat());
        if available == Driver::Card {
            let (rule, script) =
                (format!("{symbol}: the stub answers as the card"), script.clone());
            trials.push(trial(rule, move || as_the_card(&script)));
        }
        let rule = format!("{symbol}: a useful call is as without the shim");
        trials.push(trial(rule, move || same(&driver, &script).map(drop)));
    }
    let others = Driver::REAL.into_iter().filter(|_| available == Driver::Stub);
    let drivers: Vec<_> = [available.clone()].into_iter().chain(others).collect();
    for (state, before) in STATES {
        for driver in drivers.clone() {
            let name = format!("all rows: zeros {state} are as without the shim ({driver})");
            trials.push(trial(name, move || zeros(&driver, before)));
        }
    }
    harness(trials)
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
    let calls: Vec<String> = symbols.map(|it| zeros_for(it)).collect();
    let mut rest: Vec<&str> = calls.iter().map(String::as_str).collect();
    while !rest.is_empty() {
        let (script, step) = if matches!(driver, Driver::Stub | Driver::Card) {
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

/// A call with nothing but zeros. A structure of 64 bytes is an argument that arm64 passes by its address: buffer 0.
fn zeros_for(symbol: &str) -> String {
    let is_by_address =
        symbol.starts_with("cuIpcOpenMemHandle") && Machine::tested() == Machine::Arm64;
    format!("call {symbol} 0 {} 0 0 0 0 0 0", if is_by_address { "%0" } else { "0" })
}

/// Runs the script in both worlds and compares. How many of its lines were answered.
fn same(driver: &Driver, script: &[&str]) -> Result<usize> {
    let bare = obey(&World::bare(driver.clone()), script)?;
    let limited = obey(&World::with_shim(driver.clone())?, script)?;
    alike(script, ("without the shim", &bare), ("with it", &limited))?;
    let calls = |seen: &Seen, symbol| seen.calls.get(symbol).copied().unwrap_or_default();
    for symbol in CUDA.iter().chain(NVML) {
        let (bare, limited) = (calls(&bare, *symbol), calls(&limited, *symbol));
        let asked = OWN_QUESTIONS.contains(symbol) && bare < limited;
        let answered = symbol.contains("Process") && bare > limited;
        if bare != limited && !asked && !answered {
            return Err(Stop::fail(format!(
                "{script:#?}\n{bare} calls of {symbol} became {limited}"
            )));
        }
    }
    Ok(bare.answers.len())
}

/// Whether the stub is right where the card is. What ends a program there, a handle that is none, need not end it here.
fn as_the_card(script: &[&str]) -> Result {
    let card = obey(&World::bare(Driver::Card), script)?;
    let mut stub = obey(&World::bare(Driver::Stub), script)?;
    if card.signal.is_some() {
        stub.answers.truncate(card.answers.len());
        stub.signal = card.signal;
    }
    alike(script, ("the card", &card), ("the stub", &stub))
}

/// Fails at the first line that is answered in another way, and if the program ends in another way.
fn alike(script: &[&str], (one, left): (&str, &Seen), (other, right): (&str, &Seen)) -> Result {
    for (line, (left, right)) in script.iter().zip(left.answers.iter().zip(&right.answers)) {
        if left != right {
            return Err(Stop::fail(format!(
                "{line}\n{one}: {left}\n{other}: {right}\nin {script:#?}"
            )));
        }
    }
    let ends = |seen: &Seen| (seen.answers.len(), seen.signal);
    if ends(left) == ends(right) {
        return Ok(());
    }
    let (left, right) = (ends(left), ends(right));
    let line = script.get(left.0.min(right.0)).unwrap_or(&"the end");
    Err(Stop::fail(format!(
        "{line}\nanswers, signal: {one}: {left:?}; {other}: {right:?}\nin {script:#?}"
    )))
}

/// What a program can see of a run, and what the driver saw.
struct Seen {
    answers: Vec<String>,
    signal: Option<i32>,
    calls: BTreeMap<String, usize>,
}

fn obey(world: &World, script: &[&str]) -> Result<Seen> {
    let run = world.run(&Program::new("caller").build()?)?;
    let (file, text) = cases::FILE;
    fs::write(run.directory().join(file), text)?;
    let trace = run.directory().join("trace");
    let beside_a_card = Driver::available() == Driver::Card;
    let run = match world.driver() {
        Driver::Card => without_a_say(run),
        _ if beside_a_card => like_the_card(run),
        _ => card(run, &trace),
    };
    let mut caller = run.start()?;
    for line in script {
        // A call may be the program's last, as it is without the shim; then the pipe is closed.
        drop(caller.order(line));
    }
    let output = caller.end()?;
    let mut answers: Vec<String> = output.stdout.lines().map(comparable).collect();
    if beside_a_card {
        figures::leave_out(script, &mut answers);
    }
    Ok(Seen { answers, signal: output.signal(), calls: calls(&trace)? })
}

/// Limits of the card's size, all of its time and contexts free of charge.
fn without_a_say(run: Run) -> Run {
    run.env("GPU_MEM_LIMIT", "100%").env("GPU_CORE_PCT", "100").env("GPUCAP_CONTEXT_MEM", "0")
}

/// The same of a small card, so that no size can be taken for an address, and a trace of what it is called by.
fn card(run: Run, trace: &Path) -> Run {
    without_a_say(run)
        .env("STUB_GPU_MEM", "2GiB")
        .env("STUB_GPU_CONTEXT_MEM", "0")
        .env("STUB_GPU_TRACE", trace)
}

/// The stub as a card is, as far as it can be told; it takes memory in these units.
fn like_the_card(run: Run) -> Run {
    run.env("STUB_GPU_GRANULARITY", "2MiB").env("STUB_GPU_POOL_GRANULARITY", "32MiB")
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
