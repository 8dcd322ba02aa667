//! Memory of another process.
//!
//! The process that made the memory pays for it; one that opens it gets an address of its own,
//! without the data. A handle names the exporting process and its address, and is as good as its
//! word: nothing checks that the memory is still there. Events can be exported in name only.

use crate::arg::{In, Out};
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::memory::Kind;
use gpucap_abi::cuda::{CUdeviceptr, CUevent, CuError, CuResult};
use std::ffi::c_void;

exports! {
    /// For linear memory of this process.
    fn cuIpcGetMemHandle(handle: *mut Handle, pointer: CUdeviceptr)
        => get, context, "cuIpcGetMemHandle" @ 4010;
    /// Not in the process that made it.
    fn cuIpcOpenMemHandle(pointer: *mut CUdeviceptr, handle: Handle, flags: u32)
        => open, context, "cuIpcOpenMemHandle" @ 4010;
    /// Not in the process that made it.
    fn cuIpcOpenMemHandle_v2(pointer: *mut CUdeviceptr, handle: Handle, flags: u32)
        => open, context, "cuIpcOpenMemHandle" @ 11000;
    /// Takes what was opened.
    fn cuIpcCloseMemHandle(pointer: CUdeviceptr) => close, context, "cuIpcCloseMemHandle" @ 4010;
    /// Not simulated.
    fn cuIpcGetEventHandle(handle: *mut Handle, event: CUevent)
        => get_event, context, "cuIpcGetEventHandle" @ 4010;
    /// Not simulated.
    fn cuIpcOpenEventHandle(event: *mut CUevent, handle: Handle)
        => open_event, context, "cuIpcOpenEventHandle" @ 4010;
    /// Memory of another interface: it pays, this process does not.
    fn cuImportExternalMemory(memory: *mut *mut c_void, description: *const c_void)
        => import_external, context, "cuImportExternalMemory" @ 10000;
    /// An address of external memory.
    fn cuExternalMemoryGetMappedBuffer(pointer: *mut CUdeviceptr, memory: *mut c_void,
        description: *const [u64; 2])
        => map_external, context, "cuExternalMemoryGetMappedBuffer" @ 10000;
    /// Ends external memory.
    fn cuDestroyExternalMemory(memory: *mut c_void)
        => destroy_external, context, "cuDestroyExternalMemory" @ 10000;
}

/// `CUipcMemHandle`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Handle([u64; 8]);

const MAGIC: u64 = u64::from_be_bytes(*b"stub-ipc");
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`
const LAZY_PEER_ACCESS: u32 = 1;

fn get(handle: Out<Handle>, pointer: CUdeviceptr) -> CuResult {
    handle.required()?;
    let state = state()?;
    let (start, block) = state.memory.around(pointer).ok_or(CuError::INVALID_VALUE)?;
    if block.kind != Kind::Linear {
        return Err(CuError::INVALID_VALUE);
    }
    handle.put(Handle([
        MAGIC,
        std::process::id().into(),
        start,
        block.bytes,
        block.unit.index() as u64,
        0,
        0,
        0,
    ]))
}

fn open(pointer: Out<CUdeviceptr>, handle: Handle, flags: u32) -> CuResult {
    pointer.required()?;
    let Handle([magic, pid, _, bytes, ..]) = handle;
    if flags != LAZY_PEER_ACCESS || magic != MAGIC {
        return Err(CuError::INVALID_VALUE);
    }
    if pid == u64::from(std::process::id()) {
        return Err(CuError::INVALID_CONTEXT);
    }
    let current = current()?;
    pointer.put(state()?.memory.place(false, bytes, current, Kind::Foreign)?)
}

fn close(pointer: CUdeviceptr) -> CuResult {
    let mut state = state()?;
    let foreign = state.memory.at(pointer).is_some_and(|block| block.kind == Kind::Foreign);
    if !foreign {
        return Err(CuError::INVALID_VALUE);
    }
    state.memory.remove(pointer);
    Ok(())
}

fn get_event(handle: Out<Handle>, _event: CUevent) -> CuResult {
    handle.required()?;
    Err(CuError::NOT_SUPPORTED)
}

fn open_event(event: Out<CUevent>, _handle: Handle) -> CuResult {
    event.required()?;
    Err(CuError::NOT_SUPPORTED)
}

fn import_external(memory: Out<*mut c_void>, description: In<c_void>) -> CuResult {
    if description.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    memory.put(crate::state::fresh_handle() as *mut c_void)
}

/// The description starts with offset and size.
fn map_external(
    pointer: Out<CUdeviceptr>,
    memory: Out<c_void>,
    description: In<[u64; 2]>,
) -> CuResult {
    pointer.required()?;
    memory.required()?;
    let [_, bytes] = description.get()?;
    let current = current()?;
    pointer.put(state()?.memory.place(false, bytes, current, Kind::Foreign)?)
}

fn destroy_external(memory: Out<c_void>) -> CuResult {
    memory.required().map(drop)
}
