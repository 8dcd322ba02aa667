//! Which pool a device allocates from.

use crate::arg::Out;
use crate::driver::{state, unit};
use crate::export::exports;
use crate::pool::as_pool;
use gpucap_abi::cuda::{
    CU_MEM_LOCATION_TYPE_DEVICE, CUdevice, CUmemLocation, CUmemoryPool, CuError, CuResult,
};

exports! {
    /// The pool that the device started with.
    fn cuDeviceGetDefaultMemPool(pool: *mut CUmemoryPool, device: CUdevice)
        => default_pool, driver, "cuDeviceGetDefaultMemPool" @ 11020;
    /// The pool that `cuMemAllocAsync` uses.
    fn cuDeviceGetMemPool(pool: *mut CUmemoryPool, device: CUdevice)
        => current_pool, driver, "cuDeviceGetMemPool" @ 11020;
    /// Chooses the pool that `cuMemAllocAsync` uses.
    fn cuDeviceSetMemPool(device: CUdevice, pool: CUmemoryPool)
        => set_pool, driver, "cuDeviceSetMemPool" @ 11020;
    /// The pool of a location that the driver started with.
    fn cuMemGetDefaultMemPool(pool: *mut CUmemoryPool, location: *mut CUmemLocation, kind: i32)
        => default_pool_at, driver, "cuMemGetDefaultMemPool" @ 13000;
    /// The pool of a location.
    fn cuMemGetMemPool(pool: *mut CUmemoryPool, location: *mut CUmemLocation, kind: i32)
        => current_pool_at, driver, "cuMemGetMemPool" @ 13000;
    /// Chooses the pool of a location.
    fn cuMemSetMemPool(location: *mut CUmemLocation, kind: i32, pool: CUmemoryPool)
        => set_pool_at, driver, "cuMemSetMemPool" @ 13000;
}

fn default_pool(pool: Out<CUmemoryPool>, device: CUdevice) -> CuResult {
    pool.put(as_pool(state()?.pools.of(unit(device)?).1))
}

fn current_pool(pool: Out<CUmemoryPool>, device: CUdevice) -> CuResult {
    pool.put(as_pool(state()?.pools.of(unit(device)?).2))
}

fn set_pool(device: CUdevice, pool: CUmemoryPool) -> CuResult {
    let unit = unit(device)?;
    let mut state = state()?;
    if state.pools.alive(pool)?.unit != Some(unit) {
        return Err(CuError::INVALID_VALUE);
    }
    state.pools.of(unit).2 = pool.address();
    Ok(())
}

fn default_pool_at(pool: Out<CUmemoryPool>, location: Out<CUmemLocation>, _kind: i32) -> CuResult {
    default_pool(pool, device_at(location)?)
}

fn current_pool_at(pool: Out<CUmemoryPool>, location: Out<CUmemLocation>, _kind: i32) -> CuResult {
    current_pool(pool, device_at(location)?)
}

fn set_pool_at(location: Out<CUmemLocation>, _kind: i32, pool: CUmemoryPool) -> CuResult {
    set_pool(device_at(location)?, pool)
}

fn device_at(location: Out<CUmemLocation>) -> Result<CUdevice, CuError> {
    let location = location.get()?;
    let is_device = location.kind == CU_MEM_LOCATION_TYPE_DEVICE;
    if is_device { Ok(location.id) } else { Err(CuError::NOT_SUPPORTED) }
}
