//! What a source asks for, and the rule that joins sources: for each quantity on its own, the lower one holds.

use crate::units::{ComputeLimit, Share};

/// The lower of two limits, where none is higher than any.
pub(super) fn lower<T: Ord>(one: Option<T>, two: Option<T>) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

/// The same of compute limits: the lower of the guarantees, and the lower of the mosts.
pub(super) fn lower_compute(
    one: Option<ComputeLimit>,
    two: Option<ComputeLimit>,
) -> Option<ComputeLimit> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.lower(two)),
        (one, two) => one.or(two),
    }
}

/// What one source asks for on one device.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Ask {
    pub(super) memory: Option<u64>,
    /// A share without a policy is fixed at it.
    pub(super) compute: Option<ComputeLimit>,
    /// The most of what the other sources give.
    pub(super) core_max: Option<Share>,
}

impl Ask {
    /// The rest of it after another limit has been applied.
    pub(super) fn less(self, other: Self) -> Self {
        Self {
            memory: self.memory.filter(|_| other.memory.is_none()),
            compute: self.compute.filter(|_| other.compute.is_none()),
            core_max: self.core_max.filter(|_| other.compute.is_none()),
        }
    }

    /// The lower of both, each quantity on its own.
    pub(super) fn lower(self, other: Self) -> Self {
        Self {
            memory: lower(self.memory, other.memory),
            compute: lower_compute(self.compute, other.compute),
            core_max: lower(self.core_max, other.core_max),
        }
    }
}
