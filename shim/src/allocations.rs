//! What this process holds: address or handle of an allocation to what was charged for it.
//!
//! Sharded, so that threads rarely meet; a shard's lock is held for one look-up and never across a driver call. The
//! cost is flat in the number of live allocations.

use crate::hooks::Next;
use gpucap_core::ledger::{DeviceIndex, Kind};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What was charged for one allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Bytes charged.
    pub(crate) bytes: u64,
    /// As a number: the context it ends with, or of stream-ordered memory, which outlives every context, the pool that
    /// it came from. 0 if it belongs to neither.
    pub(crate) home: u64,
    /// The device it was charged to.
    pub(crate) device: DeviceIndex,
    /// What it is, for people.
    pub(crate) kind: Kind,
}

/// The table.
pub(crate) struct Allocations {
    shards: Box<[Mutex<Shard>]>,
}

/// Anything by address or handle.
pub(crate) type ByAddress<T> = HashMap<u64, T, BuildHasherDefault<PointerHasher>>;
type Shard = ByAddress<Record>;

const SHARDS: usize = 64;

impl Allocations {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// Enters an allocation. An entry that was there under the same key is returned: the driver has reused an address
    /// whose end we did not see, so its charge is over.
    pub(crate) fn insert(&self, key: u64, record: Record) -> Option<Record> {
        self.shard(key)?.lock().insert(key, record)
    }

    /// Takes an entry out.
    pub(crate) fn take(&self, key: u64) -> Option<Record> {
        self.shard(key)?.lock().remove(&key)
    }

    /// Ends one allocation: takes it out, calls `free`, and either hands the record to `ended` or puts it back. An
    /// allocation that is not in the table is the driver's business alone.
    ///
    /// # Errors
    /// That of `free`.
    pub(crate) fn end_one<E>(
        &self,
        key: u64,
        free: impl Next<E>,
        ended: impl FnOnce(Record),
    ) -> Result<(), E> {
        // Taken out before the driver frees: afterwards another thread may be given the same address.
        let Some(record) = self.take(key) else { return free().map(drop) };
        match free() {
            Ok(_) => {
                ended(record);
                Ok(())
            }
            Err(error) => {
                self.insert(key, record);
                Err(error)
            }
        }
    }

    /// Takes out everything that ends with a context, before the driver ends it: its handle may be given out again at
    /// once.
    pub(crate) fn take_context(&self, context: u64) -> Vec<(u64, Record)> {
        let over = |record: &Record| record.home == context && record.kind != Kind::Pool;
        let mut taken = Vec::new();
        for shard in self.shards.iter() {
            taken.extend(shard.lock().extract_if(|_, record| over(record)));
        }
        taken
    }

    /// What was taken from a pool is known by another number from now on.
    pub(crate) fn move_pool(&self, from: u64, to: u64) {
        for shard in self.shards.iter() {
            let mut shard = shard.lock();
            let of_it = |record: &&mut Record| record.home == from && record.kind == Kind::Pool;
            shard.values_mut().filter(of_it).for_each(|record| record.home = to);
        }
    }

    /// Puts back what was taken out for an end that did not come.
    pub(crate) fn put_back(&self, taken: Vec<(u64, Record)>) {
        for (key, record) in taken {
            self.insert(key, record);
        }
    }

    fn shard(&self, key: u64) -> Option<&Mutex<Shard>> {
        let index = usize::try_from(spread(key) >> 58).ok()?; // the top six bits: 64 shards
        self.shards.get(index)
    }
}

/// Spreads an address, whose low bits are zero, over 64 bits (multiplicative hashing; Knuth, vol. 3, 6.4).
const fn spread(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Hashes one address. No keyed hash is needed: the driver chooses the keys.
#[derive(Default)]
pub(crate) struct PointerHasher(u64);

impl Hasher for PointerHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = spread(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        // The table takes its bucket from the low bits and its tag from the top ones; the shard has used the top six.
        self.0 = spread(key).rotate_left(32);
    }
}
