//! Everything of this process's driver that changes, one part per CUDA noun, behind one lock.

use crate::{
    array, attribute, capture, context, event, graph, graph_exec, host, link, memop, memory,
    module, multicast, pool, semaphore, sparse, stream, texture, texture_reference, user_object,
    vmm,
};
use std::collections::HashMap;

/// The parts; each belongs to the file of its noun.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) contexts: context::Contexts,
    pub(crate) memory: memory::Memory,
    pub(crate) pools: pool::Pools,
    pub(crate) vmm: vmm::Vmm,
    pub(crate) arrays: array::Arrays,
    pub(crate) tiles: sparse::Tiles,
    pub(crate) bindings: multicast::Bindings,
    pub(crate) hosts: host::Hosts,
    pub(crate) streams: stream::Streams,
    pub(crate) events: event::Events,
    pub(crate) semaphores: semaphore::Semaphores,
    pub(crate) writes: memop::Writes,
    pub(crate) captures: capture::Captures,
    pub(crate) code: module::Code,
    pub(crate) graphs: graph::Graphs,
    pub(crate) execs: graph_exec::Execs,
    pub(crate) attributes: attribute::Attributes,
    pub(crate) links: Table<link::Link>,
    pub(crate) textures: texture::Textures,
    pub(crate) references: texture_reference::References,
    pub(crate) user_objects: user_object::UserObjects,
}

/// Objects of one kind by handle.
///
/// Handles look like addresses of 64-byte objects, because programs print them and put them into
/// tables; nothing lies there. Two kinds never share a handle.
pub(crate) struct Table<T> {
    objects: HashMap<u64, T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { objects: HashMap::new() }
    }
}

impl<T> Table<T> {
    /// Adds an object.
    pub(crate) fn add(&mut self, object: T) -> u64 {
        let handle = fresh_handle();
        self.objects.insert(handle, object);
        handle
    }

    /// Adds an object under the handle of one that is gone.
    pub(crate) fn put(&mut self, handle: u64, object: T) -> u64 {
        self.objects.insert(handle, object);
        handle
    }

    pub(crate) fn get(&self, handle: u64) -> Option<&T> {
        self.objects.get(&handle)
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        self.objects.get_mut(&handle)
    }

    pub(crate) fn remove(&mut self, handle: u64) -> Option<T> {
        self.objects.remove(&handle)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.objects.iter().map(|(handle, object)| (*handle, object))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.objects.values_mut()
    }

    /// Removes and hands out the objects that `condition` picks.
    pub(crate) fn drain_if(&mut self, condition: impl Fn(&T) -> bool) -> Vec<T> {
        self.objects.extract_if(|_, object| condition(object)).map(|(_, object)| object).collect()
    }
}

/// Where handles begin.
pub(crate) const FIRST_HANDLE: u64 = 0x5500_0000_0000;

/// A handle that no object has.
pub(crate) fn fresh_handle() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(FIRST_HANDLE);
    NEXT.fetch_add(64, Ordering::Relaxed)
}

impl State {
    /// Ends everything that lives in a context.
    pub(crate) fn end_context(&mut self, context: u64) {
        for block in self.memory.end_context(context) {
            memory::refund_block(&block);
        }
        for array in self.arrays.end_context(context) {
            memory::refund(array.unit, array.bytes);
            self.end_tiles(array.handle);
        }
        self.end_modules(context);
        self.streams.end_context(context);
        self.end_frees(context);
        self.events.drain_if(|event| event.context == context);
    }
}
