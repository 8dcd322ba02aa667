//! What a container's start pays for the hook: one run of `gpucap hook createRuntime`, from before its spawn to after
//! its end.
//!
//! The container is a process with a mount namespace of its own and a root with this machine's C library in it: to the
//! hook that is all that a runtime would have made. Each run has a new one, so that nothing is found done already.
//! Where an engine calls the wrapper, [`wrapper`] comes on top; where it asks the plugin, too, its answer does.

mod bundle;
mod wrapper;

use crate::files::Files;
use crate::measure::in_turns;
use crate::nri::{Runtime, question};
use crate::report::{Report, Row, Unit};
use crate::run::{Effort, Result, Stop};
use bundle::{CONTAINERS, START, config};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// One that asks for a share of time too, and so is given a usage page.
const SHARES: (&str, &str) = ("shares", "GPU_PROFILE=3g.20gb");
/// What the hook looks for in an image, and what a plain build of the library needs besides.
const IMAGE: [&str; 3] = [
    "lib64/ld-linux-x86-64.so.2",
    "lib/x86_64-linux-gnu/libc.so.6",
    "lib/x86_64-linux-gnu/libgcc_s.so.1",
];

/// Measures it.
///
/// # Errors
/// If the hook refuses; skips where a mount namespace cannot be had.
pub fn run(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let gpucap = files.gpucap()?;
    let place = files.driver.join("hook");
    let bundles = CONTAINERS.map(|(name, entry)| bundle(&place.join(name), entry, &files.shim));
    let [asks, silent] = bundles;
    let shares = bundle(&place.join(SHARES.0), SHARES.1, &files.shim)?;
    let mut bundles = [asks?, silent?, shares];
    let samples = in_turns(&mut bundles, effort.pick(3, 300), |bundle| hook(&gpucap, bundle))?;
    let [[asks], [silent], [shares]] = samples;
    // The page of the last one is still mounted on this machine.
    let gc = Command::new(&gpucap)
        .args(["gc", "--config"])
        .arg(bundles[2].join("node.json"))
        .output()?;
    let log = |index: usize| fs::read_to_string(bundles[index].join("log")).unwrap_or_default();
    let limited = log(0).matches("\"limited\"").count();
    report.check("each container that asked was limited", limited == asks.count());
    report.check("no other was touched", log(1).is_empty());
    let paged =
        log(2).matches("\"limited\"").count() == shares.count() && !log(2).contains("usage page");
    report.check("each container that shares time has a usage page", paged);
    let left = fs::read_dir(bundles[2].join("run/pages/all"))?.count();
    report.check("gc took the last usage page away", gc.status.success() && left == 0);
    report.row(&Row::single("hook, container that asks", Unit::Ns, asks).at_most(START));
    let name = "hook, container that asks for time too, the only one";
    report.row(&Row::single(name, Unit::Ns, shares).at_most(START));
    report.row(&Row::single("hook, container that asks for nothing", Unit::Ns, silent));
    plugin(&gpucap, &place, &bundles[0], effort, report)?;
    wrapper::run(&gpucap, &files.ledger("wrapper"), effort, report)
}

/// The start of a container that asks, with the plugin asked before and without.
fn plugin(
    gpucap: &Path,
    place: &Path,
    bundle: &Path,
    effort: Effort,
    report: &mut Report,
) -> Result {
    let mut runtime = Runtime::start(gpucap, &place.join("nri"))?;
    let question = question(CONTAINERS[0].1);
    let mut adjusted = true;
    let samples = in_turns(&mut [false, true], effort.pick(3, 300), |is_asked| {
        let mut before = 0.0;
        if *is_asked {
            let (ns, adjusts) = runtime.create(&question)?;
            adjusted &= adjusts;
            before = ns;
        }
        Ok([before + hook(gpucap, bundle)?[0]])
    })?;
    let [[without], [with]] = samples;
    report.check("the plugin adjusted each container of which it was asked", adjusted);
    report.row(&Row::difference("hook, the plugin asked before", Unit::Ns, &without, &with));
    Ok(())
}

/// A bundle whose container has this in its environment.
fn bundle(place: &Path, entry: &str, library: &Path) -> Result<PathBuf> {
    let root = place.join("root");
    fs::create_dir_all(root.join("etc"))?;
    for file in IMAGE {
        let (from, to) = (Path::new("/").join(file), root.join(file));
        fs::create_dir_all(to.parent().unwrap_or(&root))?;
        if from.exists() {
            fs::copy(from, to)?;
        }
    }
    fs::write(place.join("config.json"), config(entry))?;
    let (run, log) = (place.join("run"), place.join("log"));
    let node = json!({"library": library, "run_dir": run, "log_file": log});
    fs::write(place.join("node.json"), node.to_string())?;
    Ok(place.to_path_buf())
}

/// Nanoseconds of one run of the hook.
fn hook(gpucap: &Path, bundle: &Path) -> Result<[f64; 1]> {
    let mut container = container()?;
    let state = json!({"id": "bench", "pid": container.id(), "bundle": bundle}).to_string();
    let mut command = Command::new(gpucap);
    command.args(["hook", "createRuntime", "--config"]).arg(bundle.join("node.json"));
    command.env_clear().stdin(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(state.as_bytes())?;
    }
    let status = child.wait()?;
    let ns = start.elapsed().as_secs_f64() * 1e9;
    container.kill()?;
    container.wait()?;
    if status.success() { Ok([ns]) } else { Err(Stop::fail(format!("the hook: {status}"))) }
}

/// A process that waits in a mount namespace of its own.
fn container() -> Result<Child> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", "echo; read line"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| Stop::Skip(format!("unshare: {error}")))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.is_empty() {
        child.wait()?;
        return Err(Stop::Skip("no mount namespace can be had here".into()));
    }
    Ok(child)
}
