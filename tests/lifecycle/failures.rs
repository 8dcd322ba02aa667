//! A driver that refuses one call, whichever it is: the limit holds all the same, and no charge is left behind.
//!
//! `processes/sequence.c` makes its calls in the order of a seed, once as they are; the driver's trace of that says
//! which functions were called, by the program and by the shim, and how often. Then the program runs again for each of
//! these calls, which fails. Who called it is seen in the trace, too: the answer is the program's if the call was, and
//! else the program's call is answered as if nothing had failed.
//!
//! `GPUCAP_TEST_POSITIONS` says how many calls of each function fail, in the orders of three seeds instead of one; `all`:
//! each of them.

use crate::{LIMIT, OUT_OF_MEMORY};
use gpucap_tests::{Driver, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::time::Duration;

/// A code that no other failure of the driver has here.
const UNKNOWN: u64 = 999;
/// What has to be known for a charge, and what is answered where it is not: the same code if no other is named.
const NEEDED: [(&str, Option<u64>); 11] = [
    ("cuCtxGetCurrent", None),
    ("cuCtxGetDevice", None),
    ("cuDeviceGetAttribute", None),
    ("cuDeviceGetMemPool", None),
    ("cuDeviceTotalMem_v2", Some(3)),
    ("cuGraphGetNodes", None),
    ("cuGraphMemAllocNodeGetParams", None),
    ("cuGraphNodeGetType", None),
    ("cuStreamIsCapturing", None),
    ("cuStreamIsCapturing_ptsz", None),
    ("cuMemGetInfo_v2", None),
];
/// Calls of the program besides those that give everything back.
const CALLS: u64 = 120;
/// What a context costs, and is charged.
const PRICE: &str = "4MiB";

pub(crate) fn trials() -> Vec<Trial> {
    let worlds: [(&'static str, &'static Setting, [u64; 3]); 5] = [
        ("for memory alone", &PLAIN, [1, 2, 3]),
        ("with pools that grow in steps and modules that take memory", &STEPS, [4, 5, 6]),
        ("with functions that take memory when they are looked up", &LOOK_UPS, [7, 8, 9]),
        ("under a limit of time", &TIMED, [10, 11, 12]),
        ("with contexts at the price that NVML tells", &PRICED, [13, 14, 15]),
    ];
    let seeds_of_each = if env::var_os("GPUCAP_TEST_POSITIONS").is_some() { 3 } else { 1 };
    let each = |(what, setting, seeds): (&'static str, &'static Setting, [u64; 3])| {
        seeds.into_iter().take(seeds_of_each).map(move |seed| {
            let name = format!("any call may fail once, {what}, in the order of seed {seed}");
            trial(name, move || each_fails(seed, setting))
        })
    };
    worlds.into_iter().flat_map(each).collect()
}

/// Settings of the stub, and how much more than the limit a look-up can take, which is not refused.
struct Setting {
    stub: &'static [(&'static str, &'static str)],
    beyond: u64,
    /// Time is limited, and passes: the order of the driver's calls is not the same each time.
    is_timed: bool,
}

const PLAIN: Setting =
    Setting { stub: &[("STUB_GPU_CLOCK", "virtual")], beyond: 0, is_timed: false };
const STEPS: Setting = Setting {
    stub: &[
        ("STUB_GPU_CLOCK", "virtual"),
        ("STUB_GPU_POOL_GRANULARITY", "2MiB"),
        ("STUB_GPU_MODULE_MEM", "3MiB"),
    ],
    beyond: 0,
    is_timed: false,
};
/// Three functions in each context.
const LOOK_UPS: Setting = Setting {
    stub: &[("STUB_GPU_CLOCK", "virtual"), ("STUB_GPU_FUNCTION_MEM", "64KiB")],
    beyond: 12 * (64 << 10),
    is_timed: false,
};
const PRICED: Setting = Setting {
    stub: &[("STUB_GPU_CLOCK", "virtual"), ("GPUCAP_CONTEXT_MEM", "")],
    beyond: 0,
    is_timed: false,
};
const TIMED: Setting =
    Setting { stub: &[("GPU_CORE_PCT", "50"), ("SEQUENCE_BUSY", "1")], beyond: 0, is_timed: true };
/// What is loaded for a look-up while the driver does not say how much memory is in use: a module in each context. It is
/// charged with the next measured call.
const UNSEEN: u64 = 4 * (3 << 20);
/// A launch that is not held up by a failure waits for work of 2 ms at most.
const STALLED_NS: u64 = 1_500_000_000;

/// A call of the driver: which of those of this function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    function: String,
    nth: usize,
}

/// A call of the program, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Call {
    function: String,
    code: u64,
    /// The driver's calls within it.
    inner: Vec<Position>,
}

fn program(seed: u64, setting: &Setting) -> Result<Run> {
    let run = World::with_shim(Driver::available())?.run(&Program::new("sequence").build()?)?;
    let directory = run.directory().to_path_buf();
    let run = [seed, CALLS, LIMIT].iter().fold(run, |run, word| run.arg(word.to_string()));
    let run = run
        .arg(directory.join("ledger"))
        .arg(&directory)
        .time_limit(Duration::from_secs(60))
        .env("STUB_GPU_TRACE", directory.join("trace"))
        .env("GPU_MEM_LIMIT", LIMIT.to_string())
        .env("GPUCAP_CONTEXT_MEM", PRICE)
        .env("STUB_GPU_CONTEXT_MEM", PRICE);
    Ok(setting.stub.iter().fold(run, |run, (name, value)| run.env(name, value)))
}

