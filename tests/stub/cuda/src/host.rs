//! Pinned host memory: it costs the card nothing.
//!
//! One address serves host and device. Memory that the driver made is released when the program
//! says so; it does not end with a context here.

use crate::arg::Out;
use crate::driver::state;
use crate::export::exports;
use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{CuError, CuResult};
use std::collections::BTreeMap;
use std::ffi::c_void;

exports! {
    /// Pinned memory.
    fn cuMemAllocHost(pointer: *mut *mut c_void, bytes: u32)
        => alloc, context, "cuMemAllocHost" @ 2000;
    /// Pinned memory.
    fn cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize)
        => alloc, context, "cuMemAllocHost" @ 3020;
    /// Pinned memory with flags.
    fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: u32)
        => alloc_with_flags, context, "cuMemHostAlloc" @ 2020;
    /// Takes what the driver made, at its start.
    fn cuMemFreeHost(pointer: *mut c_void) => free, driver, "cuMemFreeHost" @ 2000;
    /// Pins memory of the program.
    fn cuMemHostRegister(pointer: *mut c_void, bytes: usize, flags: u32)
        => register, context, "cuMemHostRegister" @ 4000;
    /// Pins memory of the program.
    fn cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, flags: u32)
        => register, context, "cuMemHostRegister" @ 6050;
    /// Takes what was registered, at its start.
    fn cuMemHostUnregister(pointer: *mut c_void)
        => unregister, context, "cuMemHostUnregister" @ 4000;
    /// The same address.
    fn cuMemHostGetDevicePointer(device: *mut u32, pointer: *mut c_void, flags: u32)
        => device_pointer, context, "cuMemHostGetDevicePointer" @ 2020;
    /// The same address.
    fn cuMemHostGetDevicePointer_v2(device: *mut u64, pointer: *mut c_void, flags: u32)
        => device_pointer, context, "cuMemHostGetDevicePointer" @ 3020;
    /// Flags it was made with.
    fn cuMemHostGetFlags(flags: *mut u32, pointer: *mut c_void)
        => get_flags, context, "cuMemHostGetFlags" @ 2030;
}

/// A pinned range.
#[derive(Clone, Copy)]
struct Host {
    bytes: u64,
    flags: u32,
    /// The driver made it.
    own: bool,
}

/// The pinned ranges of the process by start.
#[derive(Default)]
pub(crate) struct Hosts(BTreeMap<u64, Host>);

const ALREADY_REGISTERED: CuError = CuError::new(712).unwrap();
const NOT_REGISTERED: CuError = CuError::new(713).unwrap();

impl Hosts {
    /// Start and size of the pinned range around an address.
    pub(crate) fn around(&self, address: u64) -> Option<(u64, u64)> {
        let (start, host) = self.0.range(..=address).next_back()?;
        (address - start < host.bytes).then_some((*start, host.bytes))
    }
}

fn alloc<S: Word>(pointer: Out<*mut c_void>, bytes: S) -> CuResult {
    alloc_bytes(pointer, bytes.to_u64(), 0)
}

fn alloc_with_flags(pointer: Out<*mut c_void>, bytes: usize, flags: u32) -> CuResult {
    alloc_bytes(pointer, bytes as u64, flags)
}

fn alloc_bytes(pointer: Out<*mut c_void>, bytes: u64, flags: u32) -> CuResult {
    pointer.required()?;
    let length = usize::try_from(bytes).ok().filter(|length| *length > 0);
    let length = length.ok_or(CuError::INVALID_VALUE)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new private mapping; it replaces nothing.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, kind, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(CuError::OUT_OF_MEMORY);
    }
    state()?.hosts.0.insert(address as u64, Host { bytes, flags, own: true });
    pointer.put(address)
}

fn free(pointer: Out<c_void>) -> CuResult {
    let mut state = state()?;
    let start = pointer.address();
    let host =
        state.hosts.0.get(&start).copied().filter(|host| host.own).ok_or(CuError::INVALID_VALUE)?;
    state.hosts.0.remove(&start);
    let length = usize::try_from(host.bytes).unwrap_or(0);
    // SAFETY: `alloc_bytes` mapped exactly this, and it has just been forgotten.
    unsafe { libc::munmap(start as *mut c_void, length) };
    Ok(())
}

fn register(pointer: Out<c_void>, bytes: usize, flags: u32) -> CuResult {
    pointer.required()?;
    if bytes == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let mut state = state()?;
    if state.hosts.around(pointer.address()).is_some() {
        return Err(ALREADY_REGISTERED);
    }
    state.hosts.0.insert(pointer.address(), Host { bytes: bytes as u64, flags, own: false });
    Ok(())
}

fn unregister(pointer: Out<c_void>) -> CuResult {
    let mut state = state()?;
    let start = pointer.address();
    let registered = state.hosts.0.get(&start).is_some_and(|host| !host.own);
    if !registered {
        return Err(NOT_REGISTERED);
    }
    state.hosts.0.remove(&start);
    Ok(())
}

fn device_pointer<A: Word>(device: Out<A>, pointer: Out<c_void>, flags: u32) -> CuResult {
    device.required()?;
    let known = state()?.hosts.around(pointer.address()).is_some();
    if flags != 0 || !known {
        return Err(CuError::INVALID_VALUE);
    }
    device.put_word(pointer.address())
}

fn get_flags(flags: Out<u32>, pointer: Out<c_void>) -> CuResult {
    let state = state()?;
    flags.put(state.hosts.0.get(&pointer.address()).ok_or(CuError::INVALID_VALUE)?.flags)
}
