//! A claim: which shares of which cards the scheduler has given it.
//!
//! Read strictly: a share whose amounts cannot be read is an error of the claim, never a container without a limit.
//! What the scheduler wrote is the whole truth; amounts that a claim asked for are not looked at. Parameters for this
//! driver are refused, since this version knows none.

use crate::error::{Error, Result};
use crate::quantity;
use gpucap_core::units::{Bytes, Share as Cores};
use gpucap_core::uuid::{DeviceName, Kind};
use k8s_openapi::api::resource::v1::{
    DeviceAllocationResult, DeviceRequestAllocationResult, ResourceClaim,
};
use serde::{Deserialize, Serialize};

/// The capacity that counts memory, in bytes. HAMi and vgpu-manager have the same name.
pub(crate) const MEMORY: &str = "memory";
/// The capacity that counts time, in percent of a card.
pub(crate) const CORES: &str = "cores";

/// A part of one card.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Share {
    /// The request of the claim that it is for: containers name it, and never the alternative that was chosen.
    pub(crate) request: String,
    /// The pool, which is the node.
    pub(crate) pool: String,
    /// The device in the pool: the name of the card ([`device`]).
    pub(crate) device: String,
    /// What tells it from other shares of the device.
    pub(crate) share_id: Option<String>,
    /// Bytes of memory.
    pub(crate) memory: u64,
    /// Percent of the time.
    pub(crate) cores: u16,
}

/// The name of a card as a device of the pool: it stays the same whatever becomes of other cards.
pub(crate) fn device(card: DeviceName) -> String {
    card.to_string().to_lowercase()
}

/// The card of this name; `None` if this driver gives no device such a name.
pub(crate) fn card(device: &str) -> Option<DeviceName> {
    let uuid = device.strip_prefix("gpu-")?;
    format!("GPU-{uuid}").parse().ok().filter(|name: &DeviceName| name.kind == Kind::Gpu)
}

/// Returns the shares that a claim has of this driver's devices in this pool.
///
/// # Errors
/// It is not allocated, has none here, or one of them cannot be read.
pub(crate) fn shares(claim: &ResourceClaim, driver: &str, pool: &str) -> Result<Vec<Share>> {
    let own = name(claim);
    let wrong = |why: String| Error::claim(&own, why);
    let status = claim.status.as_ref();
    let allocation = status.and_then(|status| status.allocation.as_ref());
    let devices = allocation.and_then(|allocation| allocation.devices.as_ref());
    let devices = devices.ok_or_else(|| wrong("is not allocated".into()))?;
    refuse_parameters(devices, driver).map_err(wrong)?;
    let results = devices.results.iter().flatten().filter(|it| it.driver == driver);
    let shares: Vec<Share> = results
        .map(|result| share(result, pool))
        .collect::<std::result::Result<_, _>>()
        .map_err(wrong)?;
    if shares.is_empty() { Err(wrong(format!("has no device of {driver}"))) } else { Ok(shares) }
}

/// Namespace and name.
pub(crate) fn name(claim: &ResourceClaim) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", part(&claim.metadata.namespace), part(&claim.metadata.name))
}

fn share(result: &DeviceRequestAllocationResult, pool: &str) -> std::result::Result<Share, String> {
    let device = &result.device;
    let wrong = |why: &str| format!("device {device}: {why}");
    if result.pool != pool {
        return Err(wrong(&format!("is of the pool {}, and this node's is {pool}", result.pool)));
    }
    if result.admin_access == Some(true) {
        return Err(wrong("access without a share of it (adminAccess) is not given"));
    }
    card(device).ok_or_else(|| wrong("no GPU has this name"))?;
    let amount = |name: &str| {
        let held = result.consumed_capacity.as_ref().and_then(|all| all.get(name));
        let held = held.ok_or_else(|| {
            wrong(&format!("the scheduler has counted no {name}: is DRAConsumableCapacity on?"))
        })?;
        let read = quantity::parse(&held.0).filter(|amount| *amount > 0);
        read.ok_or_else(|| wrong(&format!("{name} {:?}: not an amount", held.0)))
    };
    let cores =
        u16::try_from(amount(CORES)?).ok().filter(|cores| Cores::from_percent(*cores).is_some());
    Ok(Share {
        // The scheduler writes `request/alternative`; the kubelet knows devices by the request.
        request: result.request.split('/').next().unwrap_or_default().to_owned(),
        pool: result.pool.clone(),
        device: device.clone(),
        share_id: result.share_id.clone(),
        memory: amount(MEMORY)?,
        cores: cores.ok_or_else(|| wrong("cores: a percentage is from 1 to 100"))?,
    })
}

/// A parameter that is not understood may be a limit.
fn refuse_parameters(
    devices: &DeviceAllocationResult,
    driver: &str,
) -> std::result::Result<(), String> {
    let all = devices.config.iter().flatten().filter_map(|config| config.opaque.as_ref());
    if all.into_iter().any(|opaque| opaque.driver == driver) {
        return Err("parameters for this driver: this version knows none".into());
    }
    Ok(())
}

impl Share {
    /// Its slice in the words of the hook; `None` for what no checkpoint of this version has.
    pub(crate) fn slice(&self, id: String, claim: &str) -> Option<gpucap_plan::Slice> {
        Some(gpucap_plan::Slice {
            id,
            gpu: card(&self.device)?,
            memory: Bytes(self.memory),
            cores: Cores::from_percent(self.cores)?,
            claim: claim.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
