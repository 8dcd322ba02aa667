//! Virtual memory management: physical memory lives while a handle or a mapping refers to it.
//!
//! The table's lock is held across the driver's call, as nowhere else: the value of a handle or an address can be given
//! out again as soon as the driver has let go of it, and only the order of the calls tells old from new. These calls
//! are rare and take the driver's own locks anyway. A tool that the driver calls back meanwhile on the same thread finds
//! the lock [held](crate::held) and passes.

use super::device_of;
use crate::call::Call;
use crate::held::Held;
use crate::hooks::Next;
use crate::session::Session;
use core::ffi::c_void;
use gpucap_abi::arg::{In, Out};
use gpucap_abi::cuda::{
    CUdeviceptr, CUmemAllocationProp, CUmemGenericAllocationHandle, CuError, CuResult,
};
use gpucap_core::ledger::Kind;

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
    let Some(device) = session.device(call.driver, ordinal)? else { return next().map(drop) };
    let charge = call.charge(session, device, Kind::Vmm, bytes as u64)?;
    let Some(_held) = Held::enter() else { return next().map(drop) };
    let mut physical = session.physical.lock();
    let written = next()?;
    if let Some(handle) = handle.get(&written) {
        physical.create(handle, charge.commit());
    }
    Ok(())
}

/// `cuMemRelease`.
pub(crate) fn release(
    _call: &Call,
    next: impl Next<CuError>,
    handle: CUmemGenericAllocationHandle,
) -> CuResult {
    let (Some(session), Some(_held)) = (Session::begun(), Held::enter()) else {
        return next().map(drop);
    };
    let mut physical = session.physical.lock();
    next()?;
    let gone = physical.release(handle);
    drop(physical);
    gone.into_iter().for_each(|record| session.refund(record));
    Ok(())
}

/// `cuMemRetainAllocationHandle`.
pub(crate) fn retain(
    _call: &Call,
    next: impl Next<CuError>,
    handle: Out<CUmemGenericAllocationHandle>,
    address: Out<c_void>,
) -> CuResult {
    let (Some(session), Some(_held)) = (Session::begun(), Held::enter()) else {
        return next().map(drop);
    };
    let mut physical = session.physical.lock();
    let written = next()?;
    if let Some(handle) = handle.get(&written) {
        physical.retain(handle, address.address());
    }
    Ok(())
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
    let (Some(session), Some(_held)) = (Session::begun(), Held::enter()) else {
        return next().map(drop);
    };
    let mut physical = session.physical.lock();
    next()?;
    physical.map(address, bytes as u64, handle);
    Ok(())
}

/// `cuMemUnmap`.
pub(crate) fn unmap(
    _call: &Call,
    next: impl Next<CuError>,
    address: CUdeviceptr,
    bytes: usize,
) -> CuResult {
    let (Some(session), Some(_held)) = (Session::begun(), Held::enter()) else {
        return next().map(drop);
    };
    let mut physical = session.physical.lock();
    next()?;
    let gone = physical.unmap(address, bytes as u64);
    drop(physical);
    gone.into_iter().for_each(|record| session.refund(record));
    Ok(())
}
