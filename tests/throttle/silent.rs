//! Work that takes far longer than was expected, in processes that make no call which would show its end: a thread of the
//! library looks.

use crate::{BEGIN, LAUNCH, MS, WAIT, about, lasts, obey, under};
use gpucap_tests::{Program, Result, Run, trial};
use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How long the work takes.
const LONG_MS: u64 = 600;

/// Ways to keep the library from seeing that a stream is busy, and how much of [`LONG_MS`] has passed when the process ends.
const HIDDEN: [(&str, &str, u64); 13] = [
    ("while another stream is captured", "capture", LONG_MS),
    ("in a stream that begins a capture and is destroyed", "destroy", LONG_MS),
    ("in another thread's default stream, whose context ends", "context", LONG_MS),
    ("before launches that leave its stream no rest", "restless", LONG_MS),
    ("before launches that are refused", "refused", LONG_MS),
    ("while its context is reset, by who is killed", "reset", LONG_MS - 50),
    ("in a function that runs at the end, at once", "exit", LONG_MS),
    ("in such a function, when the library's thread has gone", "late", LONG_MS),
    ("in one of more streams than there are places", "crowd", LONG_MS),
    ("beside waits for another stream", "calls", LONG_MS),
    ("that the driver is long in taking", "delayed", LONG_MS),
    ("that is waited for when it is over", "waited", LONG_MS),
    ("in a context that ends", "ending", LONG_MS + 50),
];

/// Of all ways, those in which the process is killed.
const KILLED: [&str; 4] = ["die", "restless", "refused", "reset"];

/// How many launches come before it. Nearly all are paid for already by one before them; by chance the long one is not. It is
/// not by chance in one of these.
const TIMES: [u32; 3] = [50, 57, 64];

pub(crate) fn trials() -> Vec<Trial> {
    let each = |name, way, stream, ms| trial(name, move || charged(way, stream, ms));
    let hidden = HIDDEN.map(|(name, way, ms)| {
        trial(format!("a long kernel is paid for {name}"), move || hidden(way, ms))
    });
    let trials = vec![
        each("who ends without a wait has paid for a long kernel", "exit", None, LONG_MS),
        each("who looks for the result in memory has paid", "again", None, LONG_MS),
        each("the same in the default stream", "again", Some("default"), LONG_MS),
        each("the same in the default stream of a thread", "again", Some("thread"), LONG_MS),
        each("who ends without a wait in that", "exit", Some("thread"), LONG_MS),
        each(
            "who is killed while it runs has paid, or the next one does",
            "die",
            None,
            LONG_MS / 2,
        ),
        trial("who launches in a function that runs at the end has paid", || {
            each_time("atexit", &[])
        }),
        // The program has a `pthread_create` that fails.
        trial("who is allowed no thread has paid, or the next one does", || {
            each_time("exit", &["-DNO_THREADS", "-rdynamic"])
        }),
        trial("the time until the next process begins is not owed by who was killed", restarted),
        trial("the time that a process takes to end is not owed", ends_slowly),
        trial("who stops itself behind a long kernel pays for the next ones", stopped),
        trial("a long kernel without events is paid for", without_events),
        trial("no more is launched behind such a kernel than was paid for", held_back),
    ];
    trials.into_iter().chain(hidden).collect()
}

/// The next process finds out what an earlier one owes.
fn charged(way: &str, stream: Option<&str>, ms: u64) -> Result {
    let program = silent(&[])?;
    let [times, ..] = TIMES;
    charged_after(&program, (way, times), stream, ms, Duration::ZERO)
}

/// When it died is not known to a process that begins later.
fn restarted() -> Result {
    let [times, ..] = TIMES;
    charged_after(&silent(&[])?, ("die", times), None, LONG_MS / 2, Duration::from_secs(3))
}

fn each_time(way: &str, flags: &[&'static str]) -> Result {
    let program = silent(flags)?;
    let mut each = TIMES.into_iter();
    each.try_for_each(|times| charged_after(&program, (way, times), None, LONG_MS, Duration::ZERO))
}

fn silent(flags: &[&'static str]) -> Result<PathBuf> {
    Program::new("silent").flags(&[&["-lcuda"], flags].concat()).build()
}

fn runs(run: &Run, program: &Path, (way, times): (&str, u32), stream: Option<&str>) -> Run {
    let run = run.clone().program(program).arg(way).arg(LONG_MS.to_string()).arg(times.to_string());
    match stream {
        Some(stream) => run.arg(stream),
        None => run,
    }
}

fn unseen() -> Result<PathBuf> {
    Program::new("unseen").flags(&["-lcuda", "-pthread"]).build()
}

/// Its kernel has ended long before it: what a process does as it ends is not charged.
fn ends_slowly() -> Result {
    let [times, ..] = TIMES;
    charged_after(&unseen()?, ("slow", times), None, 60, Duration::ZERO)
}

fn hidden(way: &str, ms: u64) -> Result {
    let program = unseen()?;
    let mut each = TIMES.into_iter();
    each.try_for_each(|times| charged_after(&program, (way, times), None, ms, Duration::ZERO))
}

/// What the first one took is not known.
fn stopped() -> Result {
    let run = under("50", "caller")?;
    let [times, ..] = TIMES;
    runs(&run, &unseen()?, ("stops", times), None).output()?.success()?;
    lasts("busy time", run.busy_ns()?, 3 * LONG_MS * MS..=4 * LONG_MS * MS + 50 * MS)
}

/// The driver makes none from the third one on.
fn without_events() -> Result {
    let run = under("50", "caller")?.env("STUB_GPU_FAIL", "cuEventCreate:2");
    let program = silent(&[])?;
    for times in TIMES {
        let before = run.busy_ns().unwrap_or(0);
        runs(&run, &program, ("again", times), None).output()?.success()?;
        lasts("busy time", run.busy_ns()? - before, about(LONG_MS * MS))?;
    }
    Ok(())
}

fn charged_after(
    program: &Path,
    (way, times): (&str, u32),
    stream: Option<&str>,
    ms: u64,
    pause: Duration,
) -> Result {
    let run = under("50", "caller")?;
    let output = runs(&run, program, (way, times), stream).output()?;
    if !KILLED.contains(&way) {
        output.success()?;
    }
    sleep(pause);
    let next = [BEGIN.as_slice(), &["call cuModuleGetFunction &c b 'k_1ms", LAUNCH, WAIT]].concat();
    obey(&run, &next)?;
    lasts("busy time", run.busy_ns()?, about(ms * MS))
}

/// Processes one after the other, each with one such kernel, of which it waits for none.
fn held_back() -> Result {
    let run = under("50", "caller")?;
    let program = silent(&[])?;
    let began = std::time::Instant::now();
    for times in TIMES.into_iter().chain([71]) {
        runs(&run, &program, ("exit", times), None).output()?.success()?;
    }
    // Three of them are paid for, but for what the bucket holds.
    lasts("passed", u64::try_from(began.elapsed().as_nanos()).unwrap_or(0), 4_000 * MS..=u64::MAX)
}
