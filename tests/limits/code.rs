//! Modules and libraries: charged by what the card lost while they were loaded, as far as that can have been theirs.

use crate::contexts::{contend_on, started};
use crate::{
    GIB, LIMIT, MIB, NOT_INITIALIZED, NOT_READY, OUT_OF_MEMORY, SUCCESS, begin, calls, in_use,
    traced, with_limit,
};
use gpucap_tests::{Result, Run, Stop, trial};
use libtest_mimic::Trial;

/// What the stub takes for a module, and for a function that is loaded later. No round numbers: pieces that belong
/// together by mistake are seen.
const MODULE: u64 = 3_000_017;
const FUNCTION: u64 = 1_000_003;

/// Loads, unloads.
const MODULES: [(&str, &str); 4] = [
    ("cuModuleLoad", "cuModuleUnload"),
    ("cuModuleLoadData", "cuModuleUnload"),
    ("cuModuleLoadDataEx", "cuModuleUnload"),
    ("cuModuleLoadFatBinary", "cuModuleUnload"),
];
const LIBRARIES: [(&str, &str); 2] =
    [("cuLibraryLoadData", "cuLibraryUnload"), ("cuLibraryLoadFromFile", "cuLibraryUnload")];
/// The first use of a library in a context, and how many functions it loads.
const USES: [(&str, u64); 4] = [
    ("cuLibraryGetModule", 0),
    ("cuLibraryGetGlobal", 0),
    ("cuLibraryGetManaged", 0),
    ("cuKernelGetFunction", 1),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("a variable in a cubin is believed, whatever its size", variable),
        trial("memory of other processes is charged only up to what an image can take", peer),
        trial("a process that frees memory gives no module a negative charge", peer_leaves),
        trial("each process pays for its own module", each_process),
        trial("a function is charged when it is first looked up, and once", function),
        trial("a function that is loaded eagerly is not looked for", eager_function),
        trial("a function that does not fit fills the limit", function_fills),
        trial("functions come back with their module", functions_end),
        trial("a library is charged in each context that uses it", library_in_contexts),
        trial(
            "a library that was loaded without a context is charged where it is used",
            no_context,
        ),
        trial("before 12.5 a kernel's function comes back with its context", old_driver),
        trial("modules that two threads load at once are charged once each", at_once),
        trial("where the limits cannot be used no code is loaded", no_limits),
    ];
    for (load, unload) in MODULES.into_iter().chain(LIBRARIES) {
        let each = |rule: &str, body: fn(&'static str, &'static str) -> Result| {
            trial(format!("{load}: {rule}"), move || body(load, unload))
        };
        trials.extend([
            each("charged by what it takes, and refunded when it is unloaded", charged),
            each("what the driver refuses costs nothing", driver_refuses),
            each("one that does not fit is unloaded again", does_not_fit),
            each("an unload that the driver refuses refunds nothing", does_not_unload),
            each("it ends with its context", ends_with_context),
        ]);
    }
    for (verb, functions) in USES {
        trials.push(trial(format!("{verb}: the first use loads the library, once"), move || {
            first_use(verb, functions)
        }));
    }
    trials
}

fn coded(run: Run) -> Run {
    run.env("STUB_GPU_MODULE_MEM", MODULE.to_string())
        .env("STUB_GPU_FUNCTION_MEM", FUNCTION.to_string())
}

/// Code costs what the stub says; libraries are loaded when they are opened.
fn eager(limit: u64) -> Result<Run> {
    Ok(coded(with_limit(&limit.to_string())?).env("CUDA_MODULE_LOADING", "EAGER"))
}

/// Libraries and functions are loaded when they are first used.
fn lazy(limit: u64) -> Result<Run> {
    Ok(coded(with_limit(&limit.to_string())?))
}

fn charged(load: &str, unload: &str) -> Result {
    let run = eager(LIMIT)?;
    let mut actor = begin(&run)?;
    for _ in 0..3 {
        actor.expect(&[(&format!("{load} a"), SUCCESS), (&format!("{load} b"), SUCCESS)])?;
        in_use(&run, 2 * MODULE)?;
        actor.expect(&[(&format!("{unload} a"), SUCCESS)])?;
        in_use(&run, MODULE)?;
        if actor.call(&format!("{unload} a"))?.code == SUCCESS {
            return Err(Stop::fail("the stub unloads twice"));
        }
        in_use(&run, MODULE)?;
        actor.expect(&[(&format!("{unload} b"), SUCCESS)])?;
        in_use(&run, 0)?;
    }
    Ok(())
}

