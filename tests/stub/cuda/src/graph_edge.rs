//! Dependencies between the nodes of a graph, as a client draws and asks them.
//!
//! They are kept and told; what runs runs in the order in which nodes were added, all the same. A
//! captured node depends on the one before it. Data of an edge is zeros, and is accepted whatever
//! it is.

use crate::arg::{In, Out};
use crate::driver::state;
use crate::export::exports;
use crate::graph::Graphs;
use gpucap_abi::cuda::{CUgraph, CUgraphNode, CUstream, CuError, CuResult};
use std::collections::HashSet;
use std::ffi::c_void;

exports! {
    /// Dependencies that are there already are no error here.
    fn cuGraphAddDependencies(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode,
        count: usize) => add, driver, "cuGraphAddDependencies" @ 10000;
    /// Dependencies that are there already are no error here.
    fn cuGraphAddDependencies_v2(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode,
        edges: *const u64, count: usize)
        => add_v2, driver, "cuGraphAddDependencies" @ 12030;
    fn cuGraphRemoveDependencies(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode,
        count: usize) => remove, driver, "cuGraphRemoveDependencies" @ 10000;
    fn cuGraphRemoveDependencies_v2(graph: CUgraph, from: *const CUgraphNode,
        to: *const CUgraphNode, edges: *const u64, count: usize)
        => remove_v2, driver, "cuGraphRemoveDependencies" @ 12030;
    /// Nodes that depend on none.
    fn cuGraphGetRootNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize)
        => roots, driver, "cuGraphGetRootNodes" @ 10000;
    fn cuGraphGetEdges(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode,
        count: *mut usize) => edges, driver, "cuGraphGetEdges" @ 10000;
    fn cuGraphGetEdges_v2(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode,
        data: *mut u64, count: *mut usize) => edges_v2, driver, "cuGraphGetEdges" @ 12030;
    fn cuGraphNodeGetDependencies(node: CUgraphNode, nodes: *mut CUgraphNode, count: *mut usize)
        => before, driver, "cuGraphNodeGetDependencies" @ 10000;
    fn cuGraphNodeGetDependencies_v2(node: CUgraphNode, nodes: *mut CUgraphNode, data: *mut u64,
        count: *mut usize) => before_v2, driver, "cuGraphNodeGetDependencies" @ 12030;
    fn cuGraphNodeGetDependentNodes(node: CUgraphNode, nodes: *mut CUgraphNode, count: *mut usize)
        => after, driver, "cuGraphNodeGetDependentNodes" @ 10000;
    fn cuGraphNodeGetDependentNodes_v2(node: CUgraphNode, nodes: *mut CUgraphNode, data: *mut u64,
        count: *mut usize) => after_v2, driver, "cuGraphNodeGetDependentNodes" @ 12030;
    /// Checked and not kept: the next captured node depends on the one before it.
    fn cuStreamUpdateCaptureDependencies(stream: CUstream, nodes: *mut CUgraphNode, count: usize,
        flags: u32) => update, context, "cuStreamUpdateCaptureDependencies" @ 11030;
    /// Checked and not kept: the next captured node depends on the one before it.
    fn cuStreamUpdateCaptureDependencies_ptsz(stream: CUstream, nodes: *mut CUgraphNode,
        count: usize, flags: u32)
        => update, context, "cuStreamUpdateCaptureDependencies" @ 11030 ptsz;
    /// Checked and not kept: the next captured node depends on the one before it.
    fn cuStreamUpdateCaptureDependencies_v2(stream: CUstream, nodes: *mut CUgraphNode,
        data: *const c_void, count: usize, flags: u32)
        => update_v2, context, "cuStreamUpdateCaptureDependencies" @ 12030;
    /// Checked and not kept: the next captured node depends on the one before it.
    fn cuStreamUpdateCaptureDependencies_v2_ptsz(stream: CUstream, nodes: *mut CUgraphNode,
        data: *const c_void, count: usize, flags: u32)
        => update_v2, context, "cuStreamUpdateCaptureDependencies" @ 12030 ptsz;
}

/// Edges by their ends: from, to.
pub(crate) type Edges = Vec<(u64, u64)>;

impl Graphs {
    /// Nodes of one graph, in pairs.
    fn pairs(
        &self,
        graph: CUgraph,
        (from, to): (In<CUgraphNode>, In<CUgraphNode>),
        count: usize,
    ) -> Result<Edges, CuError> {
        let of_graph = self.table.get(graph.address()).ok_or(CuError::INVALID_VALUE)?;
        let one = |nodes: In<CUgraphNode>, index| {
            let handle = nodes.at(index).get()?.address();
            if of_graph.contains(&handle) { Ok(handle) } else { Err(CuError::INVALID_VALUE) }
        };
        (0..count).map(|index| Ok((one(from, index)?, one(to, index)?))).collect()
    }

    /// Makes a node depend on others of its graph.
    pub(crate) fn depend(&mut self, node: u64, on: In<CUgraphNode>, count: usize) -> CuResult {
        for index in 0..count {
            let from = on.at(index).get()?.address();
            self.nodes.get(from).ok_or(CuError::INVALID_VALUE)?;
            self.edges.push((from, node));
        }
        Ok(())
    }

    /// Forgets the edges of nodes that are gone.
    pub(crate) fn forget_edges(&mut self, nodes: &[u64]) {
        let gone: HashSet<_> = nodes.iter().collect();
        self.edges.retain(|(from, to)| !gone.contains(from) && !gone.contains(to));
    }
}

