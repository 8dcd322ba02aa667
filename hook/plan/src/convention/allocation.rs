//! The node-local allocation: `<state_dir>/alloc/<pod-uid>/<container>.json`, the strongest source.
//!
//! Written by a device plugin, a DRA driver or `gpucap cdi`, where only root can write:
//!
//! ```json
//! {"gpus": {"GPU-<uuid>": {"mem": "4Gi", "cores": 30}, "*": {"profile": "1g.5gb"}}}
//! ```
//!
//! The values are those of gpucap's variables. A GPU that is not listed may not be used, unless there is `*`. An
//! unknown key refuses the container: it may be a misspelt limit.

use gpucap_core::config::{Profile, Slices, Value as _};
use gpucap_core::limits::file::Key;
use gpucap_core::units::{Amount, Share};
use serde_json::Value;

use crate::document::card::Card;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

const SOURCE: &str = "allocation of this node";

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    facts.allocations.iter().map(|bytes| one(bytes, facts.cards)).collect()
}

fn one(bytes: &[u8], cards: &[Card]) -> Result<Grant, Reason> {
    let held = String::from_utf8_lossy(bytes);
    let wrong = |why: &str| Reason::value(SOURCE, &held, why);
    let value: Value = serde_json::from_slice(bytes).map_err(|_| wrong("not JSON"))?;
    let keys = value.as_object().ok_or_else(|| wrong("no object"))?;
    if keys.keys().any(|key| key != "gpus") {
        return Err(wrong("the only key is gpus"));
    }
    let gpus = keys.get("gpus").and_then(Value::as_object);
    let gpus = gpus.filter(|gpus| !gpus.is_empty()).ok_or_else(|| wrong("no gpus"))?;
    let mut limits = DeviceLimits { named: Vec::new(), others: None };
    for (gpu, value) in gpus {
        let limit = |slices| {
            limit(value, slices).map_err(|why| wrong(&format!("{}: {why}", gpu.escape_debug())))
        };
        match gpu.parse().map_err(|_| wrong("a GPU is GPU-<uuid>, MIG-<uuid> or *"))? {
            Key::Every => limits.others = Some(limit(Slices::default())?),
            Key::Name(name) => {
                let own = cards.iter().find(|card| card.name.uuid == name.uuid);
                let slices = own.map_or_else(Slices::default, |card| card.slices);
                limits.named.push((name, limit(slices)?));
            }
        }
    }
    Ok(Grant::new(SOURCE, &held, limits))
}

fn limit(value: &Value, slices: Slices) -> Result<DeviceLimit, String> {
    let keys = value.as_object().ok_or("no object")?;
    let mut limit = DeviceLimit::default();
    for (key, value) in keys {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let wrong = |why: &dyn core::fmt::Display| format!("{key}: {why}");
        let said = match key.as_str() {
            "mem" => DeviceLimit::memory(Amount::parse(&text).map_err(|why| wrong(&why))?),
            "cores" => DeviceLimit::core(Share::parse(&text).map_err(|why| wrong(&why))?),
            "profile" => {
                DeviceLimit::profile(Profile::parse(&text).map_err(|why| wrong(&why))?, slices)
            }
            _ => return Err("the keys are mem, cores and profile".into()),
        };
        limit = limit.lower(said);
    }
    Ok(limit)
}