fn driver_refuses(load: &str, _unload: &str) -> Result {
    let run = eager(LIMIT)?;
    let mut actor = begin(&run.clone().env("STUB_GPU_FAIL", format!("{load}:2@1")))?;
    actor.expect(&[(&format!("{load} a"), OUT_OF_MEMORY)])?;
    in_use(&run, 0)?;
    actor.expect(&[(&format!("{load} a"), SUCCESS)])?;
    in_use(&run, MODULE)
}

fn does_not_fit(load: &str, unload: &str) -> Result {
    let run = traced(eager(2 * MODULE - 1)?);
    let mut actor = begin(&run)?;
    actor.expect(&[(&format!("{load} a"), SUCCESS), (&format!("{load} b"), OUT_OF_MEMORY)])?;
    in_use(&run, MODULE)?;
    if calls(&run, unload)? != 1 {
        return Err(Stop::fail("it was not unloaded"));
    }
    let left = MODULE - 1;
    actor.expect(&[(&format!("alloc c {left}"), SUCCESS), ("alloc d 1", OUT_OF_MEMORY)])?;
    actor.expect(&[("free c", SUCCESS), (&format!("{unload} a"), SUCCESS)])?;
    in_use(&run, 0)?;
    begin(&eager(2 * MODULE)?)?
        .expect(&[(&format!("{load} a"), SUCCESS), (&format!("{load} b"), SUCCESS)])
}

fn does_not_unload(load: &str, unload: &str) -> Result {
    let run = eager(LIMIT)?;
    let mut actor = begin(&run.clone().env("STUB_GPU_FAIL", format!("{unload}:719@1")))?;
    actor.expect(&[(&format!("{load} a"), SUCCESS), (&format!("{unload} a"), 719)])?;
    in_use(&run, MODULE)?;
    actor.expect(&[(&format!("{unload} a"), SUCCESS)])?;
    in_use(&run, 0)
}

fn ends_with_context(load: &str, _unload: &str) -> Result {
    for (make, end) in [
        ("context 0", "release 0"),
        ("context 0", "reset 0"),
        ("cuCtxCreate_v2 b", "cuCtxDestroy_v2 b"),
    ] {
        let run = eager(LIMIT)?;
        let mut actor = started(&run)?;
        actor.expect(&[(make, SUCCESS), (&format!("{load} a"), SUCCESS)])?;
        in_use(&run, MODULE)?;
        actor.expect(&[(end, SUCCESS)])?;
        in_use(&run, 0)?;
    }
    // One that ends takes nothing of another one along.
    let run = eager(LIMIT)?.env("STUB_GPU_FAIL", "cuCtxDestroy_v2:719@1");
    let mut actor = started(&run)?;
    actor.expect(&[
        ("cuCtxCreate_v2 b", SUCCESS),
        (&format!("{load} a"), SUCCESS),
        ("cuCtxDestroy_v2 b", 719),
    ])?;
    in_use(&run, MODULE)?;
    actor.expect(&[("context 0", SUCCESS), ("release 0", SUCCESS)])?;
    in_use(&run, MODULE)?;
    actor.expect(&[("cuCtxSetCurrent b", SUCCESS), ("cuCtxDestroy_v2 b", SUCCESS)])?;
    in_use(&run, 0)
}

/// What else than its variables is believed of the actor's cubin: its headers twice, and what drivers take besides.
const BELIEVED: u64 = 2 * 128 + 32 * MIB;
/// Of a file or of PTX nothing is known.
const UNKNOWN: u64 = 64 * MIB;

fn variable() -> Result {
    let variable = 5 * GIB;
    let taken = variable + 20 * MIB;
    let run = with_limit(&(20 * GIB).to_string())?.env("STUB_GPU_MODULE_MEM", taken.to_string());
    let mut actor = begin(&run)?;
    actor.expect(&[(&format!("cuModuleLoadData a {variable}"), SUCCESS)])?;
    in_use(&run, taken)?;
    // As PTX it could not be distinguished from memory of others.
    actor.expect(&[("cuModuleUnload a", SUCCESS), ("cuModuleLoadData a 0", SUCCESS)])?;
    in_use(&run, UNKNOWN)
}

