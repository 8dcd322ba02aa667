//! What takes time in a stream and is no launch: none of that time is charged to the launches before it.
//!
//! Each form of it is called behind launches that have no event of their own, and the driver must be asked for one in
//! between: without it their span would reach over what follows. Of some forms the time is measured as well: 4 ms for
//! each call, for a copy by itself, for a wait because something else is under way in the mean time. A host that is late makes
//! the stream idle, and then that shows less.

use crate::{BEGIN, MS, WAIT, about, lasts, under, within};
use gpucap_tests::{Actor, Result, Run, Stop, rows, trial};
use libtest_mimic::Trial;
use std::iter;

/// What is called, what has to be done once, what is done before each call, and the arguments as the caller takes them;
/// in both, `{n}` is the number of the round.
type Form = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);

/// What is charged shows at a wait, after this many calls; that is repeated.
const ROUNDS: u64 = 5;
const BLOCKS: u64 = 5;
const LAUNCHES: usize = 10;
const KERNEL_NS: u64 = MS / 10;
/// What each call takes in its stream.
const TAKES: u64 = 4 * MS;

const NOTHING: &[&str] = &[];
const MEMORY: &[&str] = &["call cuMemAlloc_v2 &a 4000", "call cuMemAllocHost_v2 &g 4000"];
/// For the first API, whose addresses have 32 bits.
const LOW_MEMORY: &[&str] = &["call cuMemAlloc &a 4000", "call cuMemAllocHost_v2 &g 4000"];
const MANAGED: &[&str] = &["call cuMemAllocManaged &a 4000 1"];
#[rustfmt::skip] // one line
const RANGE: &[&str] = &["call cuMemAllocManaged &a 4000 1", "put 0 0 a", "poke 0 8 8 4000", "poke 0 16 4 1"];
#[rustfmt::skip] // its description on one line
const ARRAY: &[&str] = &[
    "call cuMemAllocHost_v2 &g 4000",
    "poke 0 0 8 100", "poke 0 8 8 100", "poke 0 16 4 1", "poke 0 20 4 1", "call cuArrayCreate_v2 &e %0",
];
/// Copies from the host of 100 rows of 40 bytes, and of five layers of 20 rows.
#[rustfmt::skip] // one line
const ROWS: &[&str] = &["poke 0 16 4 1", "poke 0 72 4 2", "poke 0 112 8 40", "poke 0 120 8 100"];
const LOW_ROWS: &[&str] = &["poke 0 8 4 1", "poke 0 52 4 2", "poke 0 84 4 40", "poke 0 88 4 100"];
#[rustfmt::skip] // one line
const LAYERS: &[&str] = &["poke 0 32 4 1", "poke 0 120 4 3", "poke 0 176 8 40", "poke 0 184 8 20", "poke 0 192 8 5"];
#[rustfmt::skip] // one line
const LOW_LAYERS: &[&str] = &["poke 0 16 4 1", "poke 0 80 4 2", "poke 0 128 4 40", "poke 0 132 4 20", "poke 0 136 4 5"];
/// Two copies from the host: addresses, sizes and attributes in buffer 0.
#[rustfmt::skip] // one line
const BATCH: &[&str] = &[
    "call cuMemAlloc_v2 &a 4000", "call cuMemAllocHost_v2 &g 4000",
    "put 0 0 a", "put 0 8 a", "put 0 16 g", "put 0 24 g",
    "poke 0 32 8 2000", "poke 0 40 8 2000", "poke 0 64 4 1",
];
/// One from the host to an array.
#[rustfmt::skip] // one line for each side
const SHAPED: &[&str] = &[
    "call cuMemAllocHost_v2 &g 4000",
    "poke 0 0 4 1", "put 0 8 g",
    "poke 0 40 4 2", "poke 0 48 8 64",
    "poke 0 80 8 40", "poke 0 88 8 100", "poke 0 96 8 1", "poke 0 104 4 1",
];

