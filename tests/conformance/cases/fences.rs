//! What enters a stream and is no launch: waits, functions of the host, moves of managed memory.

use super::Case;

const WAIT: &str = "call cuCtxSynchronize";
/// Beside the default stream, which does not wait for it.
const STREAM: &str = "call cuStreamCreate &d 1";
const MEMORY: &str = "call cuMemAllocHost_v2 &a 64";
const MANAGED: &str = "call cuMemAllocManaged &a 65536 1";

/// For an event that was recorded, one that was not, and one that is none.
macro_rules! wait_event {
    ($($symbol:literal),*) => {
        [$(($symbol, &[
            STREAM, "call cuEventCreate &e 0", "call cuEventCreate &f 0", "call cuEventRecord e d",
            concat!("call ", $symbol, " 0 e 0"),
            concat!("call ", $symbol, " d f 0"),
            concat!("call ", $symbol, " 2 e 1"), WAIT,
            concat!("call ", $symbol, " 0 12345 0"),
        ])),*]
    };
}

/// For an event that was recorded, one that was not, and one that is none; in the current context, by its handle, and in none.
#[rustfmt::skip] // one line for each thing
const CONTEXT_WAITS: [Case; 2] = [
    ("cuCtxWaitEvent", &[
        "call cuEventCreate &e 0", "call cuEventCreate &f 0", "call cuEventRecord e 0",
        "call cuCtxWaitEvent 0 e", "call cuCtxWaitEvent h f", WAIT,
        "call cuCtxWaitEvent h 12345", "call cuCtxWaitEvent 12345 e",
    ]),
    ("cuGreenCtxWaitEvent", &[
        "call cuDeviceGetDevResource 0 %0 1", "call cuDevResourceGenerateDesc &a %0 1", "call cuGreenCtxCreate &b a 0 1",
        "call cuEventCreate &e 0", "call cuEventCreate &f 0", "call cuEventRecord e 0",
        "call cuGreenCtxWaitEvent b e", "call cuGreenCtxWaitEvent b f", WAIT,
        "call cuGreenCtxWaitEvent b 12345", "call cuGreenCtxWaitEvent 12345 e",
    ]),
];

/// For a word that was written before, in each sense, and in none.
macro_rules! wait_value {
    ($write:literal; $($symbol:literal),*) => {
        [$(($symbol, &[
            STREAM, MEMORY,
            concat!("call ", $write, " d a 7 0"),
            concat!("call ", $symbol, " d a 6 0"),
            concat!("call ", $symbol, " d a 7 1"),
            concat!("call ", $symbol, " 0 a 2 2"),
            concat!("call ", $symbol, " 2 a 8 3"), WAIT,
            concat!("call ", $symbol, " d a 7 9"),
            concat!("call ", $symbol, " d 12345 7 0"),
        ])),*]
    };
}

/// A word is written, then waited for. Addresses differ from run to run: nothing is shown while they are there.
macro_rules! batch_operations {
    ($($symbol:literal),*) => {
        [$(($symbol, &[
            STREAM, MEMORY,
            "poke 0 0 4 2", "poke 0 16 4 7", "poke 0 48 4 1", "poke 0 64 4 7", "put 0 8 a", "put 0 56 a",
            concat!("hide ", $symbol, " d 2 %0 0"),
            concat!("hide ", $symbol, " 0 1 %0 0"),
            concat!("hide ", $symbol, " d 2 %0 5"),
            concat!("hide ", $symbol, " d 999 %0 0"),
            "put 0 8 g", "put 0 56 g", WAIT,
            "poke 0 0 4 99", "put 0 8 a",
            concat!("hide ", $symbol, " d 1 %0 0"),
            "put 0 8 g", WAIT,
        ])),*]
    };
}

