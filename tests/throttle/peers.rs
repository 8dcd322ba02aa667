//! Several budgets on one card: each is charged for its own turns, if they can see each other.
//!
//! The card goes round its processes, 2 ms each. With enough work for all of it on both sides, who is charged for being
//! there is charged nearly twice what it had done, and who sees the other one about once. The judge is the stub's own
//! count of what each process had done; both sums are of the whole run, so a host that is late changes little of them.

use crate::share::spending;
use crate::{BEGIN, LAUNCH, WAIT, lasts, under, within};
use gpucap_tests::{Driver, Program, Result, Run, Stop, World, limits_text, trial};
use libtest_mimic::Trial;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What is charged for a nanosecond of the card, where the others' turns are known: 1.05, or 1.2 on a machine that is late.
const SERVICE: std::ops::RangeInclusive<f64> = 0.8..=1.3;
/// And where they are not: 1.8, if the machine lets both be there all the time.
const PRESENCE: std::ops::RangeInclusive<f64> = 1.3..=4.0;
/// How long a page is, and where it tells how many have told.
const BYTES: u64 = 69_632;
const HIGH_WATER: u64 = 16;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("each of two budgets on a card pays for its own turns", || {
            charged(&both()?, "other", SERVICE)
        }),
        trial("two processes of one budget pay for their turns once", || {
            charged(&both()?, "ledger", SERVICE)
        }),
        trial("a process alone on the card has no peers", alone),
        trial("who has no page pays for the other's turns too", no_page),
        trial("what is no page among the pages hides none", outsiders),
        trial("a page that changes under the hands of who reads it does no harm", restless),
        trial("a page has its memory when it is made, and no other user may see it", made),
        trial("who may not write so long a file goes on without a page", short_files),
        trial("no descriptor stays open", no_descriptor),
        trial("without a limit of time there is no page", not_made),
        trial("under MPS there are no turns, and there is no page", under_mps),
        trial("a page lies nowhere but in a directory of one's own", not_own),
        trial("beside a limits file the page is the hook's", by_hook),
    ]
}

/// A program with work for all of the card.
fn both() -> Result<Run> {
    Ok(spending(under("90", "share")?, &["k_5ms", "4", "1500"]))
}

pub(crate) fn pages(run: &Run) -> Result<PathBuf> {
    let user = fs::metadata(run.directory())?.uid();
    Ok(run.directory().join(format!("gpucap-{user}-pages")))
}

/// Two of it at once, the second of this budget: what each budget is charged for a nanosecond of the card.
fn charged(run: &Run, second: &str, expected: std::ops::RangeInclusive<f64>) -> Result {
    let other = run.clone().budget(second);
    let both =
        [run.clone(), other.clone()].map(|run| thread::spawn(move || run.output()?.success()));
    let mut done = Vec::new();
    for thread in both {
        let output = thread.join().map_err(|_| Stop::fail("a thread ended badly"))??;
        done.push(output.number("all")?);
    }
    if second == "ledger" {
        return lasts("charged", part(run.busy_ns()?, done.iter().sum()), expected);
    }
    lasts("charged", part(run.busy_ns()?, done[0]), expected.clone())?;
    lasts("charged to the other", part(other.busy_ns()?, done[1]), expected)
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of seconds")]
fn part(charged: u64, done: u64) -> f64 {
    charged as f64 / done as f64
}

fn alone() -> Result {
    let run = both()?;
    let done = run.output()?.success()?.number("all")?;
    lasts("charged", part(run.busy_ns()?, done), SERVICE)
}

/// There is something else in the place of the directory.
fn no_page() -> Result {
    let run = both()?;
    fs::write(pages(&run)?, "")?;
    charged(&run, "other", PRESENCE)
}

/// Some of it by names that come before those of the pages, some by others.
fn outsiders() -> Result {
    let run = both()?;
    let pages = pages(&run)?;
    Command::new("mkdir").arg("-m700").arg(&pages).status()?;
    for name in ["a", "z"] {
        let path = |kind: &str| pages.join(format!("{name}-{kind}"));
        Command::new("mkfifo").arg(path("fifo")).status()?;
        symlink("/dev/zero", path("link"))?;
        symlink(run.directory().join("other"), path("ledger"))?;
        fs::create_dir(path("directory"))?;
        fs::write(path("empty"), "")?;
        fs::write(path("cut off"), &b"gpucapCP\x01\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0"[..])?;
        fs::write(path("noise"), noise(BYTES))?;
        fs::write(path("other version"), &b"gpucapCP\x02\0\0\0\0\0\0\0"[..])?;
    }
    charged(&run, "other", SERVICE)
}

/// Bytes that mean nothing.
fn noise(length: u64) -> Vec<u8> {
    let next = |word: &u64| Some(word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11));
    let words = std::iter::successors(Some(length), next);
    words.flat_map(u64::to_be_bytes).take(usize::try_from(length).unwrap_or_default()).collect()
}

