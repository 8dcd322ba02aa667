//! Virtual memory management: physical handles, reserved addresses, mappings.
//!
//! Physical memory lives until its last handle is released, the files that it was exported as are
//! closed ([`share`](crate::share)), **and** its last mapping is gone, those into tiles of arrays
//! ([`sparse`](crate::sparse)) included. Memory at a host location costs the card nothing. Nothing
//! here belongs to a context.

use crate::arg::{Address, In, Out};
use crate::driver::{state, unit};
use crate::export::exports;
use crate::memory::{charge, refund};
use crate::share::File;
use crate::state::{State, Table, fresh_handle};
use gpucap_abi::cuda::{
    CU_MEM_LOCATION_TYPE_DEVICE, CUdeviceptr, CUmemAllocationProp, CUmemGenericAllocationHandle,
    CUmemLocation, CuError, CuResult,
};
use gpucap_stub_device::catalog::Unit;
use std::collections::BTreeMap;
use std::ffi::c_void;

exports! {
    /// Size must be a multiple of the granularity.
    fn cuMemCreate(handle: *mut CUmemGenericAllocationHandle, bytes: usize,
        prop: *const CUmemAllocationProp, flags: u64) => create, driver, "cuMemCreate" @ 10020;
    /// Drops one reference.
    fn cuMemRelease(handle: CUmemGenericAllocationHandle)
        => release, driver, "cuMemRelease" @ 10020;
    /// Adds a reference, found by a mapped address.
    fn cuMemRetainAllocationHandle(handle: *mut CUmemGenericAllocationHandle, address: Address)
        => retain, driver, "cuMemRetainAllocationHandle" @ 11000;
    /// Reserves addresses.
    fn cuMemAddressReserve(pointer: *mut CUdeviceptr, bytes: usize, alignment: usize,
        hint: CUdeviceptr, flags: u64) => reserve, driver, "cuMemAddressReserve" @ 10020;
    /// Gives back exactly what was reserved.
    fn cuMemAddressFree(pointer: CUdeviceptr, bytes: usize)
        => unreserve, driver, "cuMemAddressFree" @ 10020;
    /// Maps all of a handle into reserved addresses.
    fn cuMemMap(address: CUdeviceptr, bytes: usize, offset: usize,
        handle: CUmemGenericAllocationHandle, flags: u64) => map, driver, "cuMemMap" @ 10020;
    /// Ends the mappings inside the range; there must be one, and none may stick out.
    fn cuMemUnmap(address: CUdeviceptr, bytes: usize) => unmap, driver, "cuMemUnmap" @ 10020;
    /// Access is granted to all processes.
    fn cuMemSetAccess(address: CUdeviceptr, bytes: usize, descriptors: *const c_void, count: usize)
        => set_access, driver, "cuMemSetAccess" @ 10020;
    /// Read and write.
    fn cuMemGetAccess(flags: *mut u64, location: *const CUmemLocation, address: CUdeviceptr)
        => get_access, driver, "cuMemGetAccess" @ 10020;
    /// 2 MiB.
    fn cuMemGetAllocationGranularity(bytes: *mut usize, prop: *const CUmemAllocationProp,
        option: i32) => granularity, driver, "cuMemGetAllocationGranularity" @ 10020;
    /// What the handle was made with.
    fn cuMemGetAllocationPropertiesFromHandle(prop: *mut CUmemAllocationProp,
        handle: CUmemGenericAllocationHandle)
        => properties, driver, "cuMemGetAllocationPropertiesFromHandle" @ 10020;
}

/// Physical memory.
pub(crate) struct Physical {
    pub(crate) bytes: u64,
    /// What pays for it; `None` for the host's memory and another process's.
    pub(crate) charged: Option<Unit>,
    pub(crate) prop: CUmemAllocationProp,
    /// Of all its handles together.
    references: u64,
    /// Mappings of addresses, and tiles.
    pub(crate) mappings: u64,
    /// The files that it was exported as.
    pub(crate) files: Vec<File>,
}

/// A handle: which memory it names, and how often it has to be released.
#[derive(Clone, Copy)]
struct Handle {
    physical: u64,
    references: u64,
}

// SAFETY: the only pointer in it, `win32HandleMetaData`, is kept as a number to be handed back,
// never followed.
unsafe impl Send for Physical {}

