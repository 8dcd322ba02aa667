//! What a stream is and does, by the name that a call gives it.

use super::*;

/// Whether calls on a stream are recorded instead of carried out. `per_thread` says what a null stream means.
pub(crate) fn is_capturing(copy: &DriverCopy, stream: CUstream, per_thread: bool) -> bool {
    let status = filled(|status| match per_thread {
        true => stream_is_capturing_ptsz(copy, stream, status)?.ok(),
        false => stream_is_capturing(copy, stream, status)?.ok(),
    });
    status.is_some_and(|status: c_int| status != CU_STREAM_CAPTURE_STATUS_NONE)
}

/// The context of a stream; of the default streams, the current one.
pub(crate) fn context_of(copy: &DriverCopy, stream: CUstream) -> Option<CUcontext> {
    let is_default = stream.address() <= CU_STREAM_PER_THREAD.address();
    let own = (!is_default).then(|| time::context_of(copy, stream)).flatten();
    own.or_else(|| current_context(copy))
}

/// Whether all work of a stream is known to be done. Not while it may be captured: asking would spoil that.
pub(crate) fn is_idle(copy: &DriverCopy, context: CUcontext, stream: CUstream) -> bool {
    let ask = || {
        let answer = || stream_query(copy, stream).is_some_and(|answer| answer.is_ok());
        time::relaxed(copy, || time::carries_out(copy, stream) && answer())
    };
    time::in_context(copy, context, ask).unwrap_or(false)
}
