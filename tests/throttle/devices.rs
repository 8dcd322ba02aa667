//! Two devices of a container: each has its share, and pays from its own bucket. In collectives they meet, and there the
//! slower one sets the pace: whether these are launched by themselves or in graphs, by one process or by one for each.

use crate::share::spending;
use crate::{BEGIN, WAIT, lasts, obey, under, within};
use gpucap_tests::{Driver, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;

/// Percent of a card that no process may take beyond its share.
const ABOVE: f64 = 3.0;
/// The part of its share that a device has even on a machine so busy that it hardly runs.
const PROGRESS: f64 = 0.1;
/// What a device without a limit has, on such a machine: more than the share of the other one.
const HARDLY_HELD_UP: f64 = 20.0;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("two devices of a process keep to a share each", each_its_own),
        trial("a device without a share does not wait for the other one", no_share),
        trial("devices that meet in collectives go at the pace of the slower one", slower_pace),
        trial("a device without a share does not pay for the one it meets", meets_without_share),
        trial("devices that meet in graphs go at the pace of the slower one", || in_graphs("1")),
        trial("devices that meet in graphs within graphs do so too", || in_graphs("2")),
        trial(
            "devices whose graphs hold no collectives do not wait for one another",
            apart_in_graphs,
        ),
        trial("devices of two processes go at the pace of the slower one", by_two_processes),
        trial("what a graph launches is looked at where time is shared alone, and once", looked_at),
        trial("a graph of many nodes is not looked through to its end", bounded),
        trial("a kernel of a library is seen in a graph", of_a_library),
    ]
}

/// A program on two devices under these shares, for two seconds.
fn on_two(shares: &str, words: &[&str]) -> Result<Run> {
    let run = under(shares, "devices")?.env("STUB_GPU_COUNT", "2");
    let [collective, rest @ ..] = words else { return Ok(run) };
    Ok(spending(run, &[&["k_2ms", collective, "2000"], rest].concat()))
}

