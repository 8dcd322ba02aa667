//! Graphs made of graphs: clones, and graphs as nodes.
//!
//! A clone has a node for each of its original, with the same edges and parameters, and remembers
//! which is which. A node that is a graph has a clone of it, or the graph itself if it was moved.
//! A graph with nodes of memory is not cloned.

use crate::arg::{In, Out};
use crate::driver::state;
use crate::export::exports;
use crate::graph::{Graphs, Node};
use gpucap_abi::cuda::{CUgraph, CUgraphNode, CuError, CuResult};
use std::collections::HashMap;
use std::ffi::c_void;

exports! {
    /// None of a graph with nodes of memory.
    fn cuGraphClone(clone: *mut CUgraph, graph: CUgraph) => clone, driver, "cuGraphClone" @ 10000;
    /// The nodes of another graph as they are now; none of memory.
    fn cuGraphAddChildGraphNode(node: *mut CUgraphNode, graph: CUgraph,
        dependencies: *const CUgraphNode, count: usize, child: CUgraph)
        => add_child, driver, "cuGraphAddChildGraphNode" @ 10000;
    /// The graph inside a node.
    fn cuGraphChildGraphNodeGetGraph(node: CUgraphNode, graph: *mut CUgraph)
        => child, driver, "cuGraphChildGraphNodeGetGraph" @ 10000;
    /// The node of a clone that stands for one of its original.
    fn cuGraphNodeFindInClone(node: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph)
        => find_in_clone, driver, "cuGraphNodeFindInClone" @ 10000;
}

impl Graphs {
    /// A copy of a graph, if it may be copied: one with nodes of memory may not.
    fn create_clone(&mut self, graph: u64) -> Result<u64, CuError> {
        let memory = |node: &Node| matches!(node, Node::Alloc { .. } | Node::Free(_));
        if self.nodes(graph)?.iter().any(memory) {
            return Err(CuError::INVALID_VALUE);
        }
        let list = self.table.get(graph).ok_or(CuError::INVALID_VALUE)?.clone();
        let clone = self.create();
        let mut twins = HashMap::new();
        for handle in list {
            let (_, nodes) = self.nodes.get(handle).ok_or(CuError::UNKNOWN)?;
            let twin = self.append_all(clone, nodes.clone())?;
            if let Some(child) = self.children.get(&handle).copied() {
                let child = self.create_clone(child)?;
                self.children.insert(twin, child);
            }
            if let Some(given) = self.given.get(&handle).cloned() {
                self.given.insert(twin, given);
            }
            twins.insert(handle, twin);
            self.clones.insert((clone, handle), twin);
        }
        let twin_of = |(from, to): &(u64, u64)| Some((*twins.get(from)?, *twins.get(to)?));
        let edges: Vec<_> = self.edges.iter().filter_map(twin_of).collect();
        self.edges.extend(edges);
        Ok(clone)
    }

    /// Adds a graph as a node.
    fn append_child(
        &mut self,
        graph: CUgraph,
        child: u64,
        (on, count): (In<CUgraphNode>, usize),
    ) -> Result<CUgraphNode, CuError> {
        let nodes = self.nodes(child)?;
        let handle = self.append_all(graph.address(), nodes)?;
        self.children.insert(handle, child);
        self.depend(handle, on, count)?;
        Ok(CUgraphNode(handle as *mut c_void))
    }
}

fn clone(clone: Out<CUgraph>, graph: CUgraph) -> CuResult {
    clone.required()?;
    clone.put(CUgraph(state()?.graphs.create_clone(graph.address())? as *mut c_void))
}

pub(crate) fn add_child(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    child: CUgraph,
) -> CuResult {
    node.required()?;
    let mut state = state()?;
    let copy = state.graphs.create_clone(child.address())?;
    node.put(state.graphs.append_child(graph, copy, (on, count))?)
}

/// The child belongs to the node from here on, nodes of memory and all.
pub(crate) fn move_child(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    child: u64,
) -> CuResult {
    node.required()?;
    node.put(state()?.graphs.append_child(graph, child, (on, count))?)
}

fn child(node: CUgraphNode, graph: Out<CUgraph>) -> CuResult {
    let state = state()?;
    let child = state.graphs.children.get(&node.address()).ok_or(CuError::INVALID_VALUE)?;
    graph.put(CUgraph(*child as *mut c_void))
}

fn find_in_clone(node: Out<CUgraphNode>, original: CUgraphNode, clone: CUgraph) -> CuResult {
    let state = state()?;
    let key = (clone.address(), original.address());
    let found = state.graphs.clones.get(&key).ok_or(CuError::INVALID_VALUE)?;
    node.put(CUgraphNode(*found as *mut c_void))
}
