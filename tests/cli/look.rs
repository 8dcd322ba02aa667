//! `gpucap status` and `gpucap explain`, of processes that live at the same time.

use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Actor, Build, Driver, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;
use serde_json::Value;
use std::path::PathBuf;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("status: a live process is shown with what it holds", status_of_the_living),
        trial("status: what a dead process held is not in use", status_of_the_dead),
        trial("status: the ledger of a living run is not swept", living_run_is_not_swept),
        trial(
            "status: a run has the compute limit that its processes were started with",
            limit_of_a_run,
        ),
        trial(
            "status: a ledger that names processes of others says nothing of their limits",
            limit_of_others,
        ),
        trial("explain: a limited process is limited", limited),
        trial("explain: a process without a limit is not limited", not_limited),
        trial("explain: a run goes by its name, its ledger and its process", by_name),
        trial("explain: a name of several is refused, one of none too", by_a_bad_name),
        trial("explain: a static program is not limited", static_is_not_limited),
        trial("explain: a program from here is judged by the environment", from_here),
        trial(
            "explain, status: a ledger is found in the form in which the library finds it",
            spaced,
        ),
        trial("explain: a value that cannot be used is shown as the library shows it", broken),
        trial("explain: a process that is not there is a failure", absent),
    ]
}

const MIB: u64 = 1 << 20;

/// An actor started by `gpucap run --mem 2Gi`, with a context and 100 MiB.
pub(crate) fn begin() -> Result<Actor> {
    let actor = Program::new("actor").build()?.display().to_string();
    let mut actor = gpucap(&["run", "--mem", "2Gi", "--", &actor])?.start()?;
    actor.expect(&[("init", 0), ("context 0", 0), (&format!("alloc a {}", 100 * MIB), 0)])?;
    Ok(actor)
}

/// The path of the ledger that the process was started with.
pub(crate) fn ledger_of(actor: &Actor) -> Result<String> {
    let environment = std::fs::read(format!("/proc/{}/environ", actor.pid()))?;
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let ledger = environment.split('\0').find_map(|entry| entry.strip_prefix("GPUCAP_LEDGER="));
    ledger.map(str::to_owned).ok_or_else(|| Stop::fail("no ledger in its environment"))
}

/// The part of `status --json` that is about one ledger.
fn status(ledger: &str) -> Result<String> {
    let output = gpucap(&["status", "--json"])?.output()?.success()?;
    let path = |path: &str| format!("\"path\": \"{path}");
    let behind = output.stdout.split_once(&format!("{}\"", path(ledger)));
    let part = behind.and_then(|(_, behind)| behind.split(&path("")).next());
    part.map(str::to_owned).ok_or_else(|| Stop::fail(format!("no {ledger} in: {output}")))
}

fn has(text: &str, what: &str) -> Result {
    expect(text.contains(what), || format!("no `{what}` in: {text}"))
}

fn status_of_the_living() -> Result {
    let actor = begin()?;
    let json = status(&ledger_of(&actor)?)?;
    has(&json, &format!("\"pid\": {}", actor.pid()))?;
    has(&json, &format!("\"cap_bytes\": {}", 2048 * MIB))?;
    has(&json, &format!("\"used_bytes\": {}", 356 * MIB))?;
    has(&json, &format!("\"alloc\": {}", 100 * MIB))?;
    has(&json, &format!("\"context\": {}", 256 * MIB))?;
    let whole = gpucap(&["status", "--verbose"])?.output()?.success()?;
    says(&whole, &format!("Run of process {}", actor.pid()))?;
    says(&whole, "356 MiB of 2 GiB")?;
    says(&whole, "context 256 MiB, alloc 100 MiB   actor\n")
}

fn status_of_the_dead() -> Result {
    let mut actor = begin()?;
    let ledger = ledger_of(&actor)?;
    // A process in whose environment the ledger is keeps it from being swept by a run of another test.
    let waits = static_program()?.display().to_string();
    let keeper = gpucap(&["run", "--mem", "2Gi", "--", &waits])?.env("GPUCAP_LEDGER", &ledger);
    let _keeper = waiting(&keeper)?;
    actor.kill()?;
    let json = status(&ledger)?;
    has(&json, "\"processes\": []")?;
    has(&json, "\"used_bytes\": 0")?;
    has(&json, &format!("\"bytes\": {}", 356 * MIB))
}

