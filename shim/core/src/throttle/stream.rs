//! What the meter knows of one stream: its open batch, and the operations on it whose end nobody has seen yet.
//!
//! ```text
//! ----|before  operation  after|---- batch: launches of known cost ----|before  operation  after|----
//! ```
//!
//! Each operation that went through the meter lies between two timing events. What lies between two operations is a
//! batch: the first of the next pair ends it.

use std::{collections::VecDeque, sync::Arc};

use super::{Batch, Signature, costs::OUTLIER, settlement::Span};

/// A stream of the meter's that made it known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId(pub(super) u16);

#[derive(Debug)]
pub(super) struct Stream<E> {
    pub(super) batch: Arc<Batch>,
    /// The room that the open batch began with.
    pub(super) granted_ns: u64,
    /// The launches that it began with room for.
    pub(super) granted_launches: u8,
    /// How much of it is settled already.
    pub(super) settled_ns: u64,
    /// What launches took of batches that were closed before the latest wait.
    pub(super) unmarked_ns: u64,
    /// Up to when the stream's time is accounted for.
    pub(super) since: u64,
    /// A synchronizing call returned then: the stream was empty, and nobody knows for how long.
    pub(super) synced: bool,
    /// How many times what was reserved for them the latest two operations took; one if that was about right.
    pub(super) off: [u64; 2],
    pub(super) pending: VecDeque<Pending<E>>,
    pub(super) open: bool,
}

/// The end of a batch, and the operation that ended it, if that was it.
#[derive(Debug)]
pub(super) struct Pending<E> {
    /// Where the batch ends and the operation begins; still there while the device has not come to it.
    pub(super) mark: Option<E>,
    /// When it did.
    pub(super) marked_at: u64,
    /// What the launches of the batch took.
    pub(super) batch_ns: u64,
    /// The batch was over before a wait that came before the mark.
    pub(super) waited: bool,
    pub(super) operation: Option<Operation<E>>,
}

/// One launch that went through the meter, and how its end will be known.
#[derive(Debug)]
pub(super) struct Operation<E> {
    pub(super) after: E,
    /// When the launch returned to the program: an operation on an empty stream begins no earlier.
    pub(super) returned: u64,
    pub(super) cost: Reserved,
}

/// A batch that is over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closed {
    /// What its launches took that is not settled.
    pub(super) fresh_ns: u64,
    /// The room that is left.
    pub(super) unused_ns: u64,
    /// How many launches it let through.
    pub(super) launches: u64,
}

/// What was reserved for a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserved {
    pub(super) signature: Signature,
    pub(super) ns: u64,
    /// Nothing of its signature had been measured when it was launched.
    pub(super) unmeasured: bool,
}

impl<E> Stream<E> {
    pub(super) fn new(now: u64) -> Self {
        Self {
            batch: Arc::default(),
            granted_ns: 0,
            granted_launches: 0,
            settled_ns: 0,
            unmarked_ns: 0,
            since: now,
            synced: false,
            off: [1, 1],
            pending: VecDeque::new(),
            open: true,
        }
    }

    /// From when to when the stream was occupied with a batch that a mark at `end` ended.
    pub(super) fn span(&self, waited: bool, end: u64) -> Span {
        match (self.synced, waited) {
            (_, true) => Span::From(self.since, end),
            (true, false) => Span::Until(self.since, end),
            (false, false) => Span::Batch(self.since, end),
        }
    }

    /// What a batch was worth that took so long. Where the estimates were far too small for two operations in a row,
    /// they were so for the launches of the batch too.
    pub(super) fn worth(&self, batch_ns: u64, span_ns: u64) -> u64 {
        let [first, second] = self.off;
        batch_ns.saturating_mul(first.min(second)).min(span_ns.max(batch_ns))
    }

    /// Notes what an operation took of what was reserved.
    pub(super) fn note(&mut self, sample_ns: u64, reserved_ns: u64) {
        let ratio = sample_ns / reserved_ns.max(1);
        let [_, latest] = self.off;
        self.off = [latest, if ratio >= OUTLIER { ratio } else { 1 }];
    }

    /// What the open batch's launches took since the latest settlement.
    pub(super) fn spent(&mut self) -> u64 {
        let taken = self.granted_ns.saturating_sub(self.batch.room());
        let fresh = taken.saturating_sub(self.settled_ns);
        self.settled_ns = self.settled_ns.max(taken);
        fresh
    }

    /// Closes the batch.
    pub(super) fn close(&mut self) -> Closed {
        let (room, places) = self.batch.close();
        let taken = self.granted_ns.saturating_sub(room);
        let fresh = taken.saturating_sub(self.settled_ns);
        let unused = self.granted_ns.saturating_sub(taken);
        let launches = u64::from(self.granted_launches).saturating_sub(places);
        (self.granted_ns, self.granted_launches, self.settled_ns) = (0, 0, 0);
        Closed { fresh_ns: fresh, unused_ns: unused, launches }
    }
}
