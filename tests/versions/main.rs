//! Files of one version met by a library or command of another: it works, or is refused in one clear line.
//!
//! * [`formats`]: files whose version is a future one, or one before the first.
//! * [`earlier`]: library and command of an earlier commit, beside those of this one.
//!
//! Whatever meets whatever: no program has more of a GPU than it was given, none that uses no GPU notices anything,
//! and nothing that another version may still use is taken away.

mod earlier;
mod formats;

use gpucap_tests::{Output, Result, Run, Stop, main as harness};
use std::process::ExitCode;

const GIB: u64 = 1 << 30;
const SUCCESS: u64 = 0;
const OUT_OF_MEMORY: u64 = 2;
const NOT_READY: u64 = 802;

fn main() -> ExitCode {
    let suites = [formats::trials, earlier::trials];
    harness(suites.into_iter().flat_map(|trials| trials()).collect())
}

/// Fails unless this run of the actor is refused all GPU work, and one line says why in these words.
fn refused(run: &Run, words: &[&str]) -> Result {
    let mut actor = run.start()?;
    // Some of it is found out when a device is first looked at.
    let code = actor.call("init")?.code;
    if code != NOT_READY {
        let context = actor.call("context 0")?;
        expect(context.code != SUCCESS, || format!("init {code}, {context:?}"))?;
    }
    let answer = actor.call("alloc a 1")?;
    expect(answer.code != SUCCESS, || format!("memory was given: {answer:?}"))?;
    let output = actor.end()?;
    let lines: Vec<&str> = output.stderr.lines().collect();
    let says = |line: &&str| words.iter().all(|word| line.contains(word));
    expect(lines.len() == 1 && lines.iter().all(says), || format!("not {words:?}: {output}"))
}

/// Fails unless a program without a GPU notices nothing in the place of this run.
fn unnoticed(run: &Run) -> Result {
    let output: Output = run.clone().program("true".as_ref()).output()?.success()?;
    expect(output.stderr.is_empty(), || output.to_string())
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(Stop::fail(otherwise())) }
}
