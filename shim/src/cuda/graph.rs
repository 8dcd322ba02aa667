//! Graphs: those that allocate are charged when they are made executable.
//!
//! However an allocation got into a graph (added as a node, captured from a stream, cloned, inside another graph), it
//! is there when the graph is made executable, and the driver reports its size.

use super::{device_of, needed};
use crate::budget::charge::Charge;
use crate::call::Call;
use crate::driver::{self, Next};
use crate::holdings::graphs::Needs;
use crate::launch;
use crate::session::Session;
use core::ffi::{c_char, c_int, c_void};
use gpucap_abi::arg::Out;
use gpucap_abi::cuda::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdevice, CUgraph, CUgraphExec, CUgraphNode, CuError, CuResult,
};
use gpucap_core::ledger::Kind;

/// `cuGraphInstantiate`, first and second form.
pub(crate) fn instantiate_logged(
    call: &Call,
    next: impl Next<CuError>,
    exec: Out<CUgraphExec>,
    graph: CUgraph,
    _error: Out<CUgraphNode>,
    _log: Out<c_char>,
    _bytes: usize,
) -> CuResult {
    instantiate(call, next, exec, graph)
}

/// `cuGraphInstantiateWithFlags`.
pub(crate) fn instantiate_with_flags(
    call: &Call,
    next: impl Next<CuError>,
    exec: Out<CUgraphExec>,
    graph: CUgraph,
    _flags: u64,
) -> CuResult {
    instantiate(call, next, exec, graph)
}

/// `cuGraphInstantiateWithParams`.
pub(crate) fn instantiate_with_params(
    call: &Call,
    next: impl Next<CuError>,
    exec: Out<CUgraphExec>,
    graph: CUgraph,
    _params: Out<c_void>,
) -> CuResult {
    instantiate(call, next, exec, graph)
}

/// `cuGraphDestroy`: its handle may be another graph's next.
pub(crate) fn end(_call: &Call, next: impl Next<CuError>, _graph: CUgraph) -> CuResult {
    let _changing = Session::begun().map(|session| session.graphs.handles.change());
    next().map(drop)
}

/// `cuGraphExecDestroy`.
pub(crate) fn destroy(call: &Call, next: impl Next<CuError>, exec: CUgraphExec) -> CuResult {
    launch::graph_ends(call, exec);
    let Some(session) = Session::begun() else { return next().map(drop) };
    let Some(needs) = session.graphs.take(exec) else { return next().map(drop) };
    match next() {
        Ok(_) => {
            needs.keys().for_each(|device| {
                session.graphs.settle(call.driver, &session.budget, &session.pools, *device)
            });
            Ok(())
        }
        Err(error) => {
            session.graphs.put_back(exec, needs);
            Err(error)
        }
    }
}

/// `cuGraphExecUpdate`, first form.
pub(crate) fn update(
    call: &Call,
    next: impl Next<CuError>,
    exec: CUgraphExec,
    _graph: CUgraph,
    _error: Out<CUgraphNode>,
    _result: Out<c_int>,
) -> CuResult {
    updated(call, next, exec)
}

/// `cuGraphExecUpdate`, second form.
pub(crate) fn update_v2(
    call: &Call,
    next: impl Next<CuError>,
    exec: CUgraphExec,
    _graph: CUgraph,
    _result: Out<c_void>,
) -> CuResult {
    updated(call, next, exec)
}

/// `cuDeviceGraphMemTrim`.
pub(crate) fn trim(call: &Call, next: impl Next<CuError>, ordinal: CUdevice) -> CuResult {
    next()?;
    if let Some(session) = Session::begun() {
        session.graphs.settle(call.driver, &session.budget, &session.pools, ordinal);
    }
    Ok(())
}

/// An update cannot change what the graph allocates, only how long it takes.
fn updated(call: &Call, next: impl Next<CuError>, exec: CUgraphExec) -> CuResult {
    next()?;
    launch::graph_changed(call, exec);
    Ok(())
}

fn instantiate(
    call: &Call,
    next: impl Next<CuError>,
    exec: Out<CUgraphExec>,
    graph: CUgraph,
) -> CuResult {
    let session = call.session()?;
    let _kept = session.graphs.handles.keep();
    let mut needs = Needs::new();
    let mut charges = Vec::new();
    charge_all(call, session, graph, (&mut needs, &mut charges))?;
    let written = next()?;
    let Some(exec) = exec.get(&written) else { return Ok(()) };
    // Another thread may have added allocations until the driver had read the graph. None can be taken out of it.
    if let Err(error) = charge_all(call, session, graph, (&mut needs, &mut charges)) {
        return undo(call, session, exec, (needs, charges), error);
    }
    launch::graph_made(call, exec, graph);
    if !needs.is_empty() {
        session.graphs.made(exec, needs, charges.into_iter());
    }
    Ok(())
}

type Charges = Vec<(CUdevice, Charge)>;

/// Charges for the allocations of a graph, as far as that has not been done.
fn charge_all(
    call: &Call,
    session: &'static Session,
    graph: CUgraph,
    (charged, charges): (&mut Needs, &mut Charges),
) -> CuResult {
    let mut needs = Needs::new();
    let look = |params: CUDA_MEM_ALLOC_NODE_PARAMS| {
        if let Some(ordinal) = device_of(call, params.poolProps.location) {
            let need = needs.entry(ordinal).or_default();
            *need = need.saturating_add(params.bytesize as u64);
        }
    };
    needed(call, driver::cuda::graph::each_allocation(call.driver, graph, look))?;
    for (ordinal, bytes) in needs {
        let before = charged.get(&ordinal).copied().unwrap_or(0);
        if bytes > before
            && let Some(device) = session.budget.device(call.driver, ordinal)?
        {
            let more = bytes.saturating_sub(before);
            // By itself: of two that are made at once, neither pays for a step of the other.
            let most = session.pools.padded(more);
            charges.push((ordinal, call.charge(session, device, Kind::Graph, most)?));
            charged.insert(ordinal, bytes);
        }
    }
    Ok(())
}

/// Ends a graph that was made executable and does not fit. One that does not end keeps what was charged for it.
fn undo(
    call: &Call,
    session: &'static Session,
    exec: CUgraphExec,
    (needs, charges): (Needs, Charges),
    error: CuError,
) -> CuResult {
    let devices: Vec<CUdevice> = needs.keys().copied().collect();
    if driver::cuda::graph::destroy(call.driver, exec).is_none() {
        session.graphs.made(exec, needs, charges.into_iter());
    }
    // Another thread may have found its handle, and launched it.
    devices.into_iter().for_each(|device| {
        session.graphs.settle(call.driver, &session.budget, &session.pools, device)
    });
    Err(error)
}
