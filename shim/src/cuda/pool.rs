//! Stream-ordered memory: pools and what is taken from them.

use super::device_of;
use crate::allocations::Record;
use crate::call::Call;
use crate::device::Device;
use crate::driver;
use crate::hooks::Next;
use crate::pools::{Home, Pools};
use crate::session::Session;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use gpucap_abi::arg::{In, Out, Word};
use gpucap_abi::cuda::{
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CUdevice, CUmemLocation, CUmemPoolProps, CUmemoryPool,
    CUstream, CuError, CuResult,
};
use gpucap_core::ledger::Kind;

/// `cuMemAllocAsync`: from the current pool of the current device.
pub(crate) fn alloc<P: Word>(
    call: &Call,
    next: impl Next<CuError>,
    pointer: Out<P>,
    bytes: impl Word,
    stream: CUstream,
) -> CuResult {
    if driver::cuda::is_capturing(call.driver, stream, call.per_thread) {
        return next().map(drop); // a node of a graph, charged when the graph is made executable
    }
    let Some(ordinal) = driver::cuda::current_device(call.driver) else { return next().map(drop) };
    let session = call.session()?;
    let Some(device) = session.device(call.driver, ordinal)? else { return next().map(drop) };
    let pool = current_pool(call, session, device, ordinal);
    charged(call, next, (session, device), pool, pointer, bytes.to_u64())
}

/// `cuMemAllocFromPoolAsync`: charged to the pool's device. A pool that we have not met is taken to belong to the
/// current one.
pub(crate) fn alloc_from<P: Word>(
    call: &Call,
    next: impl Next<CuError>,
    pointer: Out<P>,
    bytes: impl Word,
    pool: CUmemoryPool,
    stream: CUstream,
) -> CuResult {
    if driver::cuda::is_capturing(call.driver, stream, call.per_thread) {
        return next().map(drop);
    }
    let session = call.session()?;
    let home = session.pools.home(pool).or_else(|| {
        let home = Home::Device(driver::cuda::current_device(call.driver)?);
        session.pools.guess(call.driver, pool, home);
        Some(home)
    });
    let Some(Home::Device(ordinal)) = home else { return next().map(drop) };
    let Some(device) = session.device(call.driver, ordinal)? else { return next().map(drop) };
    charged(call, next, (session, device), pool, pointer, bytes.to_u64())
}

/// `cuMemFreeAsync`: from the call on the bytes serve only the pool they came from.
pub(crate) fn free(
    call: &Call,
    next: impl Next<CuError>,
    pointer: impl Word,
    _stream: CUstream,
) -> CuResult {
    super::memory::free(call, next, pointer)
}

/// The driver has taken stream-ordered memory back: the pool may keep it.
pub(crate) fn freed(call: &Call, session: &'static Session, record: Record) {
    let pool = CUmemoryPool::from_address(record.home);
    if session.pools.freed(pool, record.bytes) {
        session.pools.settle(call.driver, session, pool);
    } else {
        session.refund(record);
    }
}

/// `cuMemPoolCreate`.
pub(crate) fn create(
    call: &Call,
    next: impl Next<CuError>,
    pool: Out<CUmemoryPool>,
    props: In<CUmemPoolProps>,
) -> CuResult {
    let written = next()?;
    let home =
        props.get().map_or(Home::Elsewhere, |props| home_at(call, props.location, props.allocType));
    if let (Some(pool), Ok(session)) = (pool.get(&written), call.session()) {
        session.pools.learn(call.driver, pool, home);
    }
    Ok(())
}

/// `cuMemPoolImportFromShareableHandle`: the exporter is charged.
pub(crate) fn import(
    call: &Call,
    next: impl Next<CuError>,
    pool: Out<CUmemoryPool>,
    _handle: Out<c_void>,
    _kind: c_int,
    _flags: u64,
) -> CuResult {
    let written = next()?;
    if let (Some(pool), Ok(session)) = (pool.get(&written), call.session()) {
        session.pools.learn(call.driver, pool, Home::Elsewhere);
    }
    Ok(())
}

/// `cuDeviceGetDefaultMemPool`, `cuDeviceGetMemPool`.
pub(crate) fn of_device(
    call: &Call,
    next: impl Next<CuError>,
    pool: Out<CUmemoryPool>,
    ordinal: CUdevice,
) -> CuResult {
    let written = next()?;
    if let (Some(pool), Ok(session)) = (pool.get(&written), call.session()) {
        session.pools.learn(call.driver, pool, Home::Device(ordinal));
    }
    Ok(())
}

/// `cuMemGetDefaultMemPool`, `cuMemGetMemPool` (13.0).
pub(crate) fn of_location(
    call: &Call,
    next: impl Next<CuError>,
    pool: Out<CUmemoryPool>,
    location: Out<CUmemLocation>,
    kind: c_int,
) -> CuResult {
    let written = next()?;
    if let (Some(pool), Some(location)) = (pool.get(&written), location.get(&written))
        && let Ok(session) = call.session()
    {
        session.pools.learn(call.driver, pool, home_at(call, location, kind));
    }
    Ok(())
}