/// What the devices got, in percent of their time.
fn shares(output: &Output) -> Result<[f64; 2]> {
    Ok([share_of(output, 0)?, share_of(output, 1)?])
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of seconds")]
fn share_of(output: &Output, card: u32) -> Result<f64> {
    let number = |name: &str| output.number(&format!("{name}{card}"));
    Ok(number("busy")? as f64 * 100.0 / number("clock")? as f64)
}

fn each_its_own() -> Result {
    let run = on_two("0=10,1=50", &["-"])?;
    let output = run.output()?.success()?;
    let [first, second] = shares(&output)?;
    lasts(&format!("the first device: {output}"), first, 10.0 * PROGRESS..=10.0 + ABOVE)?;
    lasts(&format!("the second device: {output}"), second, 50.0 * PROGRESS..=50.0 + ABOVE)?;
    // What each has paid is its own work, that of the first quarter besides. Which of them the book has first is as the
    // threads come to it; the first device has a fifth of the other's.
    let mut book: Vec<_> = run.busy_by_device()?.into_iter().filter(|busy| *busy > 0).collect();
    book.sort_unstable();
    within("devices that pay", book.len(), 2..=2)?;
    for (name, paid) in ["busy0", "busy1"].into_iter().zip(book) {
        let counted = output.number(name)?;
        lasts(&format!("the book's {name}: {output}"), paid, counted / 10 * 7..=counted * 4)?;
    }
    Ok(())
}

fn no_share() -> Result {
    let output = on_two("0=10", &["-"])?.output()?.success()?;
    let [first, second] = shares(&output)?;
    lasts(&format!("the first device: {output}"), first, 10.0 * PROGRESS..=10.0 + ABOVE)?;
    lasts(&format!("the second device: {output}"), second, HARDLY_HELD_UP..=100.0)
}

fn slower_pace() -> Result {
    let output = on_two("0=10,1=80", &["ncclAll_1ms"])?.output()?.success()?;
    at_the_slower_pace([&output, &output])
}

/// The first device takes 90 ms for a round of 9 ms. The second one, by itself, would be busy for 72 of them; it is held
/// back while the first one is in debt, which is all the time but for a turn of 20 ms.
fn at_the_slower_pace(outputs: [&Output; 2]) -> Result {
    let [first, second] = [share_of(outputs[0], 0)?, share_of(outputs[1], 1)?];
    lasts(&format!("the first device: {}", outputs[0]), first, 10.0 * PROGRESS..=10.0 + ABOVE)?;
    lasts(&format!("the second device: {}", outputs[1]), second, 10.0 * PROGRESS..=45.0)
}

/// Graphs wait at the gate, so that the first device has no more than its share either.
fn in_graphs(depth: &str) -> Result {
    let output = on_two("0=10,1=80", &["ncclAll_1ms", depth])?.output()?.success()?;
    at_the_slower_pace([&output, &output])
}

fn apart_in_graphs() -> Result {
    let output = on_two("0=10,1=80", &["k_1ms", "1"])?.output()?.success()?;
    let [first, second] = shares(&output)?;
    lasts(&format!("the first device: {output}"), first, 10.0 * PROGRESS..=10.0 + ABOVE)?;
    lasts(&format!("the second device: {output}"), second, HARDLY_HELD_UP..=80.0 + ABOVE)
}

/// Each of them sees one device, as those of `torchrun` do.
fn by_two_processes() -> Result {
    let run = on_two("0=10,1=80", &[])?;
    let [first, second] = ["0", "1"].map(|number| {
        let words = ["k_2ms", "ncclAll_1ms", "2000", "0", number];
        spending(run.clone(), &words).env("CUDA_VISIBLE_DEVICES", number)
    });
    let first = std::thread::spawn(move || first.output()?.success());
    let second = second.output()?.success()?;
    let first = first.join().map_err(|_| Stop::fail("a thread ended badly"))??;
    at_the_slower_pace([&first, &second])
}

fn meets_without_share() -> Result {
    let run = on_two("0=10", &["ncclAll_1ms"])?;
    let output = run.output()?.success()?;
    let [first, second] = shares(&output)?;
    lasts(&format!("the first device: {output}"), first, 10.0 * PROGRESS..=10.0 + ABOVE)?;
    lasts(&format!("the second device: {output}"), second, HARDLY_HELD_UP..=100.0)?;
    let paying = run.busy_by_device()?.iter().filter(|busy| **busy > 0).count();
    within("devices that pay", paying, 1..=1)
}

/// How often the run has called a function of the driver.
fn calls(run: &Run, name: &str) -> Result<usize> {
    let trace = std::fs::read_to_string(run.directory().join("trace"))?;
    Ok(trace.lines().filter(|line| line.ends_with(name)).count())
}

fn traced(run: Run) -> Run {
    let trace = run.directory().join("trace");
    run.env("STUB_GPU_TRACE", trace)
}

const PARAMETERS: &str = " cuGraphKernelNodeGetParams_v2";

fn looked_at() -> Result {
    let timed = traced(under("50", "caller")?);
    let program = Program::new("caller").flags(&["-lcuda", "-pthread"]).build()?;
    let untimed = World::with_shim(Driver::Stub)?.run(&program)?.env("GPU_MEM_LIMIT", "1Gi");
    let untimed = traced(untimed);
    let launch = "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0";
    let mut script = BEGIN.to_vec();
    script.extend(["call cuStreamCreate &d 1", "call cuStreamBeginCapture_v2 d 2"]);
    script.extend([launch, launch, launch, "call cuStreamEndCapture d &e"]);
    script.extend(["call cuGraphInstantiateWithFlags &g e 0", "call cuGraphLaunch g 0", WAIT]);
    for (run, kernels, names) in [(&timed, 3, 1), (&untimed, 0, 0)] {
        let answers = obey(run, &script)?;
        within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
        within("kernels looked at", calls(run, PARAMETERS)?, kernels..=kernels)?;
        within("names asked for", calls(run, " cuFuncGetName")?, names..=names)?;
    }
    Ok(())
}

/// A program whose graphs are so large must not wait for us before it can use them.
fn bounded() -> Result {
    let run = spending(traced(under("50", "share")?), &["k_1us", "1", "1", "1", "10100"]);
    run.output()?.success()?;
    within("kernels looked at", calls(&run, PARAMETERS)?, 10_000..=10_000)
}

/// Its node has no function.
fn of_a_library() -> Result {
    let run = traced(under("50", "caller")?);
    let mut script = BEGIN.to_vec();
    script.extend([
        "call cuLibraryLoadData &d 'image 0 0 0 0 0 0",
        "call cuLibraryGetKernel &c d 'ncclAll_1ms",
        "put 0 56 c",
        "call cuGraphCreate &e 0",
        "call cuGraphAddKernelNode_v2 &f e 0 0 %0",
        "call cuGraphInstantiateWithFlags &g e 0",
    ]);
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    within("names asked for", calls(&run, " cuFuncGetName")?, 1..=1)
}
