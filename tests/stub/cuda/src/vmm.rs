//! Virtual memory management: physical handles, reserved addresses, mappings.
//!
//! Physical memory lives until its last reference is released **and** its last mapping is gone.
//! Memory at a host location costs the card nothing. Nothing here belongs to a context.

use crate::arg::{Address, In, Out};
use crate::driver::{state, unit};
use crate::export::exports;
use crate::memory::{charge, refund};
use crate::state::{State, Table};
use gpucap_abi::cuda::{
    CU_MEM_LOCATION_TYPE_DEVICE, CUdeviceptr, CUmemAllocationProp, CUmemGenericAllocationHandle,
    CUmemLocation, CUstream, CuError, CuResult,
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
    /// Access is granted to everybody.
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
    /// Handles are not shared between processes here.
    fn cuMemExportToShareableHandle(shareable: Address, handle: CUmemGenericAllocationHandle,
        kind: i32, flags: u64) => export, driver, "cuMemExportToShareableHandle" @ 10020;
    /// A handle of memory that another process pays for.
    fn cuMemImportFromShareableHandle(handle: *mut CUmemGenericAllocationHandle, shareable: Address,
        kind: i32) => import, driver, "cuMemImportFromShareableHandle" @ 10020;
    /// Sparse arrays are not simulated: accepted, without effect.
    fn cuMemMapArrayAsync(maps: Address, count: u32, stream: CUstream)
        => map_array, context, "cuMemMapArrayAsync" @ 11010;
    /// Sparse arrays are not simulated: accepted, without effect.
    fn cuMemMapArrayAsync_ptsz(maps: Address, count: u32, stream: CUstream)
        => map_array, context, "cuMemMapArrayAsync" @ 11010 ptsz;
}

/// Physical memory.
struct Physical {
    bytes: u64,
    /// What pays for it; `None` for the host's memory and another process's.
    charged: Option<Unit>,
    prop: CUmemAllocationProp,
    references: u64,
    mappings: u64,
}

// SAFETY: the only pointer in it, `win32HandleMetaData`, is kept as a number to be handed back,
// never followed.
unsafe impl Send for Physical {}

/// Handles, reservations and mappings of the process.
#[derive(Default)]
pub(crate) struct Vmm {
    physical: Table<Physical>,
    /// Size and alignment by start.
    reserved: BTreeMap<u64, (u64, u64)>,
    /// Size and handle by start.
    mapped: BTreeMap<u64, (u64, u64)>,
}

