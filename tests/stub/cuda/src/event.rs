//! Events: points in streams, with a time.
//!
//! An event that was never recorded counts as reached. It is reached when what was in its stream
//! is done: at once in an empty one, however long the kernel behind it is under way, or in a turn of the
//! process (`STUB_GPU_EVENTS`), of which it then takes a nanosecond. Its time is the card's, in steps of
//! `STUB_GPU_EVENT_STEP_NS`.

use crate::arg::Out;
use crate::capture::{self, Operation};
use crate::capture_mode::unsafe_call;
use crate::context::current;
use crate::current::top;
use crate::driver::state;
use crate::export::exports;
use crate::state::Table;
use crate::stream::{NOT_READY, Point, push};
use gpucap_abi::cuda::{CUevent, CUstream, CuError, CuResult};
use gpucap_stub_device::catalog::Unit;
use gpucap_stub_device::settings;
use std::ffi::c_void;

exports! {
    /// Flag 2: without a time.
    fn cuEventCreate(event: *mut CUevent, flags: u32) => create, context, "cuEventCreate" @ 2000;
    /// Waits for it still see the point it stood for.
    fn cuEventDestroy(event: CUevent) => destroy, driver, "cuEventDestroy" @ 2000;
    /// Waits for it still see the point it stood for.
    fn cuEventDestroy_v2(event: CUevent) => destroy, driver, "cuEventDestroy" @ 4000;
    /// Stands for the end of what is queued in the stream now.
    fn cuEventRecord(event: CUevent, stream: CUstream) => record, context, "cuEventRecord" @ 2000;
    /// Stands for the end of what is queued in the stream now.
    fn cuEventRecord_ptsz(event: CUevent, stream: CUstream)
        => record, context, "cuEventRecord" @ 7000 ptsz;
    /// Stands for the end of what is queued in the stream now.
    fn cuEventRecordWithFlags(event: CUevent, stream: CUstream, flags: u32)
        => record_with_flags, context, "cuEventRecordWithFlags" @ 11010;
    /// Stands for the end of what is queued in the stream now.
    fn cuEventRecordWithFlags_ptsz(event: CUevent, stream: CUstream, flags: u32)
        => record_with_flags, context, "cuEventRecordWithFlags" @ 11010 ptsz;
    /// NOT_READY until it is reached.
    fn cuEventQuery(event: CUevent) => query, driver, "cuEventQuery" @ 2000;
    /// Waits until it is reached.
    fn cuEventSynchronize(event: CUevent) => synchronize, driver, "cuEventSynchronize" @ 2000;
    /// Milliseconds between two reached events.
    fn cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent)
        => elapsed, driver, "cuEventElapsedTime" @ 2000;
    /// Milliseconds between two reached events.
    fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: CUevent, end: CUevent)
        => elapsed, driver, "cuEventElapsedTime" @ 12080;
    /// What is queued in the stream from now on waits for the event.
    fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: u32)
        => stream_wait, context, "cuStreamWaitEvent" @ 3020;
    /// What is queued in the stream from now on waits for the event.
    fn cuStreamWaitEvent_ptsz(stream: CUstream, event: CUevent, flags: u32)
        => stream_wait, context, "cuStreamWaitEvent" @ 7000 ptsz;
}

/// An event.
pub(crate) struct Event {
    pub(crate) context: u64,
    timed: bool,
    point: Option<Point>,
    /// The capture it was recorded in last, if that was in one.
    pub(crate) capture: Option<u64>,
}

/// The events of the process.
pub(crate) type Events = Table<Event>;

impl Point {
    /// Makes what is queued in a stream from now on wait for it.
    pub(crate) fn holds_up(self, stream: CUstream) -> CuResult {
        let current = current()?;
        if self.unit == current.1 {
            let mut state = state()?;
            let handle = state.stream(stream, current)?;
            state.stream_waits(handle, self.progress);
        } else {
            // Another unit's progress is another axis; the host waits instead, which is later but
            // not wrong.
            self.wait();
        }
        Ok(())
    }
}

const BLOCKING_SYNC: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;
/// `CU_EVENT_RECORD_EXTERNAL`, `CU_EVENT_WAIT_EXTERNAL`: a node of its own in the graph that is captured.
const EXTERNAL: u32 = 1;

fn create(event: Out<CUevent>, flags: u32) -> CuResult {
    event.required()?;
    let known = BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS;
    let timed = flags & DISABLE_TIMING == 0;
    if flags & !known != 0 || (flags & INTERPROCESS != 0 && timed) {
        return Err(CuError::INVALID_VALUE);
    }
    let (context, _) = current()?;
    let made = Event { context, timed, point: None, capture: None };
    event.put(CUevent(state()?.events.add(made) as *mut c_void))
}

fn destroy(event: CUevent) -> CuResult {
    state()?.events.remove(event.address()).map(drop).ok_or(CuError::INVALID_HANDLE)
}