/// The compute limit that `status --json` has for the only GPU of a ledger.
fn core_percent(ledger: &str) -> Result<Value> {
    let output = gpucap(&["status", "--json"])?.output()?.success()?;
    let json: Value = serde_json::from_str(&output.stdout).map_err(Stop::fail)?;
    let found = json["ledgers"].as_array().into_iter().flatten().find(|it| it["path"] == *ledger);
    let devices = found.map(|it| &it["devices"]).and_then(Value::as_array);
    match devices.map_or(&[][..], Vec::as_slice) {
        [device] => Ok(device["time"]["core_percent"].clone()),
        _ => Err(Stop::fail(format!("no such ledger of one GPU: {output}"))),
    }
}

fn limit_of_a_run() -> Result {
    let actor = Program::new("actor").build()?.display().to_string();
    let run = gpucap(&["run", "--mem", "2Gi", "--cores", "30", "--", &actor])?;
    let mut first = run.start()?;
    first.expect(&[("init", 0), ("context 0", 0)])?;
    let ledger = ledger_of(&first)?;
    // It has lowered its own limit: that of the run is shown.
    let lower = gpucap(&["run", "--cores", "10", "--", &actor])?;
    let lower = lower.env("GPU_CORE_PCT", "30").env("GPU_MEM_LIMIT", "2Gi");
    let mut second = lower.env("GPUCAP_LEDGER", &ledger).start()?;
    second.expect(&[("init", 0), ("context 0", 0)])?;
    expect(core_percent(&ledger)? == 30.0, || "with both".into())?;
    let table = gpucap(&["status", &format!("run-{}", first.pid())])?.output()?.success()?;
    says(&table, "limit 30%")?;
    // The one that made it has ended.
    first.kill()?;
    expect(core_percent(&ledger)? == 30.0, || "with the other".into())?;
    let without = begin()?;
    expect(core_percent(&ledger_of(&without)?)?.is_null(), || "none is set".into())
}

fn limit_of_others() -> Result {
    let actor = Program::new("actor").build()?.display().to_string();
    let mut other = gpucap(&["run", "--mem", "2Gi", "--cores", "30", "--", &actor])?.start()?;
    other.expect(&[("init", 0), ("context 0", 0)])?;
    let ledger = ledger_of(&other)?;
    // The same bytes under the name of another run, which has no file of limits.
    let copy = ledger.replace(&format!("-{}-", other.pid()), &format!("-{}-", std::process::id()));
    std::fs::copy(&ledger, &copy)?;
    let (shown, own) = (core_percent(&copy), core_percent(&ledger));
    std::fs::remove_file(&copy)?;
    expect(own? == 30.0 && shown?.is_null(), || "told of another ledger".into())
}

fn living_run_is_not_swept() -> Result {
    let actor = begin()?;
    gpucap(&["run", "--mem", "1Gi", "--", "true"])?.output()?.success()?;
    status(&ledger_of(&actor)?).map(drop)
}

fn explain(pid: u32) -> Result<Output> {
    gpucap(&["explain", "--pid", &pid.to_string()])?.output()
}

fn limited() -> Result {
    let actor = begin()?;
    let output = explain(actor.pid())?;
    ended(&output, 0)?;
    says(&output, "is limited")?;
    says(&output, "GPU_MEM_LIMIT=2GiB: what was requested at the start, and part of the above")?;
    says(&output, "mapped in the process: ")?;
    says(&output, "holds 356 MiB (256 MiB for contexts), limit 2 GiB")
}

fn by_name() -> Result {
    let actor = begin()?;
    let (pid, ledger) = (actor.pid().to_string(), ledger_of(&actor)?);
    for name in [format!("run-{pid}"), ledger, pid.clone()] {
        let output = gpucap(&["explain", &name])?.output()?;
        ended(&output, 0)?;
        says(&output, &format!("Process {pid} ("))?;
        says(&output, "holds 356 MiB (256 MiB for contexts)")?;
        says(&output, &format!("/run-{pid}\n"))?;
        let output = gpucap(&["explain", &name, "--json"])?.output()?;
        let json: Value = serde_json::from_str(&output.stdout).map_err(Stop::fail)?;
        let [seen, word] = [&json["process"]["pid"], &json["verdict"]];
        let holds = seen.as_u64() == pid.parse().ok() && word == "limited";
        expect(holds && output.code() == Some(0), || output.to_string())?;
    }
    Ok(())
}

