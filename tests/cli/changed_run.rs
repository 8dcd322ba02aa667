//! `gpucap limit` of what `gpucap run` started: it holds at once, for processes of now and later.

mod files;

use crate::look::ledger_of;
use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Actor, Build, Driver, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;
use serde_json::Value;
use std::path::PathBuf;

pub(crate) fn trials() -> Vec<Trial> {
    let own = vec![
        trial("limit: the memory of a run is lowered, raised and restored", memory),
        trial("limit: what a process of a run sets itself only lowers", own_word),
        trial("limit: what is restored holds for who began after the change", restored),
        trial("limit: a run inside a run keeps a limit of its own", inside),
        trial("limit: a run of memory alone leaves variables of time as they are", of_memory_alone),
        trial("limit: of one limit for all GPUs none is named", of_one_gpu),
        trial("limit: the time of a run changes while it works", time),
        trial("limit: a run is lent time and has it taken back", lent),
        trial("limit: what a run was not limited in cannot come later", unprepared),
        trial("limit: status and explain have what holds of a run now", shown),
    ];
    own.into_iter().chain(files::trials()).collect()
}

const MIB: u64 = 1 << 20;
const OUT_OF_MEMORY: u64 = 2;

/// A run with these options, and the path of its ledger.
fn begin(options: &[&str]) -> Result<(Actor, String)> {
    let actor = Program::new("actor").build()?.display().to_string();
    let mut actor = gpucap(&[&["run"], options, &["--", &actor]].concat())?.start()?;
    actor.expect(&[("init", 0), ("context 0", 0)])?;
    let ledger = ledger_of(&actor)?;
    Ok((actor, ledger))
}

/// A program that is to be a process of it.
fn of_run(program: Run, ledger: &str) -> Result<Run> {
    let library = Build::shipped()?.gpucap()?.with_file_name("libgpucap.so");
    Ok(program.env("GPUCAP_LEDGER", ledger).env("LD_PRELOAD", library))
}

/// One more process of it, with a memory limit in its environment.
fn later(ledger: &str, memory: &str) -> Result<Actor> {
    let run = of_run(World::bare(Driver::Stub).actor()?, ledger)?.env("GPU_MEM_LIMIT", memory);
    let mut actor = run.start()?;
    actor.expect(&[("init", 0), ("context 0", 0)])?;
    Ok(actor)
}

fn limit(run: &Actor, words: &[&str]) -> Result<Output> {
    let name = format!("run-{}", run.pid());
    gpucap(&[&["limit", &name], words].concat())?.output()
}

fn sees(actor: &mut Actor, mebibytes: u64) -> Result {
    let answer = actor.call("total d 0")?;
    expect(answer.value == mebibytes * MIB, || format!("{answer:?}, not {mebibytes} MiB"))
}

/// Where its limits are.
fn file_of(ledger: &str) -> PathBuf {
    let (place, name) = ledger.rsplit_once('/').unwrap_or_default();
    let user = name.split('-').nth(1).unwrap_or_default();
    PathBuf::from(format!("{place}/gpucap-{user}-runs/{name}"))
}

fn memory() -> Result {
    let (mut first, ledger) = begin(&["--mem", "2Gi"])?;
    let half = format!("alloc a {}", 1024 * MIB);
    let rest = format!("alloc b {}", 1024 * MIB);
    first.expect(&[(&half, 0), (&rest, OUT_OF_MEMORY)])?;
    let said = limit(&first, &["--mem", "4Gi"])?.success()?;
    says(&said, "gpu=* mem=2GiB -> 4GiB core=not limited (as started)")?;
    sees(&mut first, 4096)?;
    first.expect(&[(&rest, 0)])?;
    sees(&mut later(&ledger, "2GiB")?, 4096)?;
    limit(&first, &["--mem", "1Gi"])?.success()?;
    sees(&mut first, 1024)?;
    first.expect(&[
        ("free a", 0),
        ("alloc a 1", OUT_OF_MEMORY),
        ("free b", 0),
        ("alloc a 1", 0),
    ])?;
    let said = limit(&first, &["--reset"])?.success()?;
    says(&said, "mem=1GiB -> 2GiB (as started)")?;
    sees(&mut first, 2048)?;
    // By the number of a process, too.
    let name = first.pid().to_string();
    gpucap(&["limit", &name, "--mem", "3Gi"])?.output()?.success()?;
    sees(&mut first, 3072)
}

/// Its first use of the GPU came after the change.
fn restored() -> Result {
    for (changed, holds) in [("8Gi", 8192), ("512Mi", 512)] {
        let (mut first, ledger) = begin(&["--mem", "2Gi"])?;
        limit(&first, &["--mem", changed])?.success()?;
        let mut second = later(&ledger, "2GiB")?;
        sees(&mut second, holds)?;
        limit(&first, &["--reset"])?.success()?;
        sees(&mut second, 2048)?;
        sees(&mut first, 2048)?;
        second.expect(&[(&format!("alloc a {}", 3072 * MIB), OUT_OF_MEMORY)])?;
    }
    Ok(())
}

