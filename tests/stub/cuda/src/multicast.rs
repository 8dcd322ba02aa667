//! Multicast objects: one address for memory on several devices.
//!
//! A handle that is released and mapped like that of physical memory, and takes nothing of the card. Which memory is
//! bound is remembered so that it can be unbound; a binding keeps nothing alive.

use crate::arg::{In, Out};
use crate::driver::{state, unit};
use crate::export::exports;
use crate::vmm::PINNED;
use gpucap_abi::cuda::{
    CU_MEM_LOCATION_TYPE_DEVICE, CUdevice, CUdeviceptr, CUmemAllocationProp,
    CUmemGenericAllocationHandle, CUmemLocation, CuError, CuResult,
};

exports! {
    /// A size that is a multiple of the granularity, and one device at least.
    fn cuMulticastCreate(handle: *mut CUmemGenericAllocationHandle, prop: *const Prop)
        => create, driver, "cuMulticastCreate" @ 12010;
    /// Checked and not kept.
    fn cuMulticastAddDevice(handle: CUmemGenericAllocationHandle, device: CUdevice)
        => add_device, driver, "cuMulticastAddDevice" @ 12010;
    /// Of a handle.
    fn cuMulticastBindMem(handle: CUmemGenericAllocationHandle, offset: usize,
        memory: CUmemGenericAllocationHandle, memory_offset: usize, bytes: usize, flags: u64)
        => bind, driver, "cuMulticastBindMem" @ 12010;
    /// Of a handle, for a device.
    fn cuMulticastBindMem_v2(handle: CUmemGenericAllocationHandle, device: CUdevice, offset: usize,
        memory: CUmemGenericAllocationHandle, memory_offset: usize, bytes: usize, flags: u64)
        => bind_for, driver, "cuMulticastBindMem" @ 13010;
    /// Of an address.
    fn cuMulticastBindAddr(handle: CUmemGenericAllocationHandle, offset: usize,
        pointer: CUdeviceptr, bytes: usize, flags: u64)
        => bind_address, driver, "cuMulticastBindAddr" @ 12010;
    /// Of an address, for a device.
    fn cuMulticastBindAddr_v2(handle: CUmemGenericAllocationHandle, device: CUdevice,
        offset: usize, pointer: CUdeviceptr, bytes: usize, flags: u64)
        => bind_address_for, driver, "cuMulticastBindAddr" @ 13010;
    /// Only what was bound just so.
    fn cuMulticastUnbind(handle: CUmemGenericAllocationHandle, device: CUdevice, offset: usize,
        bytes: usize) => unbind, driver, "cuMulticastUnbind" @ 12010;
    /// 2 MiB.
    fn cuMulticastGetGranularity(bytes: *mut usize, prop: *const Prop, option: i32)
        => granularity, driver, "cuMulticastGetGranularity" @ 12010;
}

/// `CUmulticastObjectProp`
#[repr(C)]
#[derive(Clone, Copy)]
struct Prop {
    devices: u32,
    bytes: usize,
    handle_types: u64,
    flags: u64,
}

/// Handle, offset and size of what is bound.
#[derive(Default)]
pub(crate) struct Bindings(Vec<(u64, usize, usize)>);

const GRANULARITY: usize = 2 << 20;

fn create(handle: Out<CUmemGenericAllocationHandle>, prop: In<Prop>) -> CuResult {
    handle.required()?;
    let asked = prop.get()?;
    let fits = asked.bytes != 0 && asked.bytes.is_multiple_of(GRANULARITY);
    if !fits || asked.devices == 0 || asked.flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let prop = CUmemAllocationProp {
        kind: PINNED,
        requestedHandleTypes: i32::try_from(asked.handle_types).unwrap_or(0),
        location: CUmemLocation { kind: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 },
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: [0; 8],
    };
    handle.put(state()?.vmm.add(asked.bytes as u64, None, prop))
}

fn add_device(handle: CUmemGenericAllocationHandle, device: CUdevice) -> CuResult {
    unit(device)?;
    state()?.vmm.named(handle).map(drop)
}

fn bind(
    handle: CUmemGenericAllocationHandle,
    offset: usize,
    memory: CUmemGenericAllocationHandle,
    memory_offset: usize,
    bytes: usize,
    flags: u64,
) -> CuResult {
    state()?.vmm.named(memory)?;
    if !memory_offset.is_multiple_of(GRANULARITY) {
        return Err(CuError::INVALID_VALUE);
    }
    enter(handle, offset, bytes, flags)
}

fn bind_for(
    handle: CUmemGenericAllocationHandle,
    device: CUdevice,
    offset: usize,
    memory: CUmemGenericAllocationHandle,
    memory_offset: usize,
    bytes: usize,
    flags: u64,
) -> CuResult {
    unit(device)?;
    bind(handle, offset, memory, memory_offset, bytes, flags)
}

fn bind_address(
    handle: CUmemGenericAllocationHandle,
    offset: usize,
    pointer: CUdeviceptr,
    bytes: usize,
    flags: u64,
) -> CuResult {
    state()?.vmm.mapping_around(pointer).ok_or(CuError::INVALID_VALUE)?;
    enter(handle, offset, bytes, flags)
}

fn bind_address_for(
    handle: CUmemGenericAllocationHandle,
    device: CUdevice,
    offset: usize,
    pointer: CUdeviceptr,
    bytes: usize,
    flags: u64,
) -> CuResult {
    unit(device)?;
    bind_address(handle, offset, pointer, bytes, flags)
}

fn enter(
    handle: CUmemGenericAllocationHandle,
    offset: usize,
    bytes: usize,
    flags: u64,
) -> CuResult {
    let mut state = state()?;
    let (_, object) = state.vmm.named(handle)?;
    let aligned = offset.is_multiple_of(GRANULARITY) && bytes.is_multiple_of(GRANULARITY);
    let end = offset.checked_add(bytes).ok_or(CuError::INVALID_VALUE)?;
    if flags != 0 || bytes == 0 || !aligned || end as u64 > object.bytes {
        return Err(CuError::INVALID_VALUE);
    }
    state.bindings.0.push((handle, offset, bytes));
    Ok(())
}

fn unbind(
    handle: CUmemGenericAllocationHandle,
    device: CUdevice,
    offset: usize,
    bytes: usize,
) -> CuResult {
    unit(device)?;
    let mut state = state()?;
    let bound = state.bindings.0.iter().position(|bound| *bound == (handle, offset, bytes));
    state.bindings.0.swap_remove(bound.ok_or(CuError::INVALID_VALUE)?);
    Ok(())
}

fn granularity(bytes: Out<usize>, prop: In<Prop>, option: i32) -> CuResult {
    prop.get()?;
    if !matches!(option, 0 | 1) {
        return Err(CuError::INVALID_VALUE);
    }
    bytes.put_word(GRANULARITY as u64)
}