/// A page like that of the program, with this file name, is cut off, filled with noise, made a fifo, taken away.
fn restless() -> Result {
    let run = both()?;
    run.output()?.success()?;
    let path = pages(&run)?.join("outsider");
    // A page without a ledger beside it is removed.
    fs::write(pages(&run)?.with_file_name("outsider"), b"")?;
    let page = fs::read(pages(&run)?.join("ledger"))?;
    let over = AtomicBool::new(false);
    let change = || -> Result {
        while !over.load(Ordering::Relaxed) {
            fs::write(&path, &page)?;
            let file = fs::OpenOptions::new().write(true).open(&path)?;
            file.write_all_at(&64_u64.to_le_bytes(), HIGH_WATER)?;
            file.write_all_at(&noise(BYTES - 4096), 4096)?;
            for length in [4100, 1000, 0, 1 << 30] {
                file.set_len(length)?;
            }
            fs::remove_file(&path)?;
            Command::new("mkfifo").arg(&path).status()?;
            fs::remove_file(&path)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let changes = scope.spawn(change);
        let output = run.output().and_then(gpucap_tests::Output::success);
        over.store(true, Ordering::Relaxed);
        changes.join().map_err(|_| Stop::fail("a thread ended badly"))??;
        within("work", output?.number("all")?, 1..=u64::MAX)
    })
}

/// A program that has launched and waited, and waits to be told more.
fn launched(run: &Run) -> Result<gpucap_tests::Actor> {
    let mut caller = run.start()?;
    for command in BEGIN.iter().chain(&[LAUNCH, WAIT]) {
        caller.order(command)?;
        caller.line()?;
    }
    Ok(caller)
}

fn made() -> Result {
    let run = under("50", "caller")?;
    let _caller = launched(&run)?;
    let directory = fs::metadata(pages(&run)?)?;
    within("mode of the directory", directory.mode() & 0o7777, 0o700..=0o700)?;
    let page = fs::metadata(pages(&run)?.join("ledger"))?;
    within("mode", page.mode() & 0o7777, 0o600..=0o600)?;
    within("length", page.len(), BYTES..=BYTES)?;
    within("length in memory", page.blocks() * 512, BYTES..=u64::MAX)
}

/// The kernel would send it a signal. The ledger and the card are there already.
fn short_files() -> Result {
    let run = under("50", "caller")?;
    launched(&run)?;
    fs::remove_file(pages(&run)?.join("ledger"))?;
    let words = ["sh", "-c", r#"ulimit -f 40; exec "$@""#, "sh"].map(AsRef::as_ref);
    let mut caller = launched(&run.clone().through(&words))?;
    within("length", fs::metadata(pages(&run)?.join("ledger"))?.len(), 0..=0)?;
    within("its end", caller.end()?.code(), Some(0)..=Some(0))
}

fn no_descriptor() -> Result {
    let run = under("50", "caller")?;
    let _other = launched(&run.clone().budget("other"))?;
    let caller = launched(&run)?;
    for entry in fs::read_dir(format!("/proc/{}/fd", caller.pid()))? {
        let target = fs::read_link(entry?.path())?;
        if target.starts_with(pages(&run)?) {
            return Err(Stop::fail(target.display()));
        }
    }
    Ok(())
}

fn not_made() -> Result {
    let program = Program::new("caller").flags(&["-lcuda", "-pthread"]).build()?;
    let run = World::with_shim(Driver::Stub)?.run(&program)?.env("GPU_MEM_LIMIT", "1Gi");
    let _caller = launched(&run)?;
    within("a page", pages(&run)?.exists(), false..=false)
}

/// By what the driver says; of one that says nothing, by what MPS's clients have in their environment.
fn under_mps() -> Result {
    let run = under("50", "caller")?;
    launched(&run.clone().env("STUB_GPU_MPS", "on"))?;
    let silent = run.clone().env("STUB_GPU_FAIL", "cuDeviceGetAttribute:1@0");
    launched(&silent.clone().env("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))?;
    within("a page", pages(&run)?.exists(), false..=false)?;
    launched(&run)?;
    within("a page without MPS", pages(&run)?.exists(), true..=true)
}

/// It is a link to a directory of one's own, or belongs to another user.
fn not_own() -> Result {
    let run = under("50", "caller")?;
    let elsewhere = run.directory().join("elsewhere");
    fs::create_dir(&elsewhere)?;
    symlink(&elsewhere, pages(&run)?)?;
    launched(&run)?;
    within("files behind the link", fs::read_dir(&elsewhere)?.count(), 0..=0)?;
    fs::remove_file(pages(&run)?)?;
    fs::create_dir(pages(&run)?)?;
    if std::os::unix::fs::chown(pages(&run)?, Some(65534), None).is_err() {
        return Err(Stop::skip("only root can give a directory away"));
    }
    launched(&run)?;
    within("files of another user", fs::read_dir(pages(&run)?)?.count(), 0..=0)
}

/// And if it shows none, there is none.
fn by_hook() -> Result {
    let run = under("50", "caller")?.limits_file(&limits_text("gpu=*\ncore=50\n"))?;
    launched(&run)?;
    within("a page by the ledger", pages(&run)?.exists(), false..=false)?;
    let run = run.card_page()?;
    launched(&run)?;
    let page = fs::read(run.directory().join("limits/pages/own"))?;
    within("its mark", page.get(..8), Some(&b"gpucapCP"[..])..=Some(&b"gpucapCP"[..]))?;
    within("who has told", page[16], 1..=64)
}
