//! Memory that is set and copied on the device, and copies that the host waits for.

use super::Case;

const WAIT: &str = "call cuCtxSynchronize";
const ALLOC: &str = "call cuMemAlloc_v2 &a 65536";
/// An address of 32 bits, for the first API.
const ALLOC_V1: &str = "call cuMemAlloc &a 65536";
/// Buffer 1 gets the first bytes at the address.
const READ: &str = "call cuMemcpyDtoH_v2 %1 a 64";
const READ_V1: &str = "call cuMemcpyDtoH %1 a 64";

/// `SYMBOL address value count [stream]`: the whole, nothing, too much, and of a stream that is none.
macro_rules! set {
    ($alloc:ident, $read:ident; $($symbol:literal),*) => {
        [$(($symbol, &[
            $alloc,
            concat!("call ", $symbol, " a 7 32 0"), WAIT, $read,
            concat!("call ", $symbol, " a 7 0 0"),
            concat!("call ", $symbol, " a 7 99999999 0"),
            concat!("call ", $symbol, " 12345 7 32 0"),
            concat!("call ", $symbol, " a 7 32 12345"),
        ])),*]
    };
}

/// `SYMBOL address pitch value width height [stream]`.
macro_rules! set_rows {
    ($alloc:ident, $read:ident; $($symbol:literal),*) => {
        [$(($symbol, &[
            $alloc,
            concat!("call ", $symbol, " a 128 7 4 8 0"), WAIT, $read,
            concat!("call ", $symbol, " a 128 7 0 8 0"),
            concat!("call ", $symbol, " a 99999999 7 4 8 0"),
            concat!("call ", $symbol, " a 128 7 4 8 12345"),
        ])),*]
    };
}

/// `SYMBOL to from bytes [stream]`.
macro_rules! copied {
    ($alloc:ident, $set:literal, $read:ident; $($symbol:literal),*) => {
        [$(($symbol, &[
            $alloc,
            concat!("call ", $set, " a 7 64"),
            concat!("call ", $symbol, " a a 64 0"), WAIT, $read,
            concat!("call ", $symbol, " a 12345 64 0"),
            concat!("call ", $symbol, " a a 99999999 0"),
            concat!("call ", $symbol, " a a 64 12345"),
        ])),*]
    };
}

/// `SYMBOL to from bytes`, to buffer 1.
macro_rules! to_host {
    ($alloc:ident, $set:literal; $($symbol:literal),*) => {
        [$(($symbol, &[
            $alloc,
            concat!("call ", $set, " a 7 64"),
            concat!("call ", $symbol, " %1 a 64"),
            concat!("call ", $symbol, " %1 12345 64"),
            concat!("call ", $symbol, " %1 a 99999999"),
            concat!("call ", $symbol, " 0 a 64"),
        ])),*]
    };
}

/// `SYMBOL to from bytes [stream]`, from buffer 1.
macro_rules! to_device {
    ($alloc:ident, $read:ident; $($symbol:literal),*) => {
        [$(($symbol, &[
            $alloc,
            "poke 1 0 8 77",
            concat!("call ", $symbol, " a %1 64 0"), WAIT, "poke 1 0 8 0", $read,
            concat!("call ", $symbol, " 12345 %1 64 0"),
            concat!("call ", $symbol, " a %1 99999999 0"),
            concat!("call ", $symbol, " a 0 64 0"),
        ])),*]
    };
}

/// `SYMBOL to from bytes stream`, within the device and to buffer 1.
macro_rules! anywhere {
    ($($symbol:literal),*) => {
        [$(($symbol, &[
            ALLOC,
            "call cuMemsetD8_v2 a 7 64",
            concat!("call ", $symbol, " a a 64 0"), WAIT, READ,
            concat!("call ", $symbol, " %1 a 64 0"), WAIT,
            concat!("call ", $symbol, " a a 64 12345"),
        ])),*]
    };
}

/// `SYMBOL to context from context bytes [stream]`, within the device.
macro_rules! peer {
    ($($symbol:literal),*) => {
        [$(($symbol, &[
            ALLOC,
            "call cuMemsetD8_v2 a 7 64",
            "call cuCtxGetCurrent &b",
            concat!("call ", $symbol, " a b a b 64 0"), WAIT, READ,
            concat!("call ", $symbol, " a b 12345 b 64 0"),
        ])),*]
    };
}

/// `SYMBOL` with memory in `a` and an array of 16 floats in `e`, then with an array that is none.
macro_rules! of_arrays {
    ($alloc:ident; $($symbol:literal: $arguments:literal),*) => {
        [$(($symbol, &[
            $alloc,
            "poke 0 0 8 16", "poke 0 8 8 0", "poke 0 16 4 32", "poke 0 20 4 1",
            "call cuArrayCreate_v2 &e %0",
            concat!("call ", $symbol, " ", $arguments), WAIT,
            "call cuArrayDestroy e",
            concat!("call ", $symbol, " ", $arguments),
        ])),*]
    };
}

