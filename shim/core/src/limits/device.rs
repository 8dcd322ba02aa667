//! One device: what is known of it, and the limits that hold for it.

use crate::config::{Selector, Slices};
use crate::units::ComputeLimit;
use crate::uuid::Uuid;

/// What the caller knows of a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DeviceFacts {
    /// Its UUID; of a MIG instance, that of the instance.
    pub uuid: Uuid,
    /// Of a MIG instance, the UUID of its card.
    pub parent: Option<Uuid>,
    /// Its place in the order of nvidia-smi; of a MIG instance, that of its card. Only asked for if
    /// [`needs_index`](super::Limits::needs_index).
    pub index: Option<u32>,
    /// Its memory; of a MIG instance, that of the instance.
    pub total_bytes: u64,
    /// Into how many slices MIG divides it. Only asked for if [`needs_slices`](super::Limits::needs_slices).
    pub slices: Slices,
}

impl DeviceFacts {
    /// Whether `name` is its UUID or that of its card.
    pub(super) fn is(&self, name: Uuid) -> bool {
        self.uuid == name || self.parent == Some(name)
    }

    /// Whether a selector means it; unknown if the index is needed and missing.
    pub(super) fn matches(&self, selector: Selector) -> Option<bool> {
        match selector {
            Selector::Name(name) => Some(self.is(name.uuid)),
            Selector::Index(index) => self.index.map(|own| own == index),
        }
    }
}

/// The limits that hold for one device.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Resolved {
    /// Bytes this device may give; at most what it has. None: not limited.
    pub memory: Option<u64>,
    /// What it may have of its time. None: not limited.
    pub core: Option<ComputeLimit>,
    /// More memory was asked for than the device has: it is worth a line at info.
    pub clamped: bool,
    /// The limits file does not list this device: nothing may be done on it. The limit is then 0.
    pub refused: bool,
}

impl Resolved {
    /// The last step: what the card has, and whether it may be used at all.
    pub(super) fn on(self, device: &DeviceFacts, refused: bool) -> Self {
        let clamped = self.memory.is_some_and(|memory| memory > device.total_bytes);
        let memory = self.memory.map(|memory| memory.min(device.total_bytes));
        Self { memory: if refused { Some(0) } else { memory }, clamped, refused, ..self }
    }
}