/// Writes what there is room for, or says how much there is.
fn tell(
    found: &[u64],
    nodes: Out<CUgraphNode>,
    data: Option<Out<u64>>,
    count: Out<usize>,
) -> CuResult {
    let room = count.get()?;
    if nodes.is_null() {
        return count.put(found.len());
    }
    for index in 0..room {
        // The rest of the room is filled with nulls.
        let handle = found.get(index).copied().unwrap_or(0);
        nodes.at(index).put(CUgraphNode(handle as *mut c_void))?;
        if let Some(data) = data.filter(|data| !data.is_null()) {
            data.at(index).put(0)?;
        }
    }
    count.put(found.len().min(room))
}

fn add(graph: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize) -> CuResult {
    let mut state = state()?;
    let pairs = state.graphs.pairs(graph, (from, to), count)?;
    state.graphs.edges.extend(pairs);
    Ok(())
}

fn add_v2(
    graph: CUgraph,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    _edges: In<u64>,
    count: usize,
) -> CuResult {
    add(graph, from, to, count)
}

fn remove(graph: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize) -> CuResult {
    let mut state = state()?;
    let pairs = state.graphs.pairs(graph, (from, to), count)?;
    if !pairs.iter().all(|pair| state.graphs.edges.contains(pair)) {
        return Err(CuError::INVALID_VALUE);
    }
    state.graphs.edges.retain(|edge| !pairs.contains(edge));
    Ok(())
}

fn remove_v2(
    graph: CUgraph,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    _edges: In<u64>,
    count: usize,
) -> CuResult {
    remove(graph, from, to, count)
}

fn roots(graph: CUgraph, nodes: Out<CUgraphNode>, count: Out<usize>) -> CuResult {
    let state = state()?;
    let list = state.graphs.table.get(graph.address()).ok_or(CuError::INVALID_VALUE)?;
    let targets: HashSet<_> = state.graphs.edges.iter().map(|(_, to)| *to).collect();
    let found: Vec<_> = list.iter().copied().filter(|node| !targets.contains(node)).collect();
    tell(&found, nodes, None, count)
}

fn edges(
    graph: CUgraph,
    from: Out<CUgraphNode>,
    to: Out<CUgraphNode>,
    count: Out<usize>,
) -> CuResult {
    let room = count.get()?;
    let state = state()?;
    let list = state.graphs.table.get(graph.address()).ok_or(CuError::INVALID_VALUE)?;
    let of_graph: HashSet<_> = list.iter().collect();
    let all = state.graphs.edges.iter().filter(|(from, _)| of_graph.contains(from));
    let (sources, targets): (Vec<_>, Vec<_>) = all.copied().unzip();
    if from.is_null() != to.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    tell(&sources, from, None, count)?;
    if !to.is_null() {
        // Told with the room that the caller gave, which the line above replaced.
        count.put(room)?;
        tell(&targets, to, None, count)?;
    }
    Ok(())
}

fn edges_v2(
    graph: CUgraph,
    from: Out<CUgraphNode>,
    to: Out<CUgraphNode>,
    data: Out<u64>,
    count: Out<usize>,
) -> CuResult {
    edges(graph, from, to, count)?;
    if !from.is_null() && !data.is_null() {
        (0..count.get()?).try_for_each(|index| data.at(index).put(0))?;
    }
    Ok(())
}

/// The other ends of a node's edges.
fn peers(
    node: CUgraphNode,
    of_edge: impl Fn((u64, u64), u64) -> Option<u64>,
) -> Result<Vec<u64>, CuError> {
    let state = state()?;
    state.graphs.nodes.get(node.address()).ok_or(CuError::INVALID_VALUE)?;
    let ends = state.graphs.edges.iter().filter_map(|edge| of_edge(*edge, node.address()));
    Ok(ends.collect())
}

fn before(node: CUgraphNode, nodes: Out<CUgraphNode>, count: Out<usize>) -> CuResult {
    let found = peers(node, |(from, to), node| (to == node).then_some(from))?;
    tell(&found, nodes, None, count)
}

fn before_v2(
    node: CUgraphNode,
    nodes: Out<CUgraphNode>,
    data: Out<u64>,
    count: Out<usize>,
) -> CuResult {
    let found = peers(node, |(from, to), node| (to == node).then_some(from))?;
    tell(&found, nodes, Some(data), count)
}

fn after(node: CUgraphNode, nodes: Out<CUgraphNode>, count: Out<usize>) -> CuResult {
    let found = peers(node, |(from, to), node| (from == node).then_some(to))?;
    tell(&found, nodes, None, count)
}

fn after_v2(
    node: CUgraphNode,
    nodes: Out<CUgraphNode>,
    data: Out<u64>,
    count: Out<usize>,
) -> CuResult {
    let found = peers(node, |(from, to), node| (from == node).then_some(to))?;
    tell(&found, nodes, Some(data), count)
}

fn update(stream: CUstream, nodes: Out<CUgraphNode>, count: usize, flags: u32) -> CuResult {
    if flags > 1 {
        return Err(CuError::INVALID_VALUE);
    }
    crate::capture::require(stream)?;
    let state = state()?;
    for index in 0..count {
        let handle = nodes.at(index).get()?.address();
        state.graphs.nodes.get(handle).ok_or(CuError::INVALID_VALUE)?;
    }
    Ok(())
}

fn update_v2(
    stream: CUstream,
    nodes: Out<CUgraphNode>,
    _data: In<c_void>,
    count: usize,
    flags: u32,
) -> CuResult {
    update(stream, nodes, count, flags)
}
