//! Semaphores of another interface (Vulkan, Direct3D): what a stream signals and waits for.
//!
//! No other process knows the semaphore here, whatever the descriptor says; so it is what the streams of
//! this process make of it. Who waits for a signal that another stream will come to waits for that
//! place in the other stream. All else is done as host functions are ([`crate::host_function`]): the
//! next operation of the stream waits for it on the host.

use crate::arg::{In, Out};
use crate::capture::{self, Operation};
use crate::driver::state;
use crate::export::exports;
use crate::host_function::run;
use crate::state::Table;
use crate::stream::Point;
use gpucap_abi::cuda::{CUexternalSemaphore, CUstream, CuError, CuResult};
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

exports! {
    /// Binary ones and those that count, by descriptor.
    fn cuImportExternalSemaphore(semaphore: *mut CUexternalSemaphore, handle: *const Handle)
        => import, context, "cuImportExternalSemaphore" @ 10000;
    /// Waits for it go on.
    fn cuDestroyExternalSemaphore(semaphore: CUexternalSemaphore)
        => destroy, driver, "cuDestroyExternalSemaphore" @ 10000;
    /// Signalled when the stream reaches it.
    fn cuSignalExternalSemaphoresAsync(semaphores: *const CUexternalSemaphore,
        values: *const Described, count: u32, stream: CUstream)
        => signal, context, "cuSignalExternalSemaphoresAsync" @ 10000;
    /// Signalled when the stream reaches it.
    fn cuSignalExternalSemaphoresAsync_ptsz(semaphores: *const CUexternalSemaphore,
        values: *const Described, count: u32, stream: CUstream)
        => signal, context, "cuSignalExternalSemaphoresAsync" @ 10000 ptsz;
    /// What is queued behind it waits for all of them.
    fn cuWaitExternalSemaphoresAsync(semaphores: *const CUexternalSemaphore,
        values: *const Described, count: u32, stream: CUstream)
        => wait, context, "cuWaitExternalSemaphoresAsync" @ 10000;
    /// What is queued behind it waits for all of them.
    fn cuWaitExternalSemaphoresAsync_ptsz(semaphores: *const CUexternalSemaphore,
        values: *const Described, count: u32, stream: CUstream)
        => wait, context, "cuWaitExternalSemaphoresAsync" @ 10000 ptsz;
}

/// `CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Handle {
    kind: i32,
    handle: [u64; 2],
    flags: u32,
    reserved: [u32; 16],
}

const _: () = assert!(size_of::<Handle>() == 96);

/// `CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS` and `CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS`, as far as these kinds need them.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Described {
    value: u64,
    rest: [u64; 17],
}

const _: () = assert!(size_of::<Described>() == 144);

/// `CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD`
const BINARY: i32 = 1;
/// `CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD`
const COUNTING: i32 = 9;

/// A semaphore.
#[derive(Clone)]
pub(crate) struct Semaphore {
    is_binary: bool,
    value: Arc<(Mutex<u64>, Condvar)>,
    /// The latest signal that was queued, and where.
    queued: Arc<Mutex<Option<(u64, Point)>>>,
}

/// The semaphores of the process.
pub(crate) type Semaphores = Table<Semaphore>;

impl Semaphore {
    /// Where a signal is queued that a wait for the value may wait for; of a binary one it is then taken.
    fn queued(&self, value: u64) -> Option<Point> {
        let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
        let (signalled, point) = *queued.as_ref()?;
        if point.reached().is_some() || (!self.is_binary && signalled < value) {
            return None;
        }
        if self.is_binary {
            *queued = None;
        }
        Some(point)
    }

    /// Of a binary one, signals are counted: the thread that takes one may come after the next.
    fn signal(&self, value: u64) {
        let (now, changed) = &*self.value;
        let mut now = now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = if self.is_binary { *now + 1 } else { value };
        changed.notify_all();
    }

    /// A wait for a binary one takes a signal.
    fn wait(&self, value: u64) {
        let (now, changed) = &*self.value;
        let value = if self.is_binary { 1 } else { value };
        let mut now = now.lock().unwrap_or_else(PoisonError::into_inner);
        while *now < value {
            now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        if self.is_binary {
            *now -= 1;
        }
    }
}

fn import(semaphore: Out<CUexternalSemaphore>, handle: In<Handle>) -> CuResult {
    semaphore.required()?;
    let kind = handle.get()?.kind;
    if kind != BINARY && kind != COUNTING {
        return Err(CuError::INVALID_VALUE);
    }
    let made =
        Semaphore { is_binary: kind == BINARY, value: Arc::default(), queued: Arc::default() };
    semaphore.put(CUexternalSemaphore(state()?.semaphores.add(made) as *mut c_void))
}

fn destroy(semaphore: CUexternalSemaphore) -> CuResult {
    state()?.semaphores.remove(semaphore.address()).map(drop).ok_or(CuError::INVALID_HANDLE)
}

/// The semaphores of a call, each with its value.
fn named(
    semaphores: In<CUexternalSemaphore>,
    values: In<Described>,
    count: u32,
) -> Result<Vec<(Semaphore, u64)>, CuError> {
    let state = state()?;
    let one = |index| {
        let handle = semaphores.at(index).get()?;
        let found = state.semaphores.get(handle.address()).ok_or(CuError::INVALID_HANDLE)?;
        Ok((found.clone(), values.at(index).get()?.value))
    };
    (0..count as usize).map(one).collect()
}

fn signal(
    semaphores: In<CUexternalSemaphore>,
    values: In<Described>,
    count: u32,
    stream: CUstream,
) -> CuResult {
    let named = named(semaphores, values, count)?;
    if capture::take(stream, Operation::Work(0))? {
        return Ok(());
    }
    for (semaphore, value) in named {
        let signalled = semaphore.clone();
        let point = run(stream, move || signalled.signal(value))?;
        *semaphore.queued.lock().unwrap_or_else(PoisonError::into_inner) = Some((value, point));
    }
    Ok(())
}

fn wait(
    semaphores: In<CUexternalSemaphore>,
    values: In<Described>,
    count: u32,
    stream: CUstream,
) -> CuResult {
    let named = named(semaphores, values, count)?;
    if capture::take(stream, Operation::Work(0))? {
        return Ok(());
    }
    for (semaphore, value) in named {
        if let Some(point) = semaphore.queued(value) {
            point.holds_up(stream)?;
            // It takes the signal when that is there; the stream need not wait for the thread.
            std::thread::spawn(move || semaphore.wait(value));
        } else {
            run(stream, move || semaphore.wait(value))?;
        }
    }
    Ok(())
}