/// Runs it, and reads what was called.
fn traced(run: &Run) -> Result<(Output, Vec<Call>)> {
    let output = run.output()?;
    if output.code() != Some(0) {
        return Err(Stop::fail(format!("ended with {:?}, {:?}", output.code(), output.signal())));
    }
    let trace = fs::read_to_string(run.directory().join("trace"))?;
    let mut counts = BTreeMap::<String, usize>::new();
    let mut calls = Vec::<Call>::new();
    for line in trace.lines() {
        let (_, word) = line.split_once(' ').unwrap_or_default();
        if let Some(function) = word.strip_prefix('>') {
            calls.push(Call { function: function.to_owned(), code: 0, inner: Vec::new() });
        } else if let (Some(code), Some(call)) = (word.strip_prefix('<'), calls.last_mut()) {
            call.code = code.parse().map_err(|_| Stop::fail(line))?;
        } else if let Some(call) = calls.last_mut() {
            let nth = counts.entry(word.to_owned()).or_default();
            *nth += 1;
            call.inner.push(Position { function: word.to_owned(), nth: *nth });
        }
    }
    Ok((output, calls))
}

/// Of each function as many calls as are asked for, from the first to the last.
fn chosen(calls: &[Call]) -> Result<Vec<Position>> {
    let most = match env::var("GPUCAP_TEST_POSITIONS").as_deref() {
        Ok("all") => usize::MAX,
        Ok(text) => text.parse().map_err(|_| Stop::fail(format!("{text} positions")))?,
        Err(_) => 2,
    };
    let mut by_function = BTreeMap::<&str, Vec<&Position>>::new();
    // What is given back for the second time is what failed before.
    let calls = calls.iter().take_while(|call| call.function != "again");
    for position in calls.flat_map(|call| &call.inner) {
        by_function.entry(&position.function).or_default().push(position);
    }
    let spread = |all: Vec<&Position>| {
        let take = most.min(all.len());
        let place = |i: usize| i * (all.len() - 1) / take.saturating_sub(1).max(1);
        (0..take).map(|i| all[place(i)].clone()).collect::<Vec<_>>()
    };
    Ok(by_function.into_values().flat_map(spread).collect())
}

fn each_fails(seed: u64, setting: &Setting) -> Result {
    let (output, calls) = traced(&program(seed, setting)?)?;
    judge(&output, setting.beyond)?;
    let positions = chosen(&calls)?;
    let mut wrong = Vec::new();
    for position in &positions {
        for code in [OUT_OF_MEMORY, UNKNOWN] {
            let order = format!("{}:{code}@{}", position.function, position.nth);
            let run = program(seed, setting)?.env("STUB_GPU_FAIL", &order);
            let result = traced(&run).and_then(|(output, failed)| {
                let beyond = match position.function.as_str() {
                    "cuMemGetInfo_v2" => UNSEEN,
                    _ => setting.beyond,
                };
                judge(&output, beyond)?;
                match setting.is_timed {
                    true => held_up(&run).and_then(|()| answered_in_time(position, code, &failed)),
                    false => answered(position, code, &calls, &failed),
                }
            });
            match result {
                Err(Stop::Fail(reason)) => wrong.push(format!("{order}: {reason}")),
                other => other?,
            }
        }
    }
    println!("seed {seed}: {} calls of the driver failed, with two codes each", positions.len());
    if wrong.is_empty() { Ok(()) } else { Err(Stop::fail(wrong.join("\n"))) }
}

/// The limit held, and in the end the ledger says what the driver says.
fn judge(output: &Output, beyond: u64) -> Result {
    let [peak, short, left, held] =
        ["peak", "short", "left", "held"].map(|what| output.number(what));
    let (peak, short, left, held) = (peak?, short?, left?, held?);
    if peak <= LIMIT + beyond && short <= beyond && left == held {
        return Ok(());
    }
    let said = output.stderr.lines().next().unwrap_or_default();
    Err(Stop::fail(format!("peak {peak}, short by {short}, left {left}, held {held}; {said}")))
}

/// The program sees a failure of the call that it made, and of no other but those on which a charge depends.
fn answered(position: &Position, code: u64, usual: &[Call], failed: &[Call]) -> Result {
    let place = failed.iter().position(|call| call.inner.contains(position));
    let place = place.ok_or_else(|| Stop::fail("was not reached"))?;
    let (call, usual) = (&failed[place], &usual[place]);
    let is_right = call.is_answered(position, code) || {
        call.function != position.function && call.code == usual.code
    };
    if is_right { Ok(()) } else { Err(call.wrong()) }
}

/// The same where another run says nothing of this one: of a code that has no other cause.
fn answered_in_time(position: &Position, code: u64, failed: &[Call]) -> Result {
    let call = failed.iter().find(|call| call.inner.contains(position));
    let is_right = |call: &&Call| {
        call.is_answered(position, code)
            || call.function != position.function && (code != UNKNOWN || call.code != UNKNOWN)
    };
    match call.filter(|call| !is_right(call)) {
        Some(call) => Err(call.wrong()),
        None => Ok(()),
    }
}

/// No launch waited for what does not come.
fn held_up(run: &Run) -> Result {
    let waited = run.waited_ns()?;
    if waited < STALLED_NS { Ok(()) } else { Err(Stop::fail(format!("waited {waited} ns"))) }
}

impl Call {
    /// Whether the program was told of a failure that it may be told of.
    fn is_answered(&self, position: &Position, code: u64) -> bool {
        let needed = || NEEDED.iter().find(|(function, _)| *function == position.function);
        let allowed = if self.function == position.function {
            Some(code)
        } else {
            needed().map(|(_, answer)| answer.unwrap_or(code))
        };
        allowed == Some(self.code)
    }

    fn wrong(&self) -> Stop {
        Stop::fail(format!("{} answered {}", self.function, self.code))
    }
}
