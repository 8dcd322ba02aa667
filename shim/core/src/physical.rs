//! Physical memory of the virtual memory management: alive while a handle or a mapping refers to it.
//!
//! `cuMemRelease` does not free: the memory goes when all references to its handles and all mappings are gone (CUDA
//! driver API, `cuMemRelease`). This keeps that count for what the process itself created. Handles it did not create
//! (imports, multicast objects) are unknown here and every operation on them is a no-op: their charge is another's.

use std::collections::{BTreeMap, HashMap};

/// What this process created, each with a `T` that is handed back when the memory is gone.
#[derive(Debug)]
pub struct Physical<T> {
    memories: HashMap<u64, Memory<T>>,
    handles: HashMap<u64, u64>,
    mappings: BTreeMap<u64, Mapping>,
    created: u64,
}

#[derive(Debug)]
struct Memory<T> {
    what: T,
    references: u64,
    mappings: u64,
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
            mappings: BTreeMap::new(),
            created: 0,
        }
    }
}

impl<T> Physical<T> {
    /// `cuMemCreate`: new memory with one reference.
    pub fn create(&mut self, handle: u64, what: T) {
        let id = self.created;
        self.created = id.wrapping_add(1);
        self.memories.insert(id, Memory { what, references: 1, mappings: 0 });
        // A handle that is still listed belongs to memory whose last release we did not see: it keeps its charge.
        self.handles.insert(handle, id);
    }

    /// `cuMemRetainAllocationHandle`: one more reference, through a mapped address. The driver may hand out a handle
    /// that had been released while the mapping lived on.
    pub fn retain(&mut self, handle: u64, address: u64) {
        let id = self.handles.get(&handle).copied().or_else(|| self.mapped_at(address));
        if let Some(id) = id
            && let Some(memory) = self.memories.get_mut(&id)
        {
            memory.references = memory.references.saturating_add(1);
            self.handles.insert(handle, id);
        }
    }

    /// `cuMemRelease`: one reference less. The memory's `T` if it was the last thing that kept it.
    pub fn release(&mut self, handle: u64) -> Option<T> {
        let id = *self.handles.get(&handle)?;
        let memory = self.memories.get_mut(&id)?;
        memory.references = memory.references.saturating_sub(1);
        if memory.references == 0 {
            self.handles.remove(&handle);
        }
        self.take_if_gone(id)
    }

    /// `cuMemMap`: a mapping keeps the memory alive.
    pub fn map(&mut self, address: u64, bytes: u64, handle: u64) {
        if let Some(id) = self.handles.get(&handle).copied()
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

    fn mapped_at(&self, address: u64) -> Option<u64> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address < start.saturating_add(mapping.bytes)).then_some(mapping.memory)
    }

    fn take_if_gone(&mut self, id: u64) -> Option<T> {
        let memory = self.memories.get(&id)?;
        if memory.references == 0 && memory.mappings == 0 {
            self.memories.remove(&id).map(|memory| memory.what)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_release_of_unmapped_memory_frees() {
        let mut physical = Physical::default();
        physical.create(7, "two");
        assert_eq!(physical.release(7), Some("two"));
        assert_eq!(physical.release(7), None, "a second release of the same handle frees nothing");
    }

    #[test]
    fn a_mapping_outlives_the_handle() {
        let mut physical = Physical::default();
        physical.create(7, "two");
        physical.map(0x1000, 0x1000, 7);
        assert_eq!(physical.release(7), None);
        assert_eq!(physical.unmap(0x1000, 0x1000), ["two"]);
    }

    #[test]
    fn a_retained_handle_needs_a_release_of_its_own() {
        let mut physical = Physical::default();
        physical.create(7, "two");
        physical.map(0x1000, 0x1000, 7);
        physical.retain(7, 0x1800);
        assert_eq!(physical.release(7), None);
        assert_eq!(physical.unmap(0x1000, 0x1000), [""; 0]);
        assert_eq!(physical.release(7), Some("two"));
    }

    #[test]
    fn a_released_handle_can_come_back_through_its_mapping() {
        let mut physical = Physical::default();
        physical.create(7, "two");
        physical.map(0x1000, 0x1000, 7);
        assert_eq!(physical.release(7), None);
        physical.retain(9, 0x1fff);
        assert_eq!(physical.unmap(0x1000, 0x1000), [""; 0]);
        assert_eq!(physical.release(9), Some("two"));
    }

    #[test]
    fn a_new_handle_of_the_same_value_is_new_memory() {
        let mut physical = Physical::default();
        physical.create(7, "old");
        physical.map(0x1000, 0x1000, 7);
        assert_eq!(physical.release(7), None);
        physical.create(7, "new");
        assert_eq!(physical.release(7), Some("new"));
        assert_eq!(physical.unmap(0x1000, 0x1000), ["old"]);
    }

    #[test]
    fn unmapping_a_range_ends_only_the_mappings_inside_it() {
        let mut physical = Physical::default();
        for handle in 1..=3 {
            physical.create(handle, handle);
            physical.map(handle * 0x1000, 0x1000, handle);
            assert_eq!(physical.release(handle), None);
        }
        assert_eq!(physical.unmap(0x1000, 0x2000), [1, 2]);
        assert_eq!(physical.unmap(0x3000, 0x800), [0; 0], "half a mapping is not unmapped");
    }

    #[test]
    fn foreign_handles_are_tolerated() {
        let mut physical = Physical::<u8>::default();
        physical.map(0x1000, 0x1000, 5);
        physical.retain(5, 0x1000);
        assert_eq!(physical.release(5), None);
        assert_eq!(physical.unmap(0x1000, 0x1000), []);
    }
}
