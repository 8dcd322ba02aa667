//! Memory that has two names, or two processes: charged once, to the process that made it, for as long as it lives.

use crate::{INVALID_VALUE, LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, begin, in_use, with_limit};
use gpucap_tests::{Actor, Result, Run, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a second handle from a file keeps memory charged", imported_here),
        trial("an open file keeps memory charged, and its end is noticed", open_file),
        trial(
            "memory that only a closed file kept is back before a request is refused",
            closed_file,
        ),
        trial("a file that stands for other memory does not keep the first", reused_number),
        trial("physical memory of another process is not charged again", imported_elsewhere),
        trial("an import that the driver refuses counts for nothing", not_imported),
        trial("a multicast object costs nothing, and neither does its end refund", multicast),
        trial("IPC memory is not charged again, and its end refunds nothing", ipc),
        trial("IPC memory that is closed twice or freed refunds nothing", ipc_misused),
        trial("IPC memory ends with its context", ipc_context),
        trial("memory of a shared pool is not charged again, and its end refunds nothing", pool),
    ]
}

const PAGE: u64 = 2 * MIB;
/// What the process has that opens memory of another.
const OWN: u64 = MIB;

fn started() -> Result<(Run, Actor)> {
    let run = with_limit(&LIMIT.to_string())?;
    let actor = begin(&run)?;
    Ok((run, actor))
}

fn imported_here() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[
        (&format!("create a {LIMIT} 0"), SUCCESS),
        ("export f a", SUCCESS),
        ("import b f", SUCCESS),
        ("close f", SUCCESS),
        ("drop a", SUCCESS),
        ("alloc c 1", OUT_OF_MEMORY),
        (&format!("map m b {LIMIT}"), SUCCESS),
        ("drop b", SUCCESS),
    ])?;
    in_use(&run, LIMIT)?;
    actor.expect(&[(&format!("unmap m {LIMIT}"), SUCCESS)])?;
    in_use(&run, 0)
}

fn open_file() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[
        (&format!("create a {PAGE} 0"), SUCCESS),
        ("export f a", SUCCESS),
        ("drop a", SUCCESS),
    ])?;
    in_use(&run, PAGE)?;
    actor.expect(&[("import b f", SUCCESS), ("close f", SUCCESS)])?;
    in_use(&run, PAGE)?;
    actor.expect(&[("drop b", SUCCESS)])?;
    in_use(&run, 0)
}

fn closed_file() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[
        (&format!("create a {LIMIT} 0"), SUCCESS),
        ("export f a", SUCCESS),
        ("drop a", SUCCESS),
        ("alloc b 1", OUT_OF_MEMORY),
        ("close f", SUCCESS),
        (&format!("alloc b {LIMIT}"), SUCCESS),
    ])?;
    in_use(&run, LIMIT)
}

fn reused_number() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[
        (&format!("create a {PAGE} 0"), SUCCESS),
        ("export f a", SUCCESS),
        ("close f", SUCCESS),
        (&format!("create b {} 0", 2 * PAGE), SUCCESS),
        ("export g b", SUCCESS),
    ])?;
    let (first, second) = (actor.call("import c g")?, actor.call("drop a")?);
    if (first.code, second.code) != (SUCCESS, SUCCESS) {
        return Err(Stop::fail(format!("{first:?} {second:?}")));
    }
    in_use(&run, 2 * PAGE)?;
    actor.expect(&[("drop b", SUCCESS), ("close g", SUCCESS)])?;
    in_use(&run, 2 * PAGE)?;
    actor.expect(&[("drop c", SUCCESS)])?;
    in_use(&run, 0)
}

/// An exporter's number, and that of the file in a slot of it.
fn file_of(actor: &mut Actor, export: &str) -> Result<String> {
    let (pid, file) = (actor.call("pid p")?.value, actor.call(export)?);
    if file.code != SUCCESS {
        return Err(Stop::fail(format!("{export}: {file:?}")));
    }
    Ok(format!("{pid} {}", file.value))
}

fn imported_elsewhere() -> Result {
    let (run, mut maker) = started()?;
    maker.expect(&[(&format!("create a {LIMIT} 0"), SUCCESS)])?;
    let file = file_of(&mut maker, "export f a")?;
    let mut other = begin(&run)?;
    other.expect(&[
        (&format!("import-of b {file}"), SUCCESS),
        (&format!("map m b {LIMIT}"), SUCCESS),
        ("retain c m", SUCCESS),
    ])?;
    in_use(&run, LIMIT)?;
    other.expect(&[
        ("drop b", SUCCESS),
        ("drop c", SUCCESS),
        (&format!("unmap m {LIMIT}"), SUCCESS),
        ("alloc d 1", OUT_OF_MEMORY),
    ])?;
    in_use(&run, LIMIT)?;
    maker.expect(&[("close f", SUCCESS), ("drop a", SUCCESS)])?;
    in_use(&run, 0)
}

