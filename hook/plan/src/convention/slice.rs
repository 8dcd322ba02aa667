//! The slices of CDI devices: what a DRA driver prepared for the claims of a container ([`Slice`]).
//!
//! A GPU that none of them names is refused. Two slices of one GPU are two shares that the scheduler has counted, so
//! the container has both together. They are written where only root writes, in the entry of the hook that the device
//! brings, and so a node whose settings leave this source out refuses them: it would start a container without the
//! limit of its claim.

use gpucap_core::units::{Amount, Bytes, Share};

use crate::document::slice::Slice;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;
use crate::source::Source;

const SOURCE: &str = "slice of a claim";

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let mut slices: Vec<Slice> = Vec::new();
    for text in &facts.container.slices {
        let slice: Slice = text.parse().map_err(|why| Reason::value(SOURCE, text, why))?;
        if slices.iter().any(|other| other.id == slice.id) {
            return Err(Reason::value(SOURCE, text, "another slice has the same id"));
        }
        slices.push(slice);
    }
    if slices.is_empty() {
        return Ok(vec![]);
    }
    let mut sums: Vec<Slice> = Vec::new();
    for slice in &slices {
        match sums.iter_mut().find(|sum| sum.gpu.uuid == slice.gpu.uuid) {
            Some(sum) => {
                sum.memory = Bytes(sum.memory.0.saturating_add(slice.memory.0));
                sum.cores = both(sum.cores, slice.cores);
            }
            None => sums.push(slice.clone()),
        }
    }
    let limit = |slice: &Slice| DeviceLimit {
        core: Some(slice.cores),
        ..DeviceLimit::memory(Amount::Bytes(slice.memory))
    };
    let named = sums.iter().map(|slice| (slice.gpu, limit(slice))).collect();
    let said = facts.container.slices.join(" ");
    Ok(vec![Grant::new(SOURCE, &said, DeviceLimits { named, others: None })])
}

/// Two shares of one GPU: at most the whole.
fn both(one: Share, other: Share) -> Share {
    Share::from_parts(one.parts().saturating_add(other.parts())).unwrap_or(Share::FULL)
}

/// Refuses slices that the node's settings leave out.
///
/// # Errors
/// There are some.
pub(super) fn refuse_unread(facts: &Facts<'_>) -> Result<(), Reason> {
    match facts.container.slices.first() {
        Some(text) if !facts.node.sources.contains(&Source::Slice) => {
            let why =
                "this node's setting \"sources\" has no \"slice\", so the limit would not hold";
            Err(Reason::value(SOURCE, text, why))
        }
        _ => Ok(()),
    }
}
