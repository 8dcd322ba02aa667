//! Virtual memory management: physical memory lives while a handle, a file, a mapping or a tile of an array refers to
//! it.
//!
//! The table's lock is held across the driver's call: the value of a handle or an address can be
//! reused as soon as the driver has released it, and only the order of the calls distinguishes old from new. These
//! calls are rare and take the driver's own locks anyway. A tool that the driver calls back on the same thread in
//! this call finds the lock [held](crate::driver::call_guard). What it makes then is charged and not entered: it stays
//! charged. Once it has kept memory alive by a reference that was not entered, no memory is known to be over.

use super::device_of;
use crate::budget::record::Record;
use crate::call::Call;
use crate::driver::Next;
use crate::driver::call_guard::lock;
use crate::session::{Session, shareable};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use gpucap_abi::arg::{Entries, In, Out, Written};
use gpucap_abi::cuda::{
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUarrayMapInfo, CUdeviceptr, CUmemAllocationProp,
    CUmemGenericAllocationHandle, CUstream, CuError, CuResult,
};
use gpucap_core::ledger::Kind;
use gpucap_core::physical::{Operation, Physical, Region, Subresource};

/// `cuMemCreate`: charged to the device that the location names, not to that of the current context. Host memory is
/// free.
pub(crate) fn create(
    call: &Call,
    next: impl Next<CuError>,
    handle: Out<CUmemGenericAllocationHandle>,
    bytes: usize,
    prop: In<CUmemAllocationProp>,
    _flags: u64,
) -> CuResult {
    let device = prop.get().and_then(|prop| device_of(call, prop.location));
    let Some(ordinal) = device else { return next().map(drop) };
    let session = call.session()?;
    let Some(device) = session.budget.device(call.driver, ordinal)? else {
        return next().map(drop);
    };
    let charge = call.charge(session, device, Kind::Vmm, bytes as u64)?;
    let table = lock(&session.physical);
    let written = next()?;
    let record = charge.commit();
    if let Some(mut physical) = table
        && let Some(handle) = handle.get(&written)
    {
        physical.create(handle, record);
    }
    Ok(())
}

/// `cuMemRelease`.
pub(crate) fn release(
    _call: &Call,
    next: impl Next<CuError>,
    handle: CUmemGenericAllocationHandle,
) -> CuResult {
    counted(References::Takes, next, |physical, _| physical.release(handle).into_iter().collect())
}

/// `cuMemRetainAllocationHandle`.
pub(crate) fn retain(
    _call: &Call,
    next: impl Next<CuError>,
    handle: Out<CUmemGenericAllocationHandle>,
    address: Out<c_void>,
) -> CuResult {
    counted(References::Adds, next, |physical, written| {
        if let Some(handle) = handle.get(written) {
            physical.retain(handle, address.address());
        }
        Vec::new()
    })
}

/// `cuMemExportToShareableHandle`: as long as it is open, a file keeps the memory as a handle does.
pub(crate) fn export(
    _call: &Call,
    next: impl Next<CuError>,
    file: Out<c_void>,
    handle: CUmemGenericAllocationHandle,
    kind: c_int,
    _flags: u64,
) -> CuResult {
    counted(References::Adds, next, |physical, written| {
        let descriptor = file.as_type::<c_int>().get(written);
        let is_file = |_: &c_int| kind == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        if let Some(file) = descriptor.filter(is_file).and_then(shareable) {
            physical.export(handle, file);
        }
        Vec::new()
    })
}

/// `cuMemImportFromShareableHandle`: memory of another process is that one's to pay for; our own gets one more handle.
pub(crate) fn import(
    _call: &Call,
    next: impl Next<CuError>,
    handle: Out<CUmemGenericAllocationHandle>,
    file: Out<c_void>,
    kind: c_int,
) -> CuResult {
    // Before the driver is called: another thread may close the file at the same time.
    let is_file = kind == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let descriptor = c_int::try_from(file.address()).ok().filter(|_| is_file);
    let file = descriptor.and_then(shareable);
    counted(References::Adds, next, |physical, written| {
        if let Some(handle) = handle.get(written) {
            physical.import(handle, file);
        }
        Vec::new()
    })
}

