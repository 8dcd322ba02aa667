//! Which devices there are, what they are called, and which of them CUDA shows.
//!
//! A [`Unit`] is what a program can compute on: a whole device, or a MIG slice of one. UUIDs and
//! PCI addresses follow from the index alone, so that both libraries and every process agree
//! without talking to each other. NVML shows everything in PCI order; CUDA obeys
//! `CUDA_DEVICE_ORDER` and `CUDA_VISIBLE_DEVICES`.

use crate::settings::{MAX_SLICES, Settings};

/// Number of entries that a table by [`Unit::index`] needs.
pub const MAX_UNITS: usize = crate::settings::MAX_DEVICES * (MAX_SLICES + 1);

/// A device, or a MIG slice of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Unit {
    /// Index of the physical device in PCI order.
    pub device: usize,
    /// MIG slice, if it is one.
    pub slice: Option<usize>,
}

impl Unit {
    /// A whole device.
    #[must_use]
    pub const fn whole(device: usize) -> Self {
        Self { device, slice: None }
    }

    /// A number for tables: below [`MAX_UNITS`].
    #[must_use]
    pub fn index(self) -> usize {
        self.device * (MAX_SLICES + 1) + self.slice.map_or(0, |slice| slice + 1)
    }

    /// 16 bytes that no other unit has.
    #[must_use]
    pub fn uuid(self) -> [u8; 16] {
        let seed = self.index() as u64;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&mix(2 * seed + 1).to_be_bytes());
        bytes[8..].copy_from_slice(&mix(2 * seed + 2).to_be_bytes());
        bytes
    }

    /// `GPU-...` or `MIG-...`, as the tools print it.
    #[must_use]
    pub fn uuid_text(self) -> String {
        let prefix = if self.slice.is_some() { "MIG" } else { "GPU" };
        let hex: String = self.uuid().iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "{prefix}-{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    /// PCI bus number; domain, device and function are 0.
    #[must_use]
    pub fn bus(self) -> u32 {
        u32::try_from(self.device).map_or(u32::MAX, |device| 0x10 * (device + 1) + 1)
    }

    /// `0000:11:00.0`
    #[must_use]
    pub fn pci_text(self) -> String {
        format!("0000:{:02X}:00.0", self.bus())
    }

    /// Memory that this unit has.
    #[must_use]
    pub fn memory(self, settings: &Settings) -> u64 {
        match self.slice {
            None => settings.memory[self.device],
            Some(slice) => settings.slices[self.device][slice],
        }
    }

    /// What a program calls it.
    #[must_use]
    pub fn name(self, settings: &Settings) -> String {
        match self.slice {
            None => settings.name.clone(),
            Some(_) => format!("{} MIG 1g.{}gb", settings.name, self.memory(settings) >> 30),
        }
    }
}

/// The slices of a device.
pub fn slices_of(settings: &Settings, device: usize) -> impl Iterator<Item = Unit> {
    (0..settings.slices[device].len()).map(move |slice| Unit { device, slice: Some(slice) })
}

/// What CUDA enumerates, given the two variables that choose.
#[must_use]
pub fn visible(settings: &Settings, order: Option<&str>, choice: Option<&str>) -> Vec<Unit> {
    let mut devices: Vec<_> = (0..settings.memory.len()).collect();
    if settings.reverse_order && order != Some("PCI_BUS_ID") {
        devices.reverse();
    }
    let chosen = match choice {
        None => devices.into_iter().map(Unit::whole).collect(),
        Some(list) => chosen(settings, &devices, list),
    };
    one_instance(settings, &chosen)
}

/// The units that a `CUDA_VISIBLE_DEVICES` list names: it ends at the first entry that names none,
/// and a list that names one twice names nothing.
fn chosen(settings: &Settings, devices: &[usize], list: &str) -> Vec<Unit> {
    let mut units = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let Some(unit) = named(settings, devices, entry) else { break };
        if units.contains(&unit) {
            return Vec::new();
        }
        units.push(unit);
    }
    units
}

