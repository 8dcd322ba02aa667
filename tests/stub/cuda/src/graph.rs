//! Graphs: lists of nodes.
//!
//! Nodes run one after the other in the order in which they were added, so that branches do not
//! run side by side; dependencies ([`crate::graph_edge`]) and parameters
//! ([`crate::graph_params`]) are kept to be told. An allocation node has its address from the
//! start and memory only when it runs.

use crate::arg::{In, Out};
use crate::driver::state;
use crate::export::exports;
use crate::graph_child::{add_child, move_child};
use crate::graph_edge::Edges;
use crate::graph_kernel::Launched;
use crate::graph_params::{Called, Copied, Filled, Given, given, given_words};
use crate::state::Table;
use crate::user_object::{call, end_graph};
use gpucap_abi::cuda::{CUdeviceptr, CUgraph, CUgraphNode, CuError, CuResult};
use gpucap_stub_device::catalog::Unit;
use std::collections::HashMap;
use std::ffi::c_void;

exports! {
    /// An empty graph.
    fn cuGraphCreate(graph: *mut CUgraph, flags: u32) => create, driver, "cuGraphCreate" @ 10000;
    /// Executable forms of it live on.
    fn cuGraphDestroy(graph: CUgraph) => destroy, driver, "cuGraphDestroy" @ 10000;
    /// A node that does nothing.
    fn cuGraphAddEmptyNode(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        count: usize) => add_empty, driver, "cuGraphAddEmptyNode" @ 10000;
    /// A copy, which takes no time.
    fn cuGraphAddMemcpyNode(node: *mut CUgraphNode, graph: CUgraph,
        dependencies: *const CUgraphNode, count: usize, params: *const Copied, context: *mut c_void)
        => add_copy, driver, "cuGraphAddMemcpyNode" @ 10000;
    /// A memset, which takes no time.
    fn cuGraphAddMemsetNode(node: *mut CUgraphNode, graph: CUgraph,
        dependencies: *const CUgraphNode, count: usize, params: *const Filled, context: *mut c_void)
        => add_fill, driver, "cuGraphAddMemsetNode" @ 10000;
    /// A host function, which is not called.
    fn cuGraphAddHostNode(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        count: usize, params: *const Called) => add_host, driver, "cuGraphAddHostNode" @ 10000;
    /// Answers the address in its parameters.
    fn cuGraphAddMemAllocNode(node: *mut CUgraphNode, graph: CUgraph,
        dependencies: *const CUgraphNode, count: usize, params: *mut AllocParams)
        => add_alloc, driver, "cuGraphAddMemAllocNode" @ 11040;
    /// Frees an address of an allocation node.
    fn cuGraphAddMemFreeNode(node: *mut CUgraphNode, graph: CUgraph,
        dependencies: *const CUgraphNode, count: usize, pointer: CUdeviceptr)
        => add_free, driver, "cuGraphAddMemFreeNode" @ 11040;
    /// A node of any kind.
    fn cuGraphAddNode(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        count: usize, params: *mut NodeParams) => add_node, driver, "cuGraphAddNode" @ 12020;
    /// A node of any kind.
    fn cuGraphAddNode_v2(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        edges: *const c_void, count: usize, params: *mut NodeParams)
        => add_node_v2, driver, "cuGraphAddNode" @ 12030;
    /// A node of any kind.
    fn cuGraphAddNode_v3(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        edges: *const c_void, count: usize, params: *mut NodeParams)
        => add_node_v2, driver, "cuGraphAddNode" @ 13040;
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AllocParams {
    pub(crate) pool: crate::pool::Properties,
    access: *const c_void,
    accesscount: usize,
    pub(crate) bytes: usize,
    pub(crate) pointer: CUdeviceptr,
}
const _: () = assert!(size_of::<AllocParams>() == 120);

/// `CUgraphNodeParams`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct NodeParams {
    pub(crate) kind: i32,
    reserved: [i32; 3],
    words: [u64; 29],
    reserved2: u64,
}
const _: () = assert!(size_of::<NodeParams>() == 256);

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// Occupies the engine for so long.
    Work(u64),
    /// A kernel, which does so too.
    Kernel {
        ns: u64,
        launched: Launched,
    },
    Copy,
    Host,
    Empty,
    Alloc {
        address: CUdeviceptr,
        bytes: u64,
        unit: Unit,
    },
    Free(CUdeviceptr),
}

