//! The limits file that the hook shows a container. What it says can be lowered from inside, never raised.

use crate::{CARD, GIB, NOT_READY, OUT_OF_MEMORY, SUCCESS, begin, told, uncapped};
use gpucap_tests::{Result, Run, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("limits file: its cap holds", holds),
        trial("limits file: the environment can lower it", lowered),
        trial("limits file: the environment cannot raise it", not_raised),
        trial("limits file: a GPU that it does not list cannot be used", unlisted),
        trial("limits file: on a mount that can be written, nothing works", writable),
        trial("limits file: one that cannot be read means nothing works", damaged),
        trial("limits file: a ledger of one's own buys nothing", own_ledger),
        trial("limits file: a context price of one's own buys nothing", own_price),
    ]
}

/// A file with these lines about GPUs, framed by the version and the checksum.
fn text(lines: &str) -> String {
    let body = format!("gpucap-limits=1\nsource=test\ncontainer=test\n{lines}");
    let crc = crc32(body.as_bytes());
    format!("{body}crc32={crc:08x}\n")
}

/// The checksum of zip and Ethernet (ISO 3309), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

fn under(lines: &str) -> Result<Run> {
    uncapped()?.limits_file(&text(lines))
}

const TWO_GIB: &str = "gpu=*\nmem=2147483648\ncontext=0\n";

fn holds() -> Result {
    let mut actor = begin(&under(TWO_GIB)?)?;
    told(&mut actor, "total d 0", 2 * GIB, 0)?;
    actor.expect(&[
        (&format!("alloc a {}", 2 * GIB + 1), OUT_OF_MEMORY),
        (&format!("alloc a {}", 2 * GIB), SUCCESS),
    ])
}

fn lowered() -> Result {
    let mut actor = begin(&under(TWO_GIB)?.env("GPU_MEM_LIMIT", "1Gi"))?;
    told(&mut actor, "total d 0", GIB, 0)
}

fn not_raised() -> Result {
    let mut actor = begin(&under(TWO_GIB)?.env("GPU_MEM_LIMIT", "3Gi"))?;
    told(&mut actor, "total d 0", 2 * GIB, 0)
}

fn unlisted() -> Result {
    let other = "gpu=GPU-ffffffff-ffff-ffff-ffff-ffffffffffff\nmem=2147483648\n";
    let mut actor = under(other)?.start()?;
    actor.expect(&[("init", SUCCESS)])?;
    let answer = actor.tell("context 0")?;
    if answer.code == SUCCESS { Err(Stop::fail(format!("{answer:?}"))) } else { Ok(()) }
}

fn writable() -> Result {
    let mut actor = uncapped()?.writable_limits_file(&text(TWO_GIB))?.start()?;
    actor.expect(&[("init", NOT_READY)])?;
    told(&mut actor, "nvml d 0", CARD, 0)
}

fn damaged() -> Result {
    let whole = text(TWO_GIB);
    for damaged in ["", &whole.replace("mem=2", "mem=9"), &whole[..whole.len() / 2], "\0\0\0"] {
        let mut actor = uncapped()?.limits_file(damaged)?.start()?;
        actor.expect(&[("init", NOT_READY)])?;
    }
    Ok(())
}

fn own_ledger() -> Result {
    let run = under(TWO_GIB)?;
    let mut first = begin(&run)?;
    first.expect(&[(&format!("alloc a {}", 2 * GIB), SUCCESS)])?;
    let mut second = begin(&run.clone().env("GPUCAP_LEDGER", "/dev/shm/mine"))?;
    second.expect(&[("alloc a 1", OUT_OF_MEMORY)])
}

fn own_price() -> Result {
    let lines = TWO_GIB.replace("context=0", "context=1073741824");
    let mut actor = begin(&under(&lines)?.env("GPUCAP_CONTEXT_MEM", "0"))?;
    actor.expect(&[(&format!("alloc a {}", GIB + 1), OUT_OF_MEMORY)])
}
