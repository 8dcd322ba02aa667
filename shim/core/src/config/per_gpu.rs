//! A value for every GPU, or a list of values that each name their GPU.
//!
//! `4Gi` is for every GPU. `0=4Gi,GPU-<uuid>=8Gi` is for those named; any other GPU is not limited by it. An index is
//! the order that nvidia-smi shows in the container, never that of CUDA_VISIBLE_DEVICES. The same index or UUID twice
//! is refused; an index and a UUID of the same GPU are not an error: the lower value holds.

use core::fmt;
use core::str::FromStr;

use super::value::{Value, ValueError};
use crate::uuid::{DeviceName, Uuid};

/// One value for all GPUs, or one each for some.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PerGpu<T> {
    /// Holds for every GPU.
    Every(T),
    /// Holds for the GPUs named; at least one, none twice.
    Listed(Vec<(Selector, T)>),
}

/// How an entry names its GPU.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Selector {
    /// Place in the order of nvidia-smi.
    Index(u32),
    /// By UUID.
    Name(DeviceName),
}

impl<T> PerGpu<T> {
    /// The values, for whatever GPU.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        let (every, listed) = match self {
            Self::Every(value) => (Some(value), None),
            Self::Listed(entries) => (None, Some(entries)),
        };
        every.into_iter().chain(listed.into_iter().flatten().map(|(_, value)| value))
    }

    /// Whether an entry names another GPU than this one by UUID.
    pub fn names_other(&self, uuid: Uuid) -> bool {
        matches!(self, Self::Listed(entries) if entries.iter().any(
            |(selector, _)| matches!(selector, Selector::Name(name) if name.uuid != uuid)))
    }

    /// Whether an entry names this device as a card.
    pub fn names_card(&self, uuid: Uuid) -> bool {
        matches!(self, Self::Listed(entries)
            if entries.iter().any(|(selector, _)| *selector == Selector::Name(uuid.gpu())))
    }

    /// Whether an entry names its GPU by index.
    pub fn has_index(&self) -> bool {
        matches!(self, Self::Listed(entries)
            if entries.iter().any(|(selector, _)| matches!(selector, Selector::Index(_))))
    }
}

/// More GPUs than any machine has. A longer list is refused: each of its entries is compared with each.
pub(super) const MOST_ENTRIES: usize = 256;

impl<T: Value> Value for PerGpu<T> {
    fn parse(text: &str) -> Result<Self, ValueError> {
        if !text.contains(['=', ',']) {
            return T::parse(text).map(Self::Every);
        }
        let mut entries: Vec<(Selector, T)> = Vec::new();
        for entry in text.split(',') {
            let (gpu, value) = entry.split_once('=').ok_or(ValueError::EntryWithoutGpu)?;
            let selector = gpu.trim().parse()?;
            if entries.len() == MOST_ENTRIES {
                return Err(ValueError::TooManyGpus);
            }
            if entries.iter().any(|(earlier, _)| earlier.same(selector)) {
                return Err(ValueError::GpuTwice);
            }
            entries.push((selector, T::parse(value.trim())?));
        }
        Ok(Self::Listed(entries))
    }
}

impl Selector {
    /// Names are compared by their bytes: `GPU-` and `MIG-` before the same UUID are one device.
    fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Index(one), Self::Index(two)) => one == two,
            (Self::Name(one), Self::Name(two)) => one.uuid == two.uuid,
            _ => false,
        }
    }
}

impl FromStr for Selector {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Self::Index).map_err(|_| ValueError::NotAGpu);
        }
        text.parse().map(Self::Name).map_err(|_| ValueError::NotAGpu)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => index.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl<T: fmt::Display> fmt::Display for PerGpu<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(value) => value.fmt(f),
            Self::Listed(entries) => {
                for (at, (selector, value)) in entries.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{selector}={value}")?;
                }
                Ok(())
            }
        }
    }
}
