//! Green contexts: contexts with part of the multiprocessors.
//!
//! A green context retains the primary context of its device, and what is made in it lives in that
//! one. Its handle is that of the context that it can be used as. How many multiprocessors it has
//! changes nothing: kernels last as long as their names say.

use crate::arg::{In, Out};
use crate::context::{add_green, end_green, or_current};
use crate::driver::{state, unit};
use crate::export::exports;
use gpucap_abi::cuda::{CUcontext, CUdevice, CUevent, CUstream, CuError, CuResult};

exports! {
    /// It becomes current nowhere.
    fn cuGreenCtxCreate(green: *mut CUcontext, description: *mut u64, device: CUdevice, flags: u32)
        => create, driver, "cuGreenCtxCreate" @ 12040;
    /// Releases the primary context; what was made in it is that one's.
    fn cuGreenCtxDestroy(green: CUcontext) => destroy_green, driver, "cuGreenCtxDestroy" @ 12040;
    /// Its context.
    fn cuCtxFromGreenCtx(context: *mut CUcontext, green: CUcontext)
        => context_of, driver, "cuCtxFromGreenCtx" @ 12040;
    /// All multiprocessors.
    fn cuDeviceGetDevResource(device: CUdevice, resource: *mut i32, kind: i32)
        => of_device, driver, "cuDeviceGetDevResource" @ 12040;
    /// All multiprocessors.
    fn cuCtxGetDevResource(context: CUcontext, resource: *mut i32, kind: i32)
        => of_context, driver, "cuCtxGetDevResource" @ 12040;
    /// All multiprocessors.
    fn cuGreenCtxGetDevResource(green: CUcontext, resource: *mut i32, kind: i32)
        => of_context, driver, "cuGreenCtxGetDevResource" @ 12040;
    /// A number that stands for the resources.
    fn cuDevResourceGenerateDesc(description: *mut u64, resources: *mut i32, count: u32)
        => describe, driver, "cuDevResourceGenerateDesc" @ 12040;
    /// Groups of at least `least` multiprocessors.
    fn cuDevSmResourceSplitByCount(groups: *mut i32, count: *mut u32, input: *const i32,
        rest: *mut i32, flags: u32, least: u32)
        => split, driver, "cuDevSmResourceSplitByCount" @ 12040;
    /// A stream of its context.
    fn cuGreenCtxStreamCreate(stream: *mut CUstream, green: CUcontext, flags: u32, priority: i32)
        => stream, driver, "cuGreenCtxStreamCreate" @ 12050;
    /// Checked, and nothing else.
    fn cuGreenCtxRecordEvent(green: CUcontext, event: CUevent)
        => event, driver, "cuGreenCtxRecordEvent" @ 12040;
    /// What is queued in its context from now on waits for the event.
    fn cuGreenCtxWaitEvent(green: CUcontext, event: CUevent)
        => wait_event, driver, "cuGreenCtxWaitEvent" @ 12040;
    /// Null: streams know their context only.
    fn cuStreamGetGreenCtx(stream: CUstream, green: *mut CUcontext)
        => of_stream, driver, "cuStreamGetGreenCtx" @ 12040;
}

/// `CU_GREEN_CTX_DEFAULT_STREAM`, which must be given.
const DEFAULT_STREAM: u32 = 1;
/// `CU_DEV_RESOURCE_TYPE_SM`
const MULTIPROCESSORS: i32 = 1;
const ALL: i32 = 108;
/// Where the count lies in `CUdevResource`, in integers.
const COUNT_AT: usize = 24;
/// Size of `CUdevResource` in integers.
const RESOURCE: usize = 36;
const UNSUPPORTED_KIND: CuError = CuError::new(914).unwrap();

fn create(green: Out<CUcontext>, description: Out<u64>, device: CUdevice, flags: u32) -> CuResult {
    green.required()?;
    description.required()?;
    if flags != DEFAULT_STREAM {
        return Err(CuError::INVALID_VALUE);
    }
    green.put(crate::context::as_context(add_green(device)?))
}

fn destroy_green(green: CUcontext) -> CuResult {
    end_green(green)
}

fn context_of(context: Out<CUcontext>, green: CUcontext) -> CuResult {
    let (handle, _) = or_current(green)?;
    context.put(crate::context::as_context(handle))
}

fn put(resource: Out<i32>, count: i32) -> CuResult {
    resource.put(MULTIPROCESSORS)?;
    resource.at(COUNT_AT).put(count)
}

fn all(resource: Out<i32>, kind: i32) -> CuResult {
    resource.required()?;
    if kind == MULTIPROCESSORS { put(resource, ALL) } else { Err(UNSUPPORTED_KIND) }
}

fn of_device(device: CUdevice, resource: Out<i32>, kind: i32) -> CuResult {
    unit(device)?;
    all(resource, kind)
}

fn of_context(context: CUcontext, resource: Out<i32>, kind: i32) -> CuResult {
    or_current(context)?;
    all(resource, kind)
}

fn describe(description: Out<u64>, resources: Out<i32>, count: u32) -> CuResult {
    description.required()?;
    if count == 0 || resources.get()? != MULTIPROCESSORS {
        return Err(CuError::INVALID_VALUE);
    }
    description.put(crate::state::fresh_handle())
}

fn split(
    groups: Out<i32>,
    count: Out<u32>,
    input: In<i32>,
    rest: Out<i32>,
    _flags: u32,
    least: u32,
) -> CuResult {
    let have = u32::try_from(input.at(COUNT_AT).get()?).unwrap_or(0);
    // Groups have an even number of multiprocessors, two at least.
    let size = least.next_multiple_of(2).max(2);
    let wanted = count.get()?;
    let made = if groups.is_null() { have / size } else { wanted.min(have / size) };
    count.put(made)?;
    let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    if !groups.is_null() {
        for group in 0..usize::try_from(made).unwrap_or(0) {
            put(groups.at(group * RESOURCE), number(size))?;
        }
    }
    if rest.is_null() { Ok(()) } else { put(rest, number(have - made * size)) }
}

fn stream(stream: Out<CUstream>, green: CUcontext, flags: u32, priority: i32) -> CuResult {
    let (handle, _) = or_current(green)?;
    let context = state()?.contexts.owner(handle).ok_or(CuError::INVALID_CONTEXT)?;
    crate::stream::create_in(context, stream, flags, priority)
}

fn wait_event(green: CUcontext, wanted: CUevent) -> CuResult {
    event(green, wanted)?;
    crate::facts::wait_event(green, wanted)
}

fn event(green: CUcontext, event: CUevent) -> CuResult {
    or_current(green)?;
    state()?.events.get(event.address()).map(drop).ok_or(CuError::INVALID_HANDLE)
}

fn of_stream(stream: CUstream, green: Out<CUcontext>) -> CuResult {
    state()?.check_stream(stream)?;
    green.put(CUcontext::NULL)
}