/// `cuMemMap`.
pub(crate) fn map(
    _call: &Call,
    next: impl Next<CuError>,
    address: CUdeviceptr,
    bytes: usize,
    _offset: usize,
    handle: CUmemGenericAllocationHandle,
    _flags: u64,
) -> CuResult {
    counted(References::Adds, next, |physical, _| {
        physical.map(address, bytes as u64, handle);
        Vec::new()
    })
}

/// `cuMemUnmap`.
pub(crate) fn unmap(
    _call: &Call,
    next: impl Next<CuError>,
    address: CUdeviceptr,
    bytes: usize,
) -> CuResult {
    counted(References::Takes, next, |physical, _| physical.unmap(address, bytes as u64))
}

/// `cuMemMapArrayAsync`: counted when it is called. The stream may get there later; memory that has been unmapped by
/// then affects only this container. The driver may have carried out a part of a batch that fails: each of its maps
/// keeps its memory charged, and none of its unmaps refunds any.
pub(crate) fn map_array(
    _call: &Call,
    next: impl Next<CuError>,
    maps: Entries<CUarrayMapInfo>,
    count: u32,
    _stream: CUstream,
) -> CuResult {
    let maps = maps.read(count as usize).ok_or(CuError::OUT_OF_MEMORY)?;
    let tiles = || maps.iter().map(|map| (subresource(map), region(map), operation(map)));
    let done = |physical: &mut Physical<Record>, _: &Written| {
        let put = |(at, region, operation)| physical.map_tiles(at, region, operation);
        tiles().flat_map(put).collect()
    };
    let in_doubt = |physical: &mut Physical<Record>| {
        for (at, region, operation) in tiles() {
            if let Operation::Map(handle) = operation {
                physical.may_map_tiles(at, region, handle);
            }
        }
    };
    attempted(References::Adds, next, done, in_doubt)
}

/// What a call does to the references to memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum References {
    Adds,
    Takes,
}

/// Calls the driver under the table's lock and enters what it did; refunds what nothing refers to any more.
fn counted(
    references: References,
    next: impl Next<CuError>,
    enter: impl FnOnce(&mut Physical<Record>, &Written) -> Vec<Record>,
) -> CuResult {
    attempted(references, next, enter, |_| ())
}

/// The same, where a call that fails may have done something.
fn attempted(
    references: References,
    next: impl Next<CuError>,
    enter: impl FnOnce(&mut Physical<Record>, &Written) -> Vec<Record>,
    failed: impl FnOnce(&mut Physical<Record>),
) -> CuResult {
    let Some(session) = Session::begun() else { return next().map(drop) };
    let Some(mut physical) = lock(&session.physical) else {
        // Before the driver is called: the holder of the lock may be about to refund what this keeps.
        if references == References::Adds {
            session.physical_unknown.store(true, Ordering::Release);
        }
        return next().map(drop);
    };
    let written = next().inspect_err(|_| failed(&mut physical))?;
    let mut gone = enter(&mut physical, &written);
    gone.extend(physical.collect(|file| shareable(file.descriptor) == Some(*file)));
    drop(physical);
    session.refund_physical(gone);
    Ok(())
}

/// `CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL`
const MIPTAIL: c_int = 1;
/// `CU_MEM_OPERATION_TYPE_MAP`
const MAP: c_int = 1;

fn subresource(map: &CUarrayMapInfo) -> Subresource {
    let [first, ..] = map.subresource;
    let (low, high) = halves(first);
    let (level, layer) =
        if map.subresourceType == MIPTAIL { (None, low) } else { (Some(low), high) };
    Subresource { array: map.resource, level, layer }
}

fn region(map: &CUarrayMapInfo) -> Region {
    let [_, second, third, fourth] = map.subresource;
    if map.subresourceType == MIPTAIL {
        return Region::new([second, 0, 0], [third, 1, 1]);
    }
    let ((x, y), (z, width), (height, depth)) = (halves(second), halves(third), halves(fourth));
    Region::new([x, y, z].map(u64::from), [width, height, depth].map(u64::from))
}

/// The two numbers of 32 bits in one of 64.
const fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
}

fn operation(map: &CUarrayMapInfo) -> Operation {
    if map.memOperationType == MAP { Operation::Map(map.memHandle) } else { Operation::Unmap }
}