fn named(settings: &Settings, devices: &[usize], entry: &str) -> Option<Unit> {
    let all = devices.iter().copied();
    if let Ok(index) = entry.parse::<usize>() {
        return devices.get(index).copied().map(Unit::whole);
    }
    if let Some(legacy) = entry.strip_prefix("MIG-GPU-") {
        let (gpu, rest) = legacy.split_once('/')?;
        let gpu = format!("GPU-{gpu}");
        let instance = rest.split('/').next()?.parse::<usize>().ok()?;
        let device =
            all.map(Unit::whole).find(|unit| unit.uuid_text().eq_ignore_ascii_case(&gpu))?;
        return slices_of(settings, device.device)
            .find(|unit| unit.slice == instance.checked_sub(1));
    }
    let unit_list: Vec<_> = if entry.starts_with("MIG-") {
        all.flat_map(|device| slices_of(settings, device)).collect()
    } else if entry.starts_with("GPU-") {
        all.map(Unit::whole).collect()
    } else {
        return None;
    };
    let entry = entry.to_ascii_lowercase();
    let mut matching =
        unit_list.into_iter().filter(|u| u.uuid_text().to_ascii_lowercase().starts_with(&entry));
    let first = matching.next()?;
    matching.next().is_none().then_some(first)
}

/// CUDA enumerates one compute instance at most, and no whole device beside it.
fn one_instance(settings: &Settings, units: &[Unit]) -> Vec<Unit> {
    let first_slice = units.iter().find_map(|unit| match unit.slice {
        Some(_) => Some(*unit),
        None => slices_of(settings, unit.device).next(),
    });
    first_slice.map_or_else(|| units.to_vec(), |slice| vec![slice])
}

/// A well-mixed number from a small one.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(count: &str, mig: &str, order: &str) -> Settings {
        Settings::from_lookup(|name| match name {
            "STUB_GPU_COUNT" => Some(count.to_owned()),
            "STUB_GPU_MIG" => Some(mig.to_owned()),
            "STUB_GPU_ORDER" => Some(order.to_owned()),
            _ => None,
        })
        .expect("usable")
    }

    fn devices(settings: &Settings, choice: &str) -> Vec<usize> {
        visible(settings, None, Some(choice)).iter().map(|unit| unit.device).collect()
    }

    #[test]
    fn an_entry_that_names_nothing_ends_the_list() {
        let four = machine("4", "", "pci");
        assert_eq!(devices(&four, "2,0"), [2, 0]);
        assert_eq!(devices(&four, "2,-1,0"), [2]);
        assert_eq!(devices(&four, "2,9,0"), [2]);
        assert_eq!(devices(&four, ""), [] as [usize; 0]);
        assert_eq!(devices(&four, "NoDevFiles"), [] as [usize; 0]);
    }

    #[test]
    fn a_device_named_twice_leaves_none() {
        assert_eq!(devices(&machine("4", "", "pci"), "1,2,1"), [] as [usize; 0]);
    }

    #[test]
    fn a_uuid_may_be_cut_short_while_it_stays_unique() {
        let four = machine("4", "", "pci");
        let uuid = Unit::whole(3).uuid_text();
        assert_eq!(devices(&four, &uuid), [3]);
        assert_eq!(devices(&four, &uuid[..8]), [3]);
        assert_eq!(devices(&four, "GPU-"), [] as [usize; 0]);
    }

    #[test]
    fn order_by_speed_is_undone_by_order_by_bus() {
        let three = machine("3", "", "reverse");
        let list =
            |order| visible(&three, order, None).iter().map(|u| u.device).collect::<Vec<_>>();
        assert_eq!(list(None), [2, 1, 0]);
        assert_eq!(list(Some("FASTEST_FIRST")), [2, 1, 0]);
        assert_eq!(list(Some("PCI_BUS_ID")), [0, 1, 2]);
    }

    #[test]
    fn one_instance_hides_everything_else() {
        let mig = machine("2", "1=5GiB+10GiB", "pci");
        let first = Unit { device: 1, slice: Some(0) };
        let second = Unit { device: 1, slice: Some(1) };
        assert_eq!(visible(&mig, None, None), [first]);
        assert_eq!(visible(&mig, None, Some("0")), [Unit::whole(0)]);
        assert_eq!(visible(&mig, None, Some(&second.uuid_text())), [second]);
        let legacy = format!("MIG-{}/2/0", Unit::whole(1).uuid_text());
        assert_eq!(visible(&mig, None, Some(&legacy)), [second]);
    }
}
