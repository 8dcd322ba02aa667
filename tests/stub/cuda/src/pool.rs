//! Stream-ordered memory: pools, their reserve, and allocations from them.
//!
//! A pool holds a [reserve](crate::reserve) on the card. What is freed stays in it until something
//! synchronises; then what exceeds both use and the release threshold goes back to the card. Every
//! device has a default pool; the current pool of a device is the default one until another is set.
//! A new pool gets the handle of the latest one that was destroyed, as an allocator would have it.

use crate::arg::{Address, In, Out};
use crate::capture;
use crate::driver::{state, unit};
use crate::export::exports;
use crate::memory::Kind;
use crate::pool_attribute::{get_attribute, set_attribute};
use crate::reserve::Pool;
use crate::share::FILE_DESCRIPTOR;
use crate::state::{State, Table, fresh_handle};
use crate::stream::{self, Point};
use crate::stream_facts;
use gpucap_abi::cuda::{
    CU_MEM_LOCATION_TYPE_DEVICE, CUdeviceptr, CUmemLocation, CUmemoryPool, CUstream, CuError,
    CuResult,
};
use gpucap_stub_device::catalog::Unit;
use std::ffi::c_void;

exports! {
    /// From the current pool of the stream's device.
    fn cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream)
        => alloc_async, context, "cuMemAllocAsync" @ 11020;
    /// From the current pool of the stream's device.
    fn cuMemAllocAsync_ptsz(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream)
        => alloc_async, context, "cuMemAllocAsync" @ 11020 ptsz;
    /// From this pool.
    fn cuMemAllocFromPoolAsync(pointer: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool,
        stream: CUstream) => alloc_from_pool, context, "cuMemAllocFromPoolAsync" @ 11020;
    /// From this pool.
    fn cuMemAllocFromPoolAsync_ptsz(pointer: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool,
        stream: CUstream) => alloc_from_pool, context, "cuMemAllocFromPoolAsync" @ 11020 ptsz;
    /// Takes pool memory and ordinary memory.
    fn cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream)
        => free_async, context, "cuMemFreeAsync" @ 11020;
    /// Takes pool memory and ordinary memory.
    fn cuMemFreeAsync_ptsz(pointer: CUdeviceptr, stream: CUstream)
        => free_async, context, "cuMemFreeAsync" @ 11020 ptsz;
    /// An empty pool.
    fn cuMemPoolCreate(pool: *mut CUmemoryPool, properties: *const Properties)
        => create, driver, "cuMemPoolCreate" @ 11020;
    /// Its allocations stay; its reserve goes when they do.
    fn cuMemPoolDestroy(pool: CUmemoryPool) => destroy, driver, "cuMemPoolDestroy" @ 11020;
    /// Gives unused reserve back to the card.
    fn cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize) => trim, driver, "cuMemPoolTrimTo" @ 11020;
    /// Release threshold, reuse policies, high marks.
    fn cuMemPoolSetAttribute(pool: CUmemoryPool, attribute: i32, value: Address)
        => set_attribute, driver, "cuMemPoolSetAttribute" @ 11020;
    /// Release threshold, reuse policies, reserve, use, high marks.
    fn cuMemPoolGetAttribute(pool: CUmemoryPool, attribute: i32, value: Address)
        => get_attribute, driver, "cuMemPoolGetAttribute" @ 11020;
    /// Access is granted to all processes.
    fn cuMemPoolSetAccess(pool: CUmemoryPool, descriptors: *const c_void, count: usize)
        => set_access, driver, "cuMemPoolSetAccess" @ 11020;
}

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Properties {
    kind: i32,
    handle_types: i32,
    pub(crate) location: CUmemLocation,
    security: *const c_void,
    max_bytes: usize,
    usage: u16,
    reserved: [u8; 54],
}
const _: () = assert!(size_of::<Properties>() == 88);

/// The pools of the process.
#[derive(Default)]
pub(crate) struct Pools {
    table: Table<Pool>,
    /// Handles of pools that are gone.
    spare: Vec<u64>,
    /// Of each unit: its default and its current pool.
    of_unit: Vec<(Unit, u64, u64)>,
    /// Of each unit: the reserve of graphs.
    of_graphs: Vec<(Unit, u64)>,
}

