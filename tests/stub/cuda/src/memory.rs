//! Linear memory: allocation, release, reports, and what an address belongs to.
//!
//! Every address that the driver handed out is a [`Block`] here, whichever noun made it. A block of
//! a context goes with it; one of a pool does not. The card's book is charged before the block
//! exists and refunded after it is gone.

use crate::arena::Arena;
use crate::arg::Out;
use crate::capture_mode::unsafe_call;
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::state::State;
use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{CUdeviceptr, CUdeviceptr_v1, CuError, CuResult};
use gpucap_stub_device::card::Holding;
use gpucap_stub_device::catalog::Unit;
use gpucap_stub_device::partition::Lineage;
use gpucap_stub_device::{card, settings};
use std::collections::{BTreeMap, HashSet};

exports! {
    /// Addresses and sizes of 32 bits.
    fn cuMemAlloc(pointer: *mut CUdeviceptr_v1, bytes: u32) => alloc, context, "cuMemAlloc" @ 2000;
    /// Size 0 is refused.
    fn cuMemAlloc_v2(pointer: *mut CUdeviceptr, bytes: usize)
        => alloc, context, "cuMemAlloc" @ 3020;
    /// Rows are padded to a multiple of `STUB_GPU_PITCH` bytes.
    fn cuMemAllocPitch(pointer: *mut CUdeviceptr_v1, pitch: *mut u32, width: u32, height: u32,
        element: u32) => alloc_pitch, context, "cuMemAllocPitch" @ 2000;
    /// Rows are padded to a multiple of `STUB_GPU_PITCH` bytes.
    fn cuMemAllocPitch_v2(pointer: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize,
        element: u32) => alloc_pitch, context, "cuMemAllocPitch" @ 3020;
    /// Takes device memory in full: nothing migrates here.
    fn cuMemAllocManaged(pointer: *mut CUdeviceptr, bytes: usize, flags: u32)
        => alloc_managed, context, "cuMemAllocManaged" @ 6000;
    /// An address that is not the start of an allocation is refused.
    fn cuMemFree(pointer: CUdeviceptr_v1) => free, context, "cuMemFree" @ 2000;
    /// An address that is not the start of an allocation is refused.
    fn cuMemFree_v2(pointer: CUdeviceptr) => free, context, "cuMemFree" @ 3020;
    /// Free and total memory in 32 bits.
    fn cuMemGetInfo(free: *mut u32, total: *mut u32) => info, context, "cuMemGetInfo" @ 2000;
    /// Free and total memory of the current context's device.
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) => info, context, "cuMemGetInfo" @ 3020;
    /// Start and size of the allocation around an address.
    fn cuMemGetAddressRange(base: *mut CUdeviceptr_v1, bytes: *mut u32, pointer: CUdeviceptr_v1)
        => address_range, context, "cuMemGetAddressRange" @ 2000;
    /// Start and size of the allocation around an address.
    fn cuMemGetAddressRange_v2(base: *mut CUdeviceptr, bytes: *mut usize, pointer: CUdeviceptr)
        => address_range, context, "cuMemGetAddressRange" @ 3020;
}

/// What made a block, and so what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `cuMemAlloc` and its kind.
    Linear,
    /// `cuMemAllocManaged`.
    Managed,
    /// From the pool of this handle.
    Pool(u64),
    /// Of a graph's allocation node, which keeps the address; from the pool of this handle.
    Graph(u64),
    /// Another process's memory, opened through IPC.
    Foreign,
    /// Another process's memory from a pool; freed here as if it were one's own.
    Imported,
    /// A module's global variable.
    Global,
}

/// One allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) bytes: u64,
    pub(crate) unit: Unit,
    /// Context it was made in.
    pub(crate) context: u64,
    pub(crate) kind: Kind,
    /// A number that no other allocation of the process has.
    pub(crate) id: u64,
}