/// `SYMBOL to array offset bytes`, to buffer 1, of an array of 16 floats.
macro_rules! array_to_host {
    ($($symbol:literal),*) => {
        [$(($symbol, &[
            "poke 0 0 8 16", "poke 0 8 8 0", "poke 0 16 4 32", "poke 0 20 4 1",
            "call cuArrayCreate_v2 &a %0",
            concat!("call ", $symbol, " %1 a 0 64"),
            concat!("call ", $symbol, " %1 12345 0 64"),
            concat!("call ", $symbol, " 0 a 0 64"),
        ])),*]
    };
}

/// `SYMBOL description`, which buffer 0 has: of nothing, as far as the driver looks.
macro_rules! described {
    ($($symbol:literal),*) => {
        [$(($symbol, &[concat!("call ", $symbol, " %0"), concat!("call ", $symbol, " 0"), WAIT])),*]
    };
}

/// Two copies within `a`, whose addresses, sizes and attributes are in buffer 0, and of none and in no stream. Addresses
/// differ from run to run: nothing is shown while they are there.
macro_rules! batch {
    ($($symbol:literal: $more:literal),*) => {
        [$(($symbol, &[
            ALLOC,
            "call cuMemsetD8_v2 a 7 64", "call cuStreamCreate &d 1",
            "poke 0 32 8 32", "poke 0 40 8 64", "poke 0 64 4 1",
            "put 0 0 a", "put 0 8 a", "put 0 16 a", "put 0 24 a",
            concat!("hide ", $symbol, " %0 %0+16 %0+32 2 %0+64 %0+56 1 ", $more, "d"),
            concat!("hide ", $symbol, " %0 %0+16 %0+32 0 %0+64 %0+56 1 ", $more, "d"),
            concat!("hide ", $symbol, " %0 %0+16 %0+32 2 %0+64 %0+56 0 ", $more, "d"),
            concat!("hide ", $symbol, " %0 %0+16 %0+32 2 %0+64 %0+56 1 ", $more, "1"),
            "put 0 0 g", "put 0 8 g", "put 0 16 g", "put 0 24 g", WAIT, READ,
        ])),*]
    };
}

/// `SYMBOL arguments`, with one copy of two layers in buffer 0, within `a`.
macro_rules! shaped {
    ($($symbol:literal: $before:literal, $after:literal),*) => {
        [$(($symbol, &[
            ALLOC, "call cuStreamCreate &d 1",
            "poke 0 0 4 1", "poke 0 40 4 1", "poke 0 80 8 16", "poke 0 88 8 4", "poke 0 96 8 2", "poke 0 104 4 1",
            "put 0 8 a", "put 0 48 a",
            concat!("hide ", $symbol, $before, " %0", $after, " 0 d"),
            concat!("hide ", $symbol, $before, " %0", $after, " 9 d"),
            concat!("hide ", $symbol, $before, " 0", $after, " 0 d"),
            "put 0 8 g", "put 0 48 g", WAIT,
        ])),*]
    };
}

/// `SYMBOL to from bytes attributes stream`, which buffer 0 has.
macro_rules! attributed {
    ($($symbol:literal),*) => {
        [$(($symbol, &[
            ALLOC,
            "call cuMemsetD8_v2 a 7 64", "call cuStreamCreate &d 1", "poke 0 0 4 1",
            concat!("call ", $symbol, " a a 64 %0 d"), WAIT, READ,
            concat!("call ", $symbol, " %1 a 64 %0 d"), WAIT,
            concat!("call ", $symbol, " a a 64 0 d"),
        ])),*]
    };
}