impl Node {
    /// How long it occupies the engine.
    pub(crate) const fn duration(&self) -> u64 {
        match self {
            Self::Work(ns) | Self::Kernel { ns, .. } => *ns,
            _ => 0,
        }
    }
}

/// `CUgraphNodeType` values.
pub(crate) mod kind {
    pub(crate) const KERNEL: i32 = 0;
    pub(crate) const MEMCPY: i32 = 1;
    pub(crate) const MEMSET: i32 = 2;
    pub(crate) const HOST: i32 = 3;
    pub(crate) const GRAPH: i32 = 4;
    pub(crate) const EMPTY: i32 = 5;
    pub(crate) const WAIT_EVENT: i32 = 6;
    pub(crate) const EVENT_RECORD: i32 = 7;
    pub(crate) const MEM_ALLOC: i32 = 10;
    pub(crate) const MEM_FREE: i32 = 11;
    pub(crate) const LAST: i32 = 13;
}

/// `CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE`
const MOVED: u32 = 1;

/// The graphs of the process and their nodes.
#[derive(Default)]
pub(crate) struct Graphs {
    pub(crate) table: Table<Vec<u64>>,
    pub(crate) nodes: Table<(u64, Vec<Node>)>,
    /// The graph inside each node that is one.
    pub(crate) children: HashMap<u64, u64>,
    pub(crate) edges: Edges,
    /// What nodes were given that their meaning does not say.
    pub(crate) given: HashMap<u64, Given>,
    /// Nodes of clones, by clone and original.
    pub(crate) clones: HashMap<(u64, u64), u64>,
}

impl Graphs {
    pub(crate) fn create(&mut self) -> u64 {
        self.table.add(Vec::new())
    }

    pub(crate) fn destroy(&mut self, graph: u64) -> CuResult {
        let nodes = self.table.remove(graph).ok_or(CuError::INVALID_VALUE)?;
        self.forget(&nodes);
        self.clones.retain(|(clone, _), _| *clone != graph);
        for node in nodes {
            self.nodes.remove(node);
            if let Some(child) = self.children.remove(&node) {
                self.destroy(child)?;
            }
        }
        Ok(())
    }

    /// Forgets what is told of nodes that are gone.
    pub(crate) fn forget(&mut self, nodes: &[u64]) {
        self.forget_edges(nodes);
        for node in nodes {
            self.given.remove(node);
        }
    }

    /// Adds a node that depends on the one before it; its handle.
    pub(crate) fn append(&mut self, graph: u64, node: Node) -> Result<u64, CuError> {
        let before = self.table.get(graph).and_then(|list| list.last().copied());
        let handle = self.append_all(graph, vec![node])?;
        self.edges.extend(before.map(|before| (before, handle)));
        Ok(handle)
    }

    /// Adds a node that stands for several.
    pub(crate) fn append_all(&mut self, graph: u64, nodes: Vec<Node>) -> Result<u64, CuError> {
        let list = self.table.get_mut(graph).ok_or(CuError::INVALID_VALUE)?;
        let handle = self.nodes.add((graph, nodes));
        list.push(handle);
        Ok(handle)
    }

    /// Everything that a graph does.
    pub(crate) fn nodes(&self, graph: u64) -> Result<Vec<Node>, CuError> {
        let list = self.table.get(graph).ok_or(CuError::INVALID_VALUE)?;
        let nodes = list.iter().filter_map(|handle| self.nodes.get(*handle));
        Ok(nodes.flat_map(|(_, nodes)| nodes.iter().copied()).collect())
    }
}

fn create(graph: Out<CUgraph>, flags: u32) -> CuResult {
    if flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    graph.required()?;
    graph.put(CUgraph(state()?.graphs.create() as *mut c_void))
}

