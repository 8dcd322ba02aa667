//! What the meter keeps for one stream: its open allowances, and the operations whose end has not been seen yet.
//!
//! ```text
//! ----|before  operation  after|---- batch: launches of known cost ----|before  operation  after|----
//! ```
//!
//! Each operation that went through the meter lies between two timing events. What lies between two operations is a
//! batch, to which each thread that launches in the stream adds its own launches: the first event of the next pair
//! ends the batch for all threads.

use std::{collections::VecDeque, sync::Arc};

use super::done::Span;
use crate::throttle::{
    allowance::{Allowance, Taken},
    signature::Signature,
};
use crate::units::Share;

/// A stream, valid for the meter that registered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub(crate) u16);

#[derive(Debug)]
pub(crate) struct Stream<E> {
    /// One for each thread that has launched in it.
    pub(crate) allowances: Vec<AllowanceEntry>,
    /// What launches took out of allowances that were closed before the latest wait.
    pub(crate) unmarked_ns: u64,
    /// The time up to which the stream's time is accounted for.
    pub(crate) since: u64,
    /// A synchronizing call returned then: the stream was empty, for an unknown time.
    pub(crate) synced: bool,
    /// Something that is no launch may lie before the next one.
    pub(crate) fenced: bool,
    /// When that came last.
    pub(crate) fenced_at: u64,
    /// Several streams have this place: there are more than places. None of them can be asked about.
    pub(crate) is_shared: bool,
    pub(crate) pending: VecDeque<Pending<E>>,
    /// The launches behind all that is pending, as a thread that looks finds them.
    pub(crate) unmarked: UnmarkedLaunches,
    /// A launch out of an allowance was in a call of the driver when all were closed: it is found later, and came before what
    /// they were closed for. Without that, `W12 4 threads x 20 us` misses its bound at 20 %.
    pub(crate) was_in_call: bool,
    /// When the device last reached an event of it, or last had none to reach.
    pub(crate) moved_at: u64,
    pub(crate) open: bool,
}

/// The end of a batch, and the operation that ended it, if it was one.
#[derive(Debug)]
pub(crate) struct Pending<E> {
    /// Where the batch ends and the operation begins; `None` once the device has reached it.
    pub(crate) mark: Option<E>,
    /// When the device reached it.
    pub(crate) marked_at: u64,
    /// When the host had queued everything up to the mark.
    pub(crate) queued_at: u64,
    /// The stream had nothing to do from here on until the device reached the mark.
    pub(crate) idle_since: Option<u64>,
    /// What the launches of the batch took.
    pub(crate) batch_ns: u64,
    /// The batch ended before a wait that came before the mark.
    pub(crate) waited: bool,
    /// Something that is no launch may lie before the operation.
    pub(crate) fenced: bool,
    pub(crate) operation: Option<Operation<E>>,
    /// The mark was recorded then, right behind the end of an operation: nothing lies between the two.
    pub(crate) behind: Option<u64>,
    /// It has been looked at while it was at the front of its stream.
    pub(crate) late: Option<Late>,
    /// Before the mark was recorded the device was seen at the batch, from the one moment to the other.
    pub(crate) seen: Option<(u64, u64)>,
}

/// Work at the front of its stream that may be taking longer than everything in flight was expected to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    /// Since when, and what had been due by then.
    pub(crate) since: u64,
    pub(crate) due_ns: u64,
    /// What has been reserved for it in addition.
    pub(crate) ns: u64,
}

/// Launches out of allowances which no event shows the end of yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnmarkedLaunches {
    /// What launches had taken, in a number that changes with each, and since when it has not changed.
    sum: u64,
    since: u64,
    /// Since when there have been any.
    began: Option<u64>,
    /// The device is at them, and was so last at this time.
    pub(crate) seen: Option<(Late, u64)>,
}

/// One launch that went through the meter, and how its end will be detected.
#[derive(Debug)]
pub(crate) struct Operation<E> {
    pub(crate) after: E,
    /// When the launch returned to the program: an operation on an empty stream begins no earlier.
    pub(crate) returned: u64,
    pub(crate) cost: Reserved,
}

/// The allowance of one thread in the stream.
#[derive(Debug)]
pub(crate) struct AllowanceEntry {
    pub(crate) allowance: Arc<Allowance>,
    /// Launches may take out of it.
    pub(crate) open: bool,
}

