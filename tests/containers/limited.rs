//! The host changes the limits of a container that runs: `gpucap limit`.
//!
//! Who said what is the point: the container asked by its own variables, which every process of it inherits, the host
//! speaks later and is heard, and a process that sets a variable of its own is only ever given less.

use crate::container::Container;
use crate::enforced::{begin, is_limited};
use crate::image::add;
use crate::runtime::Runtime;
use crate::{GIB, OUT_OF_MEMORY, SUCCESS, expect, trials_of};
use gpucap_tests::{Actor, Build, Output, Program, Result, Run, Stop};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("the host lowers its memory and gives it back", lowered),
        ("the host raises memory that the container's own variable asked for", raised),
        ("a process that asks for less than the host allows gets less", own_word),
        ("the host raises and lowers time that its own variable asked for", time),
        ("status and metrics show its names and the limits that hold now", shown),
        ("the node lends time to it, and the host grants and takes back", lending),
        ("what it was not given a limit of cannot be limited", unprepared),
        ("no container changes it from within", within),
    ])
}

/// A container that runs, with an actor for its first process.
struct Running {
    container: Container,
    run: Run,
    first: Actor,
}

fn running(container: Container) -> Result<Running> {
    let run = container.run(&["/actor"])?;
    let first = begin(&run)?;
    Ok(Running { container, run, first })
}

impl Running {
    /// Runs `gpucap` on the host.
    fn gpucap(&self, words: &[&str]) -> Result<Output> {
        let config = self.container.path("node.json").display().to_string();
        let run = self.run.clone().program(&Build::shipped()?.gpucap()?);
        let run = words.iter().fold(run, |run, word| run.arg(word));
        run.arg("--config").arg(&config).output()
    }

    fn limit(&self, words: &[&str]) -> Result<Output> {
        self.gpucap(&[&["limit", self.container.id()], words].concat())
    }

    /// A process that is executed in it later, with these variables.
    fn later(&self, variables: &[&str]) -> Result<Actor> {
        let options: Vec<&str> =
            variables.iter().flat_map(|variable| ["--env", *variable]).collect();
        begin(&self.container.exec(&options, &["/actor"])?)
    }

    /// What the host sees of it.
    fn status(&self) -> Result<Value> {
        let seen = self.gpucap(&["status", "--json"])?.success()?;
        let value: Value = serde_json::from_str(&seen.stdout).map_err(Stop::fail)?;
        let ledgers = value["ledgers"].as_array().cloned().unwrap_or_default();
        let own = ledgers.into_iter().find(|it| it["container"]["id"] == self.container.id());
        own.ok_or_else(|| Stop::fail(&seen))
    }

    /// How many launches the host sees.
    fn launches(&self) -> Result<u64> {
        Ok(self.status()?["devices"][0]["time"]["launches"].as_u64().unwrap_or(0))
    }
}

/// Fails unless the process sees a card of this size.
fn sees(actor: &mut Actor, limit: u64) -> Result {
    let answer = actor.call("total d 0")?;
    expect(answer.value == limit, || format!("total: {answer:?}, not {limit}"))
}

fn lowered(runtime: Runtime) -> Result {
    let mut it = running(Container::new(runtime)?)?;
    is_limited(&mut it.first)?;
    let said = it.limit(&["--mem", "768Mi"])?.success()?;
    expect(said.stdout.contains("mem=1GiB -> 768MiB"), || said.to_string())?;
    sees(&mut it.first, 3 * GIB / 4)?;
    it.first.expect(&[("alloc b 536870912", OUT_OF_MEMORY)])?;
    sees(&mut it.later(&[])?, 3 * GIB / 4)?;
    it.limit(&["--reset"])?.success()?;
    sees(&mut it.first, GIB)?;
    it.first.end().map(drop)
}

fn raised(runtime: Runtime) -> Result {
    let mut it = running(Container::new(runtime)?)?;
    let more = format!("alloc a {}", GIB + GIB / 2);
    it.first.expect(&[(&more, OUT_OF_MEMORY)])?;
    it.limit(&["--mem", "3Gi"])?.success()?;
    sees(&mut it.first, 3 * GIB)?;
    it.first.expect(&[(&more, SUCCESS)])?;
    // Who is executed now inherits the variable, too.
    let mut later = it.later(&[])?;
    sees(&mut later, 3 * GIB)?;
    later.expect(&[(&format!("alloc a {}", GIB + 1), OUT_OF_MEMORY)])?;
    it.limit(&["--reset"])?.success()?;
    sees(&mut it.first, GIB)?;
    // It began after the change.
    sees(&mut later, GIB)?;
    later.end()?;
    it.first.expect(&[("alloc b 1", OUT_OF_MEMORY)])?;
    it.first.end().map(drop)
}

