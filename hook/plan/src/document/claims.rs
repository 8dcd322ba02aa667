//! The claims that NVIDIA's DRA driver has prepared on this node, by its own checkpoint.
//!
//! `/var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json` has under `v2.preparedClaims` (`v1` in older versions), by
//! the claim's UID: the `status` of the claim as the scheduler wrote it, with the pods that it is reserved for and the
//! capacity that each of its devices takes, and the devices with their UUIDs (kubernetes-sigs/dra-driver-nvidia-gpu,
//! `cmd/gpu-kubelet-plugin/checkpoint.go`, `checkpointv.go` and `prepared.go` at 9593204). The driver writes it before the
//! kubelet makes a container of the pod. Which container of the pod uses which claim it does not say.
//!
//! Read strictly where a claim is this pod's: what cannot be understood there is an error, not "no limit". So each device
//! that was prepared must be of a known kind and have its result in the allocation, and what a result takes must have a
//! name that is known.

use gpucap_core::units::Bytes;
use gpucap_core::uuid::DeviceName;
use serde_json::Value;

use crate::encoding::json;

/// The driver that gives GPUs. Another one of the same package gives channels between nodes.
const DRIVER: &str = "gpu.nvidia.com";
const PREPARED: &str = "PrepareCompleted";

/// All claims that are prepared here.
pub(crate) struct Claims(Vec<(String, Value)>);

/// What a pod has by one claim.
pub(crate) struct Claim {
    /// Its namespace and name while it is being prepared, then its UID: the driver no longer writes the others.
    pub(crate) name: String,
    /// The pods that it is reserved for.
    pub(crate) pods: usize,
    /// Its GPUs, and the memory of each that is counted for it; `None` if none is.
    pub(crate) devices: Vec<(DeviceName, Option<Bytes>)>,
}

impl Claims {
    /// The claims in this checkpoint.
    ///
    /// # Errors
    /// It has no format that this version knows.
    pub(crate) fn of(mut value: Value) -> Result<Self, String> {
        let unknown = |why: &str| format!("{why}: not a format of this version");
        // None has one so far. One that begins to may mean something else by what is read below.
        if let Some(version) =
            value.get("version").filter(|it| !matches!(it.as_str(), Some("v1" | "v2")))
        {
            return Err(unknown(&format!("version {version}")));
        }
        let mut part = |name: &str| value.get_mut(name).map(Value::take).filter(|it| !it.is_null());
        let mut newest = part("v2").or_else(|| part("v1")).ok_or_else(|| unknown("no v1 or v2"))?;
        match newest.get_mut("preparedClaims").map(Value::take) {
            Some(Value::Object(claims)) => Ok(Self(claims.into_iter().collect())),
            None | Some(Value::Null) if newest.is_object() => Ok(Self(vec![])),
            _ => Err(unknown("preparedClaims is no object")),
        }
    }

    /// The claims that are reserved for this pod.
    ///
    /// # Errors
    /// One of them cannot be understood; its name, and the reason.
    pub(crate) fn of_pod(&self, uid: &str) -> Result<Vec<Claim>, (String, String)> {
        let is_own = |(_, claim): &&(String, Value)| {
            consumers(claim).any(|consumer| json::text(consumer, &["uid"]) == Some(uid))
        };
        let read = |(own, claim): &(String, Value)| {
            let text = |key| json::text(claim, &[key]).unwrap_or_default();
            let name = match (text("namespace"), text("name")) {
                ("", _) | (_, "") => own.clone(),
                (namespace, name) => format!("{namespace}/{name}"),
            };
            let devices = devices(claim).map_err(|why| (name.clone(), why))?;
            Ok(Claim { name, pods: consumers(claim).count(), devices })
        };
        self.0.iter().filter(is_own).map(read).collect()
    }
}

/// What a claim is reserved for.
fn consumers(claim: &Value) -> impl Iterator<Item = &Value> {
    json::list(claim, &["status", "reservedFor"])
}