/// `cuDeviceSetMemPool`: `cuMemAllocAsync` takes from another pool from here on.
pub(crate) fn set_current(
    call: &Call,
    next: impl Next<CuError>,
    ordinal: CUdevice,
    pool: CUmemoryPool,
) -> CuResult {
    next()?;
    if let Ok(session) = call.session()
        && let Ok(Some(device)) = session.device(call.driver, ordinal)
    {
        session.pools.learn(call.driver, pool, Home::Device(ordinal));
        device.current_pool.store(pool.address(), Ordering::Release);
    }
    Ok(())
}

/// `cuMemSetMemPool` (13.0): the same by location; the next allocation asks the driver.
pub(crate) fn set_current_at(
    call: &Call,
    next: impl Next<CuError>,
    location: Out<CUmemLocation>,
    _kind: c_int,
    _pool: CUmemoryPool,
) -> CuResult {
    let written = next()?;
    if let Some(location) = location.get(&written)
        && let Some(ordinal) = device_of(call, location)
        && let Ok(session) = call.session()
        && let Ok(Some(device)) = session.device(call.driver, ordinal)
    {
        device.current_pool.store(0, Ordering::Release);
    }
    Ok(())
}

/// `cuMemPoolSetAttribute`.
pub(crate) fn set_attribute(
    call: &Call,
    next: impl Next<CuError>,
    pool: CUmemoryPool,
    attribute: c_int,
    value: Out<c_void>,
) -> CuResult {
    let written = next()?;
    if attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        && let Some(threshold) = value.as_type::<u64>().get(&written)
        && let Ok(session) = call.session()
    {
        if let Some(ordinal) = driver::cuda::current_device(call.driver) {
            session.pools.guess(call.driver, pool, Home::Device(ordinal));
        }
        session.pools.set_keeps(pool, threshold > 0);
        session.pools.settle(call.driver, session, pool);
    }
    Ok(())
}

/// `cuMemPoolTrimTo`.
pub(crate) fn trim(
    call: &Call,
    next: impl Next<CuError>,
    pool: CUmemoryPool,
    _keep: usize,
) -> CuResult {
    next()?;
    if let Some(session) = Session::begun() {
        session.pools.settle(call.driver, session, pool);
    }
    Ok(())
}

/// `cuMemPoolDestroy`: what was taken from it lives on until it is freed. A device whose current pool it was goes back to
/// its default pool.
pub(crate) fn destroy(call: &Call, next: impl Next<CuError>, pool: CUmemoryPool) -> CuResult {
    let Some(session) = Session::begun() else { return next().map(drop) };
    session.forget_current_pool(pool.address());
    let Some(taken) = session.pools.take(pool) else { return next().map(drop) };
    match next() {
        Ok(_) => {
            session.forget_current_pool(pool.address()); // an allocation may have asked for it meanwhile
            Pools::gone(call.driver, session, &taken);
            Ok(())
        }
        Err(error) => {
            session.pools.put_back(pool, taken);
            Err(error)
        }
    }
}

/// `CU_MEM_ALLOCATION_TYPE_MANAGED`
const MANAGED: c_int = 2;

/// Where a pool's memory lives. Managed memory is charged in full, wherever it may lie (CUDA 13).
fn home_at(call: &Call, location: CUmemLocation, kind: c_int) -> Home {
    let device = match kind {
        MANAGED => driver::cuda::current_device(call.driver),
        _ => device_of(call, location),
    };
    device.map_or(Home::Elsewhere, Home::Device)
}

fn charged<P: Word>(
    call: &Call,
    next: impl Next<CuError>,
    (session, device): (&'static Session, &Device),
    pool: CUmemoryPool,
    pointer: Out<P>,
    bytes: u64,
) -> CuResult {
    let paid = session.pools.begin(pool, bytes);
    let outcome = call
        .charge(session, device, Kind::Pool, bytes.saturating_sub(paid))
        .map_err(CuError::from)
        .and_then(|charge| {
            let written = next()?;
            let charge = charge.completing(bytes).at_home_in(pool.address());
            super::memory::keep(session, pointer, &written, charge);
            Ok(())
        });
    if session.pools.end(pool, bytes, paid, outcome.is_ok()) {
        session.pools.settle(call.driver, session, pool);
    }
    outcome
}

fn current_pool(
    call: &Call,
    session: &Session,
    device: &Device,
    ordinal: CUdevice,
) -> CUmemoryPool {
    let known = device.current_pool.load(Ordering::Acquire);
    if known != 0 {
        return CUmemoryPool::from_address(known);
    }
    let Some(pool) = driver::cuda::current_pool(call.driver, ordinal) else {
        return CUmemoryPool::NULL;
    };
    session.pools.learn(call.driver, pool, Home::Device(ordinal));
    device.current_pool.store(pool.address(), Ordering::Release);
    pool
}
