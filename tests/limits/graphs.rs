//! Graphs that allocate: charged when they are made executable, refunded as far as the driver keeps nothing of them.

use crate::contexts::contend;
use crate::{
    INVALID_VALUE, LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, begin, calls, in_use, traced, with_limit,
};
use gpucap_tests::{Actor, Result, Run, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a graph is charged by the sum of its allocations, to the byte", charged),
        trial("a graph that does not fit is not made executable", refused),
        trial("a graph without allocations is free of charge", free_of_charge),
        trial("what the driver keeps of a graph stays charged until it is trimmed", kept),
        trial("a process gives back what its graphs keep before it is refused", gives_back),
        trial("an executable graph whose end the driver refuses keeps its charge", does_not_end),
        trial("a graph that the driver does not make executable leaves no charge", not_made),
        trial("an allocation in a captured stream is its graph's, and charged once", captured),
        trial("an allocation added as a node of any kind is charged with its graph", added),
        trial("the allocations of a graph inside a graph are charged with it", inside),
        trial("and so are they however deep it is", deep),
        trial("a graph that ends while another thread trims leaves the ledger right", at_once),
        trial("a graph that allocates is not copied", copied),
        trial("an allocation that a graph was made with cannot be changed afterwards", changed),
        trial("the graphs of a process are refunded when it dies", dies),
    ]
}

/// A process with a graph of these allocations in slot `g`.
fn with_graph(run: &Run, sizes: &[u64]) -> Result<Actor> {
    let mut actor = begin(run)?;
    actor.expect(&[("cuGraphCreate g", SUCCESS)])?;
    for size in sizes {
        actor.expect(&[(&format!("cuGraphAddMemAllocNode g {size}"), SUCCESS)])?;
    }
    Ok(actor)
}

fn charged() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = with_graph(&run, &[LIMIT - 1000, 999])?;
    in_use(&run, 0)?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", SUCCESS)])?;
    in_use(&run, LIMIT - 1)?;
    actor.expect(&[("alloc a 2", OUT_OF_MEMORY), ("alloc a 1", SUCCESS)])?;
    actor.expect(&[("free a", SUCCESS), ("cuGraphExecDestroy g", SUCCESS)])?;
    in_use(&run, 0) // it was never launched, so the driver holds nothing of it
}

fn refused() -> Result {
    let run = traced(with_limit(&LIMIT.to_string())?);
    let mut actor = with_graph(&run, &[LIMIT, 1])?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", OUT_OF_MEMORY)])?;
    in_use(&run, 0)?;
    match calls(&run, "cuGraphInstantiateWithFlags")? {
        0 => Ok(()),
        found => Err(Stop::fail(format!("the driver was called {found} times"))),
    }
}

fn free_of_charge() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = with_graph(&run, &[])?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", SUCCESS), ("cuGraphLaunch g", SUCCESS)])?;
    in_use(&run, 0)?;
    actor.expect(&[("cuGraphExecDestroy g", SUCCESS)])?;
    in_use(&run, 0)
}

/// A process whose graph has been launched and destroyed.
fn keeper(run: &Run) -> Result<Actor> {
    let mut actor = with_graph(run, &[100 * MIB])?;
    actor.expect(&[
        ("cuGraphInstantiateWithFlags g", SUCCESS),
        ("cuGraphUpload g", SUCCESS),
        ("cuGraphExecDestroy g", SUCCESS),
    ])?;
    in_use(run, 100 * MIB)?;
    Ok(actor)
}

fn kept() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = keeper(&run)?;
    actor.expect(&[("cuDeviceGraphMemTrim g", SUCCESS)])?;
    in_use(&run, 0)
}

fn gives_back() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = keeper(&run)?;
    actor.expect(&[(&format!("alloc a {LIMIT}"), SUCCESS)])?;
    in_use(&run, LIMIT)
}

fn does_not_end() -> Result {
    let run = with_limit(&LIMIT.to_string())?.env("STUB_GPU_FAIL", "cuGraphExecDestroy:719@1");
    let mut actor = with_graph(&run, &[MIB])?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", SUCCESS), ("cuGraphExecDestroy g", 719)])?;
    in_use(&run, MIB)?;
    actor.expect(&[("cuGraphExecDestroy g", SUCCESS)])?;
    in_use(&run, 0)
}

fn not_made() -> Result {
    let run =
        with_limit(&LIMIT.to_string())?.env("STUB_GPU_FAIL", "cuGraphInstantiateWithFlags:719@1");
    let mut actor = with_graph(&run, &[MIB])?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", 719)])?;
    in_use(&run, 0)
}

