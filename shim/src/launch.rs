//! The compute limit in the shim: the actions before and after each launch, and all other events that the meter needs.
//!
//! Handlers pass what is about to run and where; nothing here changes the driver's answers. Called by handlers of the
//! classes `launch` and `order`, which only a process with a compute limit reaches, and when objects of the driver
//! end. Each device's time is the matter of [`throttle`](crate::throttle).
//!
//! A launch in a stream that is being captured runs nothing and passes unchanged. What a tool launches while the driver
//! calls it back under a lock of ours [waits](tools) once that is released.

mod allowance;
mod ends;
mod implicit;
mod paths;
mod tools;
mod work;

pub(crate) use ends::{
    about_to_end, capture_begins, capture_ended, code_ends, context_ends, graph_changed,
    graph_ends, graph_made, names_end, primary_may_end, stream_ends,
};
pub(crate) use paths::{launch, launch_together};
pub(crate) use work::{Scope, StreamRef, Work};

use crate::call::Call;
use crate::driver::DriverCopy;
use crate::driver::call_guard::DriverCallGuard;
use crate::driver::cuda as driver;
use crate::session::Session;
use crate::sys;
use crate::throttle::{Gate, Key, StreamEntry, StreamLookup, ThreadAllowance};
use allowance::allowance;
use gpucap_abi::cuda::{CUcontext, CUstream};
use std::{iter, ptr};

/// Returns the time by the clock that launches and waits are timed with, in nanoseconds.
pub(crate) fn clock() -> u64 {
    sys::monotonic_ns()
}

/// Makes a call of the application that waits for work. Containers that borrow leave this one its guarantee as long as it
/// does not return; without any, nothing is published.
pub(crate) fn waiting<T>(call: &Call, scope: Scope, next: impl FnOnce() -> T) -> T {
    let gates = watched(call, scope);
    gates.iter().for_each(|gate| gate.wait_begins());
    let answer = next();
    gates.iter().for_each(|gate| gate.wait_ends());
    answer
}

/// Returns the gates of the devices whose work is waited for, of those on which others have to know.
fn watched(call: &Call, scope: Scope) -> Vec<&'static Gate> {
    let session = Session::begun().filter(|_| !DriverCallGuard::is_entered());
    let Some(session) = session.filter(|session| session.budget.gates().any(Gate::is_watched))
    else {
        return Vec::new();
    };
    let _errno = sys::Errno::keep();
    let all = session.budget.gates().filter(|gate| gate.is_watched());
    match scope {
        Scope::Stream(stream) => {
            let gate = allowance(call.driver, stream).map(|(allowance, _)| allowance.entry.gate);
            gate.into_iter().filter(|gate| gate.is_watched()).collect()
        }
        Scope::Context(context) => {
            let named = Some(context).filter(|context| *context != CUcontext::NULL);
            let context = named.or_else(|| driver::current_context(call.driver));
            all.filter(|gate| context.is_some_and(|it| gate.context(it).is_some())).collect()
        }
        Scope::Something => all.collect(),
    }
}

/// Handles a successful return of a wait of the application that began at `began`.
pub(crate) fn synced(call: &Call, scope: Scope, began: u64) {
    let Some(session) = Session::begun().filter(|_| !DriverCallGuard::is_entered()) else { return };
    let _errno = sys::Errno::keep();
    match scope {
        Scope::Stream(stream) => {
            if let Some((ThreadAllowance { entry, .. }, _)) = allowance(call.driver, stream) {
                entry.gate.synced(call.driver, entry.stream().id.into_iter(), began);
            }
        }
        Scope::Context(context) => {
            let named = Some(context).filter(|context| *context != CUcontext::NULL);
            let context = named.or_else(|| driver::current_context(call.driver));
            for (gate, context) in session.budget.gates().zip(iter::repeat(context)) {
                let Some(id) = context.and_then(|context| gate.context(context)) else { continue };
                let of_it = |entry: &StreamEntry| entry.stream().context == id;
                let streams =
                    session.streams.all(|entry| ptr::eq(entry.gate, gate) && of_it(entry));
                // Read before the gate is locked: the lock of a stream's entry is not taken under the meter's lock.
                let ids: Vec<_> = streams.iter().filter_map(|entry| entry.stream().id).collect();
                gate.synced(call.driver, ids.into_iter(), began);
            }
        }
        Scope::Something => session.budget.gates().for_each(|gate| gate.settle(call.driver)),
    }
}

/// Handles something other than a launch that is about to enter a stream: a copy, a wait, a host function. Its time
/// is not device time, so the earlier launches are separated from the later ones.
pub(crate) fn fence(call: &Call, stream: StreamRef) {
    let Some(session) = Session::begun().filter(|_| !DriverCallGuard::is_entered()) else { return };
    let _errno = sys::Errno::keep();
    let (copy, handle) = (call.driver, stream.handle());
    let Some(key) = key_of(copy, handle) else { return };
    let entry = match session.streams.find(key) {
        StreamLookup::Known(None) => return,
        StreamLookup::Known(entry) => entry,
        StreamLookup::Unknown => None,
    };
    if let Some(entry) = entry {
        entry.gate.fence(copy, entry, handle);
    }
    implicit::fence(copy, session, handle, &key, entry);
}

/// The same for something that all streams of a context wait for.
pub(crate) fn fence_all(call: &Call) {
    let Some(session) = Session::begun().filter(|_| !DriverCallGuard::is_entered()) else { return };
    let _errno = sys::Errno::keep();
    implicit::fence_all(call.driver, session, |_| true);
}

/// Returns the key of a stream; `None` for a default stream without a context.
fn key_of(copy: &DriverCopy, handle: CUstream) -> Option<Key> {
    let of_default = || Some(Key::of_default(handle, driver::current_context(copy)?));
    Key::of_handle(handle).or_else(of_default)
}