impl Pools {
    /// The unit's default and current pool.
    pub(crate) fn of(&mut self, unit: Unit) -> &mut (Unit, u64, u64) {
        let at = self.of_unit.iter().position(|(known, ..)| *known == unit).unwrap_or_else(|| {
            let pool =
                self.table.add(Pool { unit: Some(unit), policies: [1; 3], ..Pool::default() });
            self.of_unit.push((unit, pool, pool));
            self.of_unit.len() - 1
        });
        &mut self.of_unit[at]
    }

    /// The reserve of graphs on a unit: it shrinks only when it is trimmed.
    pub(crate) fn of_graphs(&mut self, unit: Unit) -> u64 {
        if let Some((_, pool)) = self.of_graphs.iter().find(|(known, _)| *known == unit) {
            return *pool;
        }
        let pool =
            self.table.add(Pool { unit: Some(unit), threshold: u64::MAX, ..Pool::default() });
        self.of_graphs.push((unit, pool));
        pool
    }

    /// Uses `bytes` of a pool.
    pub(crate) fn take(&mut self, pool: u64, bytes: u64) -> CuResult {
        self.table.get_mut(pool).ok_or(CuError::INVALID_VALUE)?.take(bytes)
    }

    /// Used, most used, reserved, most reserved.
    pub(crate) fn numbers(&self, pool: u64) -> [u64; 4] {
        let numbers = |pool: &Pool| [pool.used, pool.used_high, pool.reserved, pool.reserved_high];
        self.table.get(pool).map_or([0; 4], numbers)
    }

    /// Sets the high mark of use or of the reserve back to what is now.
    pub(crate) fn reset_high(&mut self, pool: u64, of_use: bool) {
        let Some(pool) = self.table.get_mut(pool) else { return };
        if of_use {
            pool.used_high = pool.used;
        } else {
            pool.reserved_high = pool.reserved;
        }
    }

    /// Gives unused reserve above `keep` back to the card.
    pub(crate) fn trim(&mut self, pool: u64, keep: u64) {
        if let Some(pool) = self.table.get_mut(pool) {
            pool.shrink(keep);
        }
    }

    /// A pool of another process, which pays for it.
    pub(crate) fn import(&mut self) -> u64 {
        self.table.add(Pool { imported: true, policies: [1; 3], ..Pool::default() })
    }

    /// A pool that was not destroyed.
    pub(crate) fn alive(&mut self, pool: CUmemoryPool) -> Result<&mut Pool, CuError> {
        let found = self.table.get_mut(pool.address()).filter(|pool| !pool.destroyed);
        found.ok_or(CuError::INVALID_VALUE)
    }
}

impl State {
    /// Ends a use of pool memory, from a point of a stream on if there is one; the reserve stays until the next
    /// synchronisation.
    pub(crate) fn free_in_pool(&mut self, pool: u64, bytes: u64, from: Option<(Point, u64)>) {
        if let Some(found) = self.pools.table.get_mut(pool) {
            found.free(bytes, from);
            self.end_pools();
        }
    }

    /// Gives back what destroyed pools hold of which nothing is in use any more.
    pub(crate) fn end_pools(&mut self) {
        let over = |pool: &&mut Pool| pool.destroyed && pool.used == 0;
        self.pools.table.values_mut().filter(over).for_each(|pool| pool.shrink(0));
        self.pools.table.drain_if(Pool::is_gone);
    }

    /// A context has ended: what was freed in it is free, and a destroyed pool may be over.
    pub(crate) fn end_frees(&mut self, context: u64) {
        self.pools.table.values_mut().for_each(|pool| pool.context_ended(context));
        self.end_pools();
    }

    /// What every synchronisation does: reserves shrink to their thresholds.
    pub(crate) fn release_reserves(&mut self) {
        for pool in self.pools.table.values_mut() {
            pool.shrink(pool.threshold);
        }
        self.end_pools();
    }

    /// Allocates from a pool.
    fn alloc_in_pool(
        &mut self,
        pool: u64,
        bytes: u64,
        context: u64,
    ) -> Result<CUdeviceptr, CuError> {
        let found = self.pools.table.get_mut(pool).ok_or(CuError::INVALID_VALUE)?;
        found.take(bytes)?;
        let unit = found.unit.unwrap_or(Unit::whole(0));
        let placed = self.memory.place(false, bytes, (context, unit), Kind::Pool(pool));
        if placed.is_err() {
            self.free_in_pool(pool, bytes, None);
        }
        placed
    }
}

