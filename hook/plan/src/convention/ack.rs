//! Alibaba's ACK: the scheduler's annotations, version 2 and 3, and the names of its resources.
//!
//! `{"<container>":{"<card>":<GiB>}}`, where a container is its place in the pod and a card its index on the host; the
//! annotation of cores has percentages in the same form, in steps of five. Which place is ours, a container does not
//! know: for each card the lowest of the pod's containers counts. Written as a resource, a plain number is for every
//! GPU.

use gpucap_core::units::Amount;
use serde_json::Value;

use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant, Numbered};
use crate::reason::Reason;

/// The annotations, and whether they speak of cores.
const KEYS: [(&str, bool); 5] = [
    ("scheduler.framework.gpushare.allocation", false),
    ("gpushare.alibabacloud.com/gpumemory", false),
    ("gpushare.alibabacloud.com/core-percentage", true),
    ("aliyun.com/gpu-mem", false),
    ("aliyun.com/gpu-core.percentage", true),
];

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let mut grants = Vec::new();
    for (key, cores) in KEYS {
        let Some(held) = facts.annotations.get(key) else { continue };
        let source = format!("annotation {key}");
        grants.push(Grant::new(&source, held, limits(facts, &source, held.trim(), cores)?));
    }
    Ok(grants)
}

fn limits(
    facts: &Facts<'_>,
    source: &str,
    held: &str,
    cores: bool,
) -> Result<DeviceLimits, Reason> {
    let limit = |number: &str| limit(source, held, number, cores);
    if !held.starts_with('{') {
        return limit(held).map(DeviceLimits::every);
    }
    let wrong = || Reason::value(source, held, "not {\"<container>\":{\"<card>\":<number>}}");
    let value: Value = serde_json::from_str(held).map_err(|_| wrong())?;
    let mut numbered = Numbered::new();
    for container in value.as_object().ok_or_else(wrong)?.values() {
        for (card, number) in container.as_object().ok_or_else(wrong)? {
            let card = card.parse().map_err(|_| wrong())?;
            let number = match number {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            numbered.push((card, limit(&number)?));
        }
    }
    if numbered.is_empty() {
        return Err(wrong());
    }
    // The container sees cards by numbers of its own: these are the host's.
    let name = |card| {
        let card = facts.cards.get(usize::try_from(card).ok()?)?;
        Some(card.name)
    };
    Ok(DeviceLimits::numbered(&numbered, name, None))
}

fn limit(source: &str, held: &str, number: &str, cores: bool) -> Result<DeviceLimit, Reason> {
    if !cores {
        return Ok(DeviceLimit::memory(Amount::Bytes(number::units(source, number, 1 << 30)?)));
    }
    let share = number::percent(source, number)?;
    if !share.parts().is_multiple_of(500) {
        return Err(Reason::value(source, held, "a share of this resource is a multiple of 5"));
    }
    Ok(DeviceLimit::core(share))
}
