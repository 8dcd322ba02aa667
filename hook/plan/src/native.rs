//! Which memory limits the driver itself is asked to keep, by the container's cgroup: a second wall behind the shim.
//!
//! The driver keeps limits in bytes, on a GPU that was found able to ([`Calibration`]), and not for MIG instances. A
//! native limit has exactly the bytes of the limit; it changes nothing in the limits file.

use gpucap_core::limits::file::{Entry, Key, MemoryLimit};
use gpucap_core::units::Bytes;
use gpucap_core::uuid::DeviceName;

use crate::document::calibration::{Calibration, Measured};
use crate::document::card::Card;
use crate::document::node::{NativeLimits, Node};
use crate::reason::Reason;

/// What the driver is to keep a container to on one card.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NativeLimit {
    /// The card.
    pub gpu: DeviceName,
    /// Bytes that it may hold there.
    pub bytes: u64,
}

const NOT_MEASURED: &str = "`gpucap calibrate` has not looked at it under this driver";
const NOT_ABLE: &str = "the driver cannot, as `gpucap calibrate` found";

/// The native limits of these entries.
///
/// # Errors
/// The node demands one that cannot be.
pub(crate) fn native_limits(
    entries: &[Entry],
    node: &Node,
    cards: &[Card],
    calibration: Option<&Calibration>,
) -> Result<Vec<NativeLimit>, Reason> {
    if node.native_limits == NativeLimits::Off {
        return Ok(vec![]);
    }
    let known = calibration.map_or(&[][..], |found| &found.gpus);
    if node.native_limits == NativeLimits::Required
        && let Some((gpu, why)) = wanting(entries, cards, known)
    {
        return Err(Reason::NotNative { gpu, why });
    }
    let native_limit = |card: &Measured| {
        let bytes = meaning(entries, card.name)?.memory.of(card.total)?;
        Some(NativeLimit { gpu: card.name, bytes: bytes.min(card.total) })
    };
    Ok(known.iter().filter(|card| card.native_limits).filter_map(native_limit).collect())
}

/// What a person should know of it.
pub(crate) fn notes(entries: &[Entry], native_limits: &[NativeLimit], node: &Node) -> Vec<String> {
    let kept = |native_limit: &NativeLimit| {
        format!("the driver too keeps {} to {}", native_limit.gpu, Bytes(native_limit.bytes))
    };
    let mut notes: Vec<String> = native_limits.iter().map(kept).collect();
    let limits_memory = entries.iter().any(|entry| entry.memory != MemoryLimit::NONE);
    if node.native_limits == NativeLimits::Auto && limits_memory && native_limits.is_empty() {
        notes.push("the driver keeps no limit by itself here: the library alone does".into());
    }
    notes
}

/// A GPU with a memory limit that the driver cannot keep, and the reason.
fn wanting(
    entries: &[Entry],
    cards: &[Card],
    known: &[Measured],
) -> Option<(String, &'static str)> {
    let limited = |name: DeviceName| {
        meaning(entries, name).is_some_and(|entry| entry.memory != MemoryLimit::NONE)
    };
    let unable = known.iter().find(|card| !card.native_limits && limited(card.name));
    if let Some(card) = unable {
        return Some((card.name.to_string(), NOT_ABLE));
    }
    let is_known = |name: DeviceName| known.iter().any(|card| card.name.uuid == name.uuid);
    let named = entries.iter().filter_map(|entry| match entry.key {
        Key::Name(name) => Some(name),
        Key::Every => None,
    });
    let mut all = named.chain(cards.iter().map(|card| card.name));
    if let Some(name) = all.find(|&name| !is_known(name) && limited(name)) {
        return Some((name.to_string(), NOT_MEASURED));
    }
    let every = entries.iter().find(|entry| entry.key == Key::Every)?;
    let is_unknown = known.is_empty() && every.memory != MemoryLimit::NONE;
    is_unknown.then(|| (Key::Every.to_string(), NOT_MEASURED))
}

/// The entry that means this device: the one with its name, or that for any GPU.
fn meaning(entries: &[Entry], name: DeviceName) -> Option<&Entry> {
    let own = |entry: &&Entry| matches!(entry.key, Key::Name(own) if own.uuid == name.uuid);
    let every = || entries.iter().find(|entry| entry.key == Key::Every);
    entries.iter().find(own).or_else(every)
}