fn alloc_async(pointer: Out<CUdeviceptr>, bytes: usize, stream: CUstream) -> CuResult {
    let (_, unit) = stream_facts::home(stream)?;
    let pool = state()?.pools.of(unit).2;
    alloc_from_pool(pointer, bytes, CUmemoryPool(pool as *mut c_void), stream)
}

fn alloc_from_pool(
    pointer: Out<CUdeviceptr>,
    bytes: usize,
    pool: CUmemoryPool,
    stream: CUstream,
) -> CuResult {
    pointer.required()?;
    if bytes == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let (context, unit) = stream_facts::home(stream)?;
    let unit = state()?.pools.alive(pool)?.unit.unwrap_or(unit);
    if let Some(address) = capture::take_allocation(stream, bytes as u64, unit)? {
        return pointer.put(address);
    }
    let mut state = state()?;
    if state.pools.alive(pool)?.imported {
        return Err(CuError::INVALID_VALUE);
    }
    pointer.put(state.alloc_in_pool(pool.address(), bytes as u64, context)?)
}

fn free_async(pointer: CUdeviceptr, stream: CUstream) -> CuResult {
    if capture::take(stream, capture::Operation::Free(pointer))? {
        return Ok(());
    }
    let end = stream::end_and_context(stream)?;
    let mut state = state()?;
    let block = state.memory.at(pointer).ok_or(CuError::INVALID_VALUE)?;
    match block.kind {
        Kind::Pool(pool) | Kind::Graph(pool) => {
            state.memory.remove(pointer);
            state.free_in_pool(pool, block.bytes, Some(end));
            Ok(())
        }
        Kind::Linear | Kind::Managed => {
            state.memory.remove(pointer);
            crate::memory::refund_block(&block);
            Ok(())
        }
        Kind::Imported => {
            state.memory.remove(pointer);
            Ok(())
        }
        Kind::Foreign | Kind::Global => Err(CuError::INVALID_VALUE),
    }
}

fn create(pool: Out<CUmemoryPool>, properties: In<Properties>) -> CuResult {
    pool.required()?;
    let properties = properties.get()?;
    let unit = match properties.location.kind {
        CU_MEM_LOCATION_TYPE_DEVICE => Some(unit(properties.location.id)?),
        2..=4 => None,
        _ => return Err(CuError::INVALID_VALUE),
    };
    let made = Pool {
        unit,
        policies: [1; 3],
        max_bytes: properties.max_bytes as u64,
        exportable: properties.handle_types & FILE_DESCRIPTOR != 0,
        ..Pool::default()
    };
    let pools = &mut state()?.pools;
    pool.put(as_pool(match pools.spare.pop() {
        Some(handle) => pools.table.put(handle, made),
        None => pools.table.add(made),
    }))
}

fn destroy(pool: CUmemoryPool) -> CuResult {
    let mut state = state()?;
    let handle = pool.address();
    if state.pools.of_unit.iter().any(|(_, default, _)| *default == handle) {
        return Err(CuError::INVALID_VALUE);
    }
    let found = state.pools.alive(pool)?;
    found.shrink(0);
    found.destroyed = true;
    if let Some(found) = state.pools.table.remove(handle).filter(|found| !found.is_gone()) {
        // What was taken from it lives on; its handle may be another pool's from here on.
        let name = state.pools.table.put(fresh_handle(), found);
        state.memory.rename_pool(handle, name);
    }
    state.pools.spare.push(handle);
    for (_, default, current) in &mut state.pools.of_unit {
        if *current == handle {
            *current = *default;
        }
    }
    Ok(())
}

fn trim(pool: CUmemoryPool, keep: usize) -> CuResult {
    state()?.pools.alive(pool)?.shrink(keep as u64);
    Ok(())
}

fn set_access(pool: CUmemoryPool, _descriptors: In<c_void>, _count: usize) -> CuResult {
    state()?.pools.alive(pool).map(drop)
}

pub(crate) fn as_pool(handle: u64) -> CUmemoryPool {
    CUmemoryPool(handle as *mut c_void)
}
