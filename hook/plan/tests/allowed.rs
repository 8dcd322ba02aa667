//! What a plan lets a container use of a few devices, a MIG instance among them: asked of the limits file itself.

use crate::case::{A, B, C, M};
use gpucap_core::config::Slices;
use gpucap_core::limits::{DeviceFacts, Limits};
use gpucap_core::units::Share;
use gpucap_core::uuid::{DeviceName, Uuid};
use gpucap_plan::Plan;

/// The devices that are asked about: three cards and an instance of the first.
pub(crate) fn devices() -> Vec<DeviceFacts> {
    let uuid = |text: &str| -> Uuid { text.parse::<DeviceName>().unwrap().uuid };
    let device = |name, parent: Option<&str>, total_bytes| DeviceFacts {
        uuid: uuid(name),
        parent: parent.map(uuid),
        index: None,
        total_bytes,
        slices: Slices::Seven,
    };
    vec![
        device(A, None, 40 << 30),
        device(B, None, 8 << 30),
        device(C, None, 80 << 30),
        device(M, Some(A), 5 << 30),
    ]
}

/// What a device gives: bytes, and of its time the guarantee and the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Allowed {
    pub(crate) memory: u64,
    pub(crate) guaranteed: u16,
    pub(crate) most: u16,
}

impl Allowed {
    const ALL: Self = Self { memory: u64::MAX, guaranteed: u16::MAX, most: u16::MAX };
    const NOTHING: Self = Self { memory: 0, guaranteed: 0, most: 0 };

    pub(crate) fn is_at_most(self, other: Self) -> bool {
        self.memory <= other.memory
            && self.guaranteed <= other.guaranteed
            && self.most <= other.most
    }
}

/// What may be used of a device. Nothing, if the container does not start.
pub(crate) fn allowed(plan: &Plan, device: &DeviceFacts) -> Allowed {
    let file = match plan {
        Plan::NotAsked => return Allowed::ALL,
        Plan::Refuse(_) => return Allowed::NOTHING,
        Plan::Limits(file) => file,
    };
    let written = file.write();
    let limits = Limits::load(&|_| None, Some(Ok(written.as_bytes()))).unwrap().expect("a file");
    let resolved = limits.resolve(device).expect("limits of a device");
    if resolved.refused {
        return Allowed::NOTHING;
    }
    let parts = |share: Option<Share>| share.map_or(0, Share::parts);
    let [guaranteed, most] =
        resolved.core.map_or([u16::MAX; 2], |core| [parts(core.guaranteed()), core.most().parts()]);
    Allowed { memory: resolved.memory.unwrap_or(u64::MAX), guaranteed, most }
}
