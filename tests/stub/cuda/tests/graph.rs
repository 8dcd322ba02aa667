//! The stub driver's own rules: what a client reads of a graph that it drew, and what its launches take.

mod driver;

use driver::{Driver, at, in_child};

const INVALID_VALUE: u32 = 1;
const MS: u32 = 1_000_000;

/// A graph of two kernels, the second behind the first; and what was made of it.
fn drawn(cuda: &Driver) -> (usize, [usize; 2], usize) {
    let (mut graph, mut first, mut second, mut exec) = (0usize, 0usize, 0usize, 0usize);
    cuda.ok("cuGraphCreate", [at(&mut graph), 0]);
    let mut kernel = [cuda.kernel("k_1ms"), 0, 0, 0, 0, 0, 0];
    cuda.ok("cuGraphAddKernelNode", [at(&mut first), graph, 0, 0, at(&mut kernel)]);
    cuda.ok("cuGraphAddKernelNode", [at(&mut second), graph, at(&mut first), 1, at(&mut kernel)]);
    cuda.ok("cuGraphInstantiateWithFlags", [at(&mut exec), graph, 0]);
    (graph, [first, second], exec)
}

/// The card's time for a launch.
fn launched(cuda: &Driver, exec: usize) -> u32 {
    let began = cuda.now();
    cuda.ok("cuGraphLaunch", [exec, 0]);
    cuda.ok("cuCtxSynchronize", []);
    cuda.now() - began
}

#[test]
fn a_graph_tells_its_edges() {
    in_child("a_graph_tells_its_edges", &[], |cuda| {
        cuda.start();
        let (graph, [first, second], _) = drawn(cuda);
        let (mut count, mut from, mut to) = (2usize, [7usize; 2], [7usize; 2]);
        let places = [graph, at(&mut from), at(&mut to), at(&mut count)];
        cuda.ok("cuGraphGetEdges", places);
        assert_eq!((count, from, to), (1, [first, 0], [second, 0]));
        count = 1;
        cuda.ok("cuGraphGetRootNodes", [graph, at(&mut from), at(&mut count)]);
        assert_eq!((count, from[0]), (1, first));
        let (mut clone, mut twin) = (0usize, 0usize);
        cuda.ok("cuGraphClone", [at(&mut clone), graph]);
        cuda.ok("cuGraphNodeFindInClone", [at(&mut twin), second, clone]);
        count = 1;
        cuda.ok("cuGraphNodeGetDependencies", [twin, at(&mut from), at(&mut count)]);
        assert!(from[0] != first && count == 1, "the clone's own node");
    });
}

#[test]
fn a_launch_takes_what_its_nodes_have_become() {
    in_child("a_launch_takes_what_its_nodes_have_become", &[], |cuda| {
        cuda.start();
        let (_, [first, second], exec) = drawn(cuda);
        assert_eq!(launched(cuda, exec), 2 * MS);
        let mut kernel = [cuda.kernel("k_5ms"), 0, 0, 0, 0, 0, 0];
        cuda.ok("cuGraphExecKernelNodeSetParams", [exec, second, at(&mut kernel)]);
        assert_eq!(launched(cuda, exec), 6 * MS);
        cuda.ok("cuGraphNodeSetEnabled", [exec, first, 0]);
        assert_eq!(launched(cuda, exec), 5 * MS);
        let strange = cuda.call("cuGraphExecKernelNodeSetParams", [exec, exec, at(&mut kernel)]);
        assert_eq!(strange, INVALID_VALUE);
    });
}
