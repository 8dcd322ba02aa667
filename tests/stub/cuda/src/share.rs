//! Physical memory as a file, for another process or for another part of this one.
//!
//! The file says which process made the memory, how large it is, and by which number that process
//! knows it. The maker gets one more handle for the same memory, of a value of its own; another
//! process gets a handle of memory that it does not pay for, and that stays whatever the maker
//! does. A file that is open in the maker keeps the memory; copies of it are not followed.

use crate::arg::{Address, Out};
use crate::driver::state;
use crate::export::exports;
use crate::state::fresh_handle;
use crate::vmm::PINNED;
use gpucap_abi::cuda::{
    CU_MEM_LOCATION_TYPE_DEVICE, CUmemAllocationProp, CUmemGenericAllocationHandle, CUmemLocation,
    CuError, CuResult,
};
use std::ffi::c_void;

exports! {
    /// As an open file.
    fn cuMemExportToShareableHandle(shareable: Address, handle: CUmemGenericAllocationHandle,
        kind: i32, flags: u64) => export, driver, "cuMemExportToShareableHandle" @ 10020;
    /// One more handle in the process that made it; elsewhere, of memory that another pays for.
    fn cuMemImportFromShareableHandle(handle: *mut CUmemGenericAllocationHandle, shareable: Address,
        kind: i32) => import, driver, "cuMemImportFromShareableHandle" @ 10020;
}

/// A file that something was exported as.
pub(crate) struct File {
    descriptor: i32,
    inode: u64,
}

impl File {
    /// Whether the program has not closed it.
    pub(crate) fn is_open(&self) -> bool {
        inode(self.descriptor) == Some(self.inode)
    }
}

/// What stands in the file.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Content {
    /// What sort of thing it is.
    pub(crate) magic: u64,
    /// The process that made it.
    pub(crate) maker: u64,
    /// Its number there.
    pub(crate) number: u64,
    pub(crate) bytes: u64,
}

const MAGIC: u64 = u64::from_be_bytes(*b"stubhndl");
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`
pub(crate) const FILE_DESCRIPTOR: i32 = 1;

impl Content {
    /// Puts it into a new file, which the program has to close.
    pub(crate) fn write(self) -> Result<(i32, File), CuError> {
        // SAFETY: the name is a terminated string.
        let descriptor = unsafe { libc::memfd_create(c"stub-gpu-handle".as_ptr(), 0) };
        let place = (&raw const self).cast();
        // SAFETY: the buffer is `self`, of that size; the descriptor is checked by the call itself.
        let written = unsafe { libc::pwrite(descriptor, place, size_of::<Self>(), 0) };
        let inode = inode(descriptor).filter(|_| written > 0).ok_or(CuError::UNKNOWN)?;
        Ok((descriptor, File { descriptor, inode }))
    }

    /// Reads it from the file that a handle is.
    pub(crate) fn read(shareable: Out<c_void>, kind: i32, magic: u64) -> Result<Self, CuError> {
        let descriptor = i32::try_from(shareable.address()).map_err(|_| CuError::INVALID_VALUE)?;
        let mut content = Self { magic: 0, maker: 0, number: 0, bytes: 0 };
        let place = (&raw mut content).cast();
        // SAFETY: the buffer is `content`, of that size; a bad descriptor is refused by the call.
        unsafe { libc::pread(descriptor, place, size_of::<Self>(), 0) };
        let known = kind == FILE_DESCRIPTOR && content.magic == magic;
        if known { Ok(content) } else { Err(CuError::INVALID_VALUE) }
    }

    /// Whether this process made it.
    pub(crate) fn is_ours(&self) -> bool {
        self.maker == u64::from(std::process::id())
    }
}

fn inode(descriptor: i32) -> Option<u64> {
    // SAFETY: `stat` is numbers only, for which zeros are valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: asks about a descriptor by number; a writable place.
    let result = unsafe { libc::fstat(descriptor, &raw mut status) };
    (result == 0).then_some(status.st_ino)
}

fn export(
    shareable: Out<c_void>,
    handle: CUmemGenericAllocationHandle,
    kind: i32,
    flags: u64,
) -> CuResult {
    shareable.required()?;
    let mut state = state()?;
    let (physical, found) = state.vmm.named(handle)?;
    if kind != FILE_DESCRIPTOR {
        return Err(CuError::NOT_SUPPORTED);
    }
    if flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let maker = std::process::id().into();
    let content = Content { magic: MAGIC, maker, number: physical, bytes: found.bytes };
    let (descriptor, file) = content.write()?;
    found.files.push(file);
    shareable.cast::<i32>().put(descriptor)
}

fn import(
    handle: Out<CUmemGenericAllocationHandle>,
    shareable: Out<c_void>,
    kind: i32,
) -> CuResult {
    handle.required()?;
    let content = Content::read(shareable, kind, MAGIC)?;
    let mut state = state()?;
    if content.is_ours() {
        state.vmm.by_number(content.number).ok_or(CuError::INVALID_VALUE)?;
        return handle.put(state.vmm.refer(fresh_handle(), content.number));
    }
    let prop = CUmemAllocationProp {
        kind: PINNED,
        requestedHandleTypes: kind,
        location: CUmemLocation { kind: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 },
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: [0; 8],
    };
    handle.put(state.vmm.add(content.bytes, None, prop))
}