fn devices(claim: &Value) -> Result<Vec<(DeviceName, Option<Bytes>)>, String> {
    let state = claim.get("checkpointState").filter(|it| !it.is_null());
    if let Some(state) = state.filter(|state| state.as_str() != Some(PREPARED)) {
        return Err(format!(
            "it is not prepared: {}",
            state.as_str().unwrap_or(&state.to_string()).escape_default()
        ));
    }
    let groups = json::list(claim, &["preparedDevices"]);
    let prepared: Vec<_> = groups.flat_map(|group| json::list(group, &["devices"])).collect();
    let results = json::list(claim, &["status", "allocation", "devices", "results"]);
    let results = results.filter(|result| json::text(result, &["driver"]) == Some(DRIVER));
    let results: Vec<_> = results.collect();
    let mut devices = Vec::new();
    for result in &results {
        let device = json::text(result, &["device"]).ok_or("a result without a device")?;
        let wrong = |why: &str| format!("device {}: {why}", device.escape_default());
        let own = prepared.iter().find_map(|it| named(it, device));
        let name = match own.ok_or_else(|| wrong("not among the prepared ones"))? {
            Prepared::Cuda(uuid) => uuid.parse().map_err(|_| wrong("no UUID of a GPU"))?,
            Prepared::PassedThrough => continue,
        };
        devices.push((name, memory(result).map_err(|why| wrong(&why))?));
    }
    for device in &prepared {
        let is_it = |result: &&Value| {
            json::text(result, &["device"]).is_some_and(|name| named(device, name).is_some())
        };
        if !results.iter().any(is_it) {
            return Err(format!("no result of {DRIVER} is for a device that was prepared"));
        }
    }
    Ok(devices)
}

/// A device that a claim was prepared with.
enum Prepared<'a> {
    /// A GPU or a MIG instance, and its UUID.
    Cuda(&'a str),
    /// A GPU that a virtual machine has as a whole: CUDA does not see it here.
    PassedThrough,
}

/// The device, if it has this name.
fn named<'a>(prepared: &'a Value, name: &str) -> Option<Prepared<'a>> {
    let is_named =
        |kind: &&str| json::text(prepared, &[*kind, "device", "DeviceName"]) == Some(name);
    let uuid = |path: &[&str]| json::text(prepared, path).unwrap_or_default();
    match ["gpu", "mig", "vfio"].into_iter().find(is_named)? {
        "gpu" => Some(Prepared::Cuda(uuid(&["gpu", "info", "uuid"]))),
        "mig" => match uuid(&["mig", "concrete", "migUUID"]) {
            // Instances that the driver does not make itself, in older versions.
            "" => Some(Prepared::Cuda(uuid(&["mig", "info", "uuid"]))),
            uuid => Some(Prepared::Cuda(uuid)),
        },
        _ => Some(Prepared::PassedThrough),
    }
}

/// The memory that a result takes; `None` if the device is not shared by memory, or the request named none.
fn memory(result: &Value) -> Result<Option<Bytes>, String> {
    let Some(capacity) = result.get("consumedCapacity").filter(|it| !it.is_null()) else {
        return Ok(None);
    };
    let capacity = capacity.as_object().ok_or("consumedCapacity is no object")?;
    let held = |key: &str| {
        let qualified = || capacity.get(&format!("{DRIVER}/{key}"));
        capacity.get(key).or_else(qualified)
    };
    match held("memory") {
        None if capacity.is_empty() || held("shares").is_some() => Ok(None),
        None => {
            let names: Vec<String> =
                capacity.keys().map(|key| key.escape_default().to_string()).collect();
            Err(format!("consumedCapacity has neither memory nor shares: {}", names.join(" ")))
        }
        Some(Value::String(text)) if text == "0" => Ok(None),
        Some(Value::String(text)) => match text.parse() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(why) => Err(format!("memory {:?}: {why}", text)),
        },
        Some(other) => Err(format!("memory {other}: not a quantity")),
    }
}
