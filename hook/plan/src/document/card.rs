//! The cards of the node, so that an index can be made a UUID.
//!
//! The meaning of an index depends on its source: the order of nvidia-smi on the host or in the container, the minor
//! number of the device file, the order of a list. Limits are written by UUID, so that two GPUs with unequal limits
//! can never be mixed up.

use gpucap_core::config::Slices;
use gpucap_core::uuid::DeviceName;

use crate::document::env::Reading;

/// A card of the node. Lists of them are in the order of nvidia-smi, which is that of PCI addresses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Card {
    /// Its name.
    pub name: DeviceName,
    /// The number of its device file, `/dev/nvidia<minor>`.
    pub minor: Option<u32>,
    /// Into how many slices MIG divides it.
    pub slices: Slices,
    /// What NVIDIA calls it, such as `NVIDIA H200`, in at most 64 signs of ASCII; empty if the driver does not say.
    pub model: String,
}

impl Card {
    /// The name that stands in what the driver says of a card (`/proc/driver/nvidia/gpus/<address>/information`).
    #[must_use]
    pub fn parse(information: &str) -> Option<Self> {
        let pairs = || information.lines().filter_map(|line| line.split_once(':'));
        let field =
            |name: &str| pairs().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
        let name = field("GPU UUID")?.parse().ok()?;
        let minor = field("Device Minor").and_then(|minor| minor.parse().ok());
        let model = field("Model").unwrap_or_default();
        Some(Self { name, minor, slices: Slices::of_model(model), model: printable(model) })
    }
}

/// A name as it is shown: the first 64 signs, in place of any that is not ASCII or moves a cursor a question mark.
fn printable(model: &str) -> String {
    let is_plain = |sign: &char| matches!(sign, ' '..='~');
    model.chars().take(64).map(|sign| if is_plain(&sign) { sign } else { '?' }).collect()
}

/// The GPUs that a container sees, as far as that is known.
pub(crate) struct Visible {
    /// In the order in which they are listed.
    pub(crate) listed: Option<Vec<DeviceName>>,
    /// In the order of nvidia-smi inside.
    pub(crate) shown: Option<Vec<DeviceName>>,
}

impl Visible {
    /// What `NVIDIA_VISIBLE_DEVICES` (or a variable of its form) shows of these cards.
    pub(crate) fn of(env: &Reading<'_>, variable: &str, cards: &[Card]) -> Self {
        let Some(value) = env.get(variable) else { return Self { listed: None, shown: None } };
        let listed = if value == "all" {
            (!cards.is_empty()).then(|| cards.iter().map(|card| card.name).collect())
        } else {
            value.split(',').map(|word| named(word.trim(), cards)).collect::<Option<Vec<_>>>()
        };
        let shown = listed.as_deref().and_then(|listed| shown(listed, cards));
        Self { listed, shown }
    }

    /// The card at this place of the list.
    pub(crate) fn listed_at(&self, place: u32) -> Option<DeviceName> {
        self.listed.as_ref()?.get(usize::try_from(place).ok()?).copied()
    }
}

/// A card by its UUID, or by its place on the host.
fn named(word: &str, cards: &[Card]) -> Option<DeviceName> {
    if let Ok(name) = word.parse() {
        return Some(name);
    }
    let place: usize = word.parse().ok()?;
    cards.get(place).map(|card| card.name)
}

/// The listed cards in the order of nvidia-smi: that of the host, whatever the order of the list.
fn shown(listed: &[DeviceName], cards: &[Card]) -> Option<Vec<DeviceName>> {
    if let [only] = listed {
        return Some(vec![*only]);
    }
    let known = |name: &DeviceName| cards.iter().any(|card| card.name.uuid == name.uuid);
    listed.iter().all(known).then(|| {
        let names = cards.iter().map(|card| card.name);
        names.filter(|name| listed.iter().any(|own| own.uuid == name.uuid)).collect()
    })
}