/// A copy in a stream of its own, which the default stream does not wait for.
const COPY: &str = "call cuMemcpyHtoDAsync_v2 a g 4000 d";
#[rustfmt::skip] // one line for each thing
const EVENT: &[&str] = &[
    "call cuMemAlloc_v2 &a 4000", "call cuMemAllocHost_v2 &g 4000", "call cuStreamCreate &d 1",
    "call cuEventCreate &e 0",
];
const RECORDED: &[&str] = &[COPY, "call cuEventRecord e d"];
/// A word of the host's in slot `f`.
#[rustfmt::skip] // one line for each thing
const WORD: &[&str] = &[
    "call cuMemAlloc_v2 &a 4000", "call cuMemAllocHost_v2 &g 4000", "call cuStreamCreate &d 1",
    "call cuMemAllocHost_v2 &f 8",
];
const WRITTEN: &[&str] = &[COPY, "call cuStreamWriteValue32_v2 d f {n} 0"];
const WRITTEN_64: &[&str] = &[COPY, "call cuStreamWriteValue64_v2 d f {n} 0"];
#[rustfmt::skip] // one line
const DESCRIBED: &[&str] =
    &["poke 0 0 4 1", "put 0 8 f", "poke 0 16 4 {n}", COPY, "call cuStreamWriteValue32_v2 d f {n} 0"];
#[rustfmt::skip] // one line for each thing
const SEMAPHORE: &[&str] = &[
    "call cuMemAlloc_v2 &a 4000", "call cuMemAllocHost_v2 &g 4000", "call cuStreamCreate &d 1",
    "poke 0 0 4 1", "call cuImportExternalSemaphore &e %0", "put 0 96 e",
];
#[rustfmt::skip] // one line
const SIGNALLED: &[&str] = &[COPY, "call cuSignalExternalSemaphoresAsync %0+96 %0+104 1 d"];

