//! What programs that look show of time: the container's share of the card's, where it is limited.
//!
//! The peer keeps the card busy, as the ledger says: nothing is launched, so that the number is exact.

use crate::monitors::SMI;
use crate::{Scene, Sight, same, script};
use gpucap_tests::fetched::python;
use gpucap_tests::{Driver, Output, Result, Run, Stop, trial};
use libtest_mimic::Trial;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What the container takes of the card, and the peer in it, in thousandths.
const BUSY: (u64, u64) = (300, 200);

/// A way to ask nvidia-smi, and how to read the answer.
type Question = (&'static str, &'static [&'static str], fn(&str) -> Option<u64>);
const QUESTIONS: [Question; 3] = [
    ("table", &[], table),
    ("-q -d UTILIZATION", &["-q", "-d", "UTILIZATION"], section),
    ("--query-gpu", &["--query-gpu=utilization.gpu", "--format=csv,noheader"], first),
];

/// Reports that nvidia-smi draws from a table of NVML that has no documentation, and the stub no entries for.
const UNDOCUMENTED: [&[&str]; 3] = [
    &["pmon", "-c", "1"],
    &["dmon", "-c", "1"],
    &["--query-compute-apps=pid,used_memory", "--format=csv"],
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for sight in Sight::BOTH {
        trials.push(trial(format!("nvidia-ml-py shows the time of the {sight}"), move || {
            nvml(sight)
        }));
        for driver in SMI {
            for (name, arguments, read) in QUESTIONS {
                let driver = driver.clone();
                let rule = format!("nvidia-smi {name} shows the time of the {sight} ({driver})");
                trials.push(trial(rule, move || smi(sight, &driver, arguments, read)));
            }
        }
    }
    for driver in SMI {
        for arguments in UNDOCUMENTED {
            let driver = driver.clone();
            let rule =
                format!("nvidia-smi {} is as without the shim ({driver})", arguments.join(" "));
            trials.push(trial(rule, move || undocumented(&driver, arguments)));
        }
    }
    trials
}

/// Runs the client while the ledger says that the card is busy; again, if this machine let the words grow old.
fn seen(sight: Sight, client: PathBuf, arguments: &[PathBuf]) -> Result<(Scene, Output)> {
    for _ in 0..20 {
        let scene = Scene::new(&sight.world()?, &client)?;
        let scene = scene.with(|run| {
            let run = run.env("GPU_CORE_PCT", "50");
            arguments.iter().fold(run, |run, argument| run.arg(argument))
        });
        let over = Arc::new(AtomicBool::new(false));
        let mut feeder = None;
        if sight == Sight::Slice {
            let (run, pid, over) = (scene.budget.clone(), scene.peer.pid(), Arc::clone(&over));
            let first = run.set_busy(pid, BUSY.0, BUSY.1)?;
            feeder = Some(thread::spawn(move || keep_busy(&run, pid, first, &over)));
        }
        let output = scene.run.output()?.success();
        over.store(true, Ordering::Release);
        let fresh = feeder.map_or(Ok(Ok(true)), thread::JoinHandle::join);
        let fresh = fresh.map_err(|_| Stop::fail("no process kept the card busy"))??;
        if fresh {
            return Ok((scene, output?));
        }
    }
    Err(Stop::fail("the machine is too slow to be looked at"))
}

/// Whether no reader can have found a window that had not been written.
fn keep_busy(run: &Run, pid: u32, first: u64, over: &AtomicBool) -> Result<bool> {
    let (mut last, mut fresh) = (first, true);
    while !over.load(Ordering::Acquire) {
        let written = run.set_busy(pid, BUSY.0, BUSY.1)?;
        fresh &= Run::window() <= last + 2;
        last = written;
        thread::park_timeout(Duration::from_millis(20));
    }
    Ok(fresh && Run::window() <= last + 2)
}

fn nvml(sight: Sight) -> Result {
    let (scene, output) = seen(sight, python("nvidia-ml-py")?, &[script("utilization.py")])?;
    let processes: Vec<_> = output.stdout.lines().filter(|it| it.starts_with("process=")).collect();
    let samples = output.value("samples")?;
    match sight {
        // No process computes on the stub.
        Sight::Card => {
            same(output.number("gpu")?, 0, &output)?;
            same(processes.len(), 0, &output)
        }
        Sight::Slice => {
            same(output.number("gpu")?, BUSY.0 / 10, &output)?;
            let expected = format!("process={} {}", scene.peer.pid(), BUSY.1 / 10);
            same(processes, vec![expected.as_str()], &output)?;
            same(samples, "30 30 30 30 30 30", &output)
        }
    }
}

fn smi(sight: Sight, driver: &Driver, arguments: &[&str], read: fn(&str) -> Option<u64>) -> Result {
    let arguments: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    let (_scene, output) = seen(sight, driver.nvidia_smi()?, &arguments)?;
    let shown = read(&output.stdout);
    let shown = shown.ok_or_else(|| Stop::fail(format!("shows no utilisation: {output}")))?;
    same(shown, if sight == Sight::Slice { BUSY.0 / 10 } else { 0 }, &output)
}

fn undocumented(driver: &Driver, arguments: &[&str]) -> Result {
    let ask = |sight: Sight| -> Result<Output> {
        let scene = Scene::new(&sight.world()?, &driver.nvidia_smi()?)?;
        let scene = scene.with(|run| arguments.iter().fold(run, |run, argument| run.arg(argument)));
        scene.run.output()
    };
    let bare = ask(Sight::Card)?;
    if bare.code() != Some(0) {
        let said = [&bare.stdout, &bare.stderr].map(|text| text.trim()).concat();
        let why = said.lines().last().unwrap_or("it says nothing");
        return Err(Stop::skip(format!(
            "does not run over the stub, code {:?}: {why}",
            bare.code()
        )));
    }
    let limited = ask(Sight::Slice)?;
    same(&limited.stdout, &bare.stdout, &limited)
}

/// `|     30%      Default |`
fn table(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("% ") && line.contains("Default"))?;
    number_before(line, '%')
}

/// The first line ` Gpu : 30 %` of the section.
fn section(text: &str) -> Option<u64> {
    let is_it = |line: &&str| line.trim().to_lowercase().starts_with("gpu  ");
    number_before(text.lines().find(is_it)?, '%')
}

/// `30 %`
fn first(text: &str) -> Option<u64> {
    number_before(text, '%')
}

fn number_before(text: &str, sign: char) -> Option<u64> {
    let before = text.split(sign).next()?.trim_end();
    before.rsplit(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
}
