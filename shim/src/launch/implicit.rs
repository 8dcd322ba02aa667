//! Streams that wait for one another without an event: the legacy default stream of a context, and those that are not made
//! with `CU_STREAM_NON_BLOCKING` (CUDA programming guide, "Implicit Synchronization").
//!
//! Behind something that is no launch in one of them, a launch in the other waits for that, so there is a fence in both. Without
//! it, a program with 5 % whose kernels of 20 us wait for copies of 500 ms in this way is charged for the copies, and takes
//! 14 times as long (`throttle`: `implicit`).

use crate::driver::DriverCopy;
use crate::driver::cuda as driver;
use crate::session::Session;
use crate::throttle::{ContextId, Gate, Key, StreamEntry, StreamLookup, WaitsFor};
use gpucap_abi::cuda::CUstream;
use std::ptr;

/// Returns which streams a stream waits for.
pub(super) fn waits(copy: &DriverCopy, handle: CUstream, key: &Key) -> WaitsFor {
    if key.is_legacy() {
        WaitsFor::Blocking
    } else if key.is_of_thread() || driver::time::is_blocking(copy, handle) {
        WaitsFor::Legacy
    } else {
        WaitsFor::None
    }
}

/// Fences those that wait for a stream which something is about to enter that is no launch. `entry` is its own, if it is known.
pub(super) fn fence(
    copy: &DriverCopy,
    session: &Session,
    handle: CUstream,
    key: &Key,
    entry: Option<&StreamEntry>,
) {
    if key.is_legacy() {
        if session.streams.has_blocking() {
            let gates = session.budget.gates();
            gates
                .filter_map(|gate| Some((gate, gate.context(key.context())?)))
                .for_each(|(gate, context)| fence_blocking(copy, session, gate, context));
        }
        return;
    }
    let waits = entry.map_or_else(|| waits(copy, handle, key), |entry| entry.stream().waits);
    if waits != WaitsFor::Legacy {
        return;
    }
    let context = driver::time::context_of(copy, handle).or_else(|| driver::current_context(copy));
    let Some(context) = context else { return };
    let legacy = session.streams.find(Key::of_default(CUstream::NULL, context));
    if let StreamLookup::Known(Some(legacy)) = legacy
        && driver::time::carries_out(copy, handle)
    {
        legacy.gate.fence_in(copy, legacy, CUstream::NULL);
        legacy.delay();
    }
}

/// A launch was admitted and is about to enter a stream: those that wait for it wait for what it waits for.
pub(super) fn pass_on(copy: &DriverCopy, entry: &StreamEntry) {
    entry.launch();
    if let Some(session) = Session::begun()
        && entry.take_delay()
    {
        fence_blocking(copy, session, entry.gate, entry.stream().context);
    }
}

/// Fences those that wait for the legacy default stream of a context, as far as anything was launched in them since the last
/// time: with 512 idle streams a copy in the default stream would take 3.4 ms.
fn fence_blocking(copy: &DriverCopy, session: &Session, gate: &Gate, context: ContextId) {
    let waits = |entry: &StreamEntry| {
        let stream = entry.stream();
        let is_of_it = ptr::eq(entry.gate, gate) && stream.context == context;
        is_of_it && stream.waits == WaitsFor::Legacy && entry.take_launched()
    };
    fence_all(copy, session, waits);
}

/// Fences all streams for which `wanted` is true.
pub(super) fn fence_all(
    copy: &DriverCopy,
    session: &Session,
    wanted: impl Fn(&StreamEntry) -> bool,
) {
    for (handle, entry) in session.streams.with_handles(|_, entry| wanted(entry)) {
        entry.gate.fence_in(copy, entry, handle);
    }
    for entry in session.streams.of_other_threads(|_, entry| wanted(entry)) {
        fence_latest(copy, entry);
    }
}

/// Marks where the work of another thread's default stream ends.
pub(super) fn fence_latest(copy: &DriverCopy, entry: &StreamEntry) {
    entry.forget_latest_launch();
    entry.stream().id.into_iter().for_each(|id| entry.gate.fence_latest(copy, id));
}
