//! Physical memory of the virtual memory management: alive while anything refers to it.
//!
//! `cuMemRelease` does not free: the memory goes when all references to its handles, those that were exported as files
//! included, and all mappings are gone (CUDA driver API, `cuMemRelease`). This keeps that count for what the process
//! itself created:
//!
//! ```text
//! handle (references) --+
//! exported file --------+--> memory --> T, handed back when nothing is left
//! mapped addresses -----+
//! tiles of an array ----+
//! ```
//!
//! Handles it did not create (imports from others, multicast objects) are unknown here and every operation on them is
//! a no-op: their charge is another's. A file is closed without a call of the driver, so whether it is still open is
//! asked ([`Physical::collect`]).

mod tiles;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use tiles::Tiles;
pub use tiles::{Behind, Operation, Region, Subresource};

/// What this process created, each with a `T` that is handed back when the memory is gone.
#[derive(Debug)]
pub struct Physical<T> {
    memories: HashMap<u64, Memory<T>>,
    handles: HashMap<u64, Reference>,
    exports: HashMap<Shareable, u64>,
    mappings: BTreeMap<u64, Mapping>,
    tiles: Tiles,
    created: u64,
}

/// A file that stands for memory, as far as a process can tell its files apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shareable {
    /// The descriptor.
    pub descriptor: i32,
    /// Device and inode of the file behind it.
    pub file: (u64, u64),
}

#[derive(Debug)]
struct Memory<T> {
    what: T,
    references: u64,
    mappings: u64,
}

/// A handle: which memory it names, and how often it has to be released.
#[derive(Debug, Clone, Copy)]
struct Reference {
    memory: u64,
    count: u64,
}

#[derive(Debug, Clone, Copy)]
struct Mapping {
    bytes: u64,
    memory: u64,
}

impl<T> Default for Physical<T> {
    fn default() -> Self {
        Self {
            memories: HashMap::new(),
            handles: HashMap::new(),
            exports: HashMap::new(),
            mappings: BTreeMap::new(),
            tiles: Tiles::default(),
            created: 0,
        }
    }
}

impl<T> Physical<T> {
    /// `cuMemCreate`: new memory with one reference.
    pub fn create(&mut self, handle: u64, what: T) {
        let id = self.created;
        self.created = id.wrapping_add(1);
        self.memories.insert(id, Memory { what, references: 0, mappings: 0 });
        self.refer(handle, id);
    }

    /// `cuMemRetainAllocationHandle`: one more reference, through a mapped address. The driver may hand out a handle
    /// that had been released while the mapping lived on.
    pub fn retain(&mut self, handle: u64, address: u64) {
        match self.mapped_at(address) {
            Some(id) => self.refer(handle, id),
            None => self.forget(handle),
        }
    }

    /// `cuMemRelease`: one reference less. The memory's `T` if it was the last thing that kept it.
    pub fn release(&mut self, handle: u64) -> Option<T> {
        let reference = self.handles.get_mut(&handle)?;
        let id = reference.memory;
        reference.count = reference.count.saturating_sub(1);
        if reference.count == 0 {
            self.handles.remove(&handle);
        }
        let memory = self.memories.get_mut(&id)?;
        memory.references = memory.references.saturating_sub(1);
        self.take_if_gone(id)
    }

    /// `cuMemExportToShareableHandle`: from here on a file keeps the memory too.
    pub fn export(&mut self, handle: u64, file: Shareable) {
        match self.handles.get(&handle) {
            Some(reference) => self.exports.insert(file, reference.memory),
            None => self.exports.remove(&file), // the number is another memory's now
        };
    }

    /// `cuMemImportFromShareableHandle`: a handle for the memory behind a file. Memory of our own has one reference
    /// more, if we know the file or the driver answers with a handle that we know; any other is not ours to count.
    pub fn import(&mut self, handle: u64, file: Option<Shareable>) {
        let exported = file.and_then(|file| self.exports.get(&file).copied());
        let known = || self.handles.get(&handle).map(|reference| reference.memory);
        if let Some(id) = exported.or_else(known) {
            self.refer(handle, id);
        }
    }

