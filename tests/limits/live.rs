//! Limits that the node changes while the container runs, through the page `/.gpucap/live`.

use crate::{CARD, GIB, NOT_READY, OUT_OF_MEMORY, SUCCESS, answers, begin, without_limit};
use gpucap_tests::{Result, Run, limits_text as text, trial};
use libtest_mimic::Trial;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("live limits: a page that says nothing leaves the file", silent),
        trial("live limits: a lowered limit refuses what comes next and frees nothing", lowered),
        trial("live limits: a limit can be raised beyond the file, as far as the card", raised),
        trial("live limits: the environment lowers what the page says", environment),
        trial("live limits: what is taken back is the file's again", taken_back),
        trial(
            "live limits: memory that the file does not limit stays without a limit",
            not_limited_in_file,
        ),
        trial("live limits: a page that the container can write means nothing works", writable),
        trial("live limits: a page of another version means nothing works", other_version),
    ]
}

const MAGIC: &[u8; 8] = b"gpucapLV";
/// Where the first entry's memory stands.
const MEMORY: u64 = 64 + 16;

/// A page for any GPU; it says nothing yet.
fn page(version: u64) -> Vec<u8> {
    let mut page = vec![0; 4096];
    page[..8].copy_from_slice(MAGIC);
    page[8..16].copy_from_slice(&version.to_le_bytes());
    page[64..80].fill(0xff);
    page
}

/// A run under a limits file with a page beside it, and the page as the node has it.
fn with_page(lines: &str, version: u64) -> Result<(Run, File)> {
    let run = without_limit()?.limits_file(&text(lines))?;
    let path = run.directory().join("limits/live");
    std::fs::write(&path, page(version))?;
    Ok((run, OpenOptions::new().write(true).open(path)?))
}

fn under(lines: &str) -> Result<(Run, File)> {
    with_page(lines, 1)
}

fn say(page: &File, bytes: u64) -> Result {
    Ok(page.write_all_at(&bytes.to_le_bytes(), MEMORY)?)
}

const TWO_GIB: &str = "gpu=*\nmem=2147483648\ncontext=0\n";

fn silent() -> Result {
    let (run, _page) = under(TWO_GIB)?;
    let mut actor = begin(&run)?;
    answers(&mut actor, "total d 0", 2 * GIB, 0)?;
    answers(&mut actor, "nvml d 0", 2 * GIB, 0)
}

fn lowered() -> Result {
    let (run, page) = under(TWO_GIB)?;
    let mut actor = begin(&run)?;
    actor.expect(&[(&format!("alloc a {}", GIB + GIB / 2), SUCCESS)])?;
    say(&page, GIB)?;
    answers(&mut actor, "total d 0", GIB, 0)?;
    actor.expect(&[("alloc b 1", OUT_OF_MEMORY), ("free a", SUCCESS)])?;
    actor.expect(&[
        (&format!("alloc b {}", GIB + 1), OUT_OF_MEMORY),
        (&format!("alloc b {GIB}"), SUCCESS),
    ])
}

fn raised() -> Result {
    let (run, page) = under(TWO_GIB)?;
    let mut actor = begin(&run)?;
    actor.expect(&[(&format!("alloc a {}", 3 * GIB), OUT_OF_MEMORY)])?;
    say(&page, 4 * GIB)?;
    actor.expect(&[(&format!("alloc a {}", 3 * GIB), SUCCESS)])?;
    answers(&mut actor, "nvml d 0", 4 * GIB, 3 * GIB)?;
    say(&page, CARD * 2)?;
    answers(&mut actor, "total d 0", CARD, 0)
}

fn environment() -> Result {
    let (run, page) = under(TWO_GIB)?;
    let mut actor = begin(&run.env("GPU_MEM_LIMIT", "1Gi"))?;
    say(&page, 4 * GIB)?;
    answers(&mut actor, "total d 0", GIB, 0)?;
    say(&page, GIB / 2)?;
    answers(&mut actor, "total d 0", GIB / 2, 0)
}

fn taken_back() -> Result {
    let (run, page) = under(TWO_GIB)?;
    let mut actor = begin(&run)?;
    say(&page, GIB)?;
    answers(&mut actor, "total d 0", GIB, 0)?;
    say(&page, 0)?;
    answers(&mut actor, "total d 0", 2 * GIB, 0)
}

fn not_limited_in_file() -> Result {
    let (run, page) = under("gpu=*\ncore=50%\n")?;
    let mut actor = begin(&run)?;
    say(&page, GIB)?;
    answers(&mut actor, "total d 0", CARD, 0)
}

fn writable() -> Result {
    let run = without_limit()?.writable_limits_file(&text(TWO_GIB))?;
    std::fs::write(run.directory().join("limits/live"), page(1))?;
    let mut actor = run.start()?;
    actor.expect(&[("init", NOT_READY)])
}

fn other_version() -> Result {
    let (run, _page) = with_page(TWO_GIB, 2)?;
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS)])?;
    let answer = actor.call("context 0")?;
    if answer.code == SUCCESS {
        return Err(gpucap_tests::Stop::fail(format!("{answer:?}")));
    }
    actor.expect(&[("init", NOT_READY)])
}
