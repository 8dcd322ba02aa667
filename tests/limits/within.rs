//! What another thread changes while the driver carries out a call takes no memory past the limit.
//!
//! `processes/within.c` makes the change at the beginning of the driver's part of the call, when everything that the
//! call depends on has been asked. The judge is the driver's own count; the ledger must account for all of it.

use crate::{INVALID_HANDLE, INVALID_VALUE, MIB, OUT_OF_MEMORY, SUCCESS, without_limit};
use gpucap_tests::{Driver, Output, Program, Result, Stop, trial};
use libtest_mimic::Trial;

const LIMIT: u64 = 400 * MIB;
const SIZE: u64 = 300 * MIB;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("an allocation added while a graph is made executable is refused", graph),
        trial("an allocation whose capture ends within the call is charged", capture),
        trial(
            "an allocation whose capture ends within the call is refused if too large",
            too_large,
        ),
        trial("the current pool is not replaced while memory is taken from it", current),
        trial("a pool's handle stays that pool's while memory is taken from it", pool),
        trial("memory is made where its description said when it was charged", place),
        trial("the memory that is counted behind tiles is that which the driver maps", tiles),
        trial(
            "an address is entered as the driver gave it, whatever another thread writes",
            output,
        ),
        trial("a graph stays until its allocations have been counted again", destroy),
        trial("nothing is taken in a stream that there was not when the driver was asked", stream),
        trial("a stream stays its device's while memory is taken in it", elsewhere),
        trial("an output that the driver does not write is not written", refused),
        trial("an output that the driver only reads may be constant", constant),
    ]
}

/// The change of this name, within this call.
fn within(way: &[&str], call: &str) -> Result<Output> {
    if Driver::available() == Driver::Card {
        return Err(Stop::skip("only the stub calls a program back in a call of its choice"));
    }
    let program = Program::new("within").flags(&["-lcuda", "-pthread"]).build()?;
    let run = without_limit()?.program(&program);
    let run = run.env("GPU_MEM_LIMIT", LIMIT.to_string()).env("STUB_GPU_TOOL", call);
    let run = run.env("STUB_GPU_COUNT", "2");
    let output = way.iter().fold(run, |run, word| run.arg(word)).output()?.success()?;
    let right = output.number("called")? == if call.ends_with(":around") { 2 } else { 1 }
        && output.number("failures")? == 0
        && output.number("held")? <= output.number("charged")?;
    if right { Ok(output) } else { Err(Stop::fail(output)) }
}

/// Fails unless the call has answered this, and the driver never had out more than that.
fn expect(output: &Output, answer: u64, most: u64) -> Result {
    let right = output.number("answer")? == answer && output.number("peak")? <= most;
    if right { Ok(()) } else { Err(Stop::fail(output)) }
}

fn graph() -> Result {
    expect(&within(&["graph"], "cuGraphInstantiateWithFlags")?, OUT_OF_MEMORY, 0)
}

fn capture() -> Result {
    let output = within(&["capture", &SIZE.to_string()], "cuMemAllocAsync")?;
    expect(&output, SUCCESS, SIZE)
}

fn too_large() -> Result {
    let bytes = 2 * LIMIT;
    let output = within(&["capture", &bytes.to_string()], "cuMemAllocAsync")?;
    // The driver has had it out for the moment of the call; the program has not seen it.
    expect(&output, OUT_OF_MEMORY, bytes)?;
    match output.number("held")? {
        0 => Ok(()),
        _ => Err(Stop::fail(output)),
    }
}

fn current() -> Result {
    expect(&within(&["current"], "cuMemAllocAsync")?, SUCCESS, SIZE)
}

fn pool() -> Result {
    expect(&within(&["pool"], "cuMemAllocFromPoolAsync")?, SUCCESS, 0)
}

fn place() -> Result {
    expect(&within(&["place"], "cuMemCreate")?, SUCCESS, 0)
}

fn tiles() -> Result {
    let output = within(&["tiles"], "cuMemMapArrayAsync")?;
    expect(&output, SUCCESS, 300 * MIB)?;
    match output.number("held")? {
        held if held == 200 * MIB => Ok(()),
        _ => Err(Stop::fail(output)),
    }
}

fn output() -> Result {
    expect(&within(&["output"], "cuMemAlloc_v2:around")?, SUCCESS, 301 * MIB)
}

fn destroy() -> Result {
    expect(&within(&["destroy"], "cuGraphInstantiateWithFlags:around")?, OUT_OF_MEMORY, 0)
}

fn stream() -> Result {
    expect(&within(&["stream"], "cuStreamGetCtx:around")?, INVALID_HANDLE, 0)
}

fn elsewhere() -> Result {
    let output = within(&["elsewhere"], "cuMemAllocAsync")?;
    expect(&output, SUCCESS, SIZE)?;
    if output.number("held")? == SIZE { Ok(()) } else { Err(Stop::fail(output)) }
}

fn refused() -> Result {
    expect(&within(&["refused"], "cuMemAlloc_v2")?, INVALID_VALUE, SIZE)
}

fn constant() -> Result {
    expect(&within(&["constant"], "cuMemSetMemPool")?, SUCCESS, SIZE)
}