/// The part of the device that was lent at a time, if any was.
pub(crate) type Lent = Option<Share>;

/// What was reserved for a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserved {
    pub(crate) signature: Signature,
    pub(crate) ns: u64,
    /// It is long: what was lent when it was reserved, if anything, is what it costs.
    pub(crate) long: Option<Lent>,
    /// Nothing of its signature had been measured when it was launched.
    pub(crate) unmeasured: bool,
    /// Other devices may be waiting for it.
    pub(crate) is_collective: bool,
}

impl<E> Pending<E> {
    /// A mark, and nothing else.
    pub(crate) fn new(mark: E, queued_at: u64) -> Self {
        let (batch_ns, waited, fenced, operation, behind) = (0, false, false, None, None);
        let (mark, marked_at, idle_since, late, seen) = (Some(mark), 0, None, None, None);
        Self {
            mark,
            marked_at,
            queued_at,
            idle_since,
            batch_ns,
            waited,
            fenced,
            operation,
            behind,
            late,
            seen,
        }
    }

    /// Returns what is reserved for it and its batch.
    pub(crate) fn reserved_ns(&self) -> u64 {
        let cost = self.operation.as_ref().map_or(0, |operation| operation.cost.ns);
        self.batch_ns.saturating_add(cost)
    }
}

impl<E> Stream<E> {
    pub(crate) fn new(now: u64) -> Self {
        Self {
            allowances: Vec::new(),
            unmarked_ns: 0,
            since: now,
            synced: false,
            fenced: true,
            fenced_at: now,
            is_shared: false,
            pending: VecDeque::new(),
            unmarked: UnmarkedLaunches::default(),
            was_in_call: false,
            moved_at: now,
            open: true,
        }
    }

    /// Adds a pending event. What it shows the end of may have been seen before.
    pub(crate) fn push(&mut self, mut pending: Pending<E>, now: u64) {
        if self.pending.is_empty() {
            self.moved_at = now;
            let seen = self.unmarked.seen.take();
            pending.late = seen.map(|(late, _)| late);
            pending.seen = seen.map(|(late, until)| (late.since, until));
        }
        self.pending.push_back(pending);
    }

    /// Returns whether nothing has moved in its queue since `since`: it waits for the host, or for another stream.
    pub(crate) fn is_stuck(&self, since: u64) -> bool {
        self.moved_at <= since && self.pending.front().is_some_and(|front| front.mark.is_some())
    }

    /// Returns whether it may be waiting for the host: something that is no launch may lie before what is at its front.
    pub(crate) fn is_fenced(&self) -> bool {
        self.pending.front().is_some_and(|front| front.fenced && front.mark.is_some())
    }

    /// Returns since when the device has certainly been at what is at its front, if nothing else of it is known. Behind a
    /// fence that is so only once the operation has begun.
    pub(crate) fn at_front_since(&self) -> Option<u64> {
        let front = self.pending.front()?;
        match (&front.mark, &front.operation) {
            (None, Some(operation)) => Some(self.since.max(operation.returned)),
            (Some(_), _) if front.batch_ns > 0 => Some(self.since.max(front.queued_at)),
            _ => None,
        }
    }

    /// The same, later by what has been due for other work since that was seen. If another stream `may_wait`, so may what no
    /// event shows to have begun.
    pub(crate) fn unpaid_since(&self, may_wait: bool, due_ns: u64) -> Option<u64> {
        let front = self.pending.front().filter(|front| front.mark.is_none() || !may_wait)?;
        let since = self.at_front_since()?;
        let paid = |late: Late| late.since.saturating_add(due_ns.saturating_sub(late.due_ns));
        Some(front.late.map_or(since, paid))
    }

    /// Returns whether there are launches out of allowances, or without events, behind the latest event.
    pub(crate) fn has_unmarked(&self) -> bool {
        self.unmarked_ns > 0 || self.allowances.iter().any(|entry| entry.allowance.has_new())
    }

