//! What a limit of time has to know: launches, waits, captures.

use super::{Case, kernels};

const LOAD: &str = concat!("call cuModuleLoadData &b '", kernels!());
const KERNEL: &str = "call cuModuleGetFunction &c b 'k_10us";
const WAIT: &str = "call cuCtxSynchronize";
const STREAM: &str = "call cuStreamCreate &d 0";
/// The thread's own default stream is captured: how many nodes come of what is called.
const BEGIN: &str = "call cuStreamBeginCapture_v2 2 0";
const END: &str = "call cuStreamEndCapture 2 &e";
const COUNT: &str = "call cuGraphGetNodes e 0 &f";

/// Unused bytes are behind the first field of `CUgraphExecUpdateResultInfo`.
const PADDING: &str = "poke 0 4 4 0";

macro_rules! launched {
    ($($call:expr),* $(,)?) => {
        &[LOAD, KERNEL, $($call,)* WAIT]
    };
}

/// A kernel by one name: in the default stream, in a stream, captured, and so that it fails.
macro_rules! kernel {
    ($symbol:literal) => {
        (
            $symbol,
            launched![
                concat!("call ", $symbol, " c 2 1 1 32 1 1 0 0 0 0"),
                STREAM,
                concat!("call ", $symbol, " c 2 3 4 32 2 1 128 d 0 0"),
                BEGIN,
                concat!("call ", $symbol, " c 2 1 1 32 1 1 0 2 0 0"),
                END,
                COUNT,
                concat!("call ", $symbol, " c 0 1 1 1 1 1 0 0 0 0"),
                concat!("call ", $symbol, " c 1 1 1 2048 1 1 0 0 0 0"),
                // What is no function may be the end of the program.
                concat!("call ", $symbol, " 12345 1 1 1 1 1 1 0 0 0 0"),
                concat!("call ", $symbol, " c 1 1 1 1 1 1 0 12345 0 0"),
            ],
        )
    };
}

/// A kernel with its shape in buffer 0.
macro_rules! kernel_ex {
    ($symbol:literal) => {
        (
            $symbol,
            launched![
                "poke 0 0 4 2",
                "poke 0 4 4 1",
                "poke 0 8 4 1",
                "poke 0 12 4 32",
                "poke 0 16 4 1",
                "poke 0 20 4 1",
                concat!("call ", $symbol, " %0 c 0 0"),
                "poke 0 32 8 2",
                BEGIN,
                concat!("call ", $symbol, " %0 c 0 0"),
                END,
                COUNT,
                concat!("call ", $symbol, " %0 12345 0 0"),
                "poke 0 32 8 12345",
                concat!("call ", $symbol, " %0 c 0 0"),
                concat!("call ", $symbol, " 0 c 0 0"),
            ],
        )
    };
}

macro_rules! graph {
    ($symbol:literal) => {
        (
            $symbol,
            launched![
                BEGIN,
                "call cuLaunchKernel c 1 1 1 32 1 1 0 2 0 0",
                END,
                "call cuGraphInstantiateWithFlags &g e 0",
                concat!("call ", $symbol, " g 0"),
                STREAM,
                concat!("call ", $symbol, " g d"),
                BEGIN,
                concat!("call ", $symbol, " g 2"),
                END,
                COUNT,
                concat!("call ", $symbol, " 12345 0"),
                concat!("call ", $symbol, " g 12345"),
            ],
        )
    };
}

#[rustfmt::skip] // one line for each call
pub(super) const LAUNCHES: &[Case] = &[
    kernel!("cuLaunchKernel"),
    kernel!("cuLaunchKernel_ptsz"),
    kernel_ex!("cuLaunchKernelEx"),
    kernel_ex!("cuLaunchKernelEx_ptsz"),
    kernel!("cuLaunchCooperativeKernel"),
    kernel!("cuLaunchCooperativeKernel_ptsz"),
    ("cuLaunchCooperativeKernelMultiDevice", &[
        LOAD, KERNEL,
        "poke 0 8 4 1", "poke 0 12 4 1", "poke 0 16 4 1", "poke 0 20 4 32", "poke 0 24 4 1", "poke 0 28 4 1",
        "hide cuModuleGetFunction %0 b 'k_10us",
        "hide cuLaunchCooperativeKernelMultiDevice %0 1 0",
        "hide cuLaunchCooperativeKernelMultiDevice %0 0 0",
        "hide cuLaunchCooperativeKernelMultiDevice %1 1 0",
        "hide cuLaunchCooperativeKernelMultiDevice 0 1 0",
        "hide cuCtxSynchronize",
    ]),
    ("cuLaunch", launched!["call cuFuncSetBlockShape c 32 1 1", "call cuLaunch c", "call cuLaunch 12345"]),
    ("cuLaunchGrid", launched![
        "call cuFuncSetBlockShape c 32 1 1",
        "call cuLaunchGrid c 2 3",
        "call cuLaunchGrid c -1 3",
        "call cuLaunchGrid 12345 2 3",
    ]),
    ("cuLaunchGridAsync", launched![
        "call cuFuncSetBlockShape c 32 1 1",
        STREAM,
        "call cuLaunchGridAsync c 2 3 d",
        "call cuLaunchGridAsync c 0 3 d",
        "call cuLaunchGridAsync c 2 3 12345",
    ]),
    graph!("cuGraphLaunch"),
    graph!("cuGraphLaunch_ptsz"),
];

