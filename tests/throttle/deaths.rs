//! Who is killed with work on the card has paid for it all the same, or those that come after him do: until the machine
//! dies, too.

use crate::{BEGIN, LAUNCH, MS, lasts, under, within};
use gpucap_core::page::read_seats;
use gpucap_tests::{Actor, Result, Run, Stop, trial};
use libtest_mimic::Trial;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Instant;

/// How many processes are killed, each of them in an unmeasured kernel.
const DEATHS: u32 = 5;
const KERNEL: &str = "call cuModuleGetFunction &c b 'k_200ms";
const KERNEL_NS: u64 = 200 * MS;
/// Where the seats of a usage page begin.
const SEATS: usize = 4096;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("who is killed in its first kernel buys no more than the share", first_kernel),
        trial("who is killed while its launch waits for the kernel has paid", || {
            owed(&under("50", "caller")?.env("CUDA_LAUNCH_BLOCKING", "1"), LAUNCH)
        }),
        trial("a kernel that was over when its process was killed is paid once", over_before),
        trial("the report of who was killed ends when another process looks", report),
        trial("what was owed in an earlier life of the machine is owed no more", another_boot),
    ]
}

/// A process with its kernel ready.
fn begin(run: &Run) -> Result<Actor> {
    let mut caller = run.start()?;
    for command in BEGIN.iter().chain(&[KERNEL]) {
        caller.order(command)?;
        caller.line()?;
    }
    Ok(caller)
}

/// Each process launches, lets the card's clock go on to the end of the kernel and dies. What they all did but the last
/// one, the next one has paid for by the time that its launch is let through.
fn first_kernel() -> Result {
    let run = under("50", "caller")?;
    let mut first = None;
    for _ in 0..DEATHS {
        let mut caller = begin(&run)?;
        caller.order(LAUNCH)?;
        caller.line()?;
        let now = Instant::now();
        first.get_or_insert(now);
        caller.order(&format!("call stubAdvance {KERNEL_NS}"))?;
        caller.line()?;
        caller.kill()?;
    }
    let mut last = begin(&run)?;
    last.order(LAUNCH)?;
    last.line()?;
    let passed = first.map_or(0, |first: Instant| first.elapsed().as_nanos());
    // What the bucket holds is 20 ms.
    let least = u128::from((u64::from(DEATHS) * KERNEL_NS - 40 * MS) * 2);
    within("passed", passed, least..=u128::MAX)?;
    let work = u64::from(DEATHS) * KERNEL_NS;
    lasts("busy time", run.busy_ns()?, work / 10 * 9..=work * 2)
}

/// One process does this and is killed in the middle of its kernel; the next one finds what that was worth.
fn owed(run: &Run, launch: &str) -> Result {
    let mut caller = begin(run)?;
    caller.order(launch)?;
    let mut judge = begin(run)?;
    judge.order(&format!("call stubAdvance {}", KERNEL_NS / 2))?;
    judge.line()?;
    caller.kill()?;
    judge.order(launch)?;
    judge.line()?;
    lasts("busy time", run.busy_ns()?, KERNEL_NS / 4..=KERNEL_NS * 4)
}

/// A wait for one stream shows what is done in the others.
fn over_before() -> Result {
    let run = under("50", "caller")?;
    let mut caller = begin(&run)?;
    let passed = format!("call stubAdvance {KERNEL_NS}");
    let own = "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0";
    let script = ["call cuStreamCreate &d 1", own, &passed, "call cuStreamSynchronize 0", &passed];
    for command in script.iter().chain(&[passed.as_str(); 4]) {
        caller.order(command)?;
        caller.line()?;
    }
    caller.kill()?;
    let mut next = begin(&run)?;
    next.order("call cuModuleGetFunction &c b 'k_1ms")?;
    next.line()?;
    next.order(LAUNCH)?;
    next.line()?;
    lasts("busy time", run.busy_ns()?, KERNEL_NS / 10 * 7..=KERNEL_NS * 2)
}

/// It says that work is in flight, and would say so for ever.
fn report() -> Result {
    let run = under("50", "caller")?;
    let in_flight = || {
        let user = fs::metadata(run.directory())?.uid();
        let page = run.directory().join(format!("gpucap-{user}-pages/ledger"));
        let bytes = fs::read(page)?;
        let seats = bytes.get(SEATS..).ok_or_else(|| Stop::fail("a page without seats"))?;
        Result::Ok(read_seats(seats).filter(|(_, report)| report.is_in_flight()).count())
    };
    let mut caller = begin(&run)?;
    caller.order(LAUNCH)?;
    caller.line()?;
    within("reports of work in flight", in_flight()?, 1..=1)?;
    caller.kill()?;
    within("reports of work in flight after its end", in_flight()?, 1..=1)?;
    let mut next = begin(&run)?;
    next.order("call cuStreamSynchronize 0")?;
    next.line()?;
    within("reports of work in flight after a look", in_flight()?, 0..=0)
}

/// The file is as if the machine had owed something when it went down after an hour, and is up again: at half a share that
/// would be an hour's wait. The same file of the same boot owes what it says.
fn another_boot() -> Result {
    const BOOT: u64 = 56;
    const BUCKET: u64 = 4096 + 64;
    if fs::read("/proc/sys/kernel/random/boot_id").is_err() {
        return Err(Stop::skip("/proc does not tell the boot"));
    }
    let run = under("50", "caller")?;
    let mut first = begin(&run)?;
    first.order(LAUNCH)?;
    first.line()?;
    first.end()?;
    let file = OpenOptions::new().read(true).write(true).open(run.directory().join("ledger"))?;
    let mut boot = [0; 8];
    file.read_exact_at(&mut boot, BOOT)?;
    let mut word = [0; 8];
    file.read_exact_at(&mut word, BUCKET)?;
    let ahead = u64::from_le_bytes(word) + 3_600_000 * MS;
    file.write_all_at(&ahead.to_le_bytes(), BUCKET)?;
    let mut debtor = begin(&run)?;
    debtor.order("call cuMemAlloc_v2 &a 16")?;
    debtor.line()?;
    file.read_exact_at(&mut word, BUCKET)?;
    within("the word in the same boot", u64::from_le_bytes(word), ahead..=ahead)?;
    debtor.kill()?;
    file.write_all_at(&7_u64.to_le_bytes(), BOOT)?;
    let mut next = begin(&run)?;
    next.order(LAUNCH)?;
    next.line()?;
    let mut now = [0; 8];
    file.read_exact_at(&mut now, BOOT)?;
    if now == boot { Ok(()) } else { Err(Stop::fail("the file is still of another boot")) }
}