#[rustfmt::skip] // one line for each form
pub(super) fn cases() -> Vec<Case> {
    let forms: [&[Case]; 25] = [
        &set!(ALLOC_V1, READ_V1; "cuMemsetD8", "cuMemsetD16", "cuMemsetD32"),
        &set!(ALLOC, READ; "cuMemsetD8_v2", "cuMemsetD8_v2_ptds", "cuMemsetD8Async", "cuMemsetD8Async_ptsz"),
        &set!(ALLOC, READ; "cuMemsetD16_v2", "cuMemsetD16_v2_ptds", "cuMemsetD16Async", "cuMemsetD16Async_ptsz"),
        &set!(ALLOC, READ; "cuMemsetD32_v2", "cuMemsetD32_v2_ptds", "cuMemsetD32Async", "cuMemsetD32Async_ptsz"),
        &set_rows!(ALLOC_V1, READ_V1; "cuMemsetD2D8", "cuMemsetD2D16", "cuMemsetD2D32"),
        &set_rows!(ALLOC, READ; "cuMemsetD2D8_v2", "cuMemsetD2D8_v2_ptds", "cuMemsetD2D8Async", "cuMemsetD2D8Async_ptsz"),
        &set_rows!(ALLOC, READ; "cuMemsetD2D16_v2", "cuMemsetD2D16_v2_ptds", "cuMemsetD2D16Async", "cuMemsetD2D16Async_ptsz"),
        &set_rows!(ALLOC, READ; "cuMemsetD2D32_v2", "cuMemsetD2D32_v2_ptds", "cuMemsetD2D32Async", "cuMemsetD2D32Async_ptsz"),
        &copied!(ALLOC_V1, "cuMemsetD8", READ_V1; "cuMemcpyDtoD", "cuMemcpyDtoDAsync"),
        &copied!(ALLOC, "cuMemsetD8_v2", READ; "cuMemcpyDtoD_v2", "cuMemcpyDtoD_v2_ptds", "cuMemcpyDtoDAsync_v2",
            "cuMemcpyDtoDAsync_v2_ptsz"),
        &to_host!(ALLOC_V1, "cuMemsetD8"; "cuMemcpyDtoH", "cuMemcpyDtoHAsync"),
        &to_host!(ALLOC, "cuMemsetD8_v2"; "cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds", "cuMemcpyDtoHAsync_v2",
            "cuMemcpyDtoHAsync_v2_ptsz", "cuMemcpy", "cuMemcpy_ptds"),
        &to_device!(ALLOC_V1, READ_V1; "cuMemcpyHtoD", "cuMemcpyHtoDAsync"),
        &to_device!(ALLOC, READ; "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoDAsync_v2",
            "cuMemcpyHtoDAsync_v2_ptsz"),
        &anywhere!("cuMemcpyAsync", "cuMemcpyAsync_ptsz"),
        &peer!("cuMemcpyPeer", "cuMemcpyPeer_ptds", "cuMemcpyPeerAsync", "cuMemcpyPeerAsync_ptsz"),
        &of_arrays!(ALLOC_V1; "cuMemcpyAtoD": "a e 0 64", "cuMemcpyDtoA": "e 0 a 64", "cuMemcpyAtoA": "e 0 e 0 64"),
        &of_arrays!(ALLOC; "cuMemcpyAtoD_v2": "a e 0 64", "cuMemcpyDtoA_v2": "e 0 a 64", "cuMemcpyAtoA_v2": "e 0 e 0 64"),
        &of_arrays!(ALLOC; "cuMemcpyAtoD_v2_ptds": "a e 0 64", "cuMemcpyDtoA_v2_ptds": "e 0 a 64",
            "cuMemcpyAtoA_v2_ptds": "e 0 e 0 64"),
        &of_arrays!(ALLOC; "cuMemcpyHtoA": "e 0 %1 64", "cuMemcpyHtoA_v2": "e 0 %1 64", "cuMemcpyHtoA_v2_ptds": "e 0 %1 64",
            "cuMemcpyHtoAAsync": "e 0 %1 64 0", "cuMemcpyHtoAAsync_v2": "e 0 %1 64 0",
            "cuMemcpyHtoAAsync_v2_ptsz": "e 0 %1 64 0"),
        &array_to_host!("cuMemcpyAtoH", "cuMemcpyAtoH_v2", "cuMemcpyAtoH_v2_ptds", "cuMemcpyAtoHAsync",
            "cuMemcpyAtoHAsync_v2", "cuMemcpyAtoHAsync_v2_ptsz"),
        &described!("cuMemcpy2D", "cuMemcpy2D_v2", "cuMemcpy2D_v2_ptds", "cuMemcpy2DUnaligned", "cuMemcpy2DUnaligned_v2",
            "cuMemcpy2DUnaligned_v2_ptds", "cuMemcpy3D", "cuMemcpy3D_v2", "cuMemcpy3D_v2_ptds",
            "cuMemcpy2DAsync", "cuMemcpy2DAsync_v2", "cuMemcpy2DAsync_v2_ptsz", "cuMemcpy3DAsync", "cuMemcpy3DAsync_v2",
            "cuMemcpy3DAsync_v2_ptsz", "cuMemcpy3DPeer", "cuMemcpy3DPeer_ptds", "cuMemcpy3DPeerAsync",
            "cuMemcpy3DPeerAsync_ptsz"),
        &batch!("cuMemcpyBatchAsync": "%0+128 ", "cuMemcpyBatchAsync_ptsz": "%0+128 ", "cuMemcpyBatchAsync_v2": "",
            "cuMemcpyBatchAsync_v2_ptsz": ""),
        &shaped!("cuMemcpy3DBatchAsync": " 1", " %0+128", "cuMemcpy3DBatchAsync_ptsz": " 1", " %0+128",
            "cuMemcpy3DBatchAsync_v2": " 1", "", "cuMemcpy3DBatchAsync_v2_ptsz": " 1", "",
            "cuMemcpy3DWithAttributesAsync": "", "", "cuMemcpy3DWithAttributesAsync_ptsz": "", ""),
        &attributed!("cuMemcpyWithAttributesAsync", "cuMemcpyWithAttributesAsync_ptsz"),
    ];
    forms.concat()
}
