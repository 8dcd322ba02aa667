//! One GPU in the limits file, and the words around it.

use core::fmt;
use core::str::FromStr;

use super::super::ask::lower;
use super::super::device::DeviceFacts;
use crate::units::{Amount, Bytes, ComputeLimit, Share};
use crate::uuid::{DeviceName, NotADeviceName, Uuid};

/// What holds for one GPU.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The GPU.
    pub key: Key,
    /// Limit on its memory.
    pub memory: MemoryLimit,
    /// Share of its time. For low priority what an older library holds it to, which lends nothing.
    pub core: Option<Share>,
    /// The most of its time, where the node lends; never below the share.
    pub core_max: Option<Share>,
    /// No part of its time is guaranteed.
    pub low_priority: bool,
    /// Bytes charged for a context.
    pub context: Option<u64>,
}

/// A limit on memory: bytes, a part of the device, or both, and then the lower one holds. Which one that is depends on
/// the device; so code that combines the limits of several sources keeps the lowest of each form.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MemoryLimit {
    /// A number of bytes.
    pub bytes: Option<Bytes>,
    /// A part of the memory of the device.
    pub part: Option<Share>,
}

/// Which GPU an entry is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Key {
    /// `*`: any that no other entry names.
    Every,
    /// One.
    Name(DeviceName),
}

/// A word of the hook in one line of printable ASCII, at most [`Label::LONGEST`] bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Label(String);

impl Entry {
    /// A GPU that may be used without limits.
    #[must_use]
    pub const fn new(key: Key) -> Self {
        Self {
            key,
            memory: MemoryLimit::NONE,
            core: None,
            core_max: None,
            low_priority: false,
            context: None,
        }
    }

    /// What it may have of the device's time.
    #[must_use]
    pub fn compute(&self) -> Option<ComputeLimit> {
        let share = self.core?;
        let most = self.core_max.unwrap_or(share);
        Some(if self.low_priority {
            ComputeLimit::low_priority(most)
        } else {
            ComputeLimit::burst(share, most)
        })
    }

    /// The same entry with this compute limit. `asked` is the share of a container of low priority, if it has one: an
    /// older library holds it to that, else to the least.
    #[must_use]
    pub fn with_compute(self, limit: Option<ComputeLimit>, asked: Option<Share>) -> Self {
        let share = |limit: ComputeLimit| {
            let asked = asked.unwrap_or(Share::LEAST).min(limit.most());
            limit.guaranteed().unwrap_or(asked)
        };
        let lent = limit.filter(|limit| limit.borrows());
        Self {
            core: limit.map(share),
            core_max: lent.map(ComputeLimit::most),
            low_priority: limit.is_some_and(|limit| limit.guaranteed().is_none()),
            ..self
        }
    }
}

impl MemoryLimit {
    /// No limit.
    pub const NONE: Self = Self { bytes: None, part: None };

    /// The lower of both, whatever the device.
    #[must_use]
    pub fn lower(self, other: Self) -> Self {
        Self { bytes: lower(self.bytes, other.bytes), part: lower(self.part, other.part) }
    }

    /// Bytes of a device with `total` bytes; none if there is no limit.
    #[must_use]
    pub fn of(self, total: u64) -> Option<u64> {
        self.amounts().map(|amount| amount.of(total)).min()
    }

    /// Its parts.
    pub fn amounts(self) -> impl Iterator<Item = Amount> {
        let bytes = self.bytes.map(Amount::Bytes);
        bytes.into_iter().chain(self.part.map(Amount::OfDevice))
    }
}

/// `4GiB`, `25%`, `4GiB and at most 25%`, `not limited`.
impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.bytes, self.part) {
            (None, None) => f.write_str("not limited"),
            (Some(bytes), Some(part)) => write!(f, "{bytes} and at most {part}"),
            (Some(bytes), None) => bytes.fmt(f),
            (None, Some(part)) => part.fmt(f),
        }
    }
}

impl From<Amount> for MemoryLimit {
    fn from(amount: Amount) -> Self {
        match amount {
            Amount::Bytes(bytes) => Self { bytes: Some(bytes), part: None },
            Amount::OfDevice(part) => Self { bytes: None, part: Some(part) },
        }
    }
}

impl Key {
    pub(super) fn names(self, uuid: Uuid) -> bool {
        matches!(self, Self::Name(name) if name.uuid == uuid)
    }

    pub(super) fn is(self, device: &DeviceFacts) -> bool {
        matches!(self, Self::Name(name) if device.is(name.uuid))
    }

    /// Two entries may not be for the same device.
    pub(super) fn same(self, other: Self) -> bool {
        match other {
            Self::Every => self == Self::Every,
            Self::Name(name) => self.names(name.uuid),
        }
    }
}

impl FromStr for Key {
    type Err = NotADeviceName;

    fn from_str(text: &str) -> Result<Self, NotADeviceName> {
        if text == "*" { Ok(Self::Every) } else { text.parse().map(Self::Name) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => f.write_str("*"),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Label {
    /// Longer words are cut.
    pub const LONGEST: usize = 200;

    /// `text`, in which anything that is not printable ASCII becomes `?`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let fit = |char: char| if char == ' ' || char.is_ascii_graphic() { char } else { '?' };
        let cut: String = text.chars().map(fit).take(Self::LONGEST).collect();
        Self(cut.trim().to_owned())
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
