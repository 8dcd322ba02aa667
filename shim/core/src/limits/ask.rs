//! What a source asks for, and the rule that joins sources: for each quantity on its own, the lower one holds.

use crate::units::Share;

/// The lower of two limits, where none is higher than any.
pub(super) fn lower<T: Ord>(one: Option<T>, two: Option<T>) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

/// What one source asks for on one device.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Ask {
    pub(super) memory: Option<u64>,
    pub(super) core: Option<Share>,
}

impl Ask {
    /// The rest of it after another limit has been applied.
    pub(super) fn less(self, other: Self) -> Self {
        Self {
            memory: self.memory.filter(|_| other.memory.is_none()),
            core: self.core.filter(|_| other.core.is_none()),
        }
    }
}
