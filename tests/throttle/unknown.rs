//! Launches of functions that were never measured, by several processes of a container: one at a time is in flight, and a
//! thread of the library looks for its end.

use crate::{BEGIN, LAUNCH, MS, WAIT, under, within};
use gpucap_tests::{Actor, Program, Result, Run, Stop, trial};
use libtest_mimic::Trial;
use std::fs;
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a launch of unknown length waits for one of another process", measured),
        trial("launches of unknown length of a container get no more than its share", || {
            together("any")
        }),
        trial("launches of unknown length where questions need a context", || together("current")),
        trial("a launch of unknown length waits for no process that makes no call", silent),
        trial("a launch of unknown length waits for half a second and the limit", mutual),
        trial("a thread of the library looks for the ends, and for a second after them", lingering),
        trial("a process with all of the GPU has no thread of the library", unlimited),
        trial("where there can be no thread, a launch of unknown length is waited for", in_place),
        trial("a process ends while a thread of the library looks", ending),
        trial(
            "a launch of unknown length at the end of the process is looked for in place",
            at_exit,
        ),
        trial(
            "launches beside a kernel that does not end go on once two seconds are paid for",
            persistent,
        ),
    ]
}

/// A process with a kernel of this name.
fn begin(run: &Run, kernel: &str) -> Result<Actor> {
    let mut caller = run.start()?;
    let function = format!("call cuModuleGetFunction &c b '{kernel}");
    for command in BEGIN.iter().chain(&[function.as_str()]) {
        obeys(&mut caller, command)?;
    }
    Ok(caller)
}

fn obeys(caller: &mut Actor, command: &str) -> Result {
    caller.order(command)?;
    caller.line()?;
    Ok(())
}

/// Whether a process has a thread of the library.
fn has_thread(caller: &Actor) -> Result<bool> {
    let names = fs::read_dir(format!("/proc/{}/task", caller.pid()))?.filter_map(|task| {
        // A thread may end in the mean time.
        fs::read_to_string(task.ok()?.path().join("comm")).ok()
    });
    Ok(names.into_iter().any(|name| name.trim() == "gpucap"))
}

