//! What a context costs where none is configured: assumed, and corrected by what NVML says of the process.

use crate::contexts::started;
use crate::{LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, answers, calls, in_use, traced, with_limit};
use gpucap_tests::{Result, Run, Stop, trial};
use libtest_mimic::Trial;
use std::ffi::OsStr;
use std::fs;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("an assumed price becomes what the context takes", corrected),
        trial(
            "what a context takes beyond the limit fills it and refuses nothing",
            beyond_the_limit,
        ),
        trial("an assumed price is corrected once, for all contexts of the device", once),
        trial("a configured price is not corrected", said),
        trial("where NVML cannot tell, the assumption stands", cannot_tell),
        trial("beside something else that the process holds, the assumption stands", not_alone),
        trial("in another pid namespace the assumption stands", other_namespace),
    ]
}

const ASSUMED: u64 = 256 * MIB;

/// No price is configured; the card takes this many bytes. NVML lists processes by the numbers of the first
/// pid namespace, and only there can a process find itself.
fn unpriced(limit: u64, takes: u64) -> Result<Run> {
    if fs::read_link("/proc/self/ns/pid")?.as_os_str() != "pid:[4026531836]" {
        return Err(Stop::skip("this is not the first pid namespace"));
    }
    let run = with_limit(&limit.to_string())?.env("GPUCAP_CONTEXT_MEM", "");
    Ok(run.env("STUB_GPU_CONTEXT_MEM", takes.to_string()))
}

fn corrected() -> Result {
    for takes in [1, 100 * MIB, ASSUMED, 700 * MIB] {
        let run = unpriced(LIMIT, takes)?;
        let mut actor = started(&run)?;
        actor.expect(&[("context 0", SUCCESS)])?;
        in_use(&run, takes)?;
        answers(&mut actor, "info z", LIMIT, LIMIT - takes)?;
        actor.expect(&[("release 0", SUCCESS)])?;
        in_use(&run, 0)?;
    }
    Ok(())
}

fn beyond_the_limit() -> Result {
    let run = unpriced(500 * MIB, 700 * MIB)?;
    let mut actor = started(&run)?;
    actor.expect(&[("context 0", SUCCESS), ("alloc a 1", OUT_OF_MEMORY)])?;
    in_use(&run, 500 * MIB)?;
    actor.expect(&[("release 0", SUCCESS)])?;
    in_use(&run, 0)?;
    // From here on it is known.
    actor.expect(&[("context 0", OUT_OF_MEMORY)])
}

fn once() -> Result {
    let run = unpriced(LIMIT, 100 * MIB)?;
    let mut actor = started(&run)?;
    actor.expect(&[("context 0", SUCCESS), ("cuCtxCreate_v2 a", SUCCESS)])?;
    in_use(&run, 200 * MIB)?;
    actor.expect(&[("cuCtxDestroy_v2 a", SUCCESS), ("release 0", SUCCESS)])?;
    actor.expect(&[("context 0", SUCCESS), ("alloc b 1000", SUCCESS)])?;
    in_use(&run, 100 * MIB + 1000)?;
    // Each card has a price of its own.
    let run = unpriced(LIMIT, 100 * MIB)?.env("STUB_GPU_COUNT", "2");
    let mut actor = started(&run)?;
    actor.expect(&[("context 1", SUCCESS), ("context 0", SUCCESS)])?;
    in_use(&run, 200 * MIB)
}

fn said() -> Result {
    let run = traced(unpriced(LIMIT, 100 * MIB)?.env("GPUCAP_CONTEXT_MEM", "300Mi"));
    let mut actor = started(&run)?;
    actor.expect(&[("context 0", SUCCESS)])?;
    in_use(&run, 300 * MIB)?;
    match calls(&run, "nvmlInit_v2")? {
        0 => Ok(()),
        calls => Err(Stop::fail(format!("NVML was asked: {calls}"))),
    }
}

fn cannot_tell() -> Result {
    for failure in ["nvmlInit_v2:12", "nvmlDeviceGetComputeRunningProcesses:3"] {
        let run = unpriced(LIMIT, 100 * MIB)?;
        let mut actor = started(&run.clone().env("STUB_GPU_FAIL", failure))?;
        actor.expect(&[("context 0", SUCCESS)])?;
        in_use(&run, ASSUMED)?;
    }
    Ok(())
}

fn not_alone() -> Result {
    let run = unpriced(LIMIT, 100 * MIB)?;
    let mut actor = started(&run)?;
    actor.expect(&[("create a 2097152 0", SUCCESS), ("context 0", SUCCESS)])?;
    in_use(&run, ASSUMED + 2 * MIB)
}

fn other_namespace() -> Result {
    let inside = ["unshare", "--pid", "--fork", "--mount-proc"];
    let possible = Command::new(inside[0]).args(&inside[1..]).arg("true").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        return Err(Stop::skip("no pid namespace can be had here"));
    }
    let run = unpriced(LIMIT, 100 * MIB)?;
    let mut actor = started(&run.clone().through(&inside.map(OsStr::new)))?;
    actor.expect(&[("context 0", SUCCESS)])?;
    in_use(&run, ASSUMED)
}
