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
use crate::grant::{Cap, Caps, Grant};
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
    let mut caps = Caps { named: Vec::new(), others: None };
    for (gpu, value) in gpus {
        let cap = |slices| {
            cap(value, slices).map_err(|why| wrong(&format!("{}: {why}", gpu.escape_debug())))
        };
        match gpu.parse().map_err(|_| wrong("a GPU is GPU-<uuid>, MIG-<uuid> or *"))? {
            Key::Every => caps.others = Some(cap(Slices::default())?),
            Key::Name(name) => {
                let own = cards.iter().find(|card| card.name.uuid == name.uuid);
                let slices = own.map_or_else(Slices::default, |card| card.slices);
                caps.named.push((name, cap(slices)?));
            }
        }
    }
    Ok(Grant::new(SOURCE, &held, caps))
}

fn cap(value: &Value, slices: Slices) -> Result<Cap, String> {
    let keys = value.as_object().ok_or("no object")?;
    let mut cap = Cap::default();
    for (key, value) in keys {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let wrong = |why: &dyn core::fmt::Display| format!("{key}: {why}");
        let said = match key.as_str() {
            "mem" => Cap::memory(Amount::parse(&text).map_err(|why| wrong(&why))?),
            "cores" => Cap::core(Share::parse(&text).map_err(|why| wrong(&why))?),
            "profile" => Cap::profile(Profile::parse(&text).map_err(|why| wrong(&why))?, slices),
            _ => return Err("the keys are mem, cores and profile".into()),
        };
        cap = cap.lower(said);
    }
    Ok(cap)
}