/// The blocks of the process.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) arena: Arena,
    blocks: BTreeMap<u64, Block>,
    /// Starts of the blocks that were copied to or from.
    touched: HashSet<u64>,
    next_id: u64,
}

/// `CU_MEM_ATTACH_GLOBAL`, `_HOST`.
const ATTACH: [u32; 2] = [1, 2];

impl Memory {
    /// Gives a block an address.
    pub(crate) fn place(
        &mut self,
        low: bool,
        bytes: u64,
        (context, unit): (u64, Unit),
        kind: Kind,
    ) -> Result<u64, CuError> {
        let address = if low { self.arena.take_low(bytes) } else { self.arena.take(bytes, 1) };
        let address = address.ok_or(CuError::OUT_OF_MEMORY)?;
        self.place_at(address, bytes, (context, unit), kind);
        Ok(address)
    }

    /// Puts a block at an address that was taken before.
    pub(crate) fn place_at(
        &mut self,
        address: u64,
        bytes: u64,
        (context, unit): (u64, Unit),
        kind: Kind,
    ) {
        self.next_id += 1;
        self.blocks.insert(address, Block { bytes, unit, context, kind, id: self.next_id });
    }

    /// The block that starts at an address.
    pub(crate) fn at(&self, address: u64) -> Option<Block> {
        self.blocks.get(&address).copied()
    }

    /// The block around an address, and where it starts.
    pub(crate) fn around(&self, address: u64) -> Option<(u64, Block)> {
        let (start, block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.bytes).then_some((*start, *block))
    }

    /// Remembers that the memory behind an address was used.
    pub(crate) fn touch(&mut self, address: u64) {
        if let Some((start, _)) = self.around(address) {
            self.touched.insert(start);
        }
    }

    /// Forgets the block that starts at an address.
    pub(crate) fn remove(&mut self, address: u64) -> Option<Block> {
        let block = self.blocks.remove(&address)?;
        if self.touched.remove(&address) {
            self.arena.wipe(address, block.bytes);
        }
        if !matches!(block.kind, Kind::Graph(_)) {
            self.arena.give(address, block.bytes, 1);
        }
        Some(block)
    }

    /// A pool is known by another number from now on.
    pub(crate) fn rename_pool(&mut self, from: u64, to: u64) {
        let of_it = self.blocks.values_mut().filter(|block| block.kind == Kind::Pool(from));
        of_it.for_each(|block| block.kind = Kind::Pool(to));
    }

    /// Forgets what lives in a context; returns it.
    pub(crate) fn end_context(&mut self, context: u64) -> Vec<Block> {
        let ends = |block: &Block| {
            let outlives = matches!(block.kind, Kind::Pool(_) | Kind::Graph(_) | Kind::Imported);
            block.context == context && !outlives
        };
        let gone: Vec<_> = self.blocks.iter().filter(|(_, b)| ends(b)).map(|(a, _)| *a).collect();
        gone.into_iter().filter_map(|address| self.remove(address)).collect()
    }
}

/// What the card takes for an allocation.
pub(crate) fn physical(bytes: u64) -> Result<Holding, CuError> {
    let memory = bytes.checked_next_multiple_of(settings().granularity);
    Ok(Holding { contexts: 0, memory: memory.ok_or(CuError::OUT_OF_MEMORY)? })
}

/// Charges the card.
pub(crate) fn charge(unit: Unit, bytes: u64) -> CuResult {
    if card().take(unit, physical(bytes)?) { Ok(()) } else { Err(CuError::OUT_OF_MEMORY) }
}

/// Refunds what [`charge`] took for the same size.
pub(crate) fn refund(unit: Unit, bytes: u64) {
    if let Ok(holding) = physical(bytes) {
        card().give(unit, holding);
    }
}

/// Gives back what a block cost, for the kinds that are charged one by one.
pub(crate) fn refund_block(block: &Block) {
    if matches!(block.kind, Kind::Linear | Kind::Managed) {
        refund(block.unit, block.bytes);
    }
}