fn own_word(runtime: Runtime) -> Result {
    let mut it = running(Container::new(runtime)?)?;
    it.limit(&["--mem", "3Gi"])?.success()?;
    sees(&mut it.later(&["GPU_MEM_LIMIT=2Gi"])?, 2 * GIB)?;
    sees(&mut it.later(&["GPU_MEM_LIMIT=64Gi"])?, 3 * GIB)?;
    it.limit(&["--mem", "512Mi"])?.success()?;
    sees(&mut it.later(&["GPU_MEM_LIMIT=2Gi"])?, GIB / 2)?;
    it.first.end().map(drop)
}

/// Shares far from one another, so that a machine with other work tells them apart.
fn time(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.env("GPU_CORE_PCT=5");
    let program = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
    add(&container.root(), &program, "share")?;
    let mut it = running(container)?;
    let share = |milliseconds: &str| -> Result<Run> {
        // The stub tells how busy a process kept it only of one that holds something.
        let holds = ["--env", "STUB_GPU_CONTEXT_MEM=1048576"];
        it.container.exec(&holds, &["/share", "k_2ms", "8", milliseconds])
    };
    // One that runs when the host speaks: its first quarter, in which it was slower, does not count.
    let run = share("3000")?;
    let before = it.launches()?;
    let slow = std::thread::spawn(move || run.output());
    while it.launches()? == before && !slow.is_finished() {
        std::thread::yield_now();
    }
    it.limit(&["--cores", "60"])?.success()?;
    let slow = slow.join().map_err(|_| Stop::fail("a thread ended badly"))?;
    used(&slow?, 20, 63)?;
    // One that is executed later, and one after the host has lowered it again.
    used(&share("1500")?.output()?, 20, 63)?;
    it.limit(&["--cores", "10"])?.success()?;
    used(&share("1500")?.output()?, 1, 13)?;
    it.first.end().map(drop)
}

/// Fails unless the program kept the card busy for this many percent of its time.
fn used(output: &Output, least: u64, most: u64) -> Result {
    let share = output.number("busy")? * 100 / output.number("clock")?;
    expect((least..=most).contains(&share), || format!("{share} %: {output}"))
}

fn shown(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.env("GPU_CORE_PCT=30").with(|config| {
        config["annotations"] = json!({
            "io.kubernetes.cri.container-type": "container",
            "io.kubernetes.cri.sandbox-namespace": "default",
            "io.kubernetes.cri.sandbox-name": "train",
            "io.kubernetes.cri.container-name": "main",
        });
    });
    let mut it = running(container)?;
    it.first.expect(&[("alloc a 1048576", SUCCESS)])?;
    let said =
        it.gpucap(&["limit", "default/train", "--mem", "3Gi", "--cores", "60"])?.success()?;
    let line = "default/train/main gpu=* mem=1GiB -> 3GiB core=30% -> 60%\n";
    expect(said.stdout == line, || said.to_string())?;
    named(&it)?;
    // No memory was requested since: what holds is what the host has said, not the limit of the latest request.
    let seen = it.status()?;
    let container = &seen["container"];
    let names = json!([container["namespace"], container["pod"], container["name"]]);
    expect(names == json!(["default", "train", "main"]), || seen.to_string())?;
    let limits = json!([{
        "gpu": "*", "memory_bytes": 3 * GIB, "memory_percent": null, "core_percent": 60.0, "core_max_percent": 60.0,
        "at_start": {"memory_bytes": GIB, "memory_percent": null, "core_percent": 30.0, "core_max_percent": 30.0},
    }]);
    expect(container["limits"] == limits, || seen.to_string())?;
    let device = &seen["devices"][0];
    let holds = device["limit_bytes"] == 3 * GIB && device["time"]["core_percent"] == 60.0;
    expect(holds && device["cap_bytes"] == GIB, || seen.to_string())?;
    let pid = container["pid"].to_string();
    let run = it.run.clone().program(&Build::shipped()?.gpucap()?);
    let why = run.arg("explain").arg("--pid").arg(&pid).output()?.success()?;
    for line in [
        "*: memory 3GiB, time 60% (changed by the host; at start: memory 1GiB, time 30%)\n",
        "GPU_MEM_LIMIT=1GiB: what was requested at the start, and part of the above\n",
        "holds 257 MiB (256 MiB for contexts), limit 1 GiB\n",
    ] {
        expect(why.stdout.contains(line), || format!("no `{line}` in: {why}"))?;
    }
    let text = it.gpucap(&["status", "default/train"])?.success()?.stdout;
    for line in [
        "   default/train   main\n",
        "  *: memory 3GiB   60% of its time   (at start: memory 1GiB, 30% of its time)\n",
        "257 MiB of 3 GiB",
    ] {
        expect(text.contains(line), || format!("no `{line}` in: {text}"))?;
    }
    let metrics = it.gpucap(&["metrics"])?.success()?.stdout;
    let labels = format!(
        r#"{{kind="container",namespace="default",pod="train",container="main",id="{}",gpu="#,
        it.container.id()
    );
    for (name, value) in [("memory_limit_bytes", 3 * GIB), ("memory_used_bytes", 257 << 20)] {
        let (start, end) = (format!("gpucap_{name}{labels}"), format!(" {value}.0"));
        let is_it = |line: &str| line.starts_with(&start) && line.ends_with(&end);
        expect(metrics.lines().any(is_it), || format!("no {start}...{end} in: {metrics}"))?;
    }
    it.first.end().map(drop)
}