fn peer() -> Result {
    let forms = [
        ("cuModuleLoadData", "cuModuleLoadData a 1000", BELIEVED + 1000),
        ("cuModuleLoadData", "cuModuleLoadData a 0", UNKNOWN),
        ("cuModuleLoad", "cuModuleLoad a", UNKNOWN),
        ("cuLibraryLoadData", "cuLibraryLoadData a 1000", BELIEVED + 1000),
        ("cuLibraryLoadFromFile", "cuLibraryLoadFromFile a", UNKNOWN),
    ];
    for (symbol, command, most) in forms {
        let run = eager(LIMIT)?.env("STUB_GPU_CONCURRENT", format!("{symbol}:10GiB"));
        let mut actor = begin(&run)?;
        actor.expect(&[(command, SUCCESS)])?;
        in_use(&run, most)?;
        let unload = if symbol.contains("Library") { "cuLibraryUnload" } else { "cuModuleUnload" };
        actor.expect(&[(&format!("{unload} a"), SUCCESS)])?;
        in_use(&run, 0)?;
    }
    // Nor do look-ups add up beyond it.
    let run = lazy(LIMIT)?.env("STUB_GPU_CONCURRENT", "cuModuleGetFunction:20MiB");
    let mut actor = begin(&run)?;
    actor.expect(&[("cuModuleLoadData a 1000", SUCCESS)])?;
    for number in 0..5 {
        actor.expect(&[(&format!("function b a {number}"), SUCCESS)])?;
    }
    in_use(&run, BELIEVED + 1000)
}

fn peer_leaves() -> Result {
    let run = eager(LIMIT)?.env("STUB_GPU_CONCURRENT", "cuMemAlloc_v2:1GiB,cuModuleLoadData:-1GiB");
    let mut actor = begin(&run)?;
    actor.expect(&[("alloc c 1", SUCCESS), ("cuModuleLoadData a 1000", SUCCESS)])?;
    in_use(&run, 1)?;
    actor.expect(&[("free c", SUCCESS), ("cuModuleUnload a", SUCCESS)])?;
    in_use(&run, 0)
}

fn each_process() -> Result {
    // What the other one has or gives back is no growth.
    let run = eager(LIMIT)?;
    let (mut first, mut second) = (begin(&run)?, begin(&run)?);
    second.expect(&[("alloc a 10000000", SUCCESS)])?;
    first.expect(&[("cuModuleLoadData a 1000", SUCCESS)])?;
    second.expect(&[("free a", SUCCESS), ("cuModuleLoadData a 1000", SUCCESS)])?;
    in_use(&run, 2 * MODULE)
}

fn function() -> Result {
    let run = lazy(LIMIT)?;
    let mut actor = begin(&run)?;
    actor.expect(&[("cuModuleLoadData a 1000", SUCCESS)])?;
    in_use(&run, MODULE)?;
    for (command, functions) in
        [("function b a 1", 1), ("function b a 1", 1), ("function c a 2", 2), ("cuFuncLoad c", 2)]
    {
        actor.expect(&[(command, SUCCESS)])?;
        in_use(&run, MODULE + functions * FUNCTION)?;
    }
    Ok(())
}

fn eager_function() -> Result {
    let run = traced(eager(LIMIT)?);
    let mut actor = begin(&run)?;
    actor.expect(&[("cuModuleLoadData a 1000", SUCCESS)])?;
    let before = calls(&run, "cuMemGetInfo_v2")?;
    actor.expect(&[("function b a 1", SUCCESS), ("cuFuncLoad b", SUCCESS)])?;
    in_use(&run, MODULE)?;
    match calls(&run, "cuMemGetInfo_v2")? - before {
        0 => Ok(()),
        asked => Err(Stop::fail(format!("the driver was asked {asked} times"))),
    }
}