fn captured() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    // Recorded, not carried out: even more than the limit can be.
    actor.expect(&[(&format!("cuStreamEndCapture g {}", LIMIT + 1), SUCCESS)])?;
    in_use(&run, 0)?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", OUT_OF_MEMORY)])?;
    actor.expect(&[(&format!("cuStreamEndCapture h {LIMIT}"), SUCCESS)])?;
    actor.expect(&[("cuGraphInstantiateWithFlags h", SUCCESS)])?;
    in_use(&run, LIMIT)
}

fn dies() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = with_graph(&run, &[LIMIT])?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", SUCCESS)])?;
    actor.kill()?;
    let mut heir = begin(&run)?;
    heir.expect(&[(&format!("alloc a {LIMIT}"), SUCCESS)])
}

fn added() -> Result {
    for form in 1..=3 {
        let run = with_limit(&LIMIT.to_string())?;
        let mut actor = with_graph(&run, &[])?;
        actor.expect(&[(&format!("add-node g {LIMIT} {form}"), SUCCESS)])?;
        in_use(&run, 0)?;
        actor.expect(&[("same h g", SUCCESS), ("cuGraphInstantiateWithFlags h", SUCCESS)])?;
        in_use(&run, LIMIT)?;
        actor.expect(&[(&format!("add-node g 1 {form}"), SUCCESS)])?;
        actor.expect(&[("cuGraphInstantiateWithFlags g", OUT_OF_MEMORY)])?;
    }
    Ok(())
}

fn inside() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = with_graph(&run, &[1000])?;
    actor.expect(&[
        ("cuGraphCreate c", SUCCESS),
        (&format!("cuGraphAddMemAllocNode c {}", LIMIT - 3000), SUCCESS),
        ("cuGraphCreate d", SUCCESS),
        ("cuGraphAddMemAllocNode d 1500", SUCCESS),
        ("move-child c d", SUCCESS),
        ("move-child g c", SUCCESS),
        ("cuGraphInstantiateWithFlags g", SUCCESS),
    ])?;
    in_use(&run, LIMIT - 500)?;
    actor.expect(&[("cuGraphExecDestroy g", SUCCESS)])?;
    in_use(&run, 0)
}

fn deep() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = with_graph(&run, &[LIMIT - 1000])?;
    let (mut inner, mut outer) = ('g', 'h');
    for _ in 0..100 {
        actor.expect(&[
            (&format!("cuGraphCreate {outer}"), SUCCESS),
            (&format!("move-child {outer} {inner}"), SUCCESS),
        ])?;
        (inner, outer) = (outer, inner);
    }
    actor.expect(&[("alloc a 1001", SUCCESS)])?;
    actor.expect(&[(&format!("cuGraphInstantiateWithFlags {inner}"), OUT_OF_MEMORY)])?;
    actor.expect(&[("free a", SUCCESS)])?;
    actor.expect(&[(&format!("cuGraphInstantiateWithFlags {inner}"), SUCCESS)])?;
    in_use(&run, LIMIT - 1000)
}

fn at_once() -> Result {
    contend("graph")
}

fn copied() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = with_graph(&run, &[MIB])?;
    for copy in ["clone h g", "add-child h g"] {
        actor.expect(&[("cuGraphCreate h", SUCCESS), (copy, INVALID_VALUE)])?;
    }
    in_use(&run, 0)
}

fn changed() -> Result {
    const NOT_SUPPORTED: u64 = 801;
    const UPDATE_FAILURE: u64 = 910;
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = with_graph(&run, &[MIB])?;
    actor.expect(&[
        ("same x g", SUCCESS),
        ("cuGraphInstantiateWithFlags x", SUCCESS),
        ("cuGraphCreate h", SUCCESS),
        (&format!("cuGraphAddMemAllocNode h {}", 2 * LIMIT), SUCCESS),
    ])?;
    in_use(&run, MIB)?;
    let larger = 2 * LIMIT;
    actor.expect(&[
        (&format!("set-node g {larger}"), NOT_SUPPORTED),
        (&format!("set-exec-node x g {larger}"), NOT_SUPPORTED),
        ("update1 x h", UPDATE_FAILURE),
        ("update2 x h", UPDATE_FAILURE),
        ("cuGraphUpload x", SUCCESS),
    ])?;
    in_use(&run, MIB)?;
    actor.expect(&[("cuGraphLaunch x", SUCCESS)])?;
    in_use(&run, MIB)
}
