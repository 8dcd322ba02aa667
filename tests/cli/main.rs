//! The command `gpucap` as a person uses it, on the stub driver.
//!
//! * [`run`]: a limit is put on a program, only ever lowered inside another one, and nothing is run on a bad value.
//! * [`look`]: `status` and `explain` tell of processes that live while they look.
//! * [`changed_run`]: other limits for a run that has started, by its user.
//! * [`lending`]: time that others leave unused is asked for, and granted by the node alone.
//! * [`hostile`]: what others have laid out costs bounded time and memory, and ends no command.
//! * [`metrics`]: the same for Prometheus, printed and served.
//! * [`runtime`]: the wrapper passes on what it was told, and `explain` judges a bundle.
//! * [`calibrate`]: what a context takes is measured and written down.
//! * [`configure`]: engines are told of the hook, and their files stay what they were.
//! * [`files`]: to the byte, with owner, mode and links.
//! * [`nri`]: the plugin answers a runtime, waits for one that goes away, and is bounded.
//! * [`top`]: the live view ends in each way with the terminal as it was, and prints one sample.
//! * [`words`]: help, aliases, colours, and the words that choose what is shown.
//! * [`demo`]: the demo shows what it promises and leaves nothing behind.

mod calibrate;
mod changed_run;
mod configure;
mod demo;
mod files;
mod hostile;
mod lending;
mod look;
mod metrics;
mod nri;
mod run;
mod runtime;
mod top;
mod words;

use gpucap_tests::{Build, Driver, Output, Result, Run, Stop, World, main as harness};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let suites = [
        run::trials,
        look::trials,
        changed_run::trials,
        lending::trials,
        hostile::trials,
        metrics::trials,
        configure::trials,
        files::trials,
        demo::trials,
        runtime::trials,
        calibrate::trials,
        nri::trials,
        top::trials,
        words::trials,
    ];
    harness(suites.into_iter().flat_map(|trials| trials()).collect())
}

/// `gpucap` with these words. No ledger is set: the harness's own would be one to stay with.
fn gpucap(words: &[&str]) -> Result<Run> {
    let run = World::bare(Driver::Stub).run(&Build::shipped()?.gpucap()?)?;
    Ok(words.iter().fold(run.env("GPUCAP_LEDGER", ""), Run::arg))
}

/// The program that the demo shows.
fn demo_program() -> Result<String> {
    let program: PathBuf = Build::shipped()?.gpucap()?.with_file_name("gpucap-demo");
    Ok(program.display().to_string())
}

/// Fails unless it ended with this code.
fn ended(output: &Output, code: i32) -> Result {
    expect(output.code() == Some(code), || format!("not {code}: {output}"))
}

/// Fails unless the text is in what was printed, on stdout or stderr.
fn says(output: &Output, text: &str) -> Result {
    let found = output.stdout.contains(text) || output.stderr.contains(text);
    expect(found, || format!("no `{text}` in: {output}"))
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(Stop::fail(otherwise())) }
}
