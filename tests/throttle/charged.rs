//! Each form of a launch, by itself: it counts, and it pays for as long as it keeps the card busy.

use crate::{BEGIN, LAUNCH, MS, WAIT, about, lasts, obey, under, within};
use gpucap_tests::{Result, Stop, rows, trial};
use libtest_mimic::Trial;

/// How often each form is called; every one takes 10 ms of the card.
const TIMES: u64 = 4;

/// A launch of 10 ms on a card that sets and copies a byte in a microsecond: the function, what has to be done before, and its arguments as the caller takes them.
type Form = (&'static str, &'static [&'static str], &'static str);

const NOTHING: &[&str] = &[];
#[rustfmt::skip] // on one line
const SHAPE: &[&str] =
    &["poke 0 0 4 1", "poke 0 4 4 1", "poke 0 8 4 1", "poke 0 12 4 32", "poke 0 16 4 1", "poke 0 20 4 1"];
/// One device's part: the kernel, and a shape behind it.
#[rustfmt::skip] // the shape on one line
const PART: &[&str] = &[
    "poke 0 8 4 1", "poke 0 12 4 1", "poke 0 16 4 1", "poke 0 20 4 32", "poke 0 24 4 1", "poke 0 28 4 1",
    "call cuModuleGetFunction %0 b 'k_10ms",
];
const BLOCK: &[&str] = &["call cuFuncSetBlockShape c 32 1 1"];
const GRAPH: &[&str] = &[
    "call cuStreamBeginCapture_v2 2 0",
    "call cuLaunchKernel c 1 1 1 32 1 1 0 2 0 0",
    "call cuStreamEndCapture 2 &e",
    "call cuGraphInstantiateWithFlags &g e 0",
];
const MEMORY: &[&str] = &["call cuMemAlloc_v2 &a 10000"];
/// For the first API, whose addresses have 32 bits.
const LOW_MEMORY: &[&str] = &["call cuMemAlloc &a 10000"];
/// An array of as many bytes besides, in `e`.
#[rustfmt::skip] // its description on one line
const ARRAY: &[&str] = &[
    "call cuMemAlloc_v2 &a 10000",
    "poke 0 0 8 100", "poke 0 8 8 100", "poke 0 16 4 1", "poke 0 20 4 1", "call cuArrayCreate_v2 &e %0",
];
#[rustfmt::skip] // its description on one line
const LOW_ARRAY: &[&str] = &[
    "call cuMemAlloc &a 10000",
    "poke 0 0 8 100", "poke 0 8 8 100", "poke 0 16 4 1", "poke 0 20 4 1", "call cuArrayCreate_v2 &e %0",
];
/// Of 100 rows of 100 bytes, from memory of the device to an address that the driver knows as such, or to an array.
#[rustfmt::skip] // one line
const ROWS: &[&str] =
    &["call cuMemAlloc_v2 &a 10000", "poke 0 16 4 2", "poke 0 72 4 4", "put 0 88 a", "poke 0 112 8 100", "poke 0 120 8 100"];
#[rustfmt::skip] // one line
const LOW_ROWS: &[&str] = &["poke 0 8 4 2", "poke 0 52 4 3", "poke 0 84 4 100", "poke 0 88 4 100"];
/// Of five layers of 20 rows of 100 bytes.
#[rustfmt::skip] // sides on one line, sizes on another
const LAYERS: &[&str] = &[
    "call cuMemAlloc_v2 &a 10000", "poke 0 32 4 4", "put 0 48 a", "poke 0 120 4 3",
    "poke 0 176 8 100", "poke 0 184 8 20", "poke 0 192 8 5",
];
#[rustfmt::skip] // one line
const LOW_LAYERS: &[&str] =
    &["poke 0 16 4 2", "poke 0 80 4 2", "poke 0 128 4 100", "poke 0 132 4 20", "poke 0 136 4 5"];
/// Two copies, in stream `d`: addresses, sizes and attributes in buffer 0.
#[rustfmt::skip] // one line
const BATCH: &[&str] = &[
    "call cuMemAlloc_v2 &a 10000", "call cuStreamCreate &d 1", "put 0 0 a", "put 0 8 a", "put 0 16 a", "put 0 24 a",
    "poke 0 32 8 4000", "poke 0 40 8 6000", "poke 0 64 4 1",
];
/// One of 100 rows of 100 bytes, in stream `d`: from an address to an array.
#[rustfmt::skip] // one line for each side
const SHAPED: &[&str] = &[
    "call cuMemAlloc_v2 &a 10000", "call cuStreamCreate &d 1",
    "poke 0 0 4 1", "put 0 8 a",
    "poke 0 40 4 2", "poke 0 48 8 64",
    "poke 0 80 8 100", "poke 0 88 8 100", "poke 0 96 8 1", "poke 0 104 4 1",
];

#[rustfmt::skip] // one line for each form
const FORMS: &[Form] = &[
    ("cuLaunchKernel", NOTHING, "c 1 1 1 32 1 1 0 0 0 0"),
    ("cuLaunchKernel_ptsz", NOTHING, "c 1 1 1 32 1 1 0 0 0 0"),
    ("cuLaunchCooperativeKernel", NOTHING, "c 1 1 1 32 1 1 0 0 0 0"),
    ("cuLaunchCooperativeKernel_ptsz", NOTHING, "c 1 1 1 32 1 1 0 0 0 0"),
    ("cuLaunchKernelEx", SHAPE, "%0 c 0 0"),
    ("cuLaunchKernelEx_ptsz", SHAPE, "%0 c 0 0"),
    ("cuLaunchCooperativeKernelMultiDevice", PART, "%0 1 0"),
    ("cuLaunch", BLOCK, "c"),
    ("cuLaunchGrid", BLOCK, "c 2 3"),
    ("cuLaunchGridAsync", BLOCK, "c 2 3 0"),
    ("cuGraphLaunch", GRAPH, "g 0"),
    ("cuGraphLaunch_ptsz", GRAPH, "g 0"),
    ("cuMemsetD8", LOW_MEMORY, "a 7 10000 0"),
    ("cuMemsetD8_v2", MEMORY, "a 7 10000 0"),
    ("cuMemsetD8_v2_ptds", MEMORY, "a 7 10000 0"),
    ("cuMemsetD8Async", MEMORY, "a 7 10000 0"),
    ("cuMemsetD8Async_ptsz", MEMORY, "a 7 10000 0"),
    ("cuMemsetD2D8", LOW_MEMORY, "a 100 7 100 100 0"),
    ("cuMemsetD2D8_v2", MEMORY, "a 100 7 100 100 0"),
    ("cuMemsetD2D8_v2_ptds", MEMORY, "a 100 7 100 100 0"),
    ("cuMemsetD2D8Async", MEMORY, "a 100 7 100 100 0"),
    ("cuMemsetD2D8Async_ptsz", MEMORY, "a 100 7 100 100 0"),
    ("cuMemsetD16", LOW_MEMORY, "a 7 5000 0"),
    ("cuMemsetD16_v2", MEMORY, "a 7 5000 0"),
    ("cuMemsetD16_v2_ptds", MEMORY, "a 7 5000 0"),
    ("cuMemsetD16Async", MEMORY, "a 7 5000 0"),
    ("cuMemsetD16Async_ptsz", MEMORY, "a 7 5000 0"),
    ("cuMemsetD2D16", LOW_MEMORY, "a 100 7 50 100 0"),
    ("cuMemsetD2D16_v2", MEMORY, "a 100 7 50 100 0"),
    ("cuMemsetD2D16_v2_ptds", MEMORY, "a 100 7 50 100 0"),
    ("cuMemsetD2D16Async", MEMORY, "a 100 7 50 100 0"),
    ("cuMemsetD2D16Async_ptsz", MEMORY, "a 100 7 50 100 0"),
    ("cuMemsetD32", LOW_MEMORY, "a 7 2500 0"),
    ("cuMemsetD32_v2", MEMORY, "a 7 2500 0"),
    ("cuMemsetD32_v2_ptds", MEMORY, "a 7 2500 0"),
    ("cuMemsetD32Async", MEMORY, "a 7 2500 0"),
    ("cuMemsetD32Async_ptsz", MEMORY, "a 7 2500 0"),
    ("cuMemsetD2D32", LOW_MEMORY, "a 100 7 25 100 0"),
    ("cuMemsetD2D32_v2", MEMORY, "a 100 7 25 100 0"),
    ("cuMemsetD2D32_v2_ptds", MEMORY, "a 100 7 25 100 0"),
    ("cuMemsetD2D32Async", MEMORY, "a 100 7 25 100 0"),
    ("cuMemsetD2D32Async_ptsz", MEMORY, "a 100 7 25 100 0"),
    ("cuMemcpyDtoD", LOW_MEMORY, "a a 10000 0"),
    ("cuMemcpyDtoD_v2", MEMORY, "a a 10000 0"),
    ("cuMemcpyDtoD_v2_ptds", MEMORY, "a a 10000 0"),
    ("cuMemcpyDtoDAsync", LOW_MEMORY, "a a 10000 0"),
    ("cuMemcpyDtoDAsync_v2", MEMORY, "a a 10000 0"),
    ("cuMemcpyDtoDAsync_v2_ptsz", MEMORY, "a a 10000 0"),
    ("cuMemcpy", MEMORY, "a a 10000"),
    ("cuMemcpy_ptds", MEMORY, "a a 10000"),
    ("cuMemcpyAsync", MEMORY, "a a 10000 0"),
    ("cuMemcpyAsync_ptsz", MEMORY, "a a 10000 0"),
    ("cuMemcpyPeer", MEMORY, "a h a h 10000"),
    ("cuMemcpyPeer_ptds", MEMORY, "a h a h 10000"),
    ("cuMemcpyPeerAsync", MEMORY, "a h a h 10000 0"),
    ("cuMemcpyPeerAsync_ptsz", MEMORY, "a h a h 10000 0"),
    ("cuMemcpy2D", LOW_ROWS, "%0"),
    ("cuMemcpy2D_v2", ROWS, "%0"),
    ("cuMemcpy2D_v2_ptds", ROWS, "%0"),
    ("cuMemcpy2DUnaligned", LOW_ROWS, "%0"),
    ("cuMemcpy2DUnaligned_v2", ROWS, "%0"),
    ("cuMemcpy2DUnaligned_v2_ptds", ROWS, "%0"),
    ("cuMemcpy3D", LOW_LAYERS, "%0"),
    ("cuMemcpy3D_v2", LAYERS, "%0"),
    ("cuMemcpy3D_v2_ptds", LAYERS, "%0"),
    ("cuMemcpy2DAsync", LOW_ROWS, "%0 0"),
    ("cuMemcpy2DAsync_v2", ROWS, "%0 0"),
    ("cuMemcpy2DAsync_v2_ptsz", ROWS, "%0 0"),
    ("cuMemcpy3DAsync", LOW_LAYERS, "%0 0"),
    ("cuMemcpy3DAsync_v2", LAYERS, "%0 0"),
    ("cuMemcpy3DAsync_v2_ptsz", LAYERS, "%0 0"),
    ("cuMemcpy3DPeer", LAYERS, "%0"),
    ("cuMemcpy3DPeer_ptds", LAYERS, "%0"),
    ("cuMemcpy3DPeerAsync", LAYERS, "%0 0"),
    ("cuMemcpy3DPeerAsync_ptsz", LAYERS, "%0 0"),
    ("cuMemcpyAtoD", LOW_ARRAY, "a e 0 10000"),
    ("cuMemcpyAtoD_v2", ARRAY, "a e 0 10000"),
    ("cuMemcpyAtoD_v2_ptds", ARRAY, "a e 0 10000"),
    ("cuMemcpyDtoA", LOW_ARRAY, "e 0 a 10000"),
    ("cuMemcpyDtoA_v2", ARRAY, "e 0 a 10000"),
    ("cuMemcpyDtoA_v2_ptds", ARRAY, "e 0 a 10000"),
    ("cuMemcpyAtoA", LOW_ARRAY, "e 0 e 0 10000"),
    ("cuMemcpyAtoA_v2", ARRAY, "e 0 e 0 10000"),
    ("cuMemcpyAtoA_v2_ptds", ARRAY, "e 0 e 0 10000"),
    ("cuMemcpyBatchAsync", BATCH, "%0 %0+16 %0+32 2 %0+64 %0+56 1 %0+128 d"),
    ("cuMemcpyBatchAsync_ptsz", BATCH, "%0 %0+16 %0+32 2 %0+64 %0+56 1 %0+128 0"),
    ("cuMemcpyBatchAsync_v2", BATCH, "%0 %0+16 %0+32 2 %0+64 %0+56 1 d"),
    ("cuMemcpyBatchAsync_v2_ptsz", BATCH, "%0 %0+16 %0+32 2 %0+64 %0+56 1 0"),
    ("cuMemcpy3DBatchAsync", SHAPED, "1 %0 %0+128 0 d"),
    ("cuMemcpy3DBatchAsync_ptsz", SHAPED, "1 %0 %0+128 0 0"),
    ("cuMemcpy3DBatchAsync_v2", SHAPED, "1 %0 0 d"),
    ("cuMemcpy3DBatchAsync_v2_ptsz", SHAPED, "1 %0 0 0"),
    ("cuMemcpyWithAttributesAsync", BATCH, "a a 10000 %0+64 d"),
    ("cuMemcpyWithAttributesAsync_ptsz", BATCH, "a a 10000 %0+64 0"),
    ("cuMemcpy3DWithAttributesAsync", SHAPED, "%0 0 d"),
    ("cuMemcpy3DWithAttributesAsync_ptsz", SHAPED, "%0 0 0"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<_> = FORMS
        .iter()
        .map(|form| trial(format!("{} pays for its time", form.0), || pays(*form)))
        .collect();
    trials.extend([
        trial("every function that launches is tried", every_row),
        trial("copies from and to the host are free", host_copies),
        trial(
            "a batch of copies from and to the host is free, and pays if one is neither",
            mixed_batch,
        ),
        trial("a stream that is destroyed with work in it has paid", destroyed_stream),
        trial("a launch on several devices pays on each", several_devices),
        trial("a stream pays where it is, whatever had its handle before", handle_used_again),
        trial("what a wait finds done is settled", settled),
        trial("a primary context that is made again is measured again", primary_again),
    ]);
    trials
}

fn every_row() -> Result {
    let tried = |row: &&&rows::Row| FORMS.iter().any(|form| form.0 == row.symbol);
    let launches = rows::CUDA.iter().filter(|row| row.class == "launch");
    let missing: Vec<_> = launches.filter(|row| !tried(&row)).map(|row| row.symbol).collect();
    if missing.is_empty() { Ok(()) } else { Err(Stop::fail(format!("{missing:?}"))) }
}

fn pays((symbol, before, arguments): Form) -> Result {
    let run = under("50", "caller")?.env("STUB_GPU_COPY_BYTES_PER_US", "1");
    let call = format!("call {symbol} {arguments}");
    let mut script = [BEGIN.as_slice(), before].concat();
    script.extend((0..TIMES).map(|_| call.as_str()));
    script.extend([WAIT, "call stubBusy 0"]);
    let mut answers = obey(&run, &script)?;
    // The card itself says that the calls were what they were meant to be.
    let busy = answers.pop().map_or(0, |(busy, _)| u64::from(busy));
    within("the card's own time", busy, TIMES * 10 * MS..=TIMES * 10 * MS)?;
    if let Some(failed) = answers.iter().position(|(code, _)| *code != 0) {
        return Err(Stop::fail(format!("{}: {:?}", script[failed], answers[failed])));
    }
    within("launches", run.launches()?, TIMES..=TIMES)?;
    lasts("busy time", run.busy_ns()?, about(busy))
}

/// One side is memory of the host in each, whichever says so: the description, or the address.
fn host_copies() -> Result {
    let run = under("50", "caller")?.env("STUB_GPU_COPY_BYTES_PER_US", "1");
    let mut script =
        [BEGIN.as_slice(), &["call cuMemAlloc_v2 &a 10000", "call cuMemAllocHost_v2 &g 10000"]]
            .concat();
    for copy in ["cuMemcpy", "cuMemcpy_ptds", "cuMemcpyAsync", "cuMemcpyAsync_ptsz"] {
        for sides in ["a %1", "%1 a", "g g", "g a", "a g"] {
            script.push(format!("call {copy} {sides} 200 0").leak());
        }
    }
    script.extend(ROWS);
    script.extend(["poke 0 16 4 1", "call cuMemcpy2D_v2 %0", "call cuMemcpy2DAsync_v2 %0 0"]);
    script.extend(["poke 0 16 4 2", "put 0 88 g", "call cuMemcpy2D_v2 %0"]);
    script.extend(LAYERS);
    script.extend(["poke 0 120 4 1", "call cuMemcpy3D_v2 %0", "call cuMemcpy3DPeerAsync %0 0"]);
    script.extend(["poke 0 120 4 3", "put 0 48 g", "call cuMemcpy3DAsync_v2 %0 0", WAIT]);
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    within("launches", run.launches()?, 0..=0)?;
    within("busy time", run.busy_ns()?, 0..=0)
}

/// The first copy's source is the host's, then that of both, and of a shape it is the target.
fn mixed_batch() -> Result {
    let batch = "call cuMemcpyBatchAsync_v2 %0 %0+16 %0+32 2 %0+64 %0+56 1 d";
    let shaped = "call cuMemcpy3DBatchAsync_v2 1 %0 0 d";
    let host = ["call cuMemAllocHost_v2 &g 10000", "put 0 16 g"];
    let script = [BEGIN.as_slice(), BATCH, &host, &[batch, WAIT]].concat();
    let free = [&["put 0 24 g", batch], SHAPED, &["poke 0 40 4 1", "put 0 48 g", shaped, WAIT]];
    let run = |script: &[&str]| {
        let run = under("50", "caller")?.env("STUB_GPU_COPY_BYTES_PER_US", "1");
        let answers = obey(&run, script)?;
        within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
        Ok::<_, Stop>(run)
    };
    let pays = run(&script)?;
    within("launches", pays.launches()?, 1..=1)?;
    lasts("busy time", pays.busy_ns()?, about(10 * MS))?;
    let without = &script[..script.len() - 2];
    let free = run(&[without, &free.concat()].concat())?;
    within("launches of the host's", free.launches()?, 0..=0)
}

fn destroyed_stream() -> Result {
    let run = under("50", "caller")?;
    let own = "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0";
    let round = ["call cuStreamCreate &d 1", own, own, "call cuStreamDestroy_v2 d"];
    let mut script = BEGIN.to_vec();
    (0..4).for_each(|_| script.extend(round));
    script.extend([WAIT, LAUNCH, WAIT]);
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    within("launches", run.launches()?, 9..=9)?;
    // What was not measured is paid by its estimate: never more than all, and not nothing.
    lasts("busy time", run.busy_ns()?, 20 * MS..=180 * MS)
}

/// Buffer 0 is the list: a kernel, a shape and a stream for each device.
fn several_devices() -> Result {
    let run = under("50", "caller")?.env("STUB_GPU_COUNT", "2");
    let mut script = BEGIN.to_vec();
    let shape = |first: u32| (0..6).map(move |at| format!("poke 0 {} 4 1", first + 4 * at));
    let shapes: Vec<String> = shape(8).chain(shape(64)).collect();
    script.extend(shapes.iter().map(String::as_str));
    script.extend(["call cuModuleGetFunction %0 b 'k_10ms", "call cuStreamCreate %0+40 1"]);
    script.extend(["call cuDevicePrimaryCtxRetain &g 1", "call cuCtxSetCurrent g"]);
    script.extend(["call cuModuleLoadData &d 'image", "call cuModuleGetFunction %0+56 d 'k_20ms"]);
    script.extend(["call cuStreamCreate %0+96 1", "call cuCtxSetCurrent h"]);
    script.extend(["call cuLaunchCooperativeKernelMultiDevice %0 2 0", WAIT]);
    script.extend(["call cuCtxSetCurrent g", WAIT]);
    let answers = obey(&run, &script)?;
    if let Some(failed) = answers.iter().position(|(code, _)| *code != 0) {
        return Err(Stop::fail(format!("{}: {:?}", script[failed], answers[failed])));
    }
    let busy = run.busy_by_device()?;
    lasts("the first device", busy[0], about(10 * MS))?;
    lasts("the second device", busy[1], about(20 * MS))
}

fn handle_used_again() -> Result {
    let run = under("50", "caller")?.env("STUB_GPU_COUNT", "2");
    let own = "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0";
    let mut script = BEGIN.to_vec();
    script.extend(["call cuStreamCreate &d 1", own, WAIT, "call cuStreamDestroy_v2 d"]);
    script.extend(["call cuDevicePrimaryCtxRetain &g 1", "call cuCtxSetCurrent g"]);
    script.extend(["call cuModuleLoadData &b 'image", "call cuModuleGetFunction &c b 'k_10ms"]);
    script.extend(["call cuStreamCreate &d 1", own, own, own, WAIT]);
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    let busy = run.busy_by_device()?;
    lasts("the first device", busy[0], about(10 * MS))?;
    lasts("the second device", busy[1], about(30 * MS))
}

fn settled() -> Result {
    for wait in ["call cuCtxSynchronize", "call cuStreamSynchronize 0", "call cuEventSynchronize e"]
    {
        let run = under("50", "caller")?;
        let mut script = BEGIN.to_vec();
        script.extend(["call cuEventCreate &e 0", LAUNCH, LAUNCH, "call cuEventRecord e 0", wait]);
        let mut caller = run.start()?;
        for command in script {
            caller.order(command)?;
            caller.line()?;
        }
        // The process still runs: nothing but the wait can have told.
        lasts(wait, run.busy_ns()?, about(20 * MS))?;
        caller.end()?;
    }
    Ok(())
}

/// The handle of a primary context is the same one each time, the driver's events in it are not. A kernel that was never
/// measured yet shows whether there are any.
fn primary_again() -> Result {
    let run = under("50", "caller")?;
    let mut script = BEGIN.to_vec();
    script.extend([LAUNCH, WAIT]);
    let again = [
        ("call cuDevicePrimaryCtxRelease_v2 0", "call cuModuleGetFunction &c b 'k_20ms"),
        ("call cuDevicePrimaryCtxReset_v2 0", "call cuModuleGetFunction &c b 'k_25ms"),
    ];
    for (end, kernel) in again {
        script.push(end);
        script.extend(&BEGIN[1..4]);
        script.push(kernel);
        (0..4).for_each(|_| script.extend([LAUNCH, WAIT]));
    }
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    within("launches", run.launches()?, 9..=9)?;
    // Guesses that only double are 15 ms for each of the two.
    lasts("busy time", run.busy_ns()?, 190 * MS / 4 * 3..=190 * MS / 4 * 5)
}
