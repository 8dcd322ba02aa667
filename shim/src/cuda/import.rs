//! Memory of another process at an address of this one.
//!
//! The process that made it is charged for it, in the container's ledger or in that of another; opening it takes
//! nothing from the device. The address is in the table of this process without a charge, so that its end refunds
//! nothing, and an earlier entry of the table (memory whose end was missed) is removed.

use super::{current_context, current_device};
use crate::budget::record::Record;
use crate::call::Call;
use crate::driver::Next;
use gpucap_abi::arg::{Out, Written};
use gpucap_abi::cuda::{
    CUdeviceptr, CUipcMemHandle, CUmemPoolPtrExportData, CUmemoryPool, CuError, CuResult,
};
use gpucap_core::ledger::Kind;

/// `cuIpcOpenMemHandle`: ends with the current context.
pub(crate) fn ipc(
    call: &Call,
    next: impl Next<CuError>,
    pointer: Out<CUdeviceptr>,
    _handle: CUipcMemHandle,
    _flags: u32,
) -> CuResult {
    let written = next()?;
    enter(call, pointer, &written, current_context(call).unwrap_or(NO_CONTEXT));
    Ok(())
}

/// `cuIpcCloseMemHandle`.
pub(crate) fn close_ipc(call: &Call, next: impl Next<CuError>, pointer: CUdeviceptr) -> CuResult {
    super::memory::free(call, next, pointer)
}

/// `cuMemPoolImportPointer`: `cuMemFree` or `cuMemFreeAsync` ends it.
pub(crate) fn pool_pointer(
    call: &Call,
    next: impl Next<CuError>,
    pointer: Out<CUdeviceptr>,
    _pool: CUmemoryPool,
    _data: Out<CUmemPoolPtrExportData>,
) -> CuResult {
    let written = next()?;
    enter(call, pointer, &written, NO_CONTEXT);
    Ok(())
}

const NO_CONTEXT: u64 = 0;

fn enter(call: &Call, pointer: Out<CUdeviceptr>, written: &Written, home: u64) {
    if let Ok(Some((session, device))) = current_device(call)
        && let Some(address) = pointer.get(written)
    {
        let record = Record { bytes: 0, home, device: device.index, kind: Kind::Alloc };
        super::allocation::enter(session, address, record);
    }
}
