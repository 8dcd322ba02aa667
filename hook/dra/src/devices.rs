//! The cards as devices of a ResourceSlice: what the scheduler counts.
//!
//! A card is one device that several claims may have parts of: `memory` of at least a MiB, without what NVIDIA's
//! driver keeps for itself, and `cores` in percent of its time. A request that names none of one takes all of it. Names
//! of attributes are those of NVIDIA's DRA driver and of Kubernetes where they have them, so that selectors move with
//! the class. A card that was lost keeps its place and is tainted; one with MIG instances is not published.

use crate::cards::{Card, Cards};
use crate::claim::{CORES, MEMORY, device};
use crate::quantity;
use gpucap_kubelet::message::Health;
use k8s_openapi::api::resource::v1::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, Device, DeviceAttribute, DeviceCapacity,
    DeviceTaint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where Linux shows what is on the bus.
const BUS: &str = "/sys/bus/pci/devices";
/// The taint of a card that was lost.
const LOST: &str = "slice.gpucap.io/lost";
/// The longest text that the API takes as an attribute.
const LONGEST: usize = 64;

/// Returns the devices that are published.
pub(crate) fn devices(cards: &Cards) -> Vec<Device> {
    let own = cards.list.iter().filter(|(card, _)| !card.has_mig && memory(card) > 0);
    own.map(|(card, health)| Device {
        name: device(card.name),
        allow_multiple_allocations: Some(true),
        attributes: Some(attributes(card, cards)),
        capacity: Some(capacity(card)),
        taints: (*health == Health::Unhealthy).then(|| vec![lost()]),
        ..Device::default()
    })
    .collect()
}

fn lost() -> DeviceTaint {
    DeviceTaint { key: LOST.into(), effect: "NoSchedule".into(), ..DeviceTaint::default() }
}

/// Whole MiB, which the API server writes in a short form.
fn memory(card: &Card) -> u64 {
    card.memory & !((1 << 20) - 1)
}

fn capacity(card: &Card) -> BTreeMap<String, DeviceCapacity> {
    // Steps of one: the scheduler of 1.36 rounds the largest of all numbers up to a longer step, and then counts it as a
    // negative one, which makes room for any other claim.
    let of = |whole: String, least: &str| DeviceCapacity {
        request_policy: Some(CapacityRequestPolicy {
            default: Some(Quantity(whole.clone())),
            valid_range: Some(CapacityRequestPolicyRange {
                min: Quantity(least.into()),
                step: Some(Quantity("1".into())),
                max: None,
            }),
            valid_values: None,
        }),
        value: Quantity(whole),
    };
    BTreeMap::from([
        (MEMORY.into(), of(quantity::bytes(memory(card)), "1Mi")),
        (CORES.into(), of("100".into(), "1")),
    ])
}

fn attributes(card: &Card, cards: &Cards) -> BTreeMap<String, DeviceAttribute> {
    let short = |text: String| text.chars().take(LONGEST).collect();
    let text = |value: Option<String>| {
        value
            .map(|text| DeviceAttribute { string: Some(short(text)), ..DeviceAttribute::default() })
    };
    let number = |value: Option<String>| {
        let version = value.and_then(|text| version(&text));
        version.map(|text| DeviceAttribute { version: Some(text), ..DeviceAttribute::default() })
    };
    let capability = card.capability.clone();
    let all = [
        ("uuid", text(Some(card.name.to_string()))),
        ("productName", text(card.product.clone())),
        ("architecture", text(capability.as_deref().and_then(architecture).map(str::to_owned))),
        ("cudaComputeCapability", number(capability)),
        ("driverVersion", number(cards.driver.clone())),
        ("cudaDriverVersion", number(cards.cuda.as_deref().and_then(cuda))),
        ("resource.kubernetes.io/pciBusID", text(card.address.clone())),
        ("resource.kubernetes.io/pcieRoot", text(card.address.as_deref().and_then(root))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// A version with three numbers, as the API wants it: NVIDIA writes `580.65.06` and `8.0`.
fn version(text: &str) -> Option<String> {
    let mut numbers = [0_u64; 3];
    for (place, part) in text.split('.').enumerate() {
        *numbers.get_mut(place)? = part.parse().ok()?;
    }
    Some(numbers.map(|number| number.to_string()).join("."))
}

/// NVML's number for a version of CUDA: 12040 is 12.4.
fn cuda(text: &str) -> Option<String> {
    let number: u64 = text.parse().ok()?;
    Some(format!("{}.{}", number / 1000, number % 1000 / 10))
}

/// The name that NVIDIA gives cards with this capability.
fn architecture(capability: &str) -> Option<&'static str> {
    let (major, minor) = capability.split_once('.')?;
    let minor: u32 = minor.parse().ok()?;
    Some(match major.parse().ok()? {
        5 => "Maxwell",
        6 => "Pascal",
        7 if minor < 5 => "Volta",
        7 => "Turing",
        8 if minor < 9 => "Ampere",
        8 => "Ada Lovelace",
        9 => "Hopper",
        10..=12 => "Blackwell",
        _ => return None,
    })
}

/// The root of the bus that a card is on: `pci0000:3a`.
fn root(address: &str) -> Option<String> {
    let path = fs::canonicalize(Path::new(BUS).join(address)).ok()?;
    let mut parts = path.iter().filter_map(|part| part.to_str());
    parts.find(|part| part.starts_with("pci")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn card() -> Card {
        Card {
            name: "GPU-10000000-0000-0000-0000-00000000000A".parse().expect("a name"),
            memory: (80 << 30) - 1,
            capability: Some("9.0".into()),
            address: None,
            has_mig: false,
            product: Some("NVIDIA H200".into()),
        }
    }

    #[test]
    fn a_card_is_one_device_that_several_claims_may_have_parts_of() {
        let list = vec![(card(), Health::Healthy)];
        let cards = Cards { list, driver: Some("580.65.06".into()), cuda: Some("13010".into()) };
        let policy = |whole: &str, least: &str| json!({"value": whole, "requestPolicy": {"default": whole, "validRange": {"min": least, "step": "1"}}});
        let expected = json!([{
            "name": "gpu-10000000-0000-0000-0000-00000000000a",
            "allowMultipleAllocations": true,
            "attributes": {
                "uuid": {"string": "GPU-10000000-0000-0000-0000-00000000000a"},
                "productName": {"string": "NVIDIA H200"},
                "architecture": {"string": "Hopper"},
                "cudaComputeCapability": {"version": "9.0.0"},
                "driverVersion": {"version": "580.65.6"},
                "cudaDriverVersion": {"version": "13.1.0"},
            },
            "capacity": {"memory": policy("81919Mi", "1Mi"), "cores": policy("100", "1")},
        }]);
        assert_eq!(serde_json::to_value(devices(&cards)).expect("JSON"), expected);
    }

    #[test]
    fn a_lost_card_is_tainted_and_an_unknown_one_is_not() {
        for (health, taints) in [(Health::Unhealthy, 1), (Health::Unknown, 0), (Health::Healthy, 0)]
        {
            let cards = Cards { list: vec![(card(), health)], ..Cards::default() };
            let devices = devices(&cards);
            let found = devices.iter().flat_map(|device| device.taints.iter().flatten()).count();
            assert_eq!((devices.len(), found), (1, taints));
        }
    }

    #[test]
    fn a_card_with_mig_instances_is_not_published() {
        let card = Card { has_mig: true, ..card() };
        let cards = Cards { list: vec![(card, Health::Healthy)], ..Cards::default() };
        assert_eq!(devices(&cards), []);
    }
}
