//! Pools and their memory, for another process.
//!
//! A pool that was made to be exported becomes a file, and an allocation from it 64 bytes. Any process that
//! imports both has an address that it must free, and pays for nothing.

use crate::arg::{Address, Out};
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::memory::Kind;
use crate::pool::as_pool;
use crate::share::{Content, FILE_DESCRIPTOR};
use gpucap_abi::cuda::{CUdeviceptr, CUmemoryPool, CuError, CuResult};
use std::ffi::c_void;

exports! {
    /// As an open file, if it was made to be exported.
    fn cuMemPoolExportToShareableHandle(shareable: Address, pool: CUmemoryPool, kind: i32,
        flags: u64) => export, driver, "cuMemPoolExportToShareableHandle" @ 11020;
    /// A pool that cannot be allocated from.
    fn cuMemPoolImportFromShareableHandle(pool: *mut CUmemoryPool, shareable: Address,
        kind: i32, flags: u64) => import, driver, "cuMemPoolImportFromShareableHandle" @ 11020;
    /// Of memory from such a pool.
    fn cuMemPoolExportPointer(share: *mut Share, pointer: CUdeviceptr)
        => export_pointer, driver, "cuMemPoolExportPointer" @ 11020;
    /// An address of its own.
    fn cuMemPoolImportPointer(pointer: *mut CUdeviceptr, pool: CUmemoryPool, share: *mut Share)
        => import_pointer, driver, "cuMemPoolImportPointer" @ 11020;
}

/// `CUmemPoolPtrExportData`
#[repr(C)]
#[derive(Clone, Copy)]
struct Share([u64; 8]);

const POOL: u64 = u64::from_be_bytes(*b"stubpool");
const POINTER: u64 = u64::from_be_bytes(*b"stubptr ");

fn export(shareable: Out<c_void>, pool: CUmemoryPool, kind: i32, flags: u64) -> CuResult {
    shareable.required()?;
    let (exportable, _) = state()?.pools.alive(pool)?.sharing();
    if !exportable || kind != FILE_DESCRIPTOR || flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let maker = std::process::id().into();
    let content = Content { magic: POOL, maker, number: pool.address(), bytes: 0 };
    let (descriptor, _) = content.write()?;
    shareable.cast::<i32>().put(descriptor)
}

fn import(pool: Out<CUmemoryPool>, shareable: Out<c_void>, kind: i32, flags: u64) -> CuResult {
    pool.required()?;
    if flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    Content::read(shareable, kind, POOL)?;
    pool.put(as_pool(state()?.pools.import()))
}

fn export_pointer(share: Out<Share>, pointer: CUdeviceptr) -> CuResult {
    share.required()?;
    let mut state = state()?;
    let block = state.memory.at(pointer).ok_or(CuError::INVALID_VALUE)?;
    let Kind::Pool(pool) = block.kind else { return Err(CuError::INVALID_VALUE) };
    let (exportable, _) = state.pools.alive(as_pool(pool))?.sharing();
    if !exportable {
        return Err(CuError::INVALID_VALUE);
    }
    share.put(Share([POINTER, block.bytes, 0, 0, 0, 0, 0, 0]))
}

fn import_pointer(pointer: Out<CUdeviceptr>, pool: CUmemoryPool, share: Out<Share>) -> CuResult {
    pointer.required()?;
    let Share([magic, bytes, ..]) = share.get()?;
    let (_, imported) = state()?.pools.alive(pool)?.sharing();
    if !imported || magic != POINTER {
        return Err(CuError::INVALID_VALUE);
    }
    let current = current()?;
    pointer.put(state()?.memory.place(false, bytes, current, Kind::Imported)?)
}
