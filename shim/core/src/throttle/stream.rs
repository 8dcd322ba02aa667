//! What the meter knows of one stream: its open batch, and the operations on it whose end nobody has seen yet.
//!
//! ```text
//! ----|before  operation  after|---- batch: launches of known cost ----|before  operation  after|----
//! ```
//!
//! Each operation that went through the meter lies between two timing events. What lies between two operations is a
//! batch: the first of the next pair ends it.

use std::{collections::VecDeque, sync::Arc};

use super::{Batch, Signature};

/// A stream of the meter's that made it known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId(pub(super) u16);

#[derive(Debug)]
pub(super) struct Stream<E> {
    pub(super) batch: Arc<Batch>,
    /// The room that the open batch began with.
    pub(super) granted_ns: u64,
    /// How much of it is settled already.
    pub(super) settled_ns: u64,
    /// What launches took of batches that were closed before the latest wait.
    pub(super) unmarked_ns: u64,
    /// Up to when the stream's time is accounted for.
    pub(super) since: u64,
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
            settled_ns: 0,
            unmarked_ns: 0,
            since: now,
            pending: VecDeque::new(),
            open: true,
        }
    }

    /// What the open batch's launches took since the latest settlement.
    pub(super) fn spent(&mut self) -> u64 {
        let taken = self.granted_ns.saturating_sub(self.batch.room());
        let fresh = taken.saturating_sub(self.settled_ns);
        self.settled_ns = self.settled_ns.max(taken);
        fresh
    }

    /// Closes the batch: what its launches took that is not settled, and the room that is left.
    pub(super) fn close(&mut self) -> (u64, u64) {
        let room = self.batch.close();
        let taken = self.granted_ns.saturating_sub(room);
        let fresh = taken.saturating_sub(self.settled_ns);
        let unused = self.granted_ns.saturating_sub(taken);
        (self.granted_ns, self.settled_ns) = (0, 0);
        (fresh, unused)
    }
}
