//! Stream-ordered memory: pools and what is taken from them.

use super::allocation::{freed, keep};
use super::{device_of, likely_device, needed};
use crate::budget::charge::Charge;
use crate::budget::device::Device;
use crate::call::{Call, Refusal};
use crate::driver::cuda::needed::Capture;
use crate::driver::{self, Next};
use crate::holdings::pools::{Asked, ContextStream, Home};
use crate::session::Session;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use gpucap_abi::arg::{In, Out, Word, Written};
use gpucap_abi::cuda::{
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CUcontext, CUdevice, CUmemLocation, CUmemPoolProps,
    CUmemoryPool, CUstream, CuError, CuResult,
};
use gpucap_core::ledger::Kind;

/// `cuMemAllocAsync`: from the current pool of the stream's device.
pub(crate) fn alloc<P: Word>(
    call: &Call,
    next: impl Next<CuError>,
    pointer: Out<P>,
    bytes: impl Word,
    stream: CUstream,
) -> CuResult {
    let capture = capture(call, stream)?;
    let session = call.session()?;
    let _kept = session.pools.handles.keep();
    let ordinal = needed(call, driver::cuda::needed::device_of(call.driver, stream))?;
    let Some(ordinal) = ordinal else { return next().map(drop) };
    let Some(device) = session.budget.device(call.driver, ordinal)? else {
        return next().map(drop);
    };
    let pool = current_pool(call, session, device, ordinal)?;
    let taken = Taken { session, device, pool, pointer, bytes: bytes.to_u64() };
    match capture {
        Some(capture) => taken.recorded(call, next, capture),
        None => taken.charged(call, next),
    }
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
    let capture = capture(call, stream)?;
    let session = call.session()?;
    let _kept = session.pools.handles.keep();
    let home = session.pools.home(pool).unwrap_or_else(|| {
        let home = Home::Device(likely_device(call));
        session.pools.guess(call.driver, pool, home);
        home
    });
    let Home::Device(ordinal) = home else { return next().map(drop) };
    let Some(device) = session.budget.device(call.driver, ordinal)? else {
        return next().map(drop);
    };
    let taken = Taken { session, device, pool, pointer, bytes: bytes.to_u64() };
    match capture {
        Some(capture) => taken.recorded(call, next, capture),
        None => taken.charged(call, next),
    }
}

/// `cuMemFreeAsync`: from the call on the bytes serve only the pool they came from, which keeps them.
pub(crate) fn free(
    call: &Call,
    next: impl Next<CuError>,
    pointer: impl Word,
    stream: CUstream,
) -> CuResult {
    let Some(session) = Session::begun() else { return next().map(drop) };
    session.memory.end_one(pointer.to_u64(), next, |record| {
        let from = || {
            let context = driver::cuda::stream::context_of(call.driver, stream);
            ContextStream::new(context.unwrap_or(CUcontext::NULL), stream, call.per_thread)
        };
        let from = (record.kind == Kind::Pool).then(from);
        freed(call, session, record, from);
    })
}

/// The host has waited for a stream, an event or this context.
pub(super) fn synchronised(call: &Call, context: Option<CUcontext>) {
    if let Some(session) = Session::begun() {
        session.pools.synchronised(call.driver, &session.budget, context);
    }
}

