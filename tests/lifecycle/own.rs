//! What belongs to the program stays as it would be without the shim: descriptors, threads, umask, signals, errno,
//! what it prints and what stands in its files.

use crate::{LIMIT, begin, free_contexts, limited};
use gpucap_tests::{Driver, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;
use std::fs;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("descriptors, threads, umask, signals and errno stay the program's", unchanged),
        trial("a refusal says nothing into a file that took the place of stderr", closed),
        trial(
            "an unusable limit says nothing into a file that took the place of stderr",
            closed_broken,
        ),
        trial("nothing is printed on stdout", nothing_printed),
        trial("a process that uses no GPU leaves no ledger", no_ledger),
    ]
}

/// Where the system refuses what the shim asks of it by the way: a dead process is looked for, and nothing can be said.
fn output(world: &World) -> Result<Output> {
    let run = free_contexts(world.actor()?);
    begin(&run)?.kill()?;
    let unheard = ["sh", "-c", r#"exec "$@" 2>/dev/full"#, "sh"].map(AsRef::as_ref);
    run.program(&Program::new("own").build()?).through(&unheard).output()?.success()
}

fn unchanged() -> Result {
    let bare = output(&World::bare(Driver::available()))?;
    let limited = output(&World::with_shim(Driver::available())?)?;
    if bare.stdout == limited.stdout && bare.stdout.contains("errno=4242") {
        Ok(())
    } else {
        Err(Stop::fail(format!("without the shim: {bare}with it: {limited}")))
    }
}

fn without_descriptors(run: Run) -> Result<Vec<u8>> {
    let file = run.directory().join("file");
    let without = r#"exec "$@" 0<&- 1>&- 2>&-"#;
    let words = ["sh", "-c", without, "sh"].map(AsRef::as_ref);
    let output = run
        .clone()
        .program(&Program::new("closed").build()?)
        .arg(&file)
        .through(&words)
        .output()?;
    output.success()?;
    Ok(fs::read(file)?)
}

fn found(file: &[u8], expected: &str) -> Result {
    let text = String::from_utf8_lossy(file);
    if text == expected { Ok(()) } else { Err(Stop::fail(format!("the file holds: {text}"))) }
}

fn closed() -> Result {
    found(&without_descriptors(limited()?)?, "0 2 0\n")
}

fn closed_broken() -> Result {
    found(&without_descriptors(limited()?.env("GPU_MEM_LIMIT", "abc"))?, "802 0 0\n")
}

fn nothing_printed() -> Result {
    for limit in [LIMIT.to_string(), "abc".into()] {
        let mut actor =
            limited()?.env("GPU_MEM_LIMIT", limit).env("GPUCAP_LOG", "debug").start()?;
        for command in ["init", "context 0", "alloc a 2147483648", "nvml d 0"] {
            actor.call(command)?; // anything else on stdout would not be an answer
        }
        let output = actor.end()?;
        if !output.stdout.is_empty() || output.stderr.is_empty() {
            return Err(Stop::fail(output));
        }
    }
    Ok(())
}

fn no_ledger() -> Result {
    let run = limited()?.program("/bin/true".as_ref());
    let output = run.output()?.success()?;
    if run.directory().join("ledger").exists() || !output.stderr.is_empty() {
        return Err(Stop::fail(output));
    }
    Ok(())
}