#[rustfmt::skip] // one line for each form
const FORMS: &[Form] = &[
    ("cuStreamWaitEvent", EVENT, RECORDED, "0 e 0"),
    ("cuStreamWaitEvent_ptsz", EVENT, RECORDED, "0 e 0"),
    ("cuCtxWaitEvent", EVENT, RECORDED, "0 e"),
    ("cuGreenCtxWaitEvent", EVENT, RECORDED, "0 e"),
    ("cuStreamWaitValue32", WORD, WRITTEN, "0 f {n} 0"),
    ("cuStreamWaitValue32_ptsz", WORD, WRITTEN, "0 f {n} 0"),
    ("cuStreamWaitValue32_v2", WORD, WRITTEN, "0 f {n} 0"),
    ("cuStreamWaitValue32_v2_ptsz", WORD, WRITTEN, "0 f {n} 0"),
    ("cuStreamWaitValue64", WORD, WRITTEN_64, "0 f {n} 0"),
    ("cuStreamWaitValue64_ptsz", WORD, WRITTEN_64, "0 f {n} 0"),
    ("cuStreamWaitValue64_v2", WORD, WRITTEN_64, "0 f {n} 0"),
    ("cuStreamWaitValue64_v2_ptsz", WORD, WRITTEN_64, "0 f {n} 0"),
    ("cuStreamBatchMemOp", WORD, DESCRIBED, "0 1 %0 0"),
    ("cuStreamBatchMemOp_ptsz", WORD, DESCRIBED, "0 1 %0 0"),
    ("cuStreamBatchMemOp_v2", WORD, DESCRIBED, "0 1 %0 0"),
    ("cuStreamBatchMemOp_v2_ptsz", WORD, DESCRIBED, "0 1 %0 0"),
    ("cuWaitExternalSemaphoresAsync", SEMAPHORE, SIGNALLED, "%0+96 %0+104 1 0"),
    ("cuWaitExternalSemaphoresAsync_ptsz", SEMAPHORE, SIGNALLED, "%0+96 %0+104 1 0"),
    ("cuLaunchHostFunc", NOTHING, NOTHING, "0 @ 0 0"),
    ("cuLaunchHostFunc_ptsz", NOTHING, NOTHING, "0 @ 0 0"),
    ("cuLaunchHostFunc_v2", NOTHING, NOTHING, "0 @ 0 0"),
    ("cuLaunchHostFunc_v2_ptsz", NOTHING, NOTHING, "0 @ 0 0"),
    ("cuStreamAddCallback", NOTHING, NOTHING, "0 @ 0 0"),
    ("cuStreamAddCallback_ptsz", NOTHING, NOTHING, "0 @ 0 0"),
    ("cuMemPrefetchAsync", MANAGED, NOTHING, "a 4000 0 0"),
    ("cuMemPrefetchAsync_ptsz", MANAGED, NOTHING, "a 4000 0 0"),
    ("cuMemPrefetchAsync_v2", MANAGED, NOTHING, "a 4000 1 0 0"),
    ("cuMemPrefetchAsync_v2_ptsz", MANAGED, NOTHING, "a 4000 1 0 0"),
    ("cuMemPrefetchBatchAsync", RANGE, NOTHING, "%0 %0+8 1 %0+16 %0+24 1 0 0"),
    ("cuMemPrefetchBatchAsync_ptsz", RANGE, NOTHING, "%0 %0+8 1 %0+16 %0+24 1 0 0"),
    ("cuMemDiscardAndPrefetchBatchAsync", RANGE, NOTHING, "%0 %0+8 1 %0+16 %0+24 1 0 0"),
    ("cuMemDiscardAndPrefetchBatchAsync_ptsz", RANGE, NOTHING, "%0 %0+8 1 %0+16 %0+24 1 0 0"),
    ("cuMemcpyHtoD", LOW_MEMORY, NOTHING, "a g 4000 0"),
    ("cuMemcpyDtoH", LOW_MEMORY, NOTHING, "g a 4000 0"),
    ("cuMemcpyHtoA", ARRAY, NOTHING, "e 0 g 4000 0"),
    ("cuMemcpyAtoH", ARRAY, NOTHING, "g e 0 4000 0"),
    ("cuMemcpyHtoD_v2", MEMORY, NOTHING, "a g 4000 0"),
    ("cuMemcpyDtoH_v2", MEMORY, NOTHING, "g a 4000 0"),
    ("cuMemcpyHtoA_v2", ARRAY, NOTHING, "e 0 g 4000 0"),
    ("cuMemcpyAtoH_v2", ARRAY, NOTHING, "g e 0 4000 0"),
    ("cuMemcpyHtoD_v2_ptds", MEMORY, NOTHING, "a g 4000 0"),
    ("cuMemcpyDtoH_v2_ptds", MEMORY, NOTHING, "g a 4000 0"),
    ("cuMemcpyHtoA_v2_ptds", ARRAY, NOTHING, "e 0 g 4000 0"),
    ("cuMemcpyAtoH_v2_ptds", ARRAY, NOTHING, "g e 0 4000 0"),
    ("cuMemcpyHtoDAsync", LOW_MEMORY, NOTHING, "a g 4000 0"),
    ("cuMemcpyDtoHAsync", LOW_MEMORY, NOTHING, "g a 4000 0"),
    ("cuMemcpyHtoAAsync", ARRAY, NOTHING, "e 0 g 4000 0"),
    ("cuMemcpyAtoHAsync", ARRAY, NOTHING, "g e 0 4000 0"),
    ("cuMemcpyHtoDAsync_v2", MEMORY, NOTHING, "a g 4000 0"),
    ("cuMemcpyDtoHAsync_v2", MEMORY, NOTHING, "g a 4000 0"),
    ("cuMemcpyHtoAAsync_v2", ARRAY, NOTHING, "e 0 g 4000 0"),
    ("cuMemcpyAtoHAsync_v2", ARRAY, NOTHING, "g e 0 4000 0"),
    ("cuMemcpyHtoDAsync_v2_ptsz", MEMORY, NOTHING, "a g 4000 0"),
    ("cuMemcpyDtoHAsync_v2_ptsz", MEMORY, NOTHING, "g a 4000 0"),
    ("cuMemcpyHtoAAsync_v2_ptsz", ARRAY, NOTHING, "e 0 g 4000 0"),
    ("cuMemcpyAtoHAsync_v2_ptsz", ARRAY, NOTHING, "g e 0 4000 0"),
    ("cuMemcpy", MEMORY, NOTHING, "a g 4000 0"),
    ("cuMemcpy_ptds", MEMORY, NOTHING, "a g 4000 0"),
    ("cuMemcpyAsync", MEMORY, NOTHING, "a g 4000 0"),
    ("cuMemcpyAsync_ptsz", MEMORY, NOTHING, "a g 4000 0"),
    ("cuMemcpy2D", LOW_ROWS, NOTHING, "%0 0"),
    ("cuMemcpy2D_v2", ROWS, NOTHING, "%0 0"),
    ("cuMemcpy2D_v2_ptds", ROWS, NOTHING, "%0 0"),
    ("cuMemcpy2DAsync", LOW_ROWS, NOTHING, "%0 0"),
    ("cuMemcpy2DAsync_v2", ROWS, NOTHING, "%0 0"),
    ("cuMemcpy2DAsync_v2_ptsz", ROWS, NOTHING, "%0 0"),
    ("cuMemcpy2DUnaligned", LOW_ROWS, NOTHING, "%0 0"),
    ("cuMemcpy2DUnaligned_v2", ROWS, NOTHING, "%0 0"),
    ("cuMemcpy2DUnaligned_v2_ptds", ROWS, NOTHING, "%0 0"),
    ("cuMemcpy3D", LOW_LAYERS, NOTHING, "%0 0"),
    ("cuMemcpy3D_v2", LAYERS, NOTHING, "%0 0"),
    ("cuMemcpy3D_v2_ptds", LAYERS, NOTHING, "%0 0"),
    ("cuMemcpy3DAsync", LOW_LAYERS, NOTHING, "%0 0"),
    ("cuMemcpy3DAsync_v2", LAYERS, NOTHING, "%0 0"),
    ("cuMemcpy3DAsync_v2_ptsz", LAYERS, NOTHING, "%0 0"),
    ("cuMemcpy3DPeer", LAYERS, NOTHING, "%0 0"),
    ("cuMemcpy3DPeer_ptds", LAYERS, NOTHING, "%0 0"),
    ("cuMemcpy3DPeerAsync", LAYERS, NOTHING, "%0 0"),
    ("cuMemcpy3DPeerAsync_ptsz", LAYERS, NOTHING, "%0 0"),
    ("cuMemcpyBatchAsync", BATCH, NOTHING, "%0 %0+16 %0+32 2 %0+64 %0+56 1 %0+128 2"),
    ("cuMemcpyBatchAsync_v2", BATCH, NOTHING, "%0 %0+16 %0+32 2 %0+64 %0+56 1 2"),
    ("cuMemcpy3DBatchAsync", SHAPED, NOTHING, "1 %0 %0+128 0 2"),
    ("cuMemcpy3DBatchAsync_v2", SHAPED, NOTHING, "1 %0 0 2"),
    ("cuMemcpyWithAttributesAsync", BATCH, NOTHING, "a g 4000 %0+64 2"),
    ("cuMemcpy3DWithAttributesAsync", SHAPED, NOTHING, "%0 0 2"),
    ("cuMemcpyBatchAsync_ptsz", BATCH, NOTHING, "%0 %0+16 %0+32 2 %0+64 %0+56 1 %0+128 2"),
    ("cuMemcpyBatchAsync_v2_ptsz", BATCH, NOTHING, "%0 %0+16 %0+32 2 %0+64 %0+56 1 2"),
    ("cuMemcpy3DBatchAsync_ptsz", SHAPED, NOTHING, "1 %0 %0+128 0 2"),
    ("cuMemcpy3DBatchAsync_v2_ptsz", SHAPED, NOTHING, "1 %0 0 2"),
    ("cuMemcpyWithAttributesAsync_ptsz", BATCH, NOTHING, "a g 4000 %0+64 2"),
    ("cuMemcpy3DWithAttributesAsync_ptsz", SHAPED, NOTHING, "%0 0 2"),
];

