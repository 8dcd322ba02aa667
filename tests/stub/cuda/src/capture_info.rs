//! What can be asked about the capture of a stream.
//!
//! The legacy default stream cannot be asked while a stream that waits for it is captured; that spoils nothing.

use crate::arg::Out;
use crate::capture::{Capture, IMPLICIT, capture_of_legacy};
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use gpucap_abi::cuda::{CUgraph, CUgraphNode, CUstream, CuError, CuResult};
use std::ffi::c_void;

exports! {
    /// 0 none, 1 active, 2 spoilt.
    fn cuStreamIsCapturing(stream: CUstream, status: *mut i32)
        => is_capturing, context, "cuStreamIsCapturing" @ 10000;
    /// 0 none, 1 active, 2 spoilt.
    fn cuStreamIsCapturing_ptsz(stream: CUstream, status: *mut i32)
        => is_capturing, context, "cuStreamIsCapturing" @ 10000 ptsz;
    /// Status and number.
    fn cuStreamGetCaptureInfo(stream: CUstream, status: *mut i32, id: *mut u64)
        => info, context, "cuStreamGetCaptureInfo" @ 10010;
    /// Status and number.
    fn cuStreamGetCaptureInfo_ptsz(stream: CUstream, status: *mut i32, id: *mut u64)
        => info, context, "cuStreamGetCaptureInfo" @ 10010 ptsz;
    /// Status, number and graph; dependencies are not told.
    fn cuStreamGetCaptureInfo_v2(stream: CUstream, status: *mut i32, id: *mut u64,
        graph: *mut CUgraph, dependencies: *mut *const CUgraphNode, count: *mut usize)
        => info_v2, context, "cuStreamGetCaptureInfo" @ 11030;
    /// Status, number and graph; dependencies are not told.
    fn cuStreamGetCaptureInfo_v2_ptsz(stream: CUstream, status: *mut i32, id: *mut u64,
        graph: *mut CUgraph, dependencies: *mut *const CUgraphNode, count: *mut usize)
        => info_v2, context, "cuStreamGetCaptureInfo" @ 11030 ptsz;
    /// Status, number and graph; dependencies are not told.
    fn cuStreamGetCaptureInfo_v3(stream: CUstream, status: *mut i32, id: *mut u64,
        graph: *mut CUgraph, dependencies: *mut *const CUgraphNode, edges: *mut *const c_void,
        count: *mut usize) => info_v3, context, "cuStreamGetCaptureInfo" @ 12030;
    /// Status, number and graph; dependencies are not told.
    fn cuStreamGetCaptureInfo_v3_ptsz(stream: CUstream, status: *mut i32, id: *mut u64,
        graph: *mut CUgraph, dependencies: *mut *const CUgraphNode, edges: *mut *const c_void,
        count: *mut usize) => info_v3, context, "cuStreamGetCaptureInfo" @ 12030 ptsz;
}

/// Status, number and graph of a stream's capture.
fn status_of(stream: CUstream) -> Result<(i32, u64, u64), CuError> {
    let current = current()?;
    let mut state = state()?;
    let handle = state.stream(stream, current)?;
    if capture_of_legacy(&mut state, handle).is_some() {
        return Err(IMPLICIT);
    }
    let capture = state.streams.get_mut(handle).and_then(|stream| stream.capture);
    let Some(Capture(id)) = capture else { return Ok((0, 0, 0)) };
    let session = state.captures.get(id).ok_or(CuError::UNKNOWN)?;
    Ok((if session.spoilt { 2 } else { 1 }, id, session.graph))
}

fn is_capturing(stream: CUstream, status: Out<i32>) -> CuResult {
    status.put(status_of(stream)?.0)
}

fn info(stream: CUstream, status: Out<i32>, id: Out<u64>) -> CuResult {
    let found = status_of(stream)?;
    status.put(found.0)?;
    id.put_if_asked(found.1);
    Ok(())
}

fn info_v2(
    stream: CUstream,
    status: Out<i32>,
    id: Out<u64>,
    graph: Out<CUgraph>,
    dependencies: Out<*const CUgraphNode>,
    count: Out<usize>,
) -> CuResult {
    graph.put_if_asked(CUgraph(status_of(stream)?.2 as *mut c_void));
    dependencies.put_if_asked(std::ptr::null());
    count.put_if_asked(0);
    info(stream, status, id)
}

fn info_v3(
    stream: CUstream,
    status: Out<i32>,
    id: Out<u64>,
    graph: Out<CUgraph>,
    dependencies: Out<*const CUgraphNode>,
    edges: Out<*const c_void>,
    count: Out<usize>,
) -> CuResult {
    edges.put_if_asked(std::ptr::null());
    info_v2(stream, status, id, graph, dependencies, count)
}
