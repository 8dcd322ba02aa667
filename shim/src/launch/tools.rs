//! Launches of a tool that the driver calls back while this thread holds a lock of the shim.
//!
//! Such a launch goes to the driver at once: a lock that it waited for could be this thread's, or that of a thread that
//! waits for this one. It is measured by two events and noted. As soon as this thread has released its last lock, still
//! within the same call of the application, the launch is charged as any other, and the thread waits until the bucket
//! is level. So a program whose launches all come from a tool is held back, too.

use super::allowance::allowance;
use super::work::{StreamRef, Work};
use crate::call::Call;
use crate::driver::DriverCopy;
use crate::driver::call_guard;
use crate::driver::cuda as driver;
use crate::session::Session;
use crate::sys;
use crate::throttle::{Gate, Recorded, ToolLaunch};
use gpucap_abi::cuda::CuResult;
use gpucap_core::throttle::Launch;

/// How long is waited before it is looked again what has finished, and which limits are in force.
const RECHECK_NS: u64 = 1_000_000;

/// Launches one piece of work in each of these streams by one call of the driver.
pub(super) fn launch(
    call: &Call,
    parts: impl Iterator<Item = (Work, StreamRef)>,
    next: impl FnOnce() -> CuResult,
) -> CuResult {
    let begun = begin(call.driver, parts);
    let answer = next();
    let _errno = sys::Errno::keep();
    for mut noted in begun {
        let ToolLaunch { driver: copy, context, stream, .. } = noted;
        if answer.is_err() {
            noted.before.into_iter().for_each(|before| before.destroy(copy));
            continue;
        }
        let end = || Recorded::new(copy, stream);
        noted.after = driver::time::in_context(copy, context, end).flatten();
        if let Some(session) = Session::begun() {
            session.tool_launches.push(noted);
            call_guard::afterwards(settle);
        }
    }
    answer
}

/// Records an event before each launch that is to be charged.
fn begin(
    copy: &'static DriverCopy,
    parts: impl Iterator<Item = (Work, StreamRef)>,
) -> Vec<ToolLaunch> {
    let _errno = sys::Errno::keep();
    let begin = |(work, stream): (Work, StreamRef)| {
        let (stream, signature) = (stream.handle(), work.signature());
        let context = driver::stream::context_of(copy, stream)?;
        let begin = || {
            let device = driver::current_device(copy)?;
            Session::begun()?.budget.gate(device)?;
            let carries_out = driver::time::carries_out(copy, stream);
            carries_out.then(|| (device, Recorded::new(copy, stream)))
        };
        let (device, before) = driver::time::in_context(copy, context, begin)??;
        let (thread, after) = (sys::thread(), None);
        let in_question = Gate::is_asking();
        Some(ToolLaunch {
            driver: copy,
            thread,
            context,
            device,
            stream,
            signature,
            before,
            after,
            in_question,
        })
    };
    parts.filter_map(begin).collect()
}

/// Charges what this thread's tools have launched, and waits. The thread holds no lock that a launch takes.
fn settle() {
    let Some(session) = Session::begun() else { return };
    let _errno = sys::Errno::keep();
    let noted = session.tool_launches.take(sys::thread());
    let may_ask = !noted.iter().any(|noted| noted.in_question);
    for noted in noted {
        let ToolLaunch { driver: copy, context, device, stream, signature, .. } = noted;
        let charged = noted.before.zip(noted.after).and_then(|(before, after)| {
            driver::time::in_context(copy, context, || {
                let (allowance, _) = allowance(copy, StreamRef::of_handle(stream))?;
                let entry = allowance.entry;
                entry.gate.launched_unheld(copy, entry, Launch::kernel(signature), [before, after]);
                Some(entry.gate)
            })
        });
        match charged {
            Some(gate) => gate.into_iter().for_each(|gate| wait(copy, gate, may_ask)),
            // Without events, or its context is gone: nothing can be measured.
            None => session
                .budget
                .gate(device)
                .into_iter()
                .for_each(|gate| gate.launched_by_tool(signature)),
        }
    }
}

/// Waits until the bucket is level, by what has finished if that may be asked: a tool that launches in each question
/// would launch more each time.
fn wait(copy: &DriverCopy, gate: &Gate, may_ask: bool) {
    let mut now = sys::monotonic_ns();
    while let Some(until) = gate.level_at(now).filter(|until| *until > now) {
        sys::sleep_until(until.min(now.saturating_add(RECHECK_NS)));
        if may_ask {
            gate.settle(copy);
        }
        now = sys::monotonic_ns();
    }
}