/// Handlers besides those of the file `fence` whose calls may be no launch.
const OTHERS: &[&str] = &[
    "order::copy_to_host",
    "order::array_to_host",
    "copy::any",
    "copy::any_async",
    "copy::described",
    "copy::described_async",
    "copy::attributed_async",
    "copy::described_attributed_async",
    "copy::batch_first",
    "copy::batch",
    "copy::described_batch_first",
    "copy::described_batch",
];

/// One of each sort whose time is measured as well.
const MEASURED: &[&str] = &[
    "cuStreamWaitEvent",
    "cuCtxWaitEvent",
    "cuGreenCtxWaitEvent",
    "cuStreamWaitValue32_v2",
    "cuMemPrefetchAsync",
    "cuMemcpyHtoDAsync_v2",
];

pub(crate) fn trials() -> Vec<Trial> {
    let ends = |form: &Form| {
        let form = *form;
        trial(format!("an event ends what was launched before {}", form.0), move || ends(form))
    };
    let free = |form: &Form| {
        let form = *form;
        trial(format!("the time of {} is none of the launches before it", form.0), move || {
            is_free(form)
        })
    };
    let measured = FORMS.iter().filter(|form| MEASURED.contains(&form.0));
    let every =
        trial("every function that takes time in a stream and is no launch is tried", every_row);
    FORMS.iter().map(ends).chain(measured.map(free)).chain([every]).collect()
}

fn every_row() -> Result {
    let fences =
        |row: &&rows::Row| row.handler.starts_with("fence::") || OTHERS.contains(&row.handler);
    let tried = |row: &&rows::Row| FORMS.iter().any(|form| form.0 == row.symbol);
    let missing: Vec<_> = rows::CUDA.iter().filter(fences).filter(|row| !tried(row)).collect();
    if missing.is_empty() { Ok(()) } else { Err(Stop::fail(format!("{missing:?}"))) }
}