fn inside() -> Result {
    let (first, ledger) = begin(&["--mem", "2Gi"])?;
    let actor = Program::new("actor").build()?.display().to_string();
    let inner = |memory: &str| -> Result<Actor> {
        let run = gpucap(&["run", "--mem", memory, "--", &actor])?.env("GPUCAP_LEDGER", &ledger);
        let mut inner = run.env("GPU_MEM_LIMIT", "2GiB").start()?;
        inner.expect(&[("init", 0)])?;
        Ok(inner)
    };
    let (mut before, mut least) = (inner("4Gi")?, inner("1Gi")?);
    sees(&mut before, 2048)?;
    sees(&mut least, 1024)?;
    limit(&first, &["--mem", "8Gi"])?.success()?;
    // Who asked for more than there was is limited to what there was.
    for (actor, holds) in [(&mut before, 2048), (&mut least, 1024), (&mut inner("3Gi")?, 3072)] {
        sees(actor, holds)?;
    }
    // Each level lowers what the one around it has left, also to what the run was started with.
    let command = Build::shipped()?.gpucap()?.display().to_string();
    for (middle, least, holds) in
        [("1Gi", "1536Mi", 1024), ("3Gi", "64Gi", 3072), ("1Gi", "2Gi", 1024), ("4Gi", "2Gi", 2048)]
    {
        let words = ["run", "--mem", middle, "--", &command, "run", "--mem", least, "--", &actor];
        let run = gpucap(&words)?.env("GPUCAP_LEDGER", &ledger).env("GPU_MEM_LIMIT", "2GiB");
        let mut inner = run.start()?;
        inner.expect(&[("init", 0)])?;
        limit(&first, &["--mem", "16Gi"])?.success()?;
        sees(&mut inner, holds)?;
        limit(&first, &["--mem", "8Gi"])?.success()?;
    }
    Ok(())
}

/// Only memory is limited: what a process sets of time means what it says.
fn of_memory_alone() -> Result {
    let actor = Program::new("actor").build()?.display().to_string();
    for (variable, holds) in [
        ("GPU_CORE_POLICY=burst", "core=20% (to 100%)"),
        ("GPU_CORE_PRIORITY=low", "core=low (to 100%)"),
        ("GPU_CORE_POLICY=fixed", "core=20%"),
    ] {
        let words = ["run", "--mem", "2Gi", "--", "env", "GPU_CORE_PCT=20", variable, &actor];
        let mut actor = gpucap(&words)?.env("GPUCAP_LOG", "info").start()?;
        actor.expect(&[("init", 0), ("context 0", 0)])?;
        says(&actor.end()?, &format!("{holds}\n"))?;
    }
    // A share that a run inside it has set is the most that one inside that may have.
    let command = Build::shipped()?.gpucap()?.display().to_string();
    let inner = ["run", "--cores", "20", "--", &command, "run", "--core-priority", "low", "--"];
    let words = [&["run", "--mem", "2Gi", "--", &*command][..], &inner, &[&*actor]].concat();
    let mut actor = gpucap(&words)?.env("GPUCAP_LOG", "info").start()?;
    actor.expect(&[("init", 0), ("context 0", 0)])?;
    says(&actor.end()?, "core=low (to 20%)\n")
}

fn of_one_gpu() -> Result {
    let (first, _) = begin(&["--mem", "2Gi"])?;
    let uuid = "GPU-00000000-0000-0000-0000-00000000abcd";
    let output = limit(&first, &["--mem", "1Gi", "--gpu", uuid])?;
    ended(&output, 1)?;
    says(
        &output,
        "it has one limit for each of its GPUs (*), and none for this one: leave out --gpu",
    )
}

fn own_word() -> Result {
    let (mut first, ledger) = begin(&["--mem", "2Gi"])?;
    sees(&mut later(&ledger, "64Gi")?, 2048)?;
    limit(&first, &["--mem", "4Gi"])?.success()?;
    for (own, holds) in [("1Gi", 1024), ("3Gi", 3072), ("64Gi", 4096)] {
        sees(&mut later(&ledger, own)?, holds)?;
    }
    // A run inside the run has the same ledger and a variable of its own.
    let actor = Program::new("actor").build()?.display().to_string();
    let inner = gpucap(&["run", "--mem", "1Gi", "--", &actor])?.env("GPUCAP_LEDGER", &ledger);
    let mut inner = inner.env("GPU_MEM_LIMIT", "2GiB").start()?;
    inner.expect(&[("init", 0)])?;
    sees(&mut inner, 1024)?;
    limit(&first, &["--mem", "512Mi"])?.success()?;
    sees(&mut inner, 512)?;
    sees(&mut first, 512)
}

