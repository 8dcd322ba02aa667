//! What becomes of work in flight: a batch or an operation that has ended, and what is known of it.

use super::{done::Done, stream::Reserved};

/// A piece of work that has ended.
#[derive(Debug)]
pub(crate) enum Finished {
    /// Launches of known cost, up to a mark.
    Batch { reserved_ns: u64, done: Done },
    /// An operation between two events.
    Operation { cost: Reserved, measured: Measured },
    /// What will never be measured: a batch, the operation behind it, or both.
    Unmeasured { cost: Option<Reserved>, reserved_ns: u64, done: Done },
}

/// What two events and the peers' reports say about an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// It ran no earlier, and no later.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// All of that time less the distance of the events; how much of it was this process's turns in the mean, and at
    /// least; and its turns since it began to wait for them.
    pub(crate) whole_ns: u64,
    pub(crate) own_ns: u64,
    pub(crate) least_ns: u64,
    pub(crate) turns_ns: u64,
    /// How long it waited for a turn before it began, if it cannot have waited for anything else that is known of.
    pub(crate) waited_ns: u64,
    /// The stream was busy: the operation began when the device was ready for it.
    pub(crate) is_clean: bool,
    /// It was behind other work of its stream, and waited for no turn.
    pub(crate) is_queued: bool,
    /// Peers can have had hardly any of it.
    pub(crate) is_alone: bool,
    /// Turns of peers explain a good part of it.
    pub(crate) is_explained: bool,
}
