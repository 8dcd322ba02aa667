//! What has to be known besides launches and allocations: that work is done, that a stream is captured or gone.
//!
//! The meter settles work that has ended, and pools have given back what was free. None of these is ever held up or
//! refused by the shim, and the driver's answer is returned as it is.

use crate::call::Call;
use crate::driver::{self, Next};
use crate::launch::{self, Scope, StreamRef};
use crate::session::Session;
use core::ffi::{c_int, c_void};
use gpucap_abi::arg::{In, Out, Word};
use gpucap_abi::cuda::{
    CUarray, CUcontext, CUevent, CUgraph, CUgraphNode, CUstream, CuError, CuResult,
};

/// `cuCtxSynchronize`, first form: the current context.
pub(crate) fn context_synchronize(call: &Call, next: impl Next<CuError>) -> CuResult {
    context_synchronize_v2(call, next, CUcontext::NULL)
}

/// `cuCtxSynchronize`, second form.
pub(crate) fn context_synchronize_v2(
    call: &Call,
    next: impl Next<CuError>,
    context: CUcontext,
) -> CuResult {
    let waited = if context == CUcontext::NULL {
        driver::cuda::current_context(call.driver)
    } else {
        Some(context)
    };
    synchronize(call, next, Scope::Context(context), waited)
}

/// `cuEventSynchronize`.
pub(crate) fn event_synchronize(
    call: &Call,
    next: impl Next<CuError>,
    _event: CUevent,
) -> CuResult {
    synchronize(call, next, Scope::Something, None)
}

/// `cuStreamSynchronize`.
pub(crate) fn stream_synchronize(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
) -> CuResult {
    synchronize(call, next, Scope::Stream(StreamRef::named(call, stream)), None)
}

/// `cuMemcpyDtoH`: the host has what is behind all work in the default stream.
pub(crate) fn copy_to_host(
    call: &Call,
    next: impl Next<CuError>,
    _to: Out<c_void>,
    _from: impl Word,
    _bytes: impl Word,
) -> CuResult {
    copied_back(call, next)
}

/// `cuMemcpyAtoH`, as `cuMemcpyDtoH`.
pub(crate) fn array_to_host(
    call: &Call,
    next: impl Next<CuError>,
    _to: Out<c_void>,
    _from: CUarray,
    _offset: impl Word,
    _bytes: impl Word,
) -> CuResult {
    copied_back(call, next)
}

/// `cuStreamDestroy`.
pub(crate) fn stream_destroy(call: &Call, next: impl Next<CuError>, stream: CUstream) -> CuResult {
    if let Some(session) = Session::begun() {
        session.pools.stream_ends(stream);
    }
    launch::stream_ends(call, stream, || {
        // Memory is being taken in streams of this name by the device of this one.
        let _changing = Session::begun().map(|session| session.pools.handles.change());
        next()
    })
}

/// `cuStreamBeginCapture`, first form.
pub(crate) fn begin_capture(call: &Call, next: impl Next<CuError>, stream: CUstream) -> CuResult {
    launch::capture_begins(call, stream, next)
}

/// `cuStreamBeginCapture`, second form.
pub(crate) fn begin_capture_v2(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _mode: c_int,
) -> CuResult {
    launch::capture_begins(call, stream, next)
}

/// `cuStreamBeginCaptureToGraph`.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn begin_capture_to_graph(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _graph: CUgraph,
    _dependencies: In<CUgraphNode>,
    _edges: In<c_void>,
    _count: usize,
    _mode: c_int,
) -> CuResult {
    launch::capture_begins(call, stream, next)
}

/// `cuStreamBeginCaptureToCig`.
pub(crate) fn begin_capture_to_cig(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _params: Out<c_void>,
) -> CuResult {
    launch::capture_begins(call, stream, next)
}

/// `cuStreamBeginRecaptureToGraph`.
pub(crate) fn begin_recapture(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _mode: c_int,
    _graph: CUgraph,
    _callback: Out<c_void>,
    _data: Out<c_void>,
) -> CuResult {
    launch::capture_begins(call, stream, next)
}

/// `cuStreamEndCapture`.
pub(crate) fn end_capture(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _graph: Out<CUgraph>,
) -> CuResult {
    end(call, next, stream)
}

/// `cuStreamEndCaptureToCig`.
pub(crate) fn end_capture_to_cig(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
) -> CuResult {
    end(call, next, stream)
}

/// Waits; `context` is what was waited for as a whole.
fn synchronize(
    call: &Call,
    next: impl Next<CuError>,
    scope: Scope,
    context: Option<CUcontext>,
) -> CuResult {
    if call.limits_time() {
        let began = launch::clock();
        launch::waiting(call, scope, next)?;
        launch::synced(call, scope, began);
    } else {
        next()?;
    }
    super::pool::synchronised(call, context);
    Ok(())
}

/// Default streams wait for others: what ended in those can be seen too. The copy's own time is not charged.
fn copied_back(call: &Call, next: impl Next<CuError>) -> CuResult {
    launch::fence(call, StreamRef::named(call, CUstream::NULL));
    stream_synchronize(call, next, CUstream::NULL)?;
    launch::synced(call, Scope::Something, launch::clock());
    Ok(())
}

/// A capture that was spoilt ends with an error, and a call in the wrong place ends none: then the stream is asked.
fn end(call: &Call, next: impl Next<CuError>, stream: CUstream) -> CuResult {
    let captures = || driver::cuda::stream::is_capturing(call.driver, stream, call.per_thread);
    let was_capturing = captures();
    let ended = next();
    if ended.is_ok() || was_capturing && !captures() {
        launch::capture_ended(call, stream);
    }
    ended.map(drop)
}
