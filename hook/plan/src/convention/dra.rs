//! The claims of NVIDIA's DRA driver as limits: the memory that the scheduler counted for a claim is the container's.
//!
//! The driver shares a GPU by memory (feature gate `ConsumableShares`) and holds no claim to what it takes; its
//! checkpoint on the node has that ([`Claims`]). Shared by memory, a claim that names none takes all of it; shared without
//! a count of memory (`unlimited`, a number of shares), it takes none and is not limited. A GPU that no claim of the pod
//! has is refused. The capacity `shares` counts how many may share, and is no limit. Which container
//! of a pod uses which of its claims is not written there: each container with a GPU has all of them, and of two claims
//! on one GPU the lower.
//!
//! It is read only if the node's settings name the checkpoint, and then fails closed: a container of a pod that was
//! assigned a GPU without a claim of its pod does not start, nor one whose claim several pods share, since each
//! container would have the whole.

use gpucap_core::units::{Amount, Bytes};

use crate::document::claims::{Claim, Claims};
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

const WHAT: &str = "the checkpoint of NVIDIA's DRA driver";

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let is_off = facts.node.dra_checkpoint.is_none();
    // A container without a GPU, beside others of the pod, is none that uses the claim.
    if is_off || facts.identities.is_empty() || facts.container.gpu.is_none() {
        return Ok(vec![]);
    }
    let file = (WHAT, facts.node.dra_checkpoint.as_deref());
    let claims = facts.claims.understood(file, facts.container, Claims::of)?;
    let Some(claims) = claims else { return Ok(vec![]) };
    let mut grants = Vec::new();
    for own in facts.identities {
        let wrong = |(name, why): (String, String)| Reason::value(SOURCE, &name, why);
        let claims = claims.of_pod(&own.pod_uid).map_err(wrong)?;
        if claims.is_empty() && facts.container.is_assigned_gpu {
            let why = "it was assigned a GPU, and no claim of its pod is prepared here";
            return Err(Reason::value("pod", &own.pod_uid, why));
        }
        grants.extend(grant(&claims)?);
    }
    Ok(grants)
}

const SOURCE: &str = "claim";

/// What these claims allow; `None` if none of them limits anything.
fn grant(claims: &[Claim]) -> Result<Option<Grant>, Reason> {
    if let Some(shared) = claims.iter().find(|claim| claim.pods > 1) {
        let why = format!(
            "{} pods share it, and each would have the whole: give each a claim of its own",
            shared.pods
        );
        return Err(Reason::value(SOURCE, &shared.name, why));
    }
    let limit = |bytes: Option<Bytes>| {
        bytes.map_or_else(DeviceLimit::default, |bytes| DeviceLimit::memory(Amount::Bytes(bytes)))
    };
    let devices = claims.iter().flat_map(|claim| &claim.devices);
    let named = devices.map(|&(name, bytes)| (name, limit(bytes))).collect();
    let by_device = DeviceLimits { named, others: None };
    let limits = by_device.named.iter().any(|(_, limit)| *limit != DeviceLimit::default());
    let names: Vec<&str> = claims.iter().map(|claim| claim.name.as_str()).collect();
    Ok(limits.then(|| Grant::new(SOURCE, &names.join(", "), by_device)))
}
