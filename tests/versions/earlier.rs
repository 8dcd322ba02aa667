//! Libraries of an earlier commit and of this one, under one limits file and with one ledger.
//!
//! `ci/run --full versions` builds the earlier one. While a format is the same they work together; from the commit on
//! that changes one, the second process is refused in one line. Real containers: `tests/containers/earlier.rs`.

use crate::{GIB, NOT_READY, OUT_OF_MEMORY, SUCCESS, expect};
use gpucap_tests::{Build, Driver, Result, Run, World, limits_text, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    type Pair = fn() -> Result<[&'static Build; 2]>;
    let pairs: [(&str, Pair); 2] = [
        ("the earlier library, then this one", || Ok([Build::earlier()?, Build::shipped()?])),
        ("this library, then the earlier one", || Ok([Build::shipped()?, Build::earlier()?])),
    ];
    let trials = pairs.into_iter().flat_map(|(name, pair)| {
        [
            trial(format!("earlier: {name}: one ledger by hand"), move || {
                together(pair()?, &by_hand()?)
            }),
            trial(format!("earlier: {name}: one container"), move || {
                together(pair()?, &by_hook()?)
            }),
        ]
    });
    trials.collect()
}

/// An actor before which no library stands yet.
fn actor() -> Result<Run> {
    let run = World::bare(Driver::Stub).actor()?;
    Ok(run.env("GPUCAP_CONTEXT_MEM", "0").env("STUB_GPU_CONTEXT_MEM", "0"))
}

fn by_hand() -> Result<Run> {
    let run = actor()?;
    let ledger = run.directory().join("book");
    Ok(run.env("GPU_MEM_LIMIT", "2Gi").env("GPUCAP_LEDGER", ledger))
}

fn by_hook() -> Result<Run> {
    actor()?.limits_file(&limits_text("gpu=*\nmem=2147483648\ncontext=0\n"))
}

/// Two processes under two gibibytes, behind one library each.
fn together(builds: [&Build; 2], run: &Run) -> Result {
    let behind = |build: &Build| run.clone().preload_before(build.shim()?).start();
    let [first, second] = builds;
    let mut first = behind(first)?;
    first.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])?;
    first.expect(&[(&format!("alloc a {GIB}"), SUCCESS)])?;
    let mut second = behind(second)?;
    if second.call("init")?.code == NOT_READY {
        let output = second.end()?;
        let said = output.stderr.lines().count() == 1 && output.stderr.contains("version");
        return expect(said, || output.to_string());
    }
    second.expect(&[
        ("context 0", SUCCESS),
        (&format!("alloc a {}", GIB + 1), OUT_OF_MEMORY),
        (&format!("alloc a {GIB}"), SUCCESS),
    ])?;
    first.expect(&[("alloc b 1", OUT_OF_MEMORY), ("free a", SUCCESS)])?;
    second.expect(&[("alloc b 1048576", SUCCESS)])?;
    // What one of them leaves behind, the other takes away.
    second.kill()?;
    first.expect(&[(&format!("alloc a {}", 2 * GIB), SUCCESS)])
}