/// Whether it has one within a second: a thread has its name a moment after it begins.
fn gets_thread(caller: &Actor) -> Result<bool> {
    for _ in 0..100 {
        if has_thread(caller)? {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

/// The second process pays for the kernel of the first one, of which it knew nothing when it asked, and whose end the first
/// one has not noticed.
fn measured() -> Result {
    let run = under("50", "caller")?;
    let [mut first, mut second] = [begin(&run, "k_300ms")?, begin(&run, "k_300ms")?];
    let began = Instant::now();
    obeys(&mut first, LAUNCH)?;
    std::thread::sleep(Duration::from_millis(50));
    obeys(&mut second, LAUNCH)?;
    // The bucket holds 20 ms.
    within("passed, ms", began.elapsed().as_millis(), 560..=u128::MAX)?;
    let waited_ms = run.waited_ns()? / MS;
    within("waited, ms", waited_ms, 200..=u64::MAX)
}

/// All launch at once, and none makes another call. `context`: the one that the stub wants of a thread that asks for an
/// event.
fn together(context: &str) -> Result {
    let run = under("50", "caller")?.env("STUB_GPU_EVENT_CONTEXT", context);
    let mut crew = (0..4).map(|_| begin(&run, "k_300ms")).collect::<Result<Vec<_>>>()?;
    let began = Instant::now();
    crew.iter_mut().try_for_each(|caller| caller.order(LAUNCH))?;
    for caller in &mut crew {
        caller.line()?;
    }
    // Three of them are paid for, but for what the bucket holds.
    within("passed, ms", began.elapsed().as_millis(), 1_740..=u128::MAX)
}

fn silent() -> Result {
    let run = under("50", "caller")?;
    let [mut first, mut second] = [begin(&run, "k_1ms")?, begin(&run, "k_1ms")?];
    obeys(&mut first, LAUNCH)?;
    std::thread::sleep(Duration::from_millis(50));
    obeys(&mut second, LAUNCH)?;
    within("waited, ms", run.waited_ns()? / MS, 0..=20)
}

/// The kernel of the first process stands for one that waits for the second one's.
fn mutual() -> Result {
    let run = under("99", "caller")?;
    let [mut first, mut second] = [begin(&run, "k_3000ms")?, begin(&run, "k_1ms")?];
    obeys(&mut first, LAUNCH)?;
    std::thread::sleep(Duration::from_millis(50));
    obeys(&mut second, LAUNCH)?;
    // The limit does not hold it back yet: 5 ms are missing of the bucket's 20.
    within("waited, ms", run.waited_ns()? / MS, 400..=2_000)?;
    obeys(&mut first, WAIT)
}

fn lingering() -> Result {
    let run = under("50", "caller")?;
    let [mut first, second] = [begin(&run, "k_300ms")?, begin(&run, "k_300ms")?];
    obeys(&mut first, LAUNCH)?;
    let began = Instant::now();
    let looks = [gets_thread(&first)?, has_thread(&second)?];
    while has_thread(&first)? {
        if began.elapsed() > Duration::from_secs(20) {
            return Err(Stop::fail("it goes on"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    within("lingered, ms", began.elapsed().as_millis(), 1_200..=u128::MAX)?;
    let function = "call cuModuleGetFunction &c b 'k_10ms";
    obeys(&mut first, function)?;
    obeys(&mut first, LAUNCH)?;
    match (looks, gets_thread(&first)?) {
        ([true, false], true) => Ok(()),
        found => Err(Stop::fail(format!("{found:?}"))),
    }
}

fn unlimited() -> Result {
    let run = under("100", "caller")?;
    let mut caller = begin(&run, "k_300ms")?;
    obeys(&mut caller, LAUNCH)?;
    let looks = gets_thread(&caller)?;
    obeys(&mut caller, WAIT)?;
    if looks { Err(Stop::fail("there is one")) } else { Ok(()) }
}

/// The program has a `pthread_create` that fails.
fn in_place() -> Result {
    let run = under("50", "caller")?;
    let _other = begin(&run, "k_1ms")?;
    let program = Program::new("caller").flags(&["-lcuda", "-DNO_THREADS", "-rdynamic"]).build()?;
    let mut caller = begin(&run.clone().program(&program), "k_300ms")?;
    let began = Instant::now();
    obeys(&mut caller, LAUNCH)?;
    within("passed, ms", began.elapsed().as_millis(), 300..=u128::MAX)?;
    if gets_thread(&caller)? { Err(Stop::fail("there is one")) } else { Ok(()) }
}

/// It ends by a return of `main`, at another time each.
fn ending() -> Result {
    let run = under("50", "caller")?;
    let _other = begin(&run, "k_1ms")?;
    for turn in 0..10 {
        let mut caller = begin(&run, "k_30ms")?;
        obeys(&mut caller, LAUNCH)?;
        std::thread::sleep(Duration::from_micros(turn * 170));
        let began = Instant::now();
        let output = caller.end()?;
        if output.code() != Some(0) {
            return Err(Stop::fail(output));
        }
        // Nothing keeps it: a look takes microseconds.
        within("ending, ms", began.elapsed().as_millis(), 0..=2_000)?;
    }
    Ok(())
}

/// In a function that the process runs as it ends, the library has no thread any more.
fn at_exit() -> Result {
    let run = under("50", "caller")?;
    let _other = begin(&run, "k_1ms")?;
    let program = Program::new("at_exit").flags(&["-lcuda"]).build()?;
    let output = run.clone().program(&program).output()?;
    let lasted = output.stdout.trim().parse::<u64>().map_err(|_| Stop::fail(&output))?;
    within("the launch at the end lasted, ms", lasted, 295..=u64::MAX)
}

/// Such a kernel serves others for as long as the program runs.
fn persistent() -> Result {
    let run = under("50", "caller")?;
    let _other = begin(&run, "k_1ms")?;
    let mut caller = begin(&run, "k_1ms")?;
    for command in [LAUNCH, WAIT, LAUNCH, WAIT] {
        obeys(&mut caller, command)?;
    }
    let server = ["call cuStreamCreate &d 1", "call cuModuleGetFunction &e b 'k_60000ms"];
    for command in server.iter().chain(&["call cuLaunchKernel e 1 1 1 32 1 1 0 d 0 0"]) {
        obeys(&mut caller, command)?;
    }
    let began = Instant::now();
    obeys(&mut caller, "call cuStreamCreate &f 1")?;
    let launch = "call cuLaunchKernel c 1 1 1 32 1 1 0 f 0 0";
    // The kernel is charged for two seconds, of which the bucket holds little: so that many pass twice.
    while began.elapsed() < Duration::from_secs(3) {
        obeys(&mut caller, launch)?;
        std::thread::sleep(Duration::from_millis(20));
    }
    within("held back, ms", began.elapsed().as_millis(), 3_000..=7_000)?;
    let after = Instant::now();
    for _ in 0..20 {
        obeys(&mut caller, launch)?;
        std::thread::sleep(Duration::from_millis(20));
    }
    within("twenty launches later, ms", after.elapsed().as_millis(), 0..=3_000)?;
    caller.kill()
}
