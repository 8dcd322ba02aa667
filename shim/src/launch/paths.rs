//! The two paths of a launch: nearly all take the fast path.
//!
//! The fast path takes a launch's cost out of its thread's allowance in its stream: no lock, clock, event, system
//! call, allocation or locked instruction. It is [`fast_path`], a function of few arguments, so that those of the driver's
//! function are moved about as little as possible; what a launch on the slow path through the [gate](crate::throttle::Gate) of
//! its device needs is put together [aside].
//!
//! In a thread's own default stream an event is recorded behind each launch on the fast path: whether that has been done can
//! be found out in no other way by another thread.

use super::allowance::allowance;
use super::work::{StreamRef, Work};
use super::{implicit, tools};
use crate::call::Call;
use crate::driver::call_guard::DriverCallGuard;
use crate::driver::cuda as driver;
use crate::driver::{DriverCopy, Next};
use crate::sys;
use crate::throttle::{Admitted, Key, StreamEntry, StreamLookup, ThreadAllowance, stream_cache};
use core::iter;
use gpucap_abi::cuda::{CUcontext, CUstream, CuError, CuResult};
use gpucap_core::throttle::Signature;

/// Launches: waits until the share allows it, calls the driver and records the outcome.
pub(crate) fn launch(
    call: &Call,
    work: Work,
    stream: StreamRef,
    next: impl Next<CuError>,
) -> CuResult {
    let Charged(allowance, cost) = fast_path(call.driver, work.signature(), stream);
    if cost == Charged::NOT {
        let call = *call;
        return aside(move || slow_path(&call, work, stream, next));
    }
    let answer = next();
    if let Some(allowance) = allowance {
        allowance.has_returned(cost, answer.is_ok());
    }
    answer.map(drop)
}

/// What a launch on the fast path is charged: the allowance of its thread, and the cost taken out of it; `None` if the
/// device has no compute limit. Two words, which fit into registers.
struct Charged(Option<&'static ThreadAllowance>, u32);

impl Charged {
    /// In place of a cost: the launch takes the slow path.
    const NOT: u32 = u32::MAX;
}

/// Decides which path a launch takes. Not part of [`launch`], whose registers hold the arguments of the driver's
/// function.
#[inline(never)]
fn fast_path(copy: &'static DriverCopy, signature: Signature, stream: StreamRef) -> Charged {
    let handle = stream.handle();
    match Key::of_handle(handle) {
        Some(_) => charge_in(signature, handle, CUcontext::NULL),
        None if stream.is_of_thread() => Charged(None, Charged::NOT),
        None => charge_in_default(copy, signature, handle),
    }
}

#[inline(never)]
fn charge_in_default(copy: &'static DriverCopy, signature: Signature, handle: CUstream) -> Charged {
    match driver::current_context(copy) {
        Some(context) => charge_in(signature, handle, context),
        None => Charged(None, 0),
    }
}

/// A launch in a stream that this thread does not remember takes the slow path.
#[expect(
    clippy::inline_always,
    reason = "on the way of each launch; a call of it would be half as much again"
)]
#[inline(always)]
fn charge_in(signature: Signature, handle: CUstream, context: CUcontext) -> Charged {
    match stream_cache::recall(handle, context) {
        StreamLookup::Known(Some(allowance)) => {
            Charged(Some(allowance), allowance.take(signature).unwrap_or(Charged::NOT))
        }
        StreamLookup::Known(None) => Charged(None, 0),
        StreamLookup::Unknown => Charged(None, Charged::NOT),
    }
}

/// Runs what nearly no launch needs, out of line.
#[cold]
#[inline(never)]
fn aside<T>(work: impl FnOnce() -> T) -> T {
    work()
}

fn slow_path(call: &Call, work: Work, stream: StreamRef, next: impl Next<CuError>) -> CuResult {
    if DriverCallGuard::is_entered() {
        return tools::launch(call, iter::once((work, stream)), || next().map(drop));
    }
    let Some((allowance, learnt)) = allowance(call.driver, stream) else { return next().map(drop) };
    // No other thread can ask about the default stream of this one.
    let is_marked = stream.is_of_thread() && allowance.entry.gate.is_looked_at();
    let latest = if is_marked { allowance.entry.latest_launch(call.driver) } else { None };
    let may_take = if is_marked { latest.is_some() } else { learnt || stream.is_of_thread() };
    if may_take && let Some(cost) = allowance.take(work.signature()) {
        latest.iter().for_each(|latest| latest.begins());
        let answer = next();
        latest.iter().for_each(|latest| latest.has_returned(call.driver, stream.handle()));
        allowance.has_returned(cost, answer.is_ok());
        return answer.map(drop);
    }
    if !driver::time::carries_out(call.driver, stream.handle()) {
        let answer = next();
        if answer.is_ok() {
            uncaptured(call, work, stream, allowance.entry);
        }
        return answer.map(drop);
    }
    let running = Running::begin(call, work, stream, allowance);
    let answer = next();
    running.end(call, answer.is_ok());
    answer.map(drop)
}

/// The driver has taken a launch in a stream that was being captured: another thread may have ended the capture before that.
fn uncaptured(call: &Call, work: Work, stream: StreamRef, entry: &StreamEntry) {
    if driver::time::carries_out(call.driver, stream.handle()) {
        let launch = work.launch(call, work.signature());
        entry.gate.launched_uncaptured(call.driver, entry, launch);
    }
}

/// Launches several kernels in one call, each in a stream of its own: the call cannot be split.
pub(crate) fn launch_together(
    call: &Call,
    parts: impl Iterator<Item = (Work, StreamRef)>,
    next: impl Next<CuError>,
) -> CuResult {
    if DriverCallGuard::is_entered() {
        return tools::launch(call, parts, || next().map(drop));
    }
    let limited = |(work, stream)| Some((work, stream, allowance(call.driver, stream)?.0));
    let (running, captured): (Vec<_>, Vec<_>) = parts
        .filter_map(limited)
        .partition(|(_, stream, _)| driver::time::carries_out(call.driver, stream.handle()));
    let begin = |(work, stream, allowance)| Running::begin(call, work, stream, allowance);
    let running: Vec<_> = running.into_iter().map(begin).collect();
    let answer = next();
    running.into_iter().for_each(|running| running.end(call, answer.is_ok()));
    if answer.is_ok() {
        captured.into_iter().for_each(|(work, stream, ThreadAllowance { entry, .. })| {
            uncaptured(call, work, stream, entry);
        });
    }
    answer.map(drop)
}

/// A launch on the slow path: admitted by the gate of its device, between its events.
struct Running {
    stream: StreamRef,
    entry: &'static StreamEntry,
    /// `None` if the stream has ended.
    admitted: Option<Admitted>,
}

impl Running {
    fn begin(
        call: &Call,
        work: Work,
        stream: StreamRef,
        allowance: &'static ThreadAllowance,
    ) -> Self {
        let _errno = sys::Errno::keep();
        let entry = allowance.entry;
        let launch = work.launch(call, work.signature());
        let admitted = entry.gate.admit(call.driver, allowance, launch, stream.handle());
        implicit::pass_on(call.driver, entry);
        Self { stream, entry, admitted }
    }

    fn end(self, call: &Call, launched: bool) {
        let _errno = sys::Errno::keep();
        let Some(admitted) = self.admitted else { return };
        if launched {
            self.entry.gate.launched(call.driver, admitted, self.stream.handle());
        } else {
            self.entry.gate.refused(call.driver, admitted);
        }
    }
}