/// A caller with a kernel that is known, and the launch of it in the stream that the form's call means.
fn begin((symbol, before, _, arguments): Form, run: &Run, kernel: &str) -> Result<(Actor, String)> {
    let row = rows::CUDA.iter().find(|row| row.symbol == symbol).and_then(|row| row.asked);
    // Batches are not for the legacy default stream.
    let own = row.is_some_and(|asked| asked.per_thread) || arguments.ends_with(" 2");
    let form = if own { "_ptsz" } else { "" };
    let launch = format!("call cuLaunchKernel{form} c 1 1 1 32 1 1 0 0 0 0");
    let mut caller = run.start()?;
    let kernel = format!("call cuModuleGetFunction &c b '{kernel}");
    obey(&mut caller, &[BEGIN.as_slice(), &[kernel.as_str()], before].concat())?;
    obey(&mut caller, &[[launch.as_str(); LAUNCHES].as_slice(), &[WAIT]].concat())?;
    Ok((caller, launch))
}

/// What is done before, the launches, and the call.
fn commands((symbol, _, each, arguments): Form, launch: &str, round: u64) -> Vec<String> {
    let number = |command: &str| command.replace("{n}", &round.to_string());
    let launches = iter::repeat_n(launch.to_owned(), LAUNCHES);
    let call = number(&format!("call {symbol} {arguments}"));
    each.iter().map(|command| number(command)).chain(launches).chain([call]).collect()
}

/// Between the last launch and each call, unless it was seen to be over. Most launches have no event of their own.
fn ends(form: Form) -> Result {
    let run = under("50", "caller")?;
    let trace = run.directory().join("trace");
    let run = run.env("STUB_GPU_TRACE", &trace);
    let (mut caller, launch) = begin(form, &run, "k_10us")?;
    for round in 1..=ROUNDS {
        let commands = commands(form, &launch, round);
        obey(&mut caller, &commands.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    obey(&mut caller, &[WAIT])?;
    caller.end()?;
    let trace = std::fs::read_to_string(&trace)?;
    let (mut calls, mut is_ended) = (0, false);
    for symbol in trace.lines().filter_map(|line| line.split(' ').nth(1)) {
        match symbol {
            // The library's thread asks whether they have ended, and has asked by the time that it does more.
            "cuEventRecord" | "cuStreamQuery" => is_ended = true,
            _ if symbol.starts_with("cuLaunchKernel") => is_ended = false,
            _ if symbol == form.0 && !is_ended => return Err(Stop::fail(trace)),
            _ => calls += u64::from(symbol == form.0),
        }
    }
    // The stream beside may be given copies by the same function.
    within("calls", calls, ROUNDS..=2 * ROUNDS)
}

fn is_free(form: Form) -> Result {
    let run = under("50", "caller")?.env("STUB_GPU_COPY_BYTES_PER_US", "1");
    let (mut caller, launch) = begin(form, &run, "k_100us")?;
    let clock = ["call stubNow"];
    let began = obey(&mut caller, &clock)?;
    let mut charged = Vec::new();
    for block in 0..BLOCKS {
        let before = run.busy_ns()?;
        for round in block * ROUNDS + 1..=(block + 1) * ROUNDS {
            let commands = commands(form, &launch, round);
            obey(&mut caller, &commands.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        obey(&mut caller, &[WAIT])?;
        charged.push(run.busy_ns()?.saturating_sub(before));
    }
    let took = obey(&mut caller, &clock)?.wrapping_sub(began);
    let output = caller.end()?;
    within("the card's clock", u64::from(took), BLOCKS * ROUNDS * TAKES..=u64::MAX)?;
    let launches = ROUNDS * LAUNCHES as u64;
    let all = BLOCKS * launches + LAUNCHES as u64;
    within("launches", run.launches()?, all..=all)?;
    // A block in which the host was late is charged for that; not most of them are.
    charged.sort_unstable();
    let median = charged.get(charged.len() / 2).copied().unwrap_or_default();
    lasts(&format!("charged {charged:?} {output}"), median, about(launches * KERNEL_NS))
}

/// Gives all commands at once, so that the caller is ahead of the card; what the last one answered.
fn obey(caller: &mut Actor, commands: &[&str]) -> Result<u32> {
    caller.order(&commands.join("\n"))?;
    let mut last = 0;
    for command in commands {
        let line = caller.line()?;
        // `poke` and `put` call no host function.
        if command.starts_with('p') {
            continue;
        }
        let code = line.split(' ').next().and_then(|code| code.parse().ok());
        last = code.ok_or_else(|| Stop::fail(format!("{command}: {line}")))?;
        if last != 0 && !command.starts_with("call stub") {
            return Err(Stop::fail(format!("{command}: {line}")));
        }
    }
    Ok(last)
}
