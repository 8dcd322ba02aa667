//! What this process holds: address or handle of an allocation to what was charged for it.
//!
//! Sharded, so that threads rarely meet; a shard's lock is held for one look-up and never across a driver call. The
//! cost is flat in the number of live allocations: an entry is sixteen bytes in a [`Table`], the bytes charged and a
//! number for all else, of which few kinds are ever live at a time. What does not fit into that is kept in a map.

use crate::budget::record::Record;
use crate::driver::Next;
use crate::sys::{Pages, Short};
use gpucap_core::ledger::{DeviceIndex, Kind};
use gpucap_core::table::{SHARD_BITS, Table, spread};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The table.
pub(crate) struct Allocations {
    shards: Box<[Short<Shard>]>,
}

/// Anything by address or handle.
pub(crate) type ByAddress<T> = HashMap<u64, T, BuildHasherDefault<PointerHasher>>;

/// The first number that no address of a process has: such numbers name what has no address, each once.
pub(crate) const NO_ADDRESS: u64 = 1 << 63;

const SHARDS: usize = 1 << SHARD_BITS;

/// One of the parts of the table.
struct Shard {
    table: Table<Pages>,
    classes: Vec<Class>,
    /// The class that was used last.
    latest: usize,
    /// What an entry of the table cannot say, or has no room for.
    others: ByAddress<Record>,
}

/// All of a record but its bytes, and how many there are of it.
struct Class {
    home: u64,
    device: DeviceIndex,
    kind: Kind,
    live: u64,
}

/// An entry says bytes (as many bits as a total of the ledger has) and, below them, the class.
const CLASS_BITS: u32 = 22;
const CLASS_MASK: u64 = (1 << CLASS_BITS) - 1;

impl Shard {
    fn new() -> Self {
        let (table, others) = (Table::new(Pages::none()), ByAddress::default());
        Self { table, classes: Vec::new(), latest: 0, others }
    }

    fn insert(&mut self, key: u64, record: Record) -> Option<Record> {
        if !self.others.is_empty()
            && let Some(before) = self.others.remove(&key)
        {
            self.enter(key, record);
            return Some(before);
        }
        self.enter(key, record)
    }

    /// Enters a record in the table if it can, else in the map.
    fn enter(&mut self, key: u64, record: Record) -> Option<Record> {
        let class = self.class(&record);
        if let Some(entry) = entry(record.bytes, class)
            && let Ok(before) = self.table.insert(key, entry, Pages::of_zeros)
        {
            if let Some(class) = self.classes.get_mut(class) {
                class.live = class.live.saturating_add(1);
            }
            return before.and_then(|before| self.record(before));
        }
        let before = self.take(key);
        // Without memory for it, it stays charged until the process ends: the program must not be ended for that.
        if self.others.try_reserve(1).is_ok() {
            self.others.insert(key, record);
        }
        before
    }

    fn take(&mut self, key: u64) -> Option<Record> {
        match self.table.take(key) {
            Some(entry) => self.record(entry),
            None if self.others.is_empty() => None,
            None => self.others.remove(&key),
        }
    }

    /// The number of a record's class; a class of which nothing is live is given another meaning.
    fn class(&mut self, record: &Record) -> usize {
        if self.classes.get(self.latest).is_some_and(|class| class.is_of(record)) {
            return self.latest;
        }
        let same = self.classes.iter().position(|class| class.is_of(record));
        let place = same.or_else(|| self.classes.iter().position(|class| class.live == 0));
        let class = Class { home: record.home, device: record.device, kind: record.kind, live: 0 };
        self.latest = place.unwrap_or(self.classes.len());
        match self.classes.get_mut(self.latest) {
            Some(_) if same.is_some() => {}
            Some(free) => *free = class,
            None => self.classes.push(class),
        }
        self.latest
    }

    /// What an entry that is in the table no longer stands for.
    fn record(&mut self, entry: u64) -> Option<Record> {
        let class = self.classes.get_mut(usize::try_from(entry & CLASS_MASK).ok()?)?;
        class.live = class.live.saturating_sub(1);
        let (home, device, kind) = (class.home, class.device, class.kind);
        Some(Record { bytes: entry >> CLASS_BITS, home, device, kind })
    }

    fn take_context(&mut self, context: u64, taken: &mut Vec<(u64, Record)>) {
        let ends = |home, kind| home == context && kind != Kind::Pool;
        let over = |class: &Class| class.live > 0 && ends(class.home, class.kind);
        if self.classes.iter().any(over) {
            let number = |entry| usize::try_from(entry & CLASS_MASK).ok();
            let class = |entry| self.classes.get(number(entry)?);
            let over = |[_, entry]: &[u64; 2]| class(*entry).is_some_and(over);
            let keys: Vec<u64> = self.table.iter().filter(over).map(|[key, _]| key).collect();
            taken.extend(keys.into_iter().filter_map(|key| Some((key, self.take(key)?))));
        }
        taken.extend(self.others.extract_if(|_, record| ends(record.home, record.kind)));
    }
}

impl Class {
    fn is_of(&self, record: &Record) -> bool {
        self.home == record.home && self.device == record.device && self.kind == record.kind
    }
}

fn entry(bytes: u64, class: usize) -> Option<u64> {
    let class = u64::try_from(class).ok().filter(|class| *class <= CLASS_MASK)?;
    (bytes <= u64::MAX >> CLASS_BITS).then_some(bytes << CLASS_BITS | class)
}

impl Allocations {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Short::new(Shard::new())).collect() }
    }

    /// Enters an allocation. An entry that was there under the same key is returned: the driver has reused an address
    /// whose end we did not see, so its charge is over.
    pub(crate) fn insert(&self, key: u64, record: Record) -> Option<Record> {
        self.shard(key)?.lock().insert(key, record)
    }

    /// Takes an entry out.
    pub(crate) fn take(&self, key: u64) -> Option<Record> {
        self.shard(key)?.lock().take(key)
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
        let mut taken = Vec::new();
        self.shards.iter().for_each(|shard| shard.lock().take_context(context, &mut taken));
        taken
    }

    /// Puts back what was taken out for an end that did not come.
    pub(crate) fn put_back(&self, taken: Vec<(u64, Record)>) {
        for (key, record) in taken {
            self.insert(key, record);
        }
    }

    fn shard(&self, key: u64) -> Option<&Short<Shard>> {
        let index = usize::try_from(spread(key) >> (u64::BITS - SHARD_BITS)).ok()?;
        self.shards.get(index)
    }
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
        // A map takes its bucket from the low bits and its tag from the top ones.
        self.0 = spread(key).rotate_left(32);
    }
}
