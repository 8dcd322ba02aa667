//! User objects: resources of a client that graphs keep.
//!
//! An object is counted; the last release calls its destructor, in the thread that released. A
//! graph may hold references, and gives them back when it is told to or when it is destroyed;
//! executable graphs hold none here, since their memory is the stub's own.

use crate::arg::Out;
use crate::driver::state;
use crate::export::exports;
use crate::host_function::HostFunction;
use crate::state::{State, Table};
use gpucap_abi::cuda::{CUgraph, CuError, CuResult};
use std::ffi::c_void;

exports! {
    /// Flag 1 must be given: the destructor is not waited for.
    fn cuUserObjectCreate(object: *mut u64, data: *mut c_void, destroy: HostFunction, count: u32,
        flags: u32) => create, driver, "cuUserObjectCreate" @ 11030;
    fn cuUserObjectRetain(object: u64, count: u32)
        => retain, driver, "cuUserObjectRetain" @ 11030;
    fn cuUserObjectRelease(object: u64, count: u32)
        => release, driver, "cuUserObjectRelease" @ 11030;
    /// Flag 1 moves the caller's references.
    fn cuGraphRetainUserObject(graph: CUgraph, object: u64, count: u32, flags: u32)
        => graph_retain, driver, "cuGraphRetainUserObject" @ 11030;
    fn cuGraphReleaseUserObject(graph: CUgraph, object: u64, count: u32)
        => graph_release, driver, "cuGraphReleaseUserObject" @ 11030;
}

/// An object: its destructor and data, and how often it is held.
pub(crate) struct UserObject {
    destroy: unsafe extern "C" fn(*mut c_void),
    data: u64,
    count: u32,
    /// Of these, by whom: graphs.
    held: Vec<(u64, u32)>,
}

/// The objects of the process.
pub(crate) type UserObjects = Table<UserObject>;

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, `CU_GRAPH_USER_OBJECT_MOVE`
const FLAG: u32 = 1;

/// What the last release owes.
type Owed = (unsafe extern "C" fn(*mut c_void), u64);

/// Calls destructors; never with the state held.
pub(crate) fn call(owed: impl IntoIterator<Item = Owed>) {
    for (destroy, data) in owed {
        // SAFETY: the program that made the object promises that it may be destroyed with its data.
        unsafe { destroy(data as *mut c_void) }
    }
}

fn drop_references(state: &mut State, object: u64, count: u32) -> Result<Option<Owed>, CuError> {
    let found = state.user_objects.get_mut(object).ok_or(CuError::INVALID_VALUE)?;
    found.count = found.count.checked_sub(count).ok_or(CuError::INVALID_VALUE)?;
    if found.count > 0 {
        return Ok(None);
    }
    let gone = state.user_objects.remove(object);
    Ok(gone.map(|object| (object.destroy, object.data)))
}

/// Gives back all that a graph holds.
pub(crate) fn end_graph(state: &mut State, graph: u64) -> Vec<Owed> {
    let mut held = Vec::new();
    for (handle, object) in state.user_objects.iter() {
        let of_graph = object.held.iter().filter(|(by, _)| *by == graph);
        held.extend(of_graph.map(|(_, count)| (handle, *count)));
    }
    held.into_iter()
        .filter_map(|(handle, count)| drop_references(state, handle, count).ok().flatten())
        .collect()
}

fn create(
    object: Out<u64>,
    data: Out<c_void>,
    destroy: HostFunction,
    count: u32,
    flags: u32,
) -> CuResult {
    object.required()?;
    let destroy = destroy.ok_or(CuError::INVALID_VALUE)?;
    if flags != FLAG || count == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let made = UserObject { destroy, data: data.address(), count, held: Vec::new() };
    object.put(state()?.user_objects.add(made))
}

fn retain(object: u64, count: u32) -> CuResult {
    let mut state = state()?;
    let found = state.user_objects.get_mut(object).ok_or(CuError::INVALID_VALUE)?;
    let more = found.count.checked_add(count).filter(|_| count > 0);
    found.count = more.ok_or(CuError::INVALID_VALUE)?;
    Ok(())
}

fn release(object: u64, count: u32) -> CuResult {
    let owed = drop_references(&mut *state()?, object, count)?;
    call(owed);
    Ok(())
}

fn graph_retain(graph: CUgraph, object: u64, count: u32, flags: u32) -> CuResult {
    state()?.graphs.nodes(graph.address())?;
    if flags & FLAG == 0 {
        retain(object, count)?;
    }
    let mut state = state()?;
    let found = state.user_objects.get_mut(object).ok_or(CuError::INVALID_VALUE)?;
    found.held.push((graph.address(), count));
    Ok(())
}

fn graph_release(graph: CUgraph, object: u64, count: u32) -> CuResult {
    let owed = {
        let mut state = state()?;
        let found = state.user_objects.get_mut(object).ok_or(CuError::INVALID_VALUE)?;
        let held =
            found.held.iter_mut().find(|(by, held)| *by == graph.address() && *held >= count);
        held.ok_or(CuError::INVALID_VALUE)?.1 -= count;
        drop_references(&mut state, object, count)?
    };
    call(owed);
    Ok(())
}