    /// Takes back what only files kept that have been closed since.
    pub fn collect(&mut self, is_open: impl Fn(&Shareable) -> bool) -> Vec<T> {
        let memories = &self.memories;
        let waits = |id: &u64| memories.get(id).is_none_or(Memory::is_unused);
        let closed: Vec<_> =
            self.exports.extract_if(|file, id| waits(id) && !is_open(file)).collect();
        closed.into_iter().filter_map(|(_, id)| self.take_if_gone(id)).collect()
    }

    /// `cuMemMap`: a mapping keeps the memory alive.
    pub fn map(&mut self, address: u64, bytes: u64, handle: u64) {
        if let Some(id) = self.handles.get(&handle).map(|reference| reference.memory)
            && let Some(memory) = self.memories.get_mut(&id)
        {
            memory.mappings = memory.mappings.saturating_add(1);
            self.mappings.insert(address, Mapping { bytes, memory: id });
        }
    }

    /// `cuMemUnmap`: ends the mappings inside the range. What nothing refers to any more is handed back.
    pub fn unmap(&mut self, address: u64, bytes: u64) -> Vec<T> {
        let end = address.saturating_add(bytes);
        let inside: Vec<u64> = self
            .mappings
            .range(address..end)
            .filter(|(start, mapping)| start.saturating_add(mapping.bytes) <= end)
            .map(|(start, _)| *start)
            .collect();
        inside
            .into_iter()
            .filter_map(|start| {
                let id = self.mappings.remove(&start)?.memory;
                let memory = self.memories.get_mut(&id)?;
                memory.mappings = memory.mappings.saturating_sub(1);
                self.take_if_gone(id)
            })
            .collect()
    }

    /// `cuMemMapArrayAsync`: puts memory behind tiles of an array, or takes it away.
    pub fn map_tiles(&mut self, at: Subresource, region: Region, operation: Operation) -> Vec<T> {
        let id = match operation {
            Operation::Map(handle) => self.handles.get(&handle).map(|reference| reference.memory),
            Operation::Unmap => None,
        };
        let replaced = self.tiles.put(at, region, id);
        replaced.into_iter().filter_map(|id| self.take_if_gone(id)).collect()
    }

    /// `cuMemMapArrayAsync` has failed with this map in its batch: the memory may be behind the tiles, and what was
    /// there before may be as well.
    pub fn may_map_tiles(&mut self, at: Subresource, region: Region, handle: u64) {
        if let Some(reference) = self.handles.get(&handle) {
            self.tiles.add(at, region, reference.memory);
        }
    }

    /// Removes the memory behind the tiles of an array, before the driver ends it: another array may get its handle
    /// at once.
    pub fn take_array(&mut self, array: u64) -> Behind {
        self.tiles.take(array)
    }

    /// Puts back what was taken out for an end that did not come.
    pub fn put_back(&mut self, behind: Behind) {
        self.tiles.put_back(behind);
    }

    /// The array that was taken out has ended.
    pub fn array_ended(&mut self, behind: Behind) -> Vec<T> {
        behind.memories().filter_map(|id| self.take_if_gone(id)).collect()
    }

    /// One more reference. A handle that is still listed for other memory belongs to some whose last release we did
    /// not see: that keeps its charge.
    fn refer(&mut self, handle: u64, id: u64) {
        let Some(memory) = self.memories.get_mut(&id) else { return };
        memory.references = memory.references.saturating_add(1);
        let reference = self.handles.entry(handle).or_insert(Reference { memory: id, count: 0 });
        if reference.memory != id {
            *reference = Reference { memory: id, count: 0 };
        }
        reference.count = reference.count.saturating_add(1);
    }

    /// The driver has given this handle to memory that is not ours.
    fn forget(&mut self, handle: u64) {
        self.handles.remove(&handle);
    }

    fn mapped_at(&self, address: u64) -> Option<u64> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address < start.saturating_add(mapping.bytes)).then_some(mapping.memory)
    }

    fn take_if_gone(&mut self, id: u64) -> Option<T> {
        let kept = || self.tiles.hold(id) || self.exports.values().any(|exported| *exported == id);
        if self.memories.get(&id)?.is_unused() && !kept() {
            self.memories.remove(&id).map(|memory| memory.what)
        } else {
            None
        }
    }
}

impl<T> Memory<T> {
    const fn is_unused(&self) -> bool {
        self.references == 0 && self.mappings == 0
    }
}