const GRANULARITY: u64 = 2 << 20;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`
const PINNED: i32 = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`
const READ_WRITE: u64 = 3;
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`
const FILE_DESCRIPTOR: i32 = 1;

impl Vmm {
    /// Start and size of the mapping around an address.
    pub(crate) fn mapping_around(&self, address: u64) -> Option<(u64, u64)> {
        let (start, (bytes, _)) = self.mapped.range(..=address).next_back()?;
        (address - start < *bytes).then_some((*start, *bytes))
    }

    /// Whether addresses from `start` on lie in one reservation.
    fn is_reserved(&self, start: u64, bytes: u64) -> bool {
        let around = self.reserved.range(..=start).next_back();
        around.is_some_and(|(at, (size, _))| start + bytes <= at + size)
    }

    fn overlaps(&self, start: u64, bytes: u64) -> bool {
        let before = self.mapped.range(..start + bytes).next_back();
        before.is_some_and(|(at, (size, _))| at + size > start)
    }
}

impl State {
    /// Ends memory that nobody refers to.
    fn end_if_unused(&mut self, handle: u64) {
        let unused = |p: &Physical| p.references == 0 && p.mappings == 0;
        if self.vmm.physical.get(handle).is_some_and(unused)
            && let Some(gone) = self.vmm.physical.remove(handle)
            && let Some(unit) = gone.charged
        {
            refund(unit, gone.bytes);
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
    let made = Physical { bytes, charged, prop, references: 1, mappings: 0 };
    handle.put(state()?.vmm.physical.add(made))
}

fn release(handle: CUmemGenericAllocationHandle) -> CuResult {
    let mut state = state()?;
    let found = state.vmm.physical.get_mut(handle).filter(|found| found.references > 0);
    found.ok_or(CuError::INVALID_VALUE)?.references -= 1;
    state.end_if_unused(handle);
    Ok(())
}

fn retain(handle: Out<CUmemGenericAllocationHandle>, address: Out<c_void>) -> CuResult {
    handle.required()?;
    let mut state = state()?;
    let (start, _) = state.vmm.mapping_around(address.address()).ok_or(CuError::INVALID_VALUE)?;
    let (_, found) = state.vmm.mapped[&start];
    state.vmm.physical.get_mut(found).ok_or(CuError::INVALID_VALUE)?.references += 1;
    handle.put(found)
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
    let found =
        vmm.physical.get_mut(handle).filter(|found| found.references > 0 && size <= found.bytes);
    let found = found.filter(|_| fits).ok_or(CuError::INVALID_VALUE)?;
    found.mappings += 1;
    vmm.mapped.insert(address, (size, handle));
    Ok(())
}

fn unmap(address: CUdeviceptr, bytes: usize) -> CuResult {
    let mut state = state()?;
    let end = address.checked_add(bytes as u64).ok_or(CuError::INVALID_VALUE)?;
    let inside: Vec<_> =
        state.vmm.mapped.range(address..end).map(|(at, found)| (*at, *found)).collect();
    let sticks_out = inside.iter().any(|(at, (size, _))| at + size > end)
        || state.vmm.mapping_around(address).is_some_and(|(start, _)| start != address);
    if inside.is_empty() || sticks_out {
        return Err(CuError::INVALID_VALUE);
    }
    for (at, (_, handle)) in inside {
        state.vmm.mapped.remove(&at);
        if let Some(physical) = state.vmm.physical.get_mut(handle) {
            physical.mappings -= 1;
        }
        state.end_if_unused(handle);
    }
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
    prop.put(state()?.vmm.physical.get(handle).ok_or(CuError::INVALID_VALUE)?.prop)
}

/// The number in the file that travels as a file descriptor.
#[repr(C)]
#[derive(Clone, Copy)]
struct Shared {
    magic: u64,
    bytes: u64,
}
const SHARED: u64 = u64::from_be_bytes(*b"stubhndl");

fn export(
    shareable: Out<c_void>,
    handle: CUmemGenericAllocationHandle,
    kind: i32,
    _flags: u64,
) -> CuResult {
    let bytes = state()?.vmm.physical.get(handle).ok_or(CuError::INVALID_VALUE)?.bytes;
    if kind != FILE_DESCRIPTOR {
        return Err(CuError::NOT_SUPPORTED);
    }
    // SAFETY: the name is a terminated string.
    let fd = unsafe { libc::memfd_create(c"stub-gpu-handle".as_ptr(), 0) };
    let content = Shared { magic: SHARED, bytes };
    // SAFETY: the buffer is `content`, of that size; `fd` is checked by the call itself.
    let written = unsafe { libc::pwrite(fd, (&raw const content).cast(), size_of::<Shared>(), 0) };
    if written < 0 {
        return Err(CuError::UNKNOWN);
    }
    shareable.cast::<i32>().put(fd)
}

fn import(
    handle: Out<CUmemGenericAllocationHandle>,
    shareable: Out<c_void>,
    kind: i32,
) -> CuResult {
    handle.required()?;
    let fd = i32::try_from(shareable.address()).map_err(|_| CuError::INVALID_VALUE)?;
    let mut content = Shared { magic: 0, bytes: 0 };
    // SAFETY: the buffer is `content`, of that size; a bad `fd` is refused by the call itself.
    unsafe { libc::pread(fd, (&raw mut content).cast(), size_of::<Shared>(), 0) };
    if kind != FILE_DESCRIPTOR || content.magic != SHARED {
        return Err(CuError::INVALID_VALUE);
    }
    let location = CUmemLocation { kind: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    let prop = CUmemAllocationProp {
        kind: PINNED,
        requestedHandleTypes: kind,
        location,
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: [0; 8],
    };
    let made = Physical { bytes: content.bytes, charged: None, prop, references: 1, mappings: 0 };
    handle.put(state()?.vmm.physical.add(made))
}

fn map_array(_maps: Out<c_void>, _count: u32, stream: CUstream) -> CuResult {
    state()?.check_stream(stream)
}
