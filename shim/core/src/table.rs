//! A table of numbers by number, made for one cache line per look-up.
//!
//! Open addressing with linear probing, sixteen bytes an entry, at most three quarters full; an entry that is taken out
//! leaves no mark, since those behind it move up. A program may hold a million allocations and free any of them: each
//! look-up then misses the cache, so that what counts is how many lines it touches and how many bytes all entries take.
//! Where the entries lie is the caller's to choose ([`Table::insert`] asks for more): large pages spare the miss of the
//! translation too. No key is zero.

/// A key and what stands under it.
pub type Entry = [u64; 2];

/// The table; `S` is where its entries lie, a power of two of them, zero at first.
#[derive(Debug)]
pub struct Table<S> {
    entries: S,
    /// How many there are.
    len: usize,
}

/// There is no room, and none can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// How many entries a table begins with.
const FIRST: usize = 64;
/// The bits of the hash that a table leaves to those who have several, and choose one by them.
pub const SHARD_BITS: u32 = 4;

/// An odd number near 2^64 divided by the golden ratio: products with it differ in their high bits even if the keys differ
/// in a few low ones (multiplicative hashing; Knuth, vol. 3, 6.4).
pub const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads an address, whose low bits are zero, over 64 bits: the highest ones are the best.
#[must_use]
pub const fn spread(key: u64) -> u64 {
    key.wrapping_mul(MULTIPLIER)
}

impl<S: AsRef<[Entry]> + AsMut<[Entry]>> Table<S> {
    /// An empty table without a place for entries.
    pub const fn new(nowhere: S) -> Self {
        Self { entries: nowhere, len: 0 }
    }

    /// Enters a value under a key; the one that was there before is returned. `more` makes room for that number of entries.
    ///
    /// # Errors
    /// The key is zero, or more room is needed and cannot be had.
    pub fn insert(
        &mut self,
        key: u64,
        value: u64,
        more: impl FnOnce(usize) -> Option<S>,
    ) -> Result<Option<u64>, NoRoom> {
        let capacity = self.entries.as_ref().len();
        if key == 0 {
            return Err(NoRoom);
        }
        // Made before it is known whether the key is there already: rarely too early.
        if self.len >= capacity / 4 * 3 {
            self.move_to(more(capacity.saturating_mul(2).max(FIRST)).ok_or(NoRoom)?);
        }
        Ok(self.put(key, value))
    }

    /// Takes a value out.
    pub fn take(&mut self, key: u64) -> Option<u64> {
        let entries = self.entries.as_mut();
        let mask = entries.len().checked_sub(1)?;
        let mut hole = place(key, mask);
        let value = loop {
            match entries.get(hole)? {
                [0, _] => return None,
                [found, value] if *found == key => break *value,
                _ => hole = hole.wrapping_add(1) & mask,
            }
        };
        // Whatever follows and would not be found behind a hole moves into it.
        let mut next = hole;
        loop {
            next = next.wrapping_add(1) & mask;
            let entry = *entries.get(next)?;
            if entry[0] == 0 {
                break;
            }
            let from_home = next.wrapping_sub(place(entry[0], mask)) & mask;
            if from_home >= next.wrapping_sub(hole) & mask {
                *entries.get_mut(hole)? = entry;
                hole = next;
            }
        }
        *entries.get_mut(hole)? = [0, 0];
        self.len = self.len.saturating_sub(1);
        Some(value)
    }

    /// Every key with its value.
    pub fn iter(&self) -> impl Iterator<Item = Entry> {
        self.entries.as_ref().iter().copied().filter(|entry| entry[0] != 0)
    }

    fn move_to(&mut self, place: S) {
        let before = std::mem::replace(self, Self::new(place));
        for [key, value] in before.iter() {
            self.put(key, value); // which none was under before
        }
    }

    /// There is a free entry.
    fn put(&mut self, key: u64, value: u64) -> Option<u64> {
        let entries = self.entries.as_mut();
        let mask = entries.len().checked_sub(1)?;
        let mut at = place(key, mask);
        loop {
            let entry = entries.get_mut(at)?;
            if entry[0] == key {
                return Some(std::mem::replace(&mut entry[1], value));
            }
            if entry[0] == 0 {
                *entry = [key, value];
                self.len = self.len.saturating_add(1);
                return None;
            }
            at = at.wrapping_add(1) & mask;
        }
    }
}

/// Where a key would best lie: the bits of its hash behind those of the shard.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is kept")]
fn place(key: u64, mask: usize) -> usize {
    (spread(key) << SHARD_BITS >> mask.leading_zeros()) as usize & mask
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn more(entries: usize) -> Option<Vec<Entry>> {
        Some(vec![[0, 0]; entries])
    }

    #[test]
    fn an_empty_table_holds_nothing_and_has_no_room() {
        let mut table = Table::new(Vec::new());
        assert_eq!((table.take(4096), table.iter().count()), (None, 0));
        assert_eq!(table.insert(4096, 1, |_| None), Err(NoRoom));
        assert_eq!(table.insert(0, 1, more), Err(NoRoom));
    }

    #[test]
    fn addresses_in_a_row_lie_close_to_where_they_belong() {
        let mut table = Table::new(Vec::new());
        for index in 1..=100_000_u64 {
            // Those of one shard, as the shim chooses it.
            let key = 0x7000_0000_0000 + index * 512;
            if spread(key) >> (u64::BITS - SHARD_BITS) == 5 {
                table.insert(key, index, more).unwrap();
            }
        }
        let entries = &table.entries;
        let mask = entries.len() - 1;
        let displaced = |(at, [key, _]): (usize, &Entry)| at.wrapping_sub(place(*key, mask)) & mask;
        let held = entries.iter().enumerate().filter(|(_, entry)| entry[0] != 0);
        let far = held.map(displaced).filter(|distance| *distance > 8).count();
        assert!(table.len > 5000 && far < table.len / 20, "{far} of {}", table.len);
    }

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(steps in prop::collection::vec((any::<bool>(), 1_u64..200), 0..2000)) {
            let (mut table, mut map) = (Table::new(Vec::new()), HashMap::new());
            for (at, (enters, key)) in steps.into_iter().enumerate() {
                // Close together or far apart, by the key.
                let (key, value) = (key << (key % 50), at as u64);
                if enters {
                    prop_assert_eq!(table.insert(key, value, more), Ok(map.insert(key, value)));
                } else {
                    prop_assert_eq!(table.take(key), map.remove(&key));
                }
                prop_assert_eq!(table.len, map.len());
            }
            let seen: HashMap<u64, u64> = table.iter().map(|[key, value]| (key, value)).collect();
            prop_assert_eq!(seen, map);
        }
    }
}
