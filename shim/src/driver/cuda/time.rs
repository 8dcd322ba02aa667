//! What the meter of time asks of the driver: events, contexts, names, and the modes that keep captures whole.
//!
//! Streams are named as the driver's plain functions name them. What puts something into a stream is for streams that
//! [`carries_out`] is true of; [`relaxed`] keeps a question about one stream from spoiling the capture of another.

use super::*;
use core::ffi::CStr;
use gpucap_abi::cuda::CuError;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The card has not come to it yet.
    Pending,
    /// The card has come to it.
    Reached,
    /// The driver does not say, and never will: the event or its context is gone, or it has become part of a capture.
    Lost,
}

/// A new event that notes the time, in the current context.
pub(crate) fn create_event(copy: &DriverCopy) -> Option<CUevent> {
    const DEFAULT: c_uint = 0;
    filled(|event| event_create(copy, event, DEFAULT))
}

/// Records an event behind the current work of a stream of the current context.
pub(crate) fn record(copy: &DriverCopy, event: CUevent, stream: CUstream) -> Option<()> {
    event_record(copy, event, stream)
}

/// Returns whether work queued in a stream is executed. Not if it is captured, and not if the driver refuses to say:
/// the legacy default stream cannot be used while a stream that waits for it is captured, and trying would invalidate
/// that capture.
pub(crate) fn carries_out(copy: &DriverCopy, stream: CUstream) -> bool {
    let mut status = CU_STREAM_CAPTURE_STATUS_NONE;
    match stream_is_capturing(copy, stream, &raw mut status) {
        Some(answer) => answer.is_ok() && status == CU_STREAM_CAPTURE_STATUS_NONE,
        None => true, // a driver from before there were captures
    }
}

/// Whether the card has come to an event.
pub(crate) fn ask(copy: &DriverCopy, event: CUevent) -> Event {
    match event_query(copy, event) {
        Some(Ok(())) => Event::Reached,
        Some(Err(CuError::NOT_READY)) => Event::Pending,
        Some(Err(_)) | None => Event::Lost,
    }
}

/// Whether the card has done all that a stream had; `None` if the driver does not say. After an error of a kernel it does no
/// more of it: the context cannot be used any more (CUresult of the driver's API: "the process must be terminated").
pub(crate) fn is_idle(copy: &DriverCopy, stream: CUstream) -> Option<bool> {
    match stream_query(copy, stream)? {
        Ok(()) => Some(true),
        Err(CuError::NOT_READY) => Some(false),
        Err(error) => error.ends_context().then_some(true),
    }
}

/// Nanoseconds between two events that were reached; negative if the second came first. The driver answers in a float of
/// milliseconds, which has 24 bits.
pub(crate) fn elapsed_ns(copy: &DriverCopy, start: CUevent, end: CUevent) -> Option<i64> {
    let milliseconds: f32 = filled(|place| event_elapsed_time_v2(copy, place, start, end))
        .or_else(|| filled(|place| event_elapsed_time(copy, place, start, end)))?;
    #[expect(clippy::cast_possible_truncation, reason = "a float beyond the range becomes its end")]
    milliseconds.is_finite().then(|| (f64::from(milliseconds) * 1e6).round() as i64)
}

/// Gives an event back to the driver.
pub(crate) fn destroy_event(copy: &DriverCopy, event: CUevent) -> Option<()> {
    event_destroy(copy, event)
}

/// The context that a stream was made in.
pub(crate) fn context_of(copy: &DriverCopy, stream: CUstream) -> Option<CUcontext> {
    filled(|context| stream_get_ctx(copy, stream, context)?.ok())
}

/// Whether the legacy default stream waits for a stream, and it for that: not if it was made with `CU_STREAM_NON_BLOCKING`.
pub(crate) fn is_blocking(copy: &DriverCopy, stream: CUstream) -> bool {
    const NON_BLOCKING: c_uint = 1;
    let flags = filled(|flags| stream_get_flags(copy, stream, flags));
    flags.is_none_or(|flags| flags & NON_BLOCKING == 0)
}

/// Runs `work` with another context current.
pub(crate) fn in_context<T>(
    copy: &DriverCopy,
    context: CUcontext,
    work: impl FnOnce() -> T,
) -> Option<T> {
    ctx_push_current(copy, context)?;
    let answer = work();
    let _: Option<CUcontext> = filled(|popped| ctx_pop_current(copy, popped));
    Some(answer)
}

/// Runs `work` with a context current in any case, if there is one: with this one, unless the thread has another.
pub(crate) fn in_some_context<T>(
    copy: &DriverCopy,
    context: Option<CUcontext>,
    work: impl FnOnce() -> T,
) -> T {
    let has_none = || current_context(copy) == Some(CUcontext::NULL);
    let context = context.filter(|_| has_none());
    let is_pushed = context.and_then(|context| ctx_push_current(copy, context)).is_some();
    let answer = work();
    if is_pushed {
        let _: Option<CUcontext> = filled(|popped| ctx_pop_current(copy, popped));
    }
    answer
}

/// Runs `work` in the mode in which this thread's questions spoil no capture, another thread's least of all.
pub(crate) fn relaxed<T>(copy: &DriverCopy, work: impl FnOnce() -> T) -> T {
    const RELAXED: c_int = 2;
    let mut mode = RELAXED;
    let exchanged = thread_exchange_stream_capture_mode(copy, &raw mut mode);
    let answer = work();
    if exchanged.is_some() {
        let _ = thread_exchange_stream_capture_mode(copy, &raw mut mode);
    }
    answer
}

/// What a kernel is called; handles of either kind can be launched. Drivers from 12.3 on.
pub(crate) fn with_name<T>(
    copy: &DriverCopy,
    function: CUfunction,
    read: impl FnOnce(&CStr) -> T,
) -> Option<T> {
    // Integers, for which zeros are valid, stand for the pointer.
    let name: usize = filled(|name: *mut usize| func_get_name(copy, name.cast(), function))
        .or_else(|| filled(|name: *mut usize| kernel_get_name(copy, name.cast(), function)))?;
    let name = name as *const c_char;
    // SAFETY: the driver has answered with a string of its own, which lives as long as the kernel's module, which a
    // launch or an executable graph needs now.
    (!name.is_null()).then(|| read(unsafe { CStr::from_ptr(name) }))
}