/// `cuMemPoolCreate`.
pub(crate) fn create(
    call: &Call,
    next: impl Next<CuError>,
    pool: Out<CUmemoryPool>,
    props: In<CUmemPoolProps>,
) -> CuResult {
    let Ok(session) = call.session() else { return next().map(drop) };
    let _changing = session.pools.handles.change();
    let written = next()?;
    let home =
        props.get().map_or(Home::Elsewhere, |props| home_at(call, props.location, props.allocType));
    if let Some(pool) = pool.get(&written) {
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
    let Ok(session) = call.session() else { return next().map(drop) };
    let _changing = session.pools.handles.change();
    let written = next()?;
    if let Some(pool) = pool.get(&written) {
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
    let Ok(session) = call.session() else { return next().map(drop) };
    let _changing = session.pools.handles.change();
    next()?;
    if let Ok(Some(device)) = session.budget.device(call.driver, ordinal) {
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
    let Ok(session) = call.session() else { return next().map(drop) };
    let _changing = session.pools.handles.change();
    let written = next()?;
    if let Some(location) = location.get(&written)
        && let Some(ordinal) = device_of(call, location)
        && let Ok(Some(device)) = session.budget.device(call.driver, ordinal)
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
        session.pools.set_threshold(pool, threshold);
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
        session.pools.settle(call.driver, &session.budget, pool);
    }
    Ok(())
}

/// `cuMemPoolDestroy`: what was taken from it lives on until it is freed. A device whose current pool it was goes back to
/// its default pool.
pub(crate) fn destroy(call: &Call, next: impl Next<CuError>, pool: CUmemoryPool) -> CuResult {
    let Some(session) = Session::begun() else { return next().map(drop) };
    let _changing = session.pools.handles.change();
    session.budget.forget_current_pool(pool.address());
    let Some(number) = session.pools.end(call.driver, &session.budget, pool) else {
        return next().map(drop);
    };
    match next() {
        Ok(_) => {
            session.pools.ended(call.driver, &session.budget, number);
            Ok(())
        }
        Err(error) => {
            session.pools.go_on(pool, number);
            session.pools.settle(call.driver, &session.budget, pool);
            Err(error)
        }
    }
}

/// `CU_MEM_ALLOCATION_TYPE_MANAGED`
const MANAGED: c_int = 2;

/// The device of a pool's memory. Managed memory is charged in full, wherever it is (CUDA 13).
fn home_at(call: &Call, location: CUmemLocation, kind: c_int) -> Home {
    let device = match kind {
        MANAGED => Some(likely_device(call)),
        _ => device_of(call, location),
    };
    device.map_or(Home::Elsewhere, Home::Device)
}

/// An allocation from a pool, which stays what it is until the call is over.
struct Taken<P> {
    session: &'static Session,
    device: &'static Device,
    pool: CUmemoryPool,
    pointer: Out<P>,
    bytes: u64,
}

impl<P: Word> Taken<P> {
    /// Charges for it, and calls the driver.
    fn charged(self, call: &Call, next: impl Next<CuError>) -> CuResult {
        let Self { session, device, pool, bytes, .. } = self;
        let (asked, charge) = pay(call, (session, device), pool, bytes)?;
        match next() {
            Ok(written) => self.entered(call, written, (asked, charge)),
            Err(error) => {
                drop(charge);
                session.pools.failed(asked);
                session.pools.settle(call.driver, &session.budget, pool);
                Err(error)
            }
        }
    }

    /// The stream was captured: it becomes a node of a graph, charged when the graph is made executable. If the capture
    /// has ended before the driver came to it, it has been carried out, and is charged now or undone.
    fn recorded(self, call: &Call, next: impl Next<CuError>, capture: Capture) -> CuResult {
        let Self { session, device, pool, pointer, bytes } = self;
        let written = next()?;
        if capture.goes_on(call.driver) || !session.pools.is_taken(call.driver, pool, bytes) {
            return Ok(());
        }
        let refusal = match pay(call, (session, device), pool, bytes) {
            Ok(paid) => return self.entered(call, written, paid),
            Err(refusal) => refusal,
        };
        let free = |address: P| driver::cuda::free(call.driver, address.to_u64());
        if pointer.get(&written).and_then(free).is_some() {
            session.pools.settle(call.driver, &session.budget, pool);
        } else {
            // It is still there.
            let asked = session.pools.begin(pool, device.index, bytes, true);
            let charge = session.budget.charge_held(device, Kind::Pool, asked.charge());
            self.entered(call, written, (asked, charge))?;
        }
        Err(refusal.into())
    }

    /// Enters what the driver has taken and what was charged for it.
    fn entered(self, call: &Call, written: Written, (asked, charge): (Asked, Charge)) -> CuResult {
        let Self { session, device, pool, pointer, bytes } = self;
        let charge = charge.completing(bytes).at_home_in(asked.pool);
        keep(session, pointer, &written, charge);
        let on = (&session.budget, device);
        session.pools.succeeded(call.driver, on, pool, asked).map_err(|over| {
            // The pool has grown by more than could be known, and there is no room: the application has not seen the
            // memory yet.
            if let Some(address) = pointer.get(&written).map(Word::to_u64) {
                let undo = || driver::cuda::free(call.driver, address).ok_or(CuError::UNKNOWN);
                let undo = || undo().map(|()| written);
                let freed = |record| freed(call, session, record, None);
                let _ = session.memory.end_one(address, undo, freed);
            }
            session.pools.settle(call.driver, &session.budget, pool);
            session.budget.refused(device, &over);
            Refusal::OverQuota.into()
        })
    }
}

/// Charges for an allocation from a pool: as much as the pool may grow by. If that does not fit, what pools only keep is
/// given back, and what is needed at the least is charged.
fn pay(
    call: &Call,
    (session, device): (&'static Session, &Device),
    pool: CUmemoryPool,
    bytes: u64,
) -> Result<(Asked, Charge), Refusal> {
    let asked = session.pools.begin(pool, device.index, bytes, false);
    if let Ok(charge) = session.budget.charge(device, Kind::Pool, asked.charge()) {
        return Ok((asked, charge));
    }
    session.pools.failed(asked);
    call.make_room(session);
    let asked = session.pools.begin(pool, device.index, bytes, true);
    let charge = call.charge(session, device, Kind::Pool, asked.charge()).inspect_err(|_| {
        session.pools.failed(asked);
        session.pools.settle(call.driver, &session.budget, pool);
    })?;
    Ok((asked, charge))
}

fn capture(call: &Call, stream: CUstream) -> Result<Option<Capture>, CuError> {
    needed(call, driver::cuda::needed::capture(call.driver, stream, call.per_thread))
}

fn current_pool(
    call: &Call,
    session: &Session,
    device: &Device,
    ordinal: CUdevice,
) -> Result<CUmemoryPool, CuError> {
    let known = device.current_pool.load(Ordering::Acquire);
    if known != 0 {
        return Ok(CUmemoryPool::from_address(known));
    }
    let Some(pool) = driver::cuda::needed::current_pool(call.driver, ordinal)? else {
        return Ok(CUmemoryPool::NULL);
    };
    session.pools.learn(call.driver, pool, Home::Device(ordinal));
    device.current_pool.store(pool.address(), Ordering::Release);
    Ok(pool)
}
