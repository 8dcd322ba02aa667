//! Kernels in graphs: how they are added, and what a node says of its own.
//!
//! A node is given a function, or since 12.0 a kernel of a library instead; it answers with what it
//! was given. The first form of the parameters has no room for a kernel: there it is a function.
//! Shapes and arguments are not kept.

use crate::arg::{In, Out};
use crate::export::exports;
use crate::graph::{Node, add};
use crate::graph_node::of_node;
use crate::launch::duration_of;
use gpucap_abi::cuda::{CUgraph, CUgraphNode, CuError, CuResult};

exports! {
    /// A function.
    fn cuGraphAddKernelNode(node: *mut CUgraphNode, graph: CUgraph,
        dependencies: *const CUgraphNode, count: usize, params: *const [u64; 7])
        => add_function, driver, "cuGraphAddKernelNode" @ 10000;
    /// A function, or a kernel where there is none.
    fn cuGraphAddKernelNode_v2(node: *mut CUgraphNode, graph: CUgraph,
        dependencies: *const CUgraphNode, count: usize, params: *const [u64; 9])
        => add_kernel, driver, "cuGraphAddKernelNode" @ 12000;
    /// The function.
    fn cuGraphKernelNodeGetParams(node: CUgraphNode, params: *mut [u64; 7])
        => params, driver, "cuGraphKernelNodeGetParams" @ 10000;
    /// The function or the kernel.
    fn cuGraphKernelNodeGetParams_v2(node: CUgraphNode, params: *mut [u64; 9])
        => params_v2, driver, "cuGraphKernelNodeGetParams" @ 12000;
}

/// What a node launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launched {
    Function(u64),
    Kernel(u64),
}

impl Launched {
    /// The kernel counts where there is no function.
    pub(crate) const fn given(function: u64, kernel: u64) -> Self {
        if function == 0 { Self::Kernel(kernel) } else { Self::Function(function) }
    }

    /// A node that launches it.
    pub(crate) fn node(self) -> Result<Node, CuError> {
        let (Self::Function(handle) | Self::Kernel(handle)) = self;
        Ok(Node::Kernel { ns: duration_of(handle)?, launched: self })
    }
}

fn add_function(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    params: In<[u64; 7]>,
) -> CuResult {
    let [function, ..] = params.get()?;
    add(node, graph, (on, count), vec![Launched::Function(function).node()?], None)
}

fn add_kernel(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    params: In<[u64; 9]>,
) -> CuResult {
    let [function, .., kernel, _] = params.get()?;
    add(node, graph, (on, count), vec![Launched::given(function, kernel).node()?], None)
}

fn launched(node: CUgraphNode) -> Result<Launched, CuError> {
    of_node(node, |nodes| match nodes {
        [Node::Kernel { launched, .. }] => Some(*launched),
        _ => None,
    })
}

fn params(node: CUgraphNode, params: Out<[u64; 7]>) -> CuResult {
    let (Launched::Function(handle) | Launched::Kernel(handle)) = launched(node)?;
    params.put([handle, 0, 0, 0, 0, 0, 0])
}

fn params_v2(node: CUgraphNode, params: Out<[u64; 9]>) -> CuResult {
    let (function, kernel) = match launched(node)? {
        Launched::Function(function) => (function, 0),
        Launched::Kernel(kernel) => (0, kernel),
    };
    params.put([function, 0, 0, 0, 0, 0, 0, kernel, 0])
}