fn allocate(low: bool, bytes: u64, kind: Kind) -> Result<u64, CuError> {
    if bytes == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let context = current()?;
    unsafe_call(&mut *state()?)?;
    charge(context.1, bytes)?;
    let placed = state()?.memory.place(low, bytes, context, kind);
    if placed.is_err() {
        refund(context.1, bytes);
    }
    placed
}

fn is_low<W: Word>() -> bool {
    size_of::<W>() == size_of::<u32>()
}

fn alloc<A: Word, S: Word>(pointer: Out<A>, bytes: S) -> CuResult {
    pointer.required()?;
    pointer.put_word(allocate(is_low::<A>(), bytes.to_u64(), Kind::Linear)?)
}

fn alloc_pitch<A: Word, S: Word>(
    pointer: Out<A>,
    pitch: Out<S>,
    width: S,
    height: S,
    element: u32,
) -> CuResult {
    pointer.required()?;
    pitch.required()?;
    if !matches!(element, 4 | 8 | 16) {
        return Err(CuError::INVALID_VALUE);
    }
    let row =
        width.to_u64().checked_next_multiple_of(settings().pitch).ok_or(CuError::INVALID_VALUE)?;
    let bytes = row.checked_mul(height.to_u64()).ok_or(CuError::INVALID_VALUE)?;
    let address = allocate(is_low::<A>(), bytes, Kind::Linear)?;
    pitch.put_word(row)?;
    pointer.put_word(address)
}

fn alloc_managed(pointer: Out<CUdeviceptr>, bytes: usize, flags: u32) -> CuResult {
    pointer.required()?;
    if !ATTACH.contains(&flags) {
        return Err(CuError::INVALID_VALUE);
    }
    pointer.put(allocate(false, bytes as u64, Kind::Managed)?)
}

fn free<A: Word>(pointer: A) -> CuResult {
    let address = pointer.to_u64();
    let mut state = state()?;
    let block = state.memory.at(address).ok_or(CuError::INVALID_VALUE)?;
    match block.kind {
        Kind::Foreign | Kind::Global => return Err(CuError::INVALID_VALUE),
        Kind::Imported => drop(state.memory.remove(address)),
        Kind::Pool(pool) | Kind::Graph(pool) => {
            state.memory.remove(address);
            state.free_in_pool(pool, block.bytes, None);
        }
        Kind::Linear | Kind::Managed => {
            state.memory.remove(address);
            refund_block(&block);
        }
    }
    Ok(())
}

fn info<W: Word>(free: Out<W>, total: Out<W>) -> CuResult {
    free.required()?;
    total.required()?;
    let (_, unit) = current()?;
    let memory = unit.memory(settings());
    let used = settings().reserved.saturating_add(card().used(unit));
    let left = memory.saturating_sub(used);
    // Under a limit of its cgroup a program sees that limit, and cuDeviceTotalMem the card all the same.
    let (left, memory) = match card().partition(Lineage::own(), unit) {
        Some(it) => (left.min(it.hard.saturating_sub(it.used)), memory.min(it.hard)),
        None => (left, memory),
    };
    free.put_word(left)?;
    total.put_word(memory)
}

fn address_range<A: Word, S: Word>(base: Out<A>, bytes: Out<S>, pointer: A) -> CuResult {
    let address = pointer.to_u64();
    let state = state()?;
    let (start, size) = state.range_around(address).ok_or(CuError::NOT_FOUND)?;
    base.put_if_asked(A::saturating_from(start));
    bytes.put_if_asked(S::saturating_from(size));
    Ok(())
}

impl State {
    /// Start and size of the allocation or mapping around an address.
    pub(crate) fn range_around(&self, address: u64) -> Option<(u64, u64)> {
        let block = self.memory.around(address).map(|(start, block)| (start, block.bytes));
        block.or_else(|| self.vmm.mapping_around(address))
    }
}
