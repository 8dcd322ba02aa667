//! The nodes of a graph, queried from the driver.
//!
//! Graphs inside a graph are included. The driver lists the content of conditional nodes only since 13.2: it is not
//! examined, and cannot allocate.

use super::needed::asked;
use super::*;
use core::ops::ControlFlow;
use gpucap_abi::cuda::{
    CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
};

/// How many nodes a graph has, not counting those of graphs inside it.
pub(crate) fn node_count(copy: &DriverCopy, graph: CUgraph) -> Option<usize> {
    nodes_of(copy, graph).ok().flatten()
}

fn nodes_of(copy: &DriverCopy, graph: CUgraph) -> Result<Option<usize>, CuError> {
    asked(|count| graph_get_nodes(copy, graph, core::ptr::null_mut(), count))
}

/// Ends an executable graph that the application has not been given.
pub(crate) fn destroy(copy: &DriverCopy, exec: CUgraphExec) -> Option<()> {
    graph_exec_destroy(copy, exec)
}

/// Visits the allocations of a graph. What a driver without such nodes lacks is not there to be visited.
///
/// # Errors
/// The driver does not say what is in it.
pub(crate) fn each_allocation(
    copy: &DriverCopy,
    graph: CUgraph,
    mut visit: impl FnMut(CUDA_MEM_ALLOC_NODE_PARAMS),
) -> CuResult {
    let mut all = usize::MAX;
    let _all = walk(copy, graph, &mut all, &mut |node, kind| {
        if kind == CU_GRAPH_NODE_TYPE_MEM_ALLOC {
            let params = asked(|params| graph_mem_alloc_node_get_params(copy, node, params))?;
            params.into_iter().for_each(&mut visit);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(())
}

/// Whether one of the first `most` nodes of a graph is a kernel that is sought.
pub(crate) fn has_kernel(
    copy: &DriverCopy,
    graph: CUgraph,
    most: usize,
    mut is_sought: impl FnMut(CUfunction) -> bool,
) -> bool {
    let mut left = most;
    let found = walk(copy, graph, &mut left, &mut |node, kind| {
        let is_kernel = kind == CU_GRAPH_NODE_TYPE_KERNEL;
        match is_kernel.then(|| function_of(copy, node)).flatten() {
            Some(function) if is_sought(function) => Ok(ControlFlow::Break(())),
            _ => Ok(ControlFlow::Continue(())),
        }
    });
    found.is_ok_and(|found| found.is_break())
}

/// What a kernel node launches: the handle that it was given, of a function or of a kernel.
fn function_of(copy: &DriverCopy, node: CUgraphNode) -> Option<CUfunction> {
    // The older function, of drivers before 12.0, leaves the last two fields as they are.
    let params: CUDA_KERNEL_NODE_PARAMS =
        filled(|params| graph_kernel_node_get_params_v2(copy, node, params))
            .or_else(|| filled(|params| graph_kernel_node_get_params(copy, node, params)))?;
    let function = if params.func == CUfunction::NULL { params.kern } else { params.func };
    (function != CUfunction::NULL).then_some(function)
}

/// Visits nodes until the callback stops it, or as many as are left. Fails where the driver does not say what they are.
fn walk(
    copy: &DriverCopy,
    graph: CUgraph,
    left: &mut usize,
    visit: &mut dyn FnMut(CUgraphNode, c_int) -> Result<ControlFlow<()>, CuError>,
) -> Result<ControlFlow<()>, CuError> {
    // However deep they are, and on no deep stack: the driver allows no graph inside itself, so there is an end.
    let mut graphs = vec![graph];
    while let Some(graph) = graphs.pop() {
        let mut room = nodes_of(copy, graph)?.unwrap_or(0).min(*left);
        let mut nodes = Vec::new();
        nodes.try_reserve_exact(room).map_err(|_| CuError::OUT_OF_MEMORY)?;
        nodes.resize(room, CUgraphNode::NULL);
        if room > 0 {
            graph_get_nodes(copy, graph, nodes.as_mut_ptr(), &raw mut room).transpose()?;
        }
        for node in nodes.into_iter().take(room) {
            if *left == 0 {
                break;
            }
            *left = left.saturating_sub(1);
            let Some(kind) = asked(|kind| graph_node_get_type(copy, node, kind))? else { continue };
            if visit(node, kind)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if kind == CU_GRAPH_NODE_TYPE_GRAPH
                && let Some(child) = asked(|child| graph_child_get_graph(copy, node, child))?
            {
                graphs.try_reserve(1).map_err(|_| CuError::OUT_OF_MEMORY)?;
                graphs.push(child);
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}