fn record(event: CUevent, stream: CUstream) -> CuResult {
    record_with_flags(event, stream, 0)
}

fn record_with_flags(event: CUevent, stream: CUstream, flags: u32) -> CuResult {
    if flags > EXTERNAL {
        return Err(CuError::INVALID_VALUE);
    }
    let handle = event.address();
    state()?.events.get(handle).ok_or(CuError::INVALID_HANDLE)?;
    let of_graph = flags == EXTERNAL;
    let node = if of_graph { Operation::Event } else { Operation::Record(event) };
    of_same_context(event, stream)?;
    if capture::take(stream, node)? {
        return Ok(());
    }
    if of_graph {
        // Only a graph has nodes.
        return Err(CuError::INVALID_VALUE);
    }
    let point = push(stream, settings().events_in_turn.into())?;
    record_at(event, point)
}

/// A stream records the events of its own context.
fn of_same_context(event: CUevent, stream: CUstream) -> CuResult {
    let current = current()?;
    let mut state = state()?;
    let handle = state.stream(stream, current)?;
    let of_stream = state.streams.get_mut(handle).map(|stream| stream.context);
    let of_event = state.events.get(event.address()).map(|event| event.context);
    if of_stream == of_event { Ok(()) } else { Err(CuError::INVALID_HANDLE) }
}

/// Records the end of all that is queued in a context.
pub(crate) fn record_context(event: CUevent, context: u64, unit: Unit) -> CuResult {
    let point = state()?.streams.end_of_context(context, unit);
    record_at(event, point)
}

fn record_at(event: CUevent, point: Point) -> CuResult {
    let handle = event.address();
    let mut state = state()?;
    let found = state.events.get_mut(handle).ok_or(CuError::INVALID_HANDLE)?;
    found.point = Some(point);
    found.capture = None;
    Ok(())
}

/// The point that an event stands for, with its time once that is known.
fn point(event: CUevent) -> Result<(Option<Point>, bool), CuError> {
    let mut state = state()?;
    let found = state.events.get_mut(event.address()).ok_or(CuError::INVALID_HANDLE)?;
    if let Some(id) = found.capture {
        capture::spoil(&mut state, id);
        return Err(capture::EVENT_OF_CAPTURE);
    }
    if let Some(point) = &mut found.point {
        // Kept: the engine remembers only the recent past.
        point.time = point.reached();
    }
    Ok((found.point, found.timed))
}

/// Checks that a question may be asked in this thread.
fn question() -> CuResult {
    let may = !settings().events_in_context || top().is_some();
    if may { Ok(()) } else { Err(CuError::INVALID_CONTEXT) }
}

fn query(event: CUevent) -> CuResult {
    question()?;
    let (point, _) = point(event)?;
    unsafe_call(&mut *state()?)?;
    match point {
        Some(point) if !point.is_seen() => Err(NOT_READY),
        _ => Ok(()),
    }
}

fn synchronize(event: CUevent) -> CuResult {
    let (point, _) = point(event)?;
    unsafe_call(&mut *state()?)?;
    if let Some(point) = point {
        point.wait();
    }
    state()?.release_reserves();
    Ok(())
}

fn elapsed(milliseconds: Out<f32>, start: CUevent, end: CUevent) -> CuResult {
    milliseconds.required()?;
    question()?;
    let time = |event| match point(event)? {
        (Some(point), true) if point.is_seen() => point.reached().map(stamp).ok_or(NOT_READY),
        (Some(_), true) => Err(NOT_READY),
        _ => Err(CuError::INVALID_HANDLE),
    };
    let (start, end) = (time(start)?, time(end)?);
    #[expect(clippy::cast_precision_loss, reason = "a float is what the driver answers in")]
    let span = if end >= start { (end - start) as f32 } else { -((start - end) as f32) };
    milliseconds.put(span / 1e6)
}

/// The time that an event keeps of what happened at `time`.
fn stamp(time: u64) -> u64 {
    time - time % settings().event_step_ns
}

fn stream_wait(stream: CUstream, event: CUevent, flags: u32) -> CuResult {
    if flags > EXTERNAL {
        return Err(CuError::INVALID_VALUE);
    }
    let of_capture = state()?.events.get(event.address()).ok_or(CuError::INVALID_HANDLE)?.capture;
    if flags == EXTERNAL {
        let taken = capture::take(stream, Operation::Event)?;
        return if taken { Ok(()) } else { Err(CuError::INVALID_VALUE) };
    }
    if let Some(id) = of_capture {
        return capture::join(stream, id);
    }
    wait_in(stream, event)
}

/// Makes a stream wait for an event that was recorded in no capture.
pub(crate) fn wait_in(stream: CUstream, event: CUevent) -> CuResult {
    let point = point(event)?.0;
    if capture::take(stream, Operation::Wait(point.is_some()))? {
        return Ok(());
    }
    let Some(point) = point else { return Ok(()) };
    point.holds_up(stream)
}