/// The container goes by each name that `status` shows, and by its first process. The number 1 of that inside may be
/// one of other containers too.
fn named(it: &Running) -> Result {
    let first = it.status()?["container"]["pid"].to_string();
    let id = it.container.id();
    let beginning = id.get(..id.len() - 1).unwrap_or(id);
    for name in ["default/train/main", "default/train", "main", id, beginning, &first] {
        let same = it.gpucap(&["limit", name, "--mem", "3Gi"])?.success()?;
        let line = "default/train/main gpu=* mem=3GiB core=60%\n";
        expect(same.stdout == line, || format!("{name}: {same}"))?;
        let why = it.gpucap(&["explain", name])?.success()?;
        let holds = why.stdout.contains("holds 257 MiB")
            && why.stdout.contains("the process is of default/train/main");
        expect(holds, || format!("{name}: {why}"))?;
    }
    Ok(())
}

/// The node lends to those that ask for it; `gpucap limit` grants and takes back whatever the node's setting is.
fn lending(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.env("GPU_CORE_PCT=30").env("GPU_CORE_POLICY=burst");
    let path = container.path("node.json");
    let mut node: Value = serde_json::from_slice(&fs::read(&path)?).map_err(Stop::fail)?;
    node["lending"] = json!("allowed");
    node["lending_max"] = json!(80);
    fs::write(&path, node.to_string())?;
    let mut it = running(container)?;
    let limits = |it: &Running| -> Result<(Value, Value)> {
        let limit = it.status()?["container"]["limits"][0].clone();
        Ok((limit["core_percent"].clone(), limit["core_max_percent"].clone()))
    };
    let lent = limits(&it)?;
    expect(lent == (json!(30.0), json!(80.0)), || format!("{lent:?}"))?;
    for (words, said, holds) in [
        (&["--core-policy", "fixed"][..], "core=30% (to 80%) -> 30%", (30.0, 30.0)),
        (&["--cores", "40", "--core-max", "90"], "core=30% -> 40% (to 90%)", (40.0, 90.0)),
        (&["--core-priority", "low"], "core=40% (to 90%) -> low (to 90%)", (0.0, 90.0)),
        (&["--reset"], "core=low (to 90%) -> 30% (to 80%) (as started)", (30.0, 80.0)),
    ] {
        let output = it.limit(words)?.success()?;
        expect(output.stdout.contains(said), || format!("{words:?}: {output}"))?;
        let now = limits(&it)?;
        expect(now == (json!(holds.0), json!(holds.1)), || format!("{words:?}: {now:?}"))?;
    }
    it.first.end().map(drop)
}

fn unprepared(runtime: Runtime) -> Result {
    let mut it = running(Container::new(runtime)?)?;
    let refused = it.limit(&["--cores", "30"])?;
    let is_told = refused.code() == Some(1) && refused.stderr.lines().count() == 1;
    expect(is_told, || refused.to_string())?;
    it.first.end().map(drop)
}

fn within(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?;
    add(&container.root(), Path::new("/bin/sh"), "bin/sh")?;
    let mut it = running(container)?;
    let write = |path: &str| -> Result<Option<i32>> {
        let script = format!("echo x >{path}");
        Ok(it.container.exec(&[], &["sh", "-c", &script])?.output()?.code())
    };
    let (page, elsewhere) = (write("/.gpucap/live")?, write("/tmp/x")?);
    expect(page != Some(0) && elsewhere == Some(0), || format!("{page:?} {elsewhere:?}"))?;
    sees(&mut it.first, GIB)?;
    it.first.end().map(drop)
}