fn by_a_bad_name() -> Result {
    let (one, other) = (begin()?, begin()?);
    let user = ledger_of(&one)?.split('-').nth(1).map(str::to_owned).unwrap_or_default();
    // Two processes under one name: a run inside the run that the first is of.
    let ledger = ledger_of(&other)?;
    let actor = Program::new("actor").build()?.display().to_string();
    let inner = gpucap(&["run", "--mem", "1Gi", &actor])?.env("GPUCAP_LEDGER", &ledger);
    let mut inner = inner.env("GPU_MEM_LIMIT", "2Gi").start()?;
    inner.expect(&[("init", 0), ("context 0", 0)])?;
    let output = gpucap(&["explain", &format!("run-{}", other.pid())])?.output()?;
    says(&output, "; 1 other process of it uses a GPU: gpucap status run-")?;
    for name in ["nosuch", "default/nosuch", "run-4294967295", &format!("user-{user}/nosuch"), ""] {
        let output = gpucap(&["explain", name])?.output()?;
        ended(&output, 1)?;
        says(&output, &format!("gpucap: explain: {name:?}: no container or run goes by it"))?;
        expect(output.stdout.is_empty(), || output.to_string())?;
    }
    let output = gpucap(&["explain", "nosuch", "--state", "/dev/null"])?.output()?;
    ended(&output, 1)
}

fn not_limited() -> Result {
    let mut actor = World::bare(Driver::Stub).actor()?.start()?;
    actor.expect(&[("init", 0)])?;
    let output = explain(actor.pid())?;
    ended(&output, 3)?;
    says(&output, "is not limited: no limit is set")
}

/// A program that is linked statically and lives until its input ends.
pub(crate) fn static_program() -> Result<PathBuf> {
    Program::new("waits").flags(&["-static"]).build()
}

/// Starts it, and waits until it is there.
fn waiting(run: &Run) -> Result<Actor> {
    let mut actor = run.start()?;
    actor.expect(&[("", 0)])?;
    Ok(actor)
}

fn static_is_not_limited() -> Result {
    let program = static_program()?.display().to_string();
    let actor = waiting(&gpucap(&["run", "--mem", "2Gi", "--", &program])?)?;
    let output = explain(actor.pid())?;
    ended(&output, 3)?;
    says(&output, "is not limited: the program is statically linked")
}

fn from_here() -> Result {
    let shim = Build::shipped()?.shim()?;
    let output = gpucap(&["explain"])?.output()?;
    ended(&output, 3)?;
    says(&output, "no limit is set")?;
    let output = gpucap(&["explain"])?.env("GPU_MEM_LIMIT", "2Gi").output()?;
    ended(&output, 3)?;
    says(&output, "nothing preloads libgpucap.so")?;
    let limited = gpucap(&["explain"])?.env("GPU_MEM_LIMIT", "2Gi");
    ended(&limited.env("LD_PRELOAD", &shim).output()?, 0)?;
    let gone = gpucap(&["explain"])?.env("GPU_MEM_LIMIT", "2Gi");
    let output = gone.env("LD_PRELOAD", "/nowhere/libgpucap.so").output()?;
    ended(&output, 3)?;
    says(&output, "where there is no file")
}

/// White space around a value is what templates leave.
fn spaced() -> Result {
    let run = World::with_shim(Driver::Stub)?.actor()?.env("GPU_MEM_LIMIT", "2Gi");
    let ledger = run.directory().join("ledger").display().to_string();
    let spaced = format!(" {ledger} ");
    let mut actor = run.env("GPUCAP_LEDGER", &spaced).start()?;
    actor.expect(&[("init", 0), ("context 0", 0)])?;
    let output = explain(actor.pid())?;
    ended(&output, 0)?;
    says(&output, &format!("ledger    {ledger}\n"))?;
    says(&output, "holds 256 MiB")?;
    let output = gpucap(&["status", "--json"])?.env("GPUCAP_LEDGER", &spaced).output()?;
    says(&output, &format!("\"path\": \"{ledger}\""))
}

fn broken() -> Result {
    let run = gpucap(&["explain"])?.env("GPU_MEM_LIMIT", "5gg");
    let output = run.env("LD_PRELOAD", Build::shipped()?.shim()?).output()?;
    ended(&output, 4)?;
    says(&output, "would be allowed no GPU work")?;
    says(&output, "GPU_MEM_LIMIT=\"5gg\": unknown suffix")
}

fn absent() -> Result {
    ended(&explain(u32::MAX)?, 1)
}
