//! The ledger by itself, as the shim uses it: mapped, with a lock per device around each step.

use crate::alloc::together;
use crate::files::Files;
use crate::measure::Sample;
use crate::report::{Report, Row, Unit};
use crate::run::{Effort, Result, Stop};
use crate::world::{Client, occupied_bytes};
use gpucap_core::ledger::{DeviceIndex, Identity, Kind, Ledger, Line};
use parking_lot::Mutex;
use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{self, Command};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

const LIMIT: u64 = 64 << 30;
const BYTES: u64 = 4096;
/// All but some of the ledger's slots.
const CROWD: u32 = 1000;

/// Measures all of it.
///
/// # Errors
/// If the ledger or a worker fails.
pub fn run(files: &Files, effort: Effort, report: &mut Report) -> Result {
    steps(files, effort, report)?;
    processes(files, effort, report)?;
    crowd(files, effort, report)
}

/// One process's place in a ledger.
struct Place {
    ledger: &'static Ledger,
    device: DeviceIndex,
    line: Mutex<Line<'static>>,
}

impl Place {
    fn new(path: &Path, pid: u32) -> Result<Self> {
        let ledger = map(path)?;
        let full = |what: &str| Stop::fail(format!("ledger: no {what} left"));
        let slot = ledger.claim(identity(pid), 0, &|_| true).map_err(|_| full("slot"))?;
        let device = ledger.device([7; 16]).map_err(|_| full("device"))?;
        let line = ledger.line(slot, device).ok_or_else(|| full("line"))?;
        Ok(Self { ledger, device, line: Mutex::new(line) })
    }

    /// What the shim does for an allocation and its end; true if the charge was allowed.
    fn pair(&self) -> bool {
        let charged = self.line.lock().charge(Kind::Alloc, BYTES, LIMIT);
        self.line.lock().refund(Kind::Alloc, BYTES);
        charged.is_ok()
    }

    /// The time that one pair keeps a processor.
    fn pairs(&self, turns: u32) -> Result<f64> {
        let start = cpu_time();
        let allowed = (0..turns).all(|_| self.pair());
        let ns = (cpu_time() - start) / f64::from(turns);
        if allowed { Ok(ns) } else { Err(Stop::fail("ledger: refused below the limit")) }
    }
}

fn steps(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let place = Place::new(&files.ledger("steps"), process::id())?;
    for count in [1, 2, 4, 8, 16] {
        let mut sample = Sample::default();
        for _ in 0..effort.pick(2, 800 / (count + 4)) {
            sample.add(threads(&place, count, 20_000)?);
        }
        let what = format!("charge + refund, {count} threads, time of a processor");
        report.row(&Row::single(what, Unit::Ns, sample));
    }
    report.check("the total is zero again", place.ledger.used(place.device) == 0);
    Ok(())
}

/// The time that one pair keeps a processor when this many threads do them.
fn threads(place: &Place, count: usize, turns: u32) -> Result<f64> {
    let gate = Barrier::new(count);
    let work = || {
        gate.wait();
        place.pairs(turns)
    };
    let mut sum = 0.0;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            sum += thread.join().map_err(|_| Stop::fail("ledger: a thread failed"))??;
            Ok::<_, Stop>(())
        })
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a few threads")]
    Ok(sum / count as f64)
}

fn processes(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let path = files.ledger("processes");
    for count in [1, 2, 4, 8] {
        let mut workers = (0..count).map(|_| worker(&path)).collect::<Result<Vec<_>>>()?;
        let mut sample = Sample::default();
        for _ in 0..effort.pick(2, 400 / (count + 2)) {
            sample.add(together(&mut workers, "20000")?);
        }
        let what = format!("charge + refund, {count} processes, time of a processor");
        report.row(&Row::single(what, Unit::Ns, sample));
    }
    let place = Place::new(&path, process::id())?;
    report.check("the total of all processes is zero again", place.ledger.used(place.device) == 0);
    Ok(())
}