fn function_fills() -> Result {
    let run = lazy(MODULE + FUNCTION + 10)?;
    let mut actor = begin(&run)?;
    actor.expect(&[
        ("cuModuleLoadData a 1000", SUCCESS),
        ("function b a 1", SUCCESS),
        ("alloc d 10", SUCCESS),
        ("free d", SUCCESS),
        ("function c a 2", SUCCESS),
        ("alloc d 1", OUT_OF_MEMORY),
    ])?;
    in_use(&run, MODULE + FUNCTION + 10)?;
    actor.expect(&[("cuModuleUnload a", SUCCESS)])?;
    in_use(&run, 0)
}

fn functions_end() -> Result {
    let run = lazy(LIMIT)?;
    let mut actor = begin(&run)?;
    actor.expect(&[
        ("cuModuleLoadData a 1000", SUCCESS),
        ("cuModuleLoadData b 1000", SUCCESS),
        ("function c a 1", SUCCESS),
        ("function d b 1", SUCCESS),
        ("function e b 2", SUCCESS),
        ("cuModuleUnload b", SUCCESS),
    ])?;
    in_use(&run, MODULE + FUNCTION)?;
    actor.expect(&[("reset 0", SUCCESS)])?;
    in_use(&run, 0)
}

fn first_use(verb: &str, functions: u64) -> Result {
    let run = lazy(LIMIT)?;
    let mut actor = begin(&run)?;
    actor.expect(&[("cuLibraryLoadData a 1000", SUCCESS)])?;
    in_use(&run, 0)?;
    for _ in 0..2 {
        actor.expect(&[(&format!("{verb} a"), SUCCESS)])?;
        in_use(&run, MODULE + functions * FUNCTION)?;
    }
    actor.expect(&[("cuLibraryUnload a", SUCCESS)])?;
    in_use(&run, 0)
}

fn library_in_contexts() -> Result {
    let run = lazy(LIMIT)?;
    let mut actor = started(&run)?;
    actor.expect(&[
        ("cuLibraryLoadData a 1000", SUCCESS),
        ("cuCtxCreate_v2 b", SUCCESS),
        ("cuKernelGetFunction a 1", SUCCESS),
        ("cuCtxCreate_v2 c", SUCCESS),
        ("cuKernelGetFunction a 1", SUCCESS),
        ("cuKernelGetFunction a 2", SUCCESS),
    ])?;
    in_use(&run, 2 * MODULE + 3 * FUNCTION)?;
    actor.expect(&[("cuCtxSetCurrent b", SUCCESS), ("cuCtxDestroy_v2 b", SUCCESS)])?;
    in_use(&run, MODULE + 2 * FUNCTION)?;
    actor.expect(&[("cuLibraryUnload a", SUCCESS)])?;
    in_use(&run, 0)
}

fn no_context() -> Result {
    let run = lazy(LIMIT)?.env("STUB_GPU_CONCURRENT", "cuLibraryGetModule:10GiB");
    let mut actor = started(&run)?;
    actor.expect(&[
        ("cuLibraryLoadData a 1000", SUCCESS),
        ("context 0", SUCCESS),
        ("cuLibraryGetModule a", SUCCESS),
    ])?;
    in_use(&run, BELIEVED + 1000)
}

fn old_driver() -> Result {
    let run = lazy(LIMIT)?.env("STUB_GPU_FAIL", "cuKernelGetLibrary:500");
    let mut actor = begin(&run)?;
    actor.expect(&[
        ("cuLibraryLoadData a 1000", SUCCESS),
        ("cuKernelGetFunction a 1", SUCCESS),
        ("cuLibraryUnload a", SUCCESS),
    ])?;
    in_use(&run, MODULE + FUNCTION)?;
    actor.expect(&[("release 0", SUCCESS)])?;
    in_use(&run, 0)
}

fn no_limits() -> Result {
    let run = traced(with_limit("5gg")?);
    let mut actor = run.start()?;
    // What allocates nothing is the driver's to answer.
    actor.expect(&[("init", NOT_READY), ("count z", NOT_INITIALIZED)])?;
    for (load, _) in MODULES.into_iter().chain(LIBRARIES) {
        actor.expect(&[(&format!("{load} a"), NOT_INITIALIZED)])?;
        if calls(&run, load)? != 0 {
            return Err(Stop::fail(format!("{load} reached the driver")));
        }
    }
    Ok(())
}

fn at_once() -> Result {
    contend_on("code", |run| run.env("STUB_GPU_MODULE_MEM", "4096"))
}
