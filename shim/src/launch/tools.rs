//! Launches of a tool that the driver calls back while this thread holds a lock of the shim.
//!
//! Such a launch goes to the driver at once: a lock that it waited for could be this thread's, or that of a thread that
//! waits for this one. It is measured by two events and noted. As soon as this thread has released its last lock, still
//! within the same call of the application, the launch is charged as any other, and the thread waits until the bucket
//! is out of debt. So a program whose launches all come from a tool is held back, too.
//!
//! A call that does not return would never pay. So only the first launches of a tool in one call are noted; for each later
//! one the thread waits until the card has done it, pays and waits until the bucket is out of debt, all without a lock of ours.
//! In questions about events that cannot be asked: more than a little is refused there, and so is what follows a launch
//! that does not end.

use super::allowance::allowance;
use super::work::{StreamRef, Work};
use crate::call::Call;
use crate::driver::DriverCopy;
use crate::driver::call_guard;
use crate::driver::cuda as driver;
use crate::session::Session;
use crate::sys;
use crate::throttle::{Gate, Recorded, ToolLaunch};
use gpucap_abi::cuda::{CuError, CuResult};
use gpucap_core::throttle::Launch;

/// How long is waited before it is looked again what has finished, and which limits are in force.
const RECHECK_NS: u64 = 1_000_000;

/// How many launches of a tool in one call may be unpaid.
const MOST_UNPAID: usize = 16;
/// The same in questions about events, of which one call may ask many: how many, and what they are expected to take.
const MOST_ASKING: usize = 256;
const MOST_ASKING_NS: u64 = 1_000_000_000;
/// For how long the end of one is waited for under a lock, which other threads may need to bring it about.
const LONGEST_WAIT_NS: u64 = 10_000_000_000;
/// How often it is asked.
const POLL_NS: u64 = 100_000;

/// Launches one piece of work in each of these streams by one call of the driver.
pub(super) fn launch(
    call: &Call,
    parts: impl Iterator<Item = (Work, StreamRef)>,
    next: impl FnOnce() -> CuResult,
) -> CuResult {
    let begun = begin(call.driver, parts);
    let terms = terms(&begun);
    if terms == Terms::Refused {
        let _errno = sys::Errno::keep();
        let events = begun.into_iter().filter_map(|noted| noted.before);
        events.for_each(|before| before.destroy(call.driver));
        return Err(CuError::NOT_PERMITTED);
    }
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
            if terms == Terms::Now {
                if is_paid(session, &noted) {
                    let events = noted.before.into_iter().chain(noted.after);
                    events.for_each(|event| event.destroy(copy));
                    continue;
                }
                noted.is_endless = true;
            }
            session.tool_launches.push(noted);
            call_guard::afterwards(settle);
        }
    }
    answer
}

/// When launches of a tool are paid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Terms {
    /// Once the thread has released its last lock.
    Later,
    /// Before the tool goes on.
    Now,
    /// Never, so that they are not made.
    Refused,
}

fn terms(begun: &[ToolLaunch]) -> Terms {
    let Some(session) = Session::begun().filter(|_| !begun.is_empty()) else { return Terms::Later };
    let unpaid = session.tool_launches.unpaid(sys::thread());
    let is_much = unpaid.guess_ns >= MOST_ASKING_NS || unpaid.launches >= MOST_ASKING;
    let has_events = begun.iter().all(|noted| noted.before.is_some());
    match Gate::is_asking() {
        true if is_much => Terms::Refused,
        false if unpaid.is_endless => Terms::Refused,
        false if unpaid.launches >= MOST_UNPAID && has_events => Terms::Now,
        false if unpaid.launches >= MOST_UNPAID => Terms::Refused,
        _ => Terms::Later,
    }
}

/// Waits until the card has done a launch, charges for it, and waits until the bucket is out of debt, without a lock. False if
/// the card does not come to its end.
fn is_paid(session: &Session, noted: &ToolLaunch) -> bool {
    let (Some(before), Some(after)) = (&noted.before, &noted.after) else { return false };
    let Some(gate) = session.budget.gate(noted.device) else { return false };
    let mut now = sys::monotonic_ns();
    let give_up = now.saturating_add(LONGEST_WAIT_NS);
    let took = || Gate::asking_unlocked(noted.driver, || before.until(noted.driver, after));
    let ns = loop {
        match took() {
            Some(ns) => break ns,
            None if now > give_up => return false,
            None => sys::sleep_until(now.saturating_add(POLL_NS)),
        }
        now = sys::monotonic_ns();
    };
    let until = gate.paid_by_tool(ns);
    while sys::monotonic_ns() < until {
        sys::sleep_until(until); // a signal may end it early
    }
    true
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
            let guess_ns = Session::begun()?.budget.gate(device)?.costs.guess(signature);
            let carries_out = driver::time::carries_out(copy, stream);
            carries_out.then(|| (device, guess_ns, Recorded::new(copy, stream)))
        };
        let (device, guess_ns, before) = driver::time::in_context(copy, context, begin)??;
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
            guess_ns,
            is_endless: false,
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

/// Waits until the bucket is out of debt, by what has finished if that may be asked: a tool that launches in each question
/// would launch more each time.
fn wait(copy: &DriverCopy, gate: &Gate, may_ask: bool) {
    let mut now = sys::monotonic_ns();
    while let Some(until) = gate.out_of_debt_at(now).filter(|until| *until > now) {
        sys::sleep_until(until.min(now.saturating_add(RECHECK_NS)));
        if may_ask {
            gate.settle(copy);
        }
        now = sys::monotonic_ns();
    }
}