fn not_imported() -> Result {
    let run = with_limit(&LIMIT.to_string())?.env(
        "STUB_GPU_FAIL",
        "cuMemImportFromShareableHandle:999@1,cuMemExportToShareableHandle:999@1",
    );
    let mut actor = begin(&run)?;
    actor.expect(&[
        (&format!("create a {PAGE} 0"), SUCCESS),
        ("export f a", 999),
        ("export f a", SUCCESS),
        ("import b f", 999),
        ("close f", SUCCESS),
        ("import b f", INVALID_VALUE),
        ("drop a", SUCCESS),
    ])?;
    in_use(&run, 0)
}

fn multicast() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[
        (&format!("create a {PAGE} 0"), SUCCESS),
        (&format!("multicast m {}", 4 * LIMIT), SUCCESS),
        (&format!("bind m a {PAGE}"), SUCCESS),
        (&format!("map v m {PAGE}"), SUCCESS),
        ("retain n v", SUCCESS),
    ])?;
    in_use(&run, PAGE)?;
    actor.expect(&[
        (&format!("unmap v {PAGE}"), SUCCESS),
        (&format!("unbind m {PAGE}"), SUCCESS),
        ("drop m", SUCCESS),
        ("drop n", SUCCESS),
        ("drop n", INVALID_VALUE),
    ])?;
    in_use(&run, PAGE)?;
    actor.expect(&[("drop a", SUCCESS)])?;
    in_use(&run, 0)
}

/// A process with memory in slot `a`, and another one that has the rest: a wrong refund would be taken from it.
fn two() -> Result<(Run, Actor, Actor)> {
    let (run, mut maker) = started()?;
    maker.expect(&[(&format!("alloc a {}", LIMIT - OWN), SUCCESS)])?;
    let mut other = begin(&run)?;
    other.expect(&[(&format!("alloc z {OWN}"), SUCCESS)])?;
    Ok((run, maker, other))
}

fn ipc() -> Result {
    for open in ["cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2"] {
        let (run, mut maker, mut other) = two()?;
        maker.expect(&[("ipc a", SUCCESS)])?;
        other.expect(&[(&format!("{open} b"), SUCCESS)])?;
        in_use(&run, LIMIT)?;
        other.expect(&[("cuIpcCloseMemHandle b", SUCCESS), ("alloc c 1", OUT_OF_MEMORY)])?;
        in_use(&run, LIMIT)?;
        maker.expect(&[("free a", SUCCESS)])?;
        in_use(&run, OWN)?;
        other.expect(&[(&format!("alloc c {}", LIMIT - OWN), SUCCESS)])?;
    }
    Ok(())
}

fn ipc_misused() -> Result {
    let (run, mut maker, mut other) = two()?;
    maker.expect(&[("ipc a", SUCCESS), ("cuIpcOpenMemHandle_v2 b", 201)])?;
    other.expect(&[
        ("cuIpcOpenMemHandle_v2 b", SUCCESS),
        ("free b", INVALID_VALUE),
        ("cuIpcCloseMemHandle b", SUCCESS),
        ("cuIpcCloseMemHandle b", INVALID_VALUE),
    ])?;
    maker.expect(&[("cuIpcCloseMemHandle a", INVALID_VALUE), ("alloc b 1", OUT_OF_MEMORY)])?;
    in_use(&run, LIMIT)
}

fn ipc_context() -> Result {
    let (run, mut maker, mut other) = two()?;
    maker.expect(&[("ipc a", SUCCESS)])?;
    other.expect(&[("cuIpcOpenMemHandle_v2 b", SUCCESS), ("release 0", SUCCESS)])?;
    in_use(&run, LIMIT - OWN)
}

fn pool() -> Result {
    for free in ["cuMemFree_v2", "cuMemFreeAsync", "cuMemFreeAsync_ptsz"] {
        let (run, mut maker) = started()?;
        maker.expect(&[
            ("pool-shared q", SUCCESS),
            (&format!("from-pool a q {}", LIMIT - OWN), SUCCESS),
            ("pool-pointer a", SUCCESS),
        ])?;
        let file = file_of(&mut maker, "pool-export f q")?;
        let mut other = begin(&run)?;
        other.expect(&[
            (&format!("alloc z {OWN}"), SUCCESS),
            (&format!("pool-import q {file}"), SUCCESS),
            ("pool-pointer-of b q", SUCCESS),
            ("from-pool c q 1", INVALID_VALUE),
        ])?;
        in_use(&run, LIMIT)?;
        other.expect(&[(&format!("{free} b"), SUCCESS), (&format!("{free} b"), INVALID_VALUE)])?;
        in_use(&run, LIMIT)?;
        maker.expect(&[("free-async a", SUCCESS), ("sync", SUCCESS)])?;
        in_use(&run, OWN)?;
    }
    Ok(())
}