/// Handles, reservations and mappings of the process.
#[derive(Default)]
pub(crate) struct Vmm {
    physical: Table<Physical>,
    handles: Table<Handle>,
    /// Size and alignment by start.
    reserved: BTreeMap<u64, (u64, u64)>,
    mapped: BTreeMap<u64, Mapping>,
}

/// Mapped memory.
#[derive(Clone, Copy)]
struct Mapping {
    bytes: u64,
    /// The handle that it was mapped by, which may have been released since.
    handle: u64,
    physical: u64,
}

const GRANULARITY: u64 = 2 << 20;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`
pub(crate) const PINNED: i32 = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`
const READ_WRITE: u64 = 3;

impl Vmm {
    /// Start and size of the mapping around an address.
    pub(crate) fn mapping_around(&self, address: u64) -> Option<(u64, u64)> {
        let (start, mapping) = self.mapped.range(..=address).next_back()?;
        (address - start < mapping.bytes).then_some((*start, mapping.bytes))
    }

    /// New memory with one handle.
    pub(crate) fn add(
        &mut self,
        bytes: u64,
        charged: Option<Unit>,
        prop: CUmemAllocationProp,
    ) -> u64 {
        let physical =
            Physical { bytes, charged, prop, references: 0, mappings: 0, files: Vec::new() };
        let physical = self.physical.add(physical);
        self.refer(fresh_handle(), physical)
    }

    /// One more reference by this handle.
    pub(crate) fn refer(&mut self, handle: u64, physical: u64) -> u64 {
        if let Some(found) = self.physical.get_mut(physical) {
            found.references += 1;
        }
        match self.handles.get_mut(handle) {
            Some(known) => known.references += 1,
            None => drop(self.handles.put(handle, Handle { physical, references: 1 })),
        }
        handle
    }

    /// The memory that a handle names, and its number.
    pub(crate) fn named(&mut self, handle: u64) -> Result<(u64, &mut Physical), CuError> {
        let number = self.handles.get(handle).ok_or(CuError::INVALID_VALUE)?.physical;
        Ok((number, self.physical.get_mut(number).ok_or(CuError::INVALID_VALUE)?))
    }

    /// Memory by its number.
    pub(crate) fn by_number(&mut self, physical: u64) -> Option<&mut Physical> {
        self.physical.get_mut(physical)
    }

    /// Whether addresses from `start` on lie in one reservation.
    fn is_reserved(&self, start: u64, bytes: u64) -> bool {
        let around = self.reserved.range(..=start).next_back();
        around.is_some_and(|(at, (size, _))| start + bytes <= at + size)
    }

    fn overlaps(&self, start: u64, bytes: u64) -> bool {
        let before = self.mapped.range(..start + bytes).next_back();
        before.is_some_and(|(at, mapping)| at + mapping.bytes > start)
    }
}

impl State {
    /// Ends memory that nothing refers to. A file is closed without a call, so that its end shows
    /// at the next one, whichever that is.
    pub(crate) fn end_unused(&mut self) {
        let unused = |p: &Physical| {
            p.references == 0 && p.mappings == 0 && !p.files.iter().any(File::is_open)
        };
        for gone in self.vmm.physical.drain_if(unused) {
            if let Some(unit) = gone.charged {
                refund(unit, gone.bytes);
            }
        }
    }
}

fn create(
    handle: Out<CUmemGenericAllocationHandle>,
    bytes: usize,
    prop: In<CUmemAllocationProp>,
    flags: u64,
) -> CuResult {
    handle.required()?;
    let (prop, bytes) = (prop.get()?, bytes as u64);
    if flags != 0 || bytes == 0 || !bytes.is_multiple_of(GRANULARITY) || prop.kind != PINNED {
        return Err(CuError::INVALID_VALUE);
    }
    let charged = match prop.location.kind {
        CU_MEM_LOCATION_TYPE_DEVICE => Some(unit(prop.location.id)?),
        2..=4 => None,
        _ => return Err(CuError::INVALID_VALUE),
    };
    if let Some(unit) = charged {
        charge(unit, bytes)?;
    }
    handle.put(state()?.vmm.add(bytes, charged, prop))
}

fn release(handle: CUmemGenericAllocationHandle) -> CuResult {
    let mut state = state()?;
    let (_, physical) = state.vmm.named(handle)?;
    physical.references -= 1;
    if let Some(known) = state.vmm.handles.get_mut(handle) {
        known.references -= 1;
        if known.references == 0 {
            state.vmm.handles.remove(handle);
        }
    }
    state.end_unused();
    Ok(())
}