/// The shares are far from one another, so that a machine with other work tells them apart.
fn time() -> Result {
    let program = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
    let (first, ledger) = begin(&["--mem", "2Gi", "--cores", "5"])?;
    let share = World::bare(Driver::Stub).run(&program)?.arg("k_2ms").arg("8").arg("3000");
    let share = of_run(share, &ledger)?.env("GPU_MEM_LIMIT", "2GiB").env("GPU_CORE_PCT", "5%");
    // The stub says how busy a process kept it only of one that holds something.
    let share = share.env("STUB_GPU_CONTEXT_MEM", "1048576");
    let launches =
        || -> Result<u64> { Ok(status(&ledger)?["time"]["launches"].as_u64().unwrap_or(0)) };
    let before = launches()?;
    let share = std::thread::spawn(move || share.output());
    while launches()? == before && !share.is_finished() {
        std::thread::yield_now();
    }
    says(&limit(&first, &["--cores", "60"])?.success()?, "core=5% -> 60%")?;
    let output = share.join().map_err(|_| Stop::fail("a thread ended badly"))??;
    let share = output.number("busy")? * 100 / output.number("clock")?;
    expect((20..=63).contains(&share), || format!("{share} %: {output}"))
}

/// What `status --json` has of the only GPU of this run.
fn status(ledger: &str) -> Result<Value> {
    let output = gpucap(&["status", ledger, "--json"])?.output()?.success()?;
    let json: Value = serde_json::from_str(&output.stdout).map_err(Stop::fail)?;
    Ok(json["ledgers"][0]["devices"][0].clone())
}

fn lent() -> Result {
    let (first, ledger) = begin(&["--mem", "2Gi", "--cores", "30"])?;
    for (words, core) in [
        (&["--core-policy", "burst"][..], "core=30% -> 30% (to 100%)"),
        (&["--core-max", "80"], "core=30% (to 100%) -> 30% (to 80%)"),
        (&["--core-priority", "low"], "core=30% (to 80%) -> low (to 80%)"),
        (&["--reset"], "core=low (to 80%) -> 30% (as started)"),
    ] {
        says(&limit(&first, words)?.success()?, core)?;
    }
    // A priority that a process merely inherits is taken back from it, too.
    let (low, of_low) = begin(&["--core-priority", "low"])?;
    limit(&low, &["--core-priority", "normal", "--cores", "50"])?.success()?;
    for (own, holds) in
        [("", "core=50% (to 100%)\n"), ("GPU_CORE_PRIORITY", "core=low (to 100%)\n")]
    {
        let run = of_run(World::bare(Driver::Stub).actor()?, &of_low)?;
        let run = run.env("GPU_CORE_PRIORITY", "low").env("GPUCAP_LOG", "info");
        let mut actor = run.env("GPUCAP_OWN_LIMITS", own).start()?;
        actor.expect(&[("init", 0), ("context 0", 0)])?;
        says(&actor.end()?, holds)?;
    }
    limit(&first, &["--cores", "20", "--core-max", "50"])?.success()?;
    let time = status(&ledger)?["time"].clone();
    let holds = (&time["core_percent"], &time["core_max_percent"]);
    expect(*holds.0 == 20.0 && *holds.1 == 50.0, || format!("{holds:?}"))
}

fn unprepared() -> Result {
    let (first, _) = begin(&["--mem", "2Gi"])?;
    let output = limit(&first, &["--cores", "30"])?;
    ended(&output, 1)?;
    says(&output, "it was started without a limit of time on *: none can come later")?;
    let (first, _) = begin(&["--cores", "30"])?;
    let output = limit(&first, &["--mem", "1Gi"])?;
    ended(&output, 1)?;
    says(&output, "it was started without a limit of memory on *: none can come later")
}

fn shown() -> Result {
    let (first, ledger) = begin(&["--mem", "2Gi", "--cores", "30"])?;
    let name = format!("run-{}", first.pid());
    let explained = || gpucap(&["explain", &name])?.output();
    let unchanged = explained()?;
    says(&unchanged, "the run:")?;
    says(&unchanged, "GPU_MEM_LIMIT=2GiB: what was requested at the start, and part of the above")?;
    expect(!unchanged.stdout.contains("changed"), || unchanged.to_string())?;
    limit(&first, &["--mem", "3Gi", "--cores", "50"])?.success()?;
    let output = explained()?;
    ended(&output, 0)?;
    let now =
        "*: memory 3GiB, time 50% (changed by `gpucap limit`; at start: memory 2GiB, time 30%)";
    says(&output, now)?;
    let json = gpucap(&["explain", &name, "--json"])?.output()?;
    let json: Value = serde_json::from_str(&json.stdout).map_err(Stop::fail)?;
    let said = &json["limits"]["run"][0];
    let holds = said["memory_bytes"] == 3072 * MIB && said["core_percent"] == 50.0;
    expect(holds && json["limits"]["file"].is_null(), || json.to_string())?;
    let table = gpucap(&["status", &name])?.output()?.success()?;
    says(&table, "limit 50%")?;
    expect(status(&ledger)?["time"]["core_percent"] == 50.0, || "not the limit of now".into())
}
