//! The table of devices: one row per GPU that a process of the container has named, by UUID.
//!
//! A row is written once, word after word by compare-exchange, and never changes. An inserting process goes through
//! the rows from the first and skips a row only when a word of it belongs to another UUID, so all processes arrive at
//! the same row, and a row that a dead process left unfinished is finished by the next one whose UUID fits it.

use super::layout::{DEVICES, Device, Full, Ledger};
use super::word::Total;
use crate::{sync::Word, throttle::DeviceWords};

/// A row of the ledger's table of devices. Not the driver's ordinal, nor NVML's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceIndex(u8);

impl DeviceIndex {
    #[cfg(all(test, loom))]
    pub(super) const FIRST: Self = Self(0);

    /// The row's number.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(super) fn bit(self) -> u64 {
        1 << self.0
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).take(DEVICES).map(Self)
    }
}

/// What the ledger knows of a device, all processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceView {
    /// The row.
    pub device: DeviceIndex,
    /// The sixteen bytes of the UUID.
    pub uuid: [u8; 16],
    /// Bytes in use.
    pub used: u64,
    /// The most bytes ever in use.
    pub peak: u64,
    /// Refusals that programs got to see.
    pub refusals: u64,
    /// Nanoseconds in which the container kept the device busy.
    pub busy_ns: u64,
    /// Nanoseconds that launches waited for the bucket.
    pub waited_ns: u64,
    /// Nanoseconds of the busy time beyond the guarantee.
    pub borrowed_ns: u64,
    /// Launches.
    pub launches: u64,
}

impl Ledger {
    /// The row of the device with this UUID, inserted if need be.
    ///
    /// # Errors
    /// The table is full of other devices.
    pub fn device(&self, uuid: [u8; 16]) -> Result<DeviceIndex, Full> {
        self.rows().find(|(_, row)| row.insert(uuid)).map(|(device, _)| device).ok_or(Full)
    }

    /// The row of the device with this UUID, if any process has inserted it.
    #[must_use]
    pub fn find_device(&self, uuid: [u8; 16]) -> Option<DeviceIndex> {
        self.devices().find(|view| view.uuid == uuid).map(|view| view.device)
    }

    /// Every known device.
    pub fn devices(&self) -> impl Iterator<Item = DeviceView> {
        self.rows().take_while(|(_, row)| row.is_begun()).filter_map(|(device, row)| {
            Some(DeviceView {
                device,
                uuid: row.uuid()?,
                used: Total(row.total.load()).bytes(),
                peak: row.peak.load(),
                refusals: row.refusals.load(),
                busy_ns: row.busy.load(),
                waited_ns: row.waited.load(),
                borrowed_ns: row.borrowed.load(),
                launches: row.launches.load(),
            })
        })
    }

    /// Bytes of `device` in use by all processes, unreaped dead processes included.
    #[must_use]
    pub fn used(&self, device: DeviceIndex) -> u64 {
        self.device_at(device).map_or(0, |row| Total(row.total.load()).bytes())
    }

    /// The most bytes of `device` ever in use.
    #[must_use]
    pub fn peak(&self, device: DeviceIndex) -> u64 {
        self.device_at(device).map_or(0, |row| row.peak.load())
    }

    /// Refusals on `device` that programs got to see.
    #[must_use]
    pub fn refusals(&self, device: DeviceIndex) -> u64 {
        self.device_at(device).map_or(0, |row| row.refusals.load())
    }

    /// The bucket word of `device`, for the compute limit.
    #[must_use]
    pub fn bucket(&self, device: DeviceIndex) -> Option<&Word> {
        self.device_at(device).map(|row| &row.bucket)
    }

    /// All devices as the compute limit sees them, by the numbers of their rows.
    #[must_use]
    pub fn words_of_devices(&self) -> Vec<DeviceWords<'_>> {
        self.devices
            .iter()
            .map(|row| {
                let [second, third] = &row.covered_too;
                let [fourth, fifth, sixth] = &row.covered_besides;
                DeviceWords::new([
                    &row.bucket,
                    &row.collectives,
                    &row.shares,
                    &row.unknown,
                    &row.surplus,
                    &row.covered,
                    second,
                    third,
                    fourth,
                    fifth,
                    sixth,
                ])
            })
            .collect()
    }

    pub(super) fn device_at(&self, device: DeviceIndex) -> Option<&Device> {
        self.devices.get(device.index())
    }

    fn rows(&self) -> impl Iterator<Item = (DeviceIndex, &Device)> {
        DeviceIndex::all().zip(&self.devices)
    }
}

impl Device {
    /// Set in each word of the UUID that is written: bits 0..32 are its bytes, big-endian.
    const WRITTEN: u64 = 1 << 63;

    fn insert(&self, uuid: [u8; 16]) -> bool {
        self.uuid.iter().zip(chunks(uuid)).all(|(word, chunk)| {
            let mine = Self::WRITTEN | u64::from(chunk);
            match word.load() {
                0 => word
                    .replace(0, mine)
                    .or_else(|now| if now == mine { Ok(()) } else { Err(now) })
                    .is_ok(),
                found => found == mine,
            }
        })
    }

    fn is_begun(&self) -> bool {
        let [first, ..] = &self.uuid;
        first.load() != 0
    }

    fn uuid(&self) -> Option<[u8; 16]> {
        let mut uuid = [0; 16];
        for (bytes, word) in uuid.chunks_exact_mut(4).zip(&self.uuid) {
            let word = word.load();
            let chunk = u32::try_from(word & !Self::WRITTEN).ok().filter(|_| word != 0)?;
            bytes.copy_from_slice(&chunk.to_be_bytes());
        }
        Some(uuid)
    }
}

fn chunks(uuid: [u8; 16]) -> [u32; 4] {
    let all = u128::from_be_bytes(uuid);
    // Each keeps the low 32 bits of what is left.
    #[allow(clippy::cast_possible_truncation)]
    [96, 64, 32, 0].map(|shift| (all >> shift) as u32)
}