fn worker(path: &Path) -> Result<Client> {
    Client::spawn(Command::new(std::env::current_exe()?).arg("--worker").arg(path))
}

/// The other end of [`worker`]: reads numbers of turns, answers the time of one.
///
/// # Errors
/// If the ledger cannot be used.
pub fn work(path: &Path) -> Result {
    let place = Place::new(path, process::id())?;
    for line in io::stdin().lock().lines() {
        let turns = line?.parse().map_err(Stop::fail)?;
        println!("cpu={}", place.pairs(turns)?);
        io::stdout().flush()?;
    }
    place.ledger.reap(&|other| *other != identity(process::id()));
    Ok(())
}

/// A thousand processes that come, hold something, and die.
fn crowd(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let (mut claim, mut last, mut reap) = (Sample::default(), Sample::default(), Sample::default());
    let path = files.ledger("crowd");
    let place = Place::new(&path, 1)?;
    let blocks = |report: &mut Report, what: &str| {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let bytes = Sample::exact(occupied_bytes(&path)? as f64);
        report.row(&Row::single(what, Unit::Bytes, bytes));
        Ok::<_, Stop>(())
    };
    place.pair();
    blocks(report, "blocks of the file, 1 process")?;
    for _ in 0..effort.pick(1, 50) {
        let start = Instant::now();
        let slot = place.ledger.claim(identity(2), 0, &|_| true);
        claim.add(nanoseconds(start));
        slot.map_err(|_| Stop::fail("ledger: full"))?;
        place.ledger.reap(&|other| *other != identity(2));
        for pid in 0..CROWD {
            let start = Instant::now();
            let slot = place.ledger.claim(identity(1000 + pid), 0, &|_| true);
            if pid + 1 == CROWD {
                last.add(nanoseconds(start));
            }
            let slot = slot.map_err(|_| Stop::fail("ledger: full"))?;
            let line = place.ledger.line(slot, place.device);
            let line = line.ok_or_else(|| Stop::fail("ledger: no line"))?;
            let charged = line.charge(Kind::Alloc, BYTES, LIMIT);
            charged.map_err(|_| Stop::fail("ledger: refused below the limit"))?;
        }
        let used = place.ledger.used(place.device);
        report.check("each process holds something", used == u64::from(CROWD) * BYTES);
        let start = Instant::now();
        let freed = place.ledger.reap(&|other| other.pid < 1000);
        reap.add(nanoseconds(start));
        report.check("each dead process is reaped", freed == CROWD as usize);
        report.check("nothing is left", place.ledger.used(place.device) == 0);
    }
    report.row(&Row::single("claim, 1 other process", Unit::Ns, claim));
    report.row(&Row::single("claim, 1000 other processes", Unit::Ns, last));
    report.row(&Row::single("reap of 1000 dead processes", Unit::Ns, reap));
    blocks(report, "blocks of the file after 1000 processes")
}

fn identity(pid: u32) -> Identity {
    Identity { pid_namespace: 1, pid, start_time: 1, image: 0 }
}

/// Maps the file, made and formatted if need be, for as long as this process lives.
fn map(path: &Path) -> Result<&'static Ledger> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    file.set_len(Ledger::SIZE)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (null, length, shared) = (std::ptr::null_mut(), size_of::<Ledger>(), libc::MAP_SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let address = unsafe { libc::mmap(null, length, protection, shared, file.as_raw_fd(), 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error().into());
    }
    // SAFETY: the mapping is as long as a ledger, aligned to a page and never taken down; a ledger
    // is made of atomics and valid whatever the file holds.
    let ledger = unsafe { &*address.cast::<Ledger>() };
    ledger.format();
    ledger.check(Ledger::SIZE).map_err(Stop::fail)?;
    Ok(ledger)
}

fn nanoseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e9
}

/// Nanoseconds that this thread has had a processor.
fn cpu_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is writable, and every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let (seconds, ns) = (time.tv_sec as f64, time.tv_nsec as f64);
    seconds * 1e9 + ns
}
