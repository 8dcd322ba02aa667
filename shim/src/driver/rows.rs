//! Which row's original is at an address, for look-ups that answer with an address: `cuGetProcAddress`, and words that
//! were bound before the redirect.
//!
//! A table with open addressing in static memory, filled before the copy is published. A look-up costs the same however
//! many rows there are: a search of all took 70 to 130 ns longer.

use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use gpucap_core::table::spread;

/// The rows of one copy by the address of their originals.
pub(crate) struct RowsByAddress([AtomicU16; 1 << BITS]);

const BITS: u32 = 10;

/// The most rows that a library may have, so that at most a third of the places is taken.
pub(crate) const MAX_ROWS: usize = 320;

impl RowsByAddress {
    /// An empty table.
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU16::new(0) }; 1 << BITS])
    }

    /// Enters all rows that have an original. Of two rows with one original, the later one is kept.
    pub(crate) fn fill(&self, originals: &[AtomicUsize]) {
        self.0.iter().for_each(|place| place.store(0, Ordering::Relaxed));
        for (row, original) in (1_u16..).zip(originals.iter().take(MAX_ROWS)) {
            let address = original.load(Ordering::Relaxed);
            if address != 0
                && let Some((place, _)) = self.search(originals, address)
            {
                place.store(row, Ordering::Relaxed);
            }
        }
    }

    /// The row whose original is at this address.
    pub(crate) fn find(&self, originals: &[AtomicUsize], address: usize) -> Option<usize> {
        self.search(originals, address)?.1
    }

    /// The place of an address, with the row that is there; the place where it would be entered has none.
    fn search(
        &self,
        originals: &[AtomicUsize],
        address: usize,
    ) -> Option<(&AtomicU16, Option<usize>)> {
        let first = usize::try_from(spread(address as u64) >> (u64::BITS - BITS)).ok()?;
        let (before, after) = self.0.split_at_checked(first)?;
        for place in after.iter().chain(before) {
            let Some(row) = usize::from(place.load(Ordering::Relaxed)).checked_sub(1) else {
                return Some((place, None));
            };
            if originals.get(row)?.load(Ordering::Relaxed) == address {
                return Some((place, Some(row)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn originals(addresses: &[usize]) -> Vec<AtomicUsize> {
        addresses.iter().copied().map(AtomicUsize::new).collect()
    }

    #[test]
    fn each_original_is_found_and_no_other_address() {
        let addresses: Vec<usize> = (0..MAX_ROWS).map(|row| 0x7f00_0000_0000 + 16 * row).collect();
        let (table, all) = (RowsByAddress::new(), originals(&addresses));
        table.fill(&all);
        for (row, address) in addresses.iter().enumerate() {
            assert_eq!(table.find(&all, *address), Some(row));
            assert_eq!(table.find(&all, address + 8), None);
        }
    }

    #[test]
    fn of_two_rows_with_one_original_the_later_is_found_and_missing_ones_are_not() {
        let (table, all) = (RowsByAddress::new(), originals(&[64, 0, 128, 64, 0]));
        table.fill(&all);
        assert_eq!([64, 128, 0].map(|at| table.find(&all, at)), [Some(3), Some(2), None]);
    }

    #[test]
    fn a_library_that_is_loaded_again_replaces_what_was_known() {
        let table = RowsByAddress::new();
        for time in 1..=1000 {
            let all = originals(&[time * 4096, time * 4096 + 64]);
            table.fill(&all);
            assert_eq!(table.find(&all, time * 4096 + 64), Some(1));
            assert_eq!(table.find(&all, (time - 1) * 4096 + 64), None);
        }
        assert!(table.0.iter().filter(|place| place.load(Ordering::Relaxed) != 0).count() <= 2);
    }
}
