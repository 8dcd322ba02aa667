//! The allowance of a thread in a stream, looked up where the thread does not remember it.
//!
//! A stream is registered with the meter of its device at its first launch. Never reached by a launch on the fast path,
//! which finds its allowance in the [cache](stream_cache) of its thread or takes the slow path.

use super::implicit;
use super::work::StreamRef;
use crate::budget::device::Standing;
use crate::driver::DriverCopy;
use crate::driver::call_guard::DriverCallGuard;
use crate::driver::cuda as driver;
use crate::fork_page::epoch;
use crate::session::Session;
use crate::sys;
use crate::throttle::{Key, StreamEntry, StreamLookup, ThreadAllowance, stream_cache};
use gpucap_abi::cuda::{CUcontext, CUstream};

/// Returns the thread's allowance in a stream, and whether it was looked up just now; `None` if the stream's device
/// has no compute limit, and if the driver will refuse the call.
pub(super) fn allowance(
    copy: &DriverCopy,
    stream: StreamRef,
) -> Option<(&'static ThreadAllowance, bool)> {
    let session = Session::begun()?;
    let handle = stream.handle();
    let context = match Key::of_handle(handle) {
        Some(_) => CUcontext::NULL,
        None => driver::current_context(copy)?,
    };
    match stream_cache::recall(handle, context) {
        StreamLookup::Known(allowance) => Some((allowance?, false)),
        StreamLookup::Unknown => Some((learn(copy, session, handle, context)?, true)),
    }
}

fn learn(
    copy: &DriverCopy,
    session: &'static Session,
    handle: CUstream,
    context: CUcontext,
) -> Option<&'static ThreadAllowance> {
    let _errno = sys::Errno::keep();
    if DriverCallGuard::is_entered() {
        return None; // a tool that was called back: the holder of the lock may wait for one that this thread holds
    }
    let (streams, epoch) = (&session.streams, epoch());
    let key = Key::of_handle(handle).unwrap_or_else(|| Key::of_default(handle, context));
    let found = match streams.find(key) {
        StreamLookup::Unknown => begin(copy, session, handle, key),
        known => known,
    };
    let StreamLookup::Known(entry) = found else { return None };
    let allowance = entry.map(|entry| entry.allowance(stream_cache::thread(streams)));
    stream_cache::remember(epoch, handle, context, allowance);
    allowance
}

/// Registers a stream, and returns its entry.
fn begin(
    copy: &DriverCopy,
    session: &'static Session,
    handle: CUstream,
    key: Key,
) -> StreamLookup<&'static StreamEntry> {
    let Some((context, standing)) = standing(copy, session, handle) else {
        return StreamLookup::Unknown;
    };
    session.streams.sweep(sys::thread_exists, |entry, id| {
        entry.gate.fence_latest(copy, id);
        entry.gate.end_stream(id);
    });
    let Some(gate) = &standing.time else {
        session.streams.enter_free(key);
        return StreamLookup::Known(None);
    };
    // Another thread's default stream has no name in this one.
    let name = (!key.is_of_thread()).then_some(handle);
    let waits = implicit::waits(copy, handle, &key);
    let entry = session.streams.enter(key, gate, waits, || gate.begin_stream(context, name));
    entry.map_or(StreamLookup::Unknown, |entry| StreamLookup::Known(Some(entry)))
}

/// Returns the context of a stream, and its device; `None` if the driver does not say.
fn standing(
    copy: &DriverCopy,
    session: &'static Session,
    handle: CUstream,
) -> Option<(CUcontext, &'static Standing)> {
    let current = driver::current_context(copy)?;
    let context = driver::time::context_of(copy, handle).unwrap_or(current);
    let ask = || driver::current_device(copy);
    let ordinal =
        if context == current { ask() } else { driver::time::in_context(copy, context, ask)? }?;
    Some((context, session.budget.standing(copy, ordinal).ok()??))
}
