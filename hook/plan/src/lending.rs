//! What of a device's time the node lends to a container, beyond or in place of its guarantee.
//!
//! A source gives a share, a most, a policy or a priority; they are joined before ([`merge`](crate::merge)), so that the
//! share of one convention and the policy of another come together. The node's setting `lending` then decides: `off`
//! makes each share fixed, `allowed` lends to containers that request it, `always` to all that do not refuse it. So no
//! request raises a limit on a node that does not lend, and none is lent above `lending_max`.

use gpucap_core::config::{CorePolicy, Wish};
use gpucap_core::limits::file::{Entry, Key};
use gpucap_core::units::ComputeLimit;

use crate::document::node::{Lending, Node};
use crate::grant::DeviceLimit;
use crate::reason::Reason;

/// The entries of the limits file, of what the sources say together.
///
/// # Errors
/// A GPU has low priority and no share, and the node lends nothing.
pub(crate) fn entries(joined: &[(Key, DeviceLimit)], node: &Node) -> Result<Vec<Entry>, Reason> {
    let entry = |&(key, held): &(Key, DeviceLimit)| {
        let wish = held.wish();
        if node.lending == Lending::Off && wish.is_low() && wish.share.is_none() {
            return Err(Reason::LowPriority);
        }
        let limit = granted(wish, node).limit().map(|limit| bounded(limit, node));
        let entry = Entry { memory: held.memory, ..Entry::new(key) };
        Ok(entry.with_compute(limit, wish.share))
    };
    joined.iter().map(entry).collect()
}

/// What a person should know of it.
pub(crate) fn note(joined: &[(Key, DeviceLimit)], node: &Node) -> Option<String> {
    let is_asked = |of: fn(Wish) -> bool| joined.iter().any(|(_, limit)| of(limit.wish()));
    let what = if is_asked(Wish::is_low) {
        "low priority"
    } else if is_asked(Wish::bursts) {
        "burst"
    } else {
        let is_vain = joined.iter().any(|(_, limit)| has_vain_most(granted(limit.wish(), node)));
        return is_vain
            .then(|| "a maximum changes nothing without burst: the share is fixed".into());
    };
    if node.lending == Lending::Off {
        return Some(format!(
            "{what} is ignored: this node lends no GPU time (lending: off), so the share is fixed"
        ));
    }
    let has_share = is_asked(|wish| wish.limit().is_some());
    (!has_share).then(|| format!("{what} changes nothing: no source gives a share of GPU time"))
}

/// Whether a wish has a maximum above its share, and borrows nothing.
fn has_vain_most(wish: Wish) -> bool {
    !wish.bursts() && wish.share.zip(wish.most).is_some_and(|(share, most)| most > share)
}

/// The part of a wish that the node grants.
fn granted(wish: Wish, node: &Node) -> Wish {
    match node.lending {
        Lending::Off => Wish { policy: None, priority: None, ..wish },
        Lending::Allowed => wish,
        Lending::Always => Wish { policy: wish.policy.or(Some(CorePolicy::Burst)), ..wish },
    }
}

/// The limit, with nothing lent above what the node lends. A guarantee is not lent.
fn bounded(limit: ComputeLimit, node: &Node) -> ComputeLimit {
    let Some(most) = node.lending_max.map(|most| most.min(limit.most())) else { return limit };
    let low = ComputeLimit::low_priority(most);
    limit.guaranteed().map_or(low, |share| ComputeLimit::burst(share, most))
}