fn destroy(graph: CUgraph) -> CuResult {
    let owed = {
        let mut state = state()?;
        state.graphs.destroy(graph.address())?;
        end_graph(&mut state, graph.address())
    };
    call(owed);
    Ok(())
}

/// Adds a node that depends on others, and keeps what it was given.
pub(crate) fn add(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    (on, count): (In<CUgraphNode>, usize),
    what: Vec<Node>,
    given: Option<Given>,
) -> CuResult {
    node.required()?;
    let mut state = state()?;
    let handle = state.graphs.append_all(graph.address(), what)?;
    state.graphs.depend(handle, on, count)?;
    if let Some(given) = given {
        state.graphs.given.insert(handle, given);
    }
    node.put(CUgraphNode(handle as *mut c_void))
}

fn add_empty(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
) -> CuResult {
    add(node, graph, (on, count), vec![Node::Empty], None)
}

fn add_copy(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    params: In<Copied>,
    _context: Out<c_void>,
) -> CuResult {
    add(node, graph, (on, count), vec![Node::Copy], given(kind::MEMCPY, &params.get()?))
}

fn add_fill(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    params: In<Filled>,
    _context: Out<c_void>,
) -> CuResult {
    add(node, graph, (on, count), vec![Node::Copy], given(kind::MEMSET, &params.get()?))
}

fn add_host(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    params: In<Called>,
) -> CuResult {
    add(node, graph, (on, count), vec![Node::Host], given(kind::HOST, &params.get()?))
}

/// A place for the memory of an allocation node.
fn allocation(params: &AllocParams) -> Result<Node, CuError> {
    let unit = crate::driver::unit(params.pool.location.id)?;
    let bytes = params.bytes as u64;
    if bytes == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let address = state()?.memory.arena.take(bytes, 1).ok_or(CuError::OUT_OF_MEMORY)?;
    Ok(Node::Alloc { address, bytes, unit })
}

fn add_alloc(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    params: Out<AllocParams>,
) -> CuResult {
    let mut asked = params.get()?;
    let made = allocation(&asked)?;
    if let Node::Alloc { address, .. } = made {
        asked.pointer = address;
    }
    params.put(asked)?;
    add(node, graph, (on, count), vec![made], None)
}

fn add_free(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    pointer: CUdeviceptr,
) -> CuResult {
    add(node, graph, (on, count), vec![Node::Free(pointer)], None)
}

fn add_node(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    params: Out<NodeParams>,
) -> CuResult {
    let asked = params.get()?;
    if asked.kind == kind::MEM_ALLOC {
        // The allocation's parameters lie where the words of the others do.
        return add_alloc(node, graph, on, count, params.cast::<[u8; 16]>().at(1).cast());
    }
    if asked.kind == kind::GRAPH {
        let [child, ownership, ..] = asked.words;
        // An enumeration of the driver's: the lower half of the word.
        return match u32::try_from(ownership & 0xffff_ffff) {
            Ok(MOVED) => move_child(node, graph, on, count, child),
            _ => add_child(node, graph, on, count, CUgraph(child as *mut c_void)),
        };
    }
    let what = meaning(&asked)?;
    add(node, graph, (on, count), what, given_words(asked.kind, &asked.words))
}

fn add_node_v2(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    _edges: In<c_void>,
    count: usize,
    params: Out<NodeParams>,
) -> CuResult {
    add_node(node, graph, on, count, params)
}

/// What a node of these parameters does; not for allocations.
pub(crate) fn meaning(params: &NodeParams) -> Result<Vec<Node>, CuError> {
    Ok(match params.kind {
        kind::KERNEL => {
            let [function, .., kernel, _] = params.words[..9] else {
                return Err(CuError::INVALID_VALUE);
            };
            vec![Launched::given(function, kernel).node()?]
        }
        kind::MEMCPY | kind::MEMSET => vec![Node::Copy],
        kind::HOST => vec![Node::Host],
        kind::GRAPH => state()?.graphs.nodes(params.words[0])?,
        kind::MEM_FREE => vec![Node::Free(params.words[0])],
        kind::EMPTY..=kind::LAST => vec![Node::Empty],
        _ => return Err(CuError::INVALID_VALUE),
    })
}