fn retain(handle: Out<CUmemGenericAllocationHandle>, address: Out<c_void>) -> CuResult {
    handle.required()?;
    let mut state = state()?;
    let (start, _) = state.vmm.mapping_around(address.address()).ok_or(CuError::INVALID_VALUE)?;
    let mapping = state.vmm.mapped[&start];
    handle.put(state.vmm.refer(mapping.handle, mapping.physical))
}

fn reserve(
    pointer: Out<CUdeviceptr>,
    bytes: usize,
    alignment: usize,
    _hint: CUdeviceptr,
    flags: u64,
) -> CuResult {
    pointer.required()?;
    let (bytes, alignment) = (bytes as u64, (alignment as u64).max(GRANULARITY));
    if flags != 0
        || bytes == 0
        || !bytes.is_multiple_of(GRANULARITY)
        || !alignment.is_power_of_two()
    {
        return Err(CuError::INVALID_VALUE);
    }
    let mut state = state()?;
    let start = state.memory.arena.take(bytes, alignment).ok_or(CuError::OUT_OF_MEMORY)?;
    state.vmm.reserved.insert(start, (bytes, alignment));
    pointer.put(start)
}

fn unreserve(pointer: CUdeviceptr, bytes: usize) -> CuResult {
    let mut state = state()?;
    let size = bytes as u64;
    let (_, alignment) = *state
        .vmm
        .reserved
        .get(&pointer)
        .filter(|(known, _)| *known == size)
        .ok_or(CuError::INVALID_VALUE)?;
    if state.vmm.overlaps(pointer, size) {
        return Err(CuError::INVALID_VALUE);
    }
    state.vmm.reserved.remove(&pointer);
    state.memory.arena.wipe(pointer, size);
    state.memory.arena.give(pointer, size, alignment);
    Ok(())
}

fn map(
    address: CUdeviceptr,
    bytes: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    flags: u64,
) -> CuResult {
    let size = bytes as u64;
    let mut state = state()?;
    let vmm = &mut state.vmm;
    let fits = flags == 0
        && offset == 0
        && size != 0
        && size.is_multiple_of(GRANULARITY)
        && address.is_multiple_of(GRANULARITY)
        && vmm.is_reserved(address, size)
        && !vmm.overlaps(address, size);
    let (physical, found) = vmm.named(handle)?;
    if !fits || size > found.bytes {
        return Err(CuError::INVALID_VALUE);
    }
    found.mappings += 1;
    vmm.mapped.insert(address, Mapping { bytes: size, handle, physical });
    Ok(())
}

fn unmap(address: CUdeviceptr, bytes: usize) -> CuResult {
    let mut state = state()?;
    let end = address.checked_add(bytes as u64).ok_or(CuError::INVALID_VALUE)?;
    let inside: Vec<_> =
        state.vmm.mapped.range(address..end).map(|(at, found)| (*at, *found)).collect();
    let sticks_out = inside.iter().any(|(at, mapping)| at + mapping.bytes > end)
        || state.vmm.mapping_around(address).is_some_and(|(start, _)| start != address);
    if inside.is_empty() || sticks_out {
        return Err(CuError::INVALID_VALUE);
    }
    for (at, mapping) in inside {
        state.vmm.mapped.remove(&at);
        if let Some(physical) = state.vmm.physical.get_mut(mapping.physical) {
            physical.mappings -= 1;
        }
    }
    state.end_unused();
    Ok(())
}

fn set_access(
    address: CUdeviceptr,
    bytes: usize,
    descriptors: In<c_void>,
    count: usize,
) -> CuResult {
    let known = bytes != 0 && !descriptors.is_null() && count != 0;
    let mapped = state()?.vmm.mapping_around(address).is_some();
    if known && mapped { Ok(()) } else { Err(CuError::INVALID_VALUE) }
}

fn get_access(flags: Out<u64>, location: In<CUmemLocation>, address: CUdeviceptr) -> CuResult {
    location.get()?;
    state()?.vmm.mapping_around(address).ok_or(CuError::INVALID_VALUE)?;
    flags.put(READ_WRITE)
}

fn granularity(bytes: Out<usize>, prop: In<CUmemAllocationProp>, _option: i32) -> CuResult {
    prop.get()?;
    bytes.put_word(GRANULARITY)
}

fn properties(prop: Out<CUmemAllocationProp>, handle: CUmemGenericAllocationHandle) -> CuResult {
    prop.put(state()?.vmm.named(handle)?.1.prop)
}
