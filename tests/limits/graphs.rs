//! Graphs that allocate: charged when they are made executable, refunded as far as the driver keeps nothing of them.

use crate::{CAP, MIB, OUT_OF_MEMORY, SUCCESS, begin, booked, calls, capped, traced};
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
    let run = capped(&CAP.to_string())?;
    let mut actor = with_graph(&run, &[CAP - 1000, 999])?;
    booked(&run, 0)?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", SUCCESS)])?;
    booked(&run, CAP - 1)?;
    actor.expect(&[("alloc a 2", OUT_OF_MEMORY), ("alloc a 1", SUCCESS)])?;
    actor.expect(&[("free a", SUCCESS), ("cuGraphExecDestroy g", SUCCESS)])?;
    booked(&run, 0) // it was never launched, so the driver holds nothing of it
}

fn refused() -> Result {
    let run = traced(capped(&CAP.to_string())?);
    let mut actor = with_graph(&run, &[CAP, 1])?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", OUT_OF_MEMORY)])?;
    booked(&run, 0)?;
    match calls(&run, "cuGraphInstantiateWithFlags")? {
        0 => Ok(()),
        found => Err(Stop::fail(format!("the driver was called {found} times"))),
    }
}

fn free_of_charge() -> Result {
    let run = capped(&CAP.to_string())?;
    let mut actor = with_graph(&run, &[])?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", SUCCESS), ("cuGraphLaunch g", SUCCESS)])?;
    booked(&run, 0)?;
    actor.expect(&[("cuGraphExecDestroy g", SUCCESS)])?;
    booked(&run, 0)
}

/// A process whose graph has been launched and destroyed.
fn keeper(run: &Run) -> Result<Actor> {
    let mut actor = with_graph(run, &[100 * MIB])?;
    actor.expect(&[
        ("cuGraphInstantiateWithFlags g", SUCCESS),
        ("cuGraphUpload g", SUCCESS),
        ("cuGraphExecDestroy g", SUCCESS),
    ])?;
    booked(run, 100 * MIB)?;
    Ok(actor)
}

fn kept() -> Result {
    let run = capped(&CAP.to_string())?;
    let mut actor = keeper(&run)?;
    actor.expect(&[("cuDeviceGraphMemTrim g", SUCCESS)])?;
    booked(&run, 0)
}

fn gives_back() -> Result {
    let run = capped(&CAP.to_string())?;
    let mut actor = keeper(&run)?;
    actor.expect(&[(&format!("alloc a {CAP}"), SUCCESS)])?;
    booked(&run, CAP)
}

fn does_not_end() -> Result {
    let run = capped(&CAP.to_string())?.env("STUB_GPU_FAIL", "cuGraphExecDestroy:719@1");
    let mut actor = with_graph(&run, &[MIB])?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", SUCCESS), ("cuGraphExecDestroy g", 719)])?;
    booked(&run, MIB)?;
    actor.expect(&[("cuGraphExecDestroy g", SUCCESS)])?;
    booked(&run, 0)
}

fn not_made() -> Result {
    let run = capped(&CAP.to_string())?.env("STUB_GPU_FAIL", "cuGraphInstantiateWithFlags:719@1");
    let mut actor = with_graph(&run, &[MIB])?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", 719)])?;
    booked(&run, 0)
}

fn captured() -> Result {
    let run = capped(&CAP.to_string())?;
    let mut actor = begin(&run)?;
    // Recorded, not carried out: even more than the cap can be.
    actor.expect(&[(&format!("cuStreamEndCapture g {}", CAP + 1), SUCCESS)])?;
    booked(&run, 0)?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", OUT_OF_MEMORY)])?;
    actor.expect(&[(&format!("cuStreamEndCapture h {CAP}"), SUCCESS)])?;
    actor.expect(&[("cuGraphInstantiateWithFlags h", SUCCESS)])?;
    booked(&run, CAP)
}

fn dies() -> Result {
    let run = capped(&CAP.to_string())?;
    let mut actor = with_graph(&run, &[CAP])?;
    actor.expect(&[("cuGraphInstantiateWithFlags g", SUCCESS)])?;
    actor.kill()?;
    let mut heir = begin(&run)?;
    heir.expect(&[(&format!("alloc a {CAP}"), SUCCESS)])
}