/// One that was signalled before; none of them.
macro_rules! wait_semaphores {
    ($($symbol:literal),*) => {
        [$(($symbol, &[
            STREAM, "poke 0 0 4 1", "hide cuImportExternalSemaphore &e %0", "put 0 96 e",
            "hide cuSignalExternalSemaphoresAsync %0+96 %0+104 1 d",
            concat!("hide ", $symbol, " %0+96 %0+104 1 d"), "hide cuStreamSynchronize d",
            "hide cuDestroyExternalSemaphore e", "put 0 96 g", WAIT,
        ])),*]
    };
}

/// `SYMBOL stream function data [mode]`.
macro_rules! host_function {
    ($($symbol:literal),*) => {
        [$(($symbol, &[
            STREAM,
            concat!("call ", $symbol, " d @ 0 0"), "call cuStreamSynchronize d",
            concat!("call ", $symbol, " 0 @ 0 0"), WAIT,
            concat!("call ", $symbol, " d 0 0 0"),
        ])),*]
    };
}

/// `SYMBOL address bytes place [flags] stream`, to the device and to the host.
macro_rules! prefetch {
    ($to_device:literal, $to_host:literal; $($symbol:literal),*) => {
        [$(($symbol, &[
            MANAGED,
            concat!("call ", $symbol, " a 65536 ", $to_device), WAIT,
            concat!("call ", $symbol, " a 65536 ", $to_host), WAIT,
            concat!("call ", $symbol, " 12345 64 ", $to_device),
        ])),*]
    };
}

/// One range to one place.
macro_rules! prefetch_batch {
    ($($symbol:literal),*) => {
        [$(($symbol, &[
            STREAM, MANAGED, "poke 0 8 8 65536", "poke 0 16 4 1", "put 0 0 a",
            concat!("hide ", $symbol, " %0 %0+8 1 %0+16 %0+24 1 0 d"),
            concat!("hide ", $symbol, " %0 %0+8 1 %0+16 %0+24 1 9 d"),
            concat!("hide ", $symbol, " %0 %0+8 0 %0+16 %0+24 1 0 d"),
            "put 0 0 g", WAIT,
        ])),*]
    };
}

#[rustfmt::skip] // one line for each form
pub(super) fn cases() -> Vec<Case> {
    let forms: [&[Case]; 12] = [
        &CONTEXT_WAITS,
        &wait_event!("cuStreamWaitEvent", "cuStreamWaitEvent_ptsz"),
        &wait_value!("cuStreamWriteValue32"; "cuStreamWaitValue32", "cuStreamWaitValue32_ptsz"),
        &wait_value!("cuStreamWriteValue64"; "cuStreamWaitValue64", "cuStreamWaitValue64_ptsz"),
        &wait_value!("cuStreamWriteValue32_v2"; "cuStreamWaitValue32_v2", "cuStreamWaitValue32_v2_ptsz"),
        &wait_value!("cuStreamWriteValue64_v2"; "cuStreamWaitValue64_v2", "cuStreamWaitValue64_v2_ptsz"),
        &batch_operations!("cuStreamBatchMemOp", "cuStreamBatchMemOp_ptsz", "cuStreamBatchMemOp_v2", "cuStreamBatchMemOp_v2_ptsz"),
        &wait_semaphores!("cuWaitExternalSemaphoresAsync", "cuWaitExternalSemaphoresAsync_ptsz"),
        &host_function!("cuLaunchHostFunc", "cuLaunchHostFunc_ptsz", "cuLaunchHostFunc_v2", "cuLaunchHostFunc_v2_ptsz",
            "cuStreamAddCallback", "cuStreamAddCallback_ptsz"),
        &prefetch!("0 0", "-1 0"; "cuMemPrefetchAsync", "cuMemPrefetchAsync_ptsz"),
        &prefetch!("1 0 0", "2 0 0"; "cuMemPrefetchAsync_v2", "cuMemPrefetchAsync_v2_ptsz"),
        &prefetch_batch!("cuMemPrefetchBatchAsync", "cuMemPrefetchBatchAsync_ptsz", "cuMemDiscardAndPrefetchBatchAsync",
            "cuMemDiscardAndPrefetchBatchAsync_ptsz"),
    ];
    forms.concat()
}