/// A capture that begins and ends, twice begun, and ended where there is none.
macro_rules! captured {
    ($symbol:literal, $begin:literal, $end:literal) => {
        (
            $symbol,
            &[
                LOAD,
                KERNEL,
                STREAM,
                "call cuGraphCreate &e 0",
                $begin,
                $begin,
                "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0",
                "call cuStreamIsCapturing d &g",
                "call cuStreamSynchronize d",
                $end,
                "call cuStreamIsCapturing d &g",
                $begin,
                "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0",
                $end,
                COUNT,
                $end,
                "call cuStreamSynchronize d",
            ],
        )
    };
}

#[rustfmt::skip] // one line for each call
pub(super) const ORDER: &[Case] = &[
    ("cuCtxSynchronize", launched!["call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0"]),
    ("cuCtxSynchronize_v2", launched![
        "call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0",
        "call cuCtxSynchronize_v2 h",
        "call cuCtxSynchronize_v2 0",
        "call cuCtxSynchronize_v2 12345",
    ]),
    ("cuEventSynchronize", launched![
        "call cuEventCreate &e 0",
        "call cuEventSynchronize e",
        "call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0",
        "call cuEventRecord e 0",
        "call cuEventSynchronize e",
        "call cuEventQuery e",
        "call cuEventSynchronize 12345",
    ]),
    ("cuStreamSynchronize", launched![
        STREAM,
        "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0",
        "call cuStreamSynchronize d",
        "call cuStreamQuery d",
        "call cuStreamSynchronize 0",
        "call cuStreamSynchronize 12345",
    ]),
    ("cuStreamSynchronize_ptsz", launched![
        "call cuLaunchKernel_ptsz c 1 1 1 32 1 1 0 0 0 0",
        "call cuStreamSynchronize_ptsz 0",
        "call cuStreamQuery_ptsz 0",
        "call cuStreamSynchronize_ptsz 12345",
    ]),
    ("cuStreamDestroy", launched![
        STREAM,
        "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0",
        "call cuStreamDestroy d",
        "call cuStreamDestroy d",
        "call cuStreamDestroy 0",
    ]),
    ("cuStreamDestroy_v2", launched![
        STREAM,
        "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0",
        "call cuStreamDestroy_v2 d",
        "call cuStreamDestroy_v2 d",
        "call cuStreamDestroy_v2 0",
    ]),
    captured!("cuStreamBeginCapture", "call cuStreamBeginCapture d", "call cuStreamEndCapture d &e"),
    captured!("cuStreamBeginCapture_ptsz", "call cuStreamBeginCapture_ptsz d", "call cuStreamEndCapture d &e"),
    captured!("cuStreamBeginCapture_v2", "call cuStreamBeginCapture_v2 d 1", "call cuStreamEndCapture d &e"),
    captured!("cuStreamBeginCapture_v2_ptsz", "call cuStreamBeginCapture_v2_ptsz d 2", "call cuStreamEndCapture d &e"),
    captured!("cuStreamBeginCaptureToGraph", "call cuStreamBeginCaptureToGraph d e 0 0 0 0", "call cuStreamEndCapture d &e"),
    captured!("cuStreamBeginCaptureToGraph_ptsz", "call cuStreamBeginCaptureToGraph_ptsz d e 0 0 0 0",
        "call cuStreamEndCapture d &e"),
    captured!("cuStreamBeginCaptureToCig", "call cuStreamBeginCaptureToCig d %1", "call cuStreamEndCaptureToCig d"),
    captured!("cuStreamBeginCaptureToCig_ptsz", "call cuStreamBeginCaptureToCig_ptsz d %1",
        "call cuStreamEndCaptureToCig_ptsz d"),
    captured!("cuStreamBeginRecaptureToGraph", "call cuStreamBeginRecaptureToGraph d 0 e 0 0",
        "call cuStreamEndCapture d &e"),
    captured!("cuStreamBeginRecaptureToGraph_ptsz", "call cuStreamBeginRecaptureToGraph_ptsz d 0 e 0 0",
        "call cuStreamEndCapture d &e"),
    captured!("cuStreamEndCapture", "call cuStreamBeginCapture_v2 d 0", "call cuStreamEndCapture d &e"),
    captured!("cuStreamEndCapture_ptsz", "call cuStreamBeginCapture_v2 d 0", "call cuStreamEndCapture_ptsz d &e"),
    captured!("cuStreamEndCaptureToCig", "call cuStreamBeginCaptureToCig d %1", "call cuStreamEndCaptureToCig d"),
    captured!("cuStreamEndCaptureToCig_ptsz", "call cuStreamBeginCaptureToCig d %1", "call cuStreamEndCaptureToCig_ptsz d"),
    ("cuGraphExecUpdate", launched![
        BEGIN, "call cuLaunchKernel c 1 1 1 32 1 1 0 2 0 0", END,
        "call cuGraphInstantiateWithFlags &g e 0",
        "call cuGraphExecUpdate g e &d &f",
        "call cuGraphCreate &e 0",
        "call cuGraphExecUpdate g e &d &f",
        "call cuGraphExecUpdate 12345 e &d &f",
        "call cuGraphLaunch g 0",
    ]),
    ("cuGraphExecUpdate_v2", launched![
        BEGIN, "call cuLaunchKernel c 1 1 1 32 1 1 0 2 0 0", END,
        "call cuGraphInstantiateWithFlags &g e 0",
        "hide cuGraphExecUpdate_v2 g e %0", PADDING,
        "call cuGraphCreate &e 0",
        "hide cuGraphExecUpdate_v2 g e %0", PADDING,
        "hide cuGraphExecUpdate_v2 12345 e %0", PADDING,
        "call cuGraphLaunch g 0",
    ]),
];