    /// Returns for how long no launch has come out of an allowance, and since when there have been such, if the end of one is
    /// not known and no event is pending.
    pub(crate) fn quiet_ns(&mut self, now: u64) -> Option<(u64, u64)> {
        let sums = self.allowances.iter().map(|entry| entry.allowance.sum());
        let sum = sums.fold(0, u64::wrapping_add);
        if sum != self.unmarked.sum {
            (self.unmarked.sum, self.unmarked.since) = (sum, now);
        }
        let is_behind = self.has_unmarked() && self.pending.is_empty();
        let began = self.unmarked.began.filter(|_| is_behind).unwrap_or(now);
        self.unmarked.began = is_behind.then_some(began);
        is_behind.then(|| (now.saturating_sub(self.unmarked.since), now.saturating_sub(began)))
    }

    /// Returns when it certainly had work of which no event shows the end, if a call waited for that from the one moment to
    /// the other: it may have been seen at it before. Without that, launches of 3 s that are waited for when they are over get
    /// all of a device (`throttle`: `waited`).
    pub(crate) fn certainly_had_work(
        &mut self,
        (began, until): (u64, u64),
        now: u64,
    ) -> (u64, u64) {
        let Some((late, at)) = self.unmarked.seen else { return (began, until) };
        let is_the_same = self.quiet_ns(now).is_some_and(|(ns, _)| ns >= now.saturating_sub(at));
        if is_the_same && began < until {
            (late.since.min(began), until.max(at))
        } else if is_the_same || at.saturating_sub(late.since) > until.saturating_sub(began) {
            (late.since, at)
        } else {
            (began, until)
        }
    }

    /// Returns whether no thread is in a call of the driver for a launch out of an allowance.
    pub(crate) fn has_returned(&self) -> bool {
        self.allowances.iter().all(|entry| entry.allowance.has_returned())
    }

    /// Returns what is reserved for its queue.
    pub(crate) fn reserved_ns(&self) -> u64 {
        self.pending.iter().map(Pending::reserved_ns).fold(0, u64::saturating_add)
    }

    /// Returns the span in which the stream was occupied with a batch that a mark at `end` ended.
    pub(crate) fn span(&self, waited: bool, end: u64) -> Span {
        match (self.synced, waited) {
            (_, true) => Span::From(self.since, end),
            (true, false) => Span::Until(self.since, end),
            (false, false) => Span::Batch(self.since, end),
        }
    }

    /// Returns the entry of a thread's allowance, added if it is new.
    pub(crate) fn allowance_entry(
        &mut self,
        allowance: &Arc<Allowance>,
    ) -> Option<&mut AllowanceEntry> {
        let known =
            self.allowances.iter().position(|entry| Arc::ptr_eq(&entry.allowance, allowance));
        let place = known.unwrap_or(self.allowances.len());
        if known.is_none() {
            self.allowances.push(AllowanceEntry { allowance: Arc::clone(allowance), open: false });
        }
        self.allowances.get_mut(place)
    }

    /// Returns what launches of all threads have taken since the latest look.
    pub(crate) fn newly_taken(&self) -> Taken {
        self.allowances
            .iter()
            .map(|entry| entry.allowance.newly_taken())
            .fold(Taken::default(), Taken::and)
    }

    /// Returns what launches of all threads have taken since then, those included that the driver is being called for.
    pub(crate) fn all_taken(&self) -> Taken {
        self.allowances
            .iter()
            .map(|entry| entry.allowance.all_taken())
            .fold(Taken::default(), Taken::and)
    }

    /// Closes all allowances. Returns what was taken, and the reservations that no launch has used.
    pub(crate) fn close(&mut self) -> (Taken, u64) {
        self.was_in_call |= !self.has_returned();
        let none = (Taken::default(), 0);
        self.allowances.iter_mut().map(AllowanceEntry::close).fold(
            none,
            |(taken, unused_ns), (more, left_ns)| {
                (taken.and(more), left_ns.saturating_add(unused_ns))
            },
        )
    }
}

impl AllowanceEntry {
    /// Revokes the grant, if there is one.
    pub(crate) fn close(&mut self) -> (Taken, u64) {
        self.open = false;
        self.allowance.close()
    }

    /// Grants `granted_ns` for at most `launches` launches; nothing if it is zero.
    pub(crate) fn open(&mut self, granted_ns: u64, launches: u8) {
        self.open = granted_ns > 0;
        if self.open {
            self.allowance.open(granted_ns, launches);
        }
    }
}
