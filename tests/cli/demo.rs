//! `gpucap demo`, with the stub driver.

use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Output, Result, Run, Stop, project, trial};
use libtest_mimic::Trial;
use std::fs;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("demo: shows what a limit does", shows),
        trial("demo: the README shows lines of it, in its order", readme_shows_it),
        trial("demo: leaves nothing behind", leaves_nothing),
        trial("demo: what is set for the person's own programs changes nothing", own_settings),
        trial("demo: a container with limits is no place for it", inside_a_container),
        trial("demo: fails aloud when a step is not as it should be", fails_aloud),
    ]
}

/// A demo whose directory for temporary files is the test's own.
fn demo() -> Result<Run> {
    let run = gpucap(&["demo", "--stub"])?;
    let temporary = run.directory().join("tmp");
    fs::create_dir(&temporary)?;
    Ok(run.env("TMPDIR", temporary))
}

fn facts(output: &Output) -> Result {
    for fact in [
        "the stub driver stands in",
        "81920 MiB in all",
        "2048 MiB in all, 1792 MiB free",
        "1,879,048,191 bytes  granted   in use 2,147,483,647",
        "1 byte  granted   in use 2,147,483,648",
        "1 byte  refused   in use 2,147,483,648   2 CUDA_ERROR_OUT_OF_MEMORY",
        "memory: allocation refused limit=2GiB used=2GiB request=1; later refusals are counted, not logged",
        "B  sees 512 MiB free",
        "B  asks for 1 GiB: refused",
        "B  asks for 1 GiB: granted",
        "1280MiB /   2048MiB |",
        "1.25 GiB of 2 GiB",
        "All of it held.",
    ] {
        says(output, fact)?;
    }
    Ok(())
}

fn shows() -> Result {
    let output = demo()?.output()?.success()?;
    facts(&output)?;
    expect(!output.stdout.contains('\x1b'), || format!("colours without a terminal: {output}"))
}

/// The README shows a part of what the demo prints; a line of dots stands for what it leaves out.
fn readme_shows_it() -> Result {
    let readme = fs::read_to_string(project().join("README.md"))?;
    let part = readme.split_once("<!-- demo: ").and_then(|(_, rest)| rest.split_once("```text\n"));
    let part = part.and_then(|(_, rest)| rest.split_once("```\n<!-- end of demo -->"));
    let shown = part.ok_or_else(|| Stop::fail("no demo in the README"))?.0.lines();
    let shown: Vec<_> = shown.filter(|line| *line != "...").collect();
    let output = demo()?.output()?.success()?;
    let mut printed = output.stdout.lines().map(str::trim_end);
    let stale = shown.iter().find(|line| !printed.any(|is| is == **line));
    expect(shown.len() >= 8 && stale.is_none(), || {
        format!("{} lines, of which this is not printed here: {stale:?}", shown.len())
    })
}

fn leaves_nothing() -> Result {
    let run = demo()?;
    let output = run.output()?.success()?;
    let left = fs::read_dir(run.directory().join("tmp"))?.count();
    expect(left == 0, || format!("{left} files left"))?;
    let ledger = output.stdout.split_whitespace().find(|word| word.starts_with("/dev/shm/gpucap-"));
    let ledger = ledger.ok_or_else(|| Stop::fail(format!("no ledger in: {output}")))?;
    expect(!Path::new(ledger).exists(), || format!("{ledger} was left"))
}

fn own_settings() -> Result {
    let run = demo()?.env("GPU_MEM_LIMIT", "5gg").env("GPU_CORE_PCT", "10");
    facts(&run.env("GPUCAP_CONTEXT_MEM", "1").output()?.success()?)
}

fn inside_a_container() -> Result {
    let output = demo()?.limits_file("")?.output()?;
    ended(&output, 1)?;
    says(&output, "/.gpucap/limits limits this container already")
}

fn fails_aloud() -> Result {
    // A card whose driver refuses every allocation grants nothing.
    let output = demo()?.env("STUB_GPU_FAIL", "cuMemAlloc_v2:2").output()?;
    ended(&output, 1)?;
    says(&output, "gpucap: demo: ")?;
    says(&output, "expected to be granted")
}
