//! The versions that the formats bear, patched to ones that this commit does not know.
//!
//! What is added to a format without a new version must be such that passing over it allows nothing more.

use crate::{GIB, OUT_OF_MEMORY, SUCCESS, expect, refused, unnoticed};
use gpucap_tests::{Build, Driver, Output, Result, Run, World, limits_text, sealed, trial};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("formats: limits of another version allow nothing", limits),
        trial("formats: a container's ledger of another version allows nothing", ledger_by_hook),
        trial("formats: a ledger of another version and length allows nothing", ledger_by_hand),
        trial("formats: a live page of another version allows nothing", live),
        trial(
            "formats: a held page of another version allows nothing, and an empty one is none",
            held,
        ),
        trial("formats: what is added without a new version leaves every limit", additions),
        trial("formats: status says of which version a ledger is, and goes on", status),
        trial("formats: a ledger of another version is not swept", not_swept),
        trial("formats: explain says what is wrong with limits of another version", explain),
        trial("formats: a container recorded by another version is left as it is", record),
    ]
}

const TWO_GIB: &str = "gpu=*\nmem=2147483648\ncontext=0\n";
/// Before the first version, and after the present one.
const OTHERS: [u64; 2] = [0, 2];
const LEDGER_BYTES: u64 = 16_863_232;

/// An actor behind the shim, under no limit yet.
fn actor() -> Result<Run> {
    let run = World::with_shim(Driver::Stub)?.actor()?;
    Ok(run.env("GPUCAP_CONTEXT_MEM", "0").env("STUB_GPU_CONTEXT_MEM", "0"))
}

fn under(text: &str) -> Result<Run> {
    actor()?.limits_file(text)
}

/// Limits of this version.
fn limits_of(version: u64) -> String {
    sealed(&format!("gpucap-limits={version}\nsource=test\ncontainer=test\n{TWO_GIB}"))
}

/// A ledger that says that it is of this version, with as many bytes.
fn ledger_of(path: &Path, version: u64, bytes: u64) -> Result {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    let file = File::create(path)?;
    file.set_len(bytes)?;
    let words = [u64::from_le_bytes(*b"gpucapLG"), version, bytes, 1024, 64];
    file.write_all_at(&words.map(u64::to_le_bytes).concat(), 0)?;
    Ok(())
}

fn gpucap(words: &[&str]) -> Result<Run> {
    let run = World::bare(Driver::Stub).run(&Build::shipped()?.gpucap()?)?;
    Ok(words.iter().fold(run, Run::arg))
}

fn one_line(output: &Output, words: &[&str]) -> Result {
    let lines: Vec<&str> = output.stderr.lines().collect();
    let says = lines.len() == 1 && words.iter().all(|word| lines[0].contains(word));
    expect(says, || format!("no line with {words:?}: {output}"))
}

fn limits() -> Result {
    for version in OTHERS {
        let run = under(&limits_of(version))?;
        refused(&run, &["/.gpucap/limits", &format!("gpucap-limits={version}"), "version"])?;
        unnoticed(&run)?;
    }
    // The judge of the judge: the same text in our version is good.
    under(&limits_of(1))?.start()?.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])
}

fn ledger_by_hook() -> Result {
    // Nought is a ledger that is being made.
    for version in [2, u64::MAX] {
        let run = under(&limits_text(TWO_GIB))?;
        ledger_of(&run.directory().join("limits/ledger"), version, LEDGER_BYTES)?;
        refused(&run, &["ledger", &format!("version is {version}"), "1"])?;
        unnoticed(&run)?;
    }
    let run = under(&limits_text(TWO_GIB))?;
    ledger_of(&run.directory().join("limits/ledger"), 1, LEDGER_BYTES)?;
    run.start()?.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])
}

fn ledger_by_hand() -> Result {
    for (version, bytes) in [(2, LEDGER_BYTES), (2, LEDGER_BYTES * 2), (0, 4096)] {
        let run = actor()?.env("GPU_MEM_LIMIT", "2Gi");
        let ledger = run.directory().join("book");
        ledger_of(&ledger, version, bytes)?;
        let run = run.env("GPUCAP_LEDGER", &ledger);
        refused(&run, &["ledger"])?;
        unnoticed(&run)?;
        // Those who use it find it as it was.
        expect(fs::metadata(&ledger)?.len() == bytes, || "it has another length".into())?;
    }
    Ok(())
}

fn live() -> Result {
    for version in OTHERS {
        let run = under(&limits_text(TWO_GIB))?;
        let mut page = vec![0; 4096];
        page[..8].copy_from_slice(b"gpucapLV");
        page[8..16].copy_from_slice(&version.to_le_bytes());
        fs::write(run.directory().join("limits/live"), page)?;
        refused(&run, &["/.gpucap/live", "version"])?;
        unnoticed(&run)?;
    }
    Ok(())
}

/// The held page, of a container with a compute limit; the empty file is one on which a hook could not mount any.
fn held() -> Result {
    let with = |page: &[u8]| -> Result<Run> {
        let run = under(&limits_text(&format!("{TWO_GIB}core=30%\n")))?;
        fs::write(run.directory().join("limits/held"), page)?;
        Ok(run)
    };
    let page = |version: u64| [b"gpucapHD".as_slice(), &version.to_le_bytes(), &[0; 4080]].concat();
    for version in OTHERS {
        refused(&with(&page(version))?, &["/.gpucap/held", "version"])?;
        unnoticed(&with(&page(version))?)?;
    }
    refused(&with(&page(1)[..100])?, &["/.gpucap/held has not the size of a page"])?;
    for good in [&[], page(1).as_slice()] {
        with(good)?.start()?.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])?;
    }
    Ok(())
}

fn additions() -> Result {
    let lines = format!("hook=9.9\n{TWO_GIB}weight=7\nnote=a=b\n");
    let mut actor = under(&limits_text(&lines))?.env("GPUCAP_LATER", "1").start()?;
    actor.expect(&[
        ("init", SUCCESS),
        ("context 0", SUCCESS),
        (&format!("alloc a {}", 2 * GIB + 1), OUT_OF_MEMORY),
        (&format!("alloc a {}", 2 * GIB), SUCCESS),
    ])
}

fn status() -> Result {
    let run = gpucap(&["status"])?;
    let ledger = run.directory().join("book");
    ledger_of(&ledger, 2, LEDGER_BYTES)?;
    let run = run.env("GPUCAP_LEDGER", &ledger);
    let seen = run.output()?.success()?;
    let line = seen.stdout.lines().find(|line| line.contains(&ledger.display().to_string()));
    expect(line.is_some_and(|line| line.contains("version is 2")), || seen.to_string())
}

fn not_swept() -> Result {
    // As a run names its ledger that ended long ago: its number is one that no process has.
    let namespace = fs::read_link("/proc/self/ns/pid")?.display().to_string();
    let namespace = namespace.trim_start_matches("pid:[").trim_end_matches(']').to_owned();
    // SAFETY: no conditions.
    let user = unsafe { libc::geteuid() };
    let name = |start: u64| format!("/dev/shm/gpucap-{user}-run-{namespace}-4194303-{start}");
    let start = u64::from(std::process::id());
    let (other, ours) = (name(start), name(start + (1 << 32)));
    ledger_of(other.as_ref(), 2, LEDGER_BYTES)?;
    ledger_of(ours.as_ref(), 1, LEDGER_BYTES)?;
    let swept = gpucap(&["gc"])?.output();
    let left = [&other, &ours].map(|path| Path::new(path).exists());
    for path in [other, ours] {
        drop(fs::remove_file(path));
    }
    swept?.success()?;
    expect(left == [true, false], || format!("left of [another version, this one]: {left:?}"))
}

fn explain() -> Result {
    let run = under(&limits_of(2))?.program(&Build::shipped()?.gpucap()?);
    let seen = run.arg("explain").output()?;
    let says = seen.stdout.contains("gpucap-limits=2");
    expect(says && seen.code() == Some(4), || seen.to_string())
}

/// A record of this process, which runs, as a later version might write it.
fn record() -> Result {
    let run = gpucap(&["status"])?;
    let stat = fs::read_to_string("/proc/self/stat")?;
    let start = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19));
    let name = format!("later@{}-{}.json", std::process::id(), start.unwrap_or("0"));
    let containers = run.directory().join("run/containers");
    fs::create_dir_all(&containers)?;
    let text = json!({"version": 2, "container": "later", "limits": limits_of(1)}).to_string();
    fs::write(containers.join(&name), &text)?;
    let config = run.directory().join("node.json");
    fs::write(&config, json!({"run_dir": run.directory().join("run")}).to_string())?;
    let call = |words: &[&str]| {
        let run = run.clone().program(&Build::shipped()?.gpucap()?);
        words.iter().fold(run, Run::arg).arg("--config").arg(&config).output()
    };
    call(&["gc"])?.success()?;
    call(&["status"])?.success()?;
    let changed = call(&["limit", "later", "--mem", "1Gi"])?;
    expect(changed.code() == Some(1), || changed.to_string())?;
    one_line(&changed, &["later", "record"])?;
    let left = fs::read_to_string(containers.join(&name))?;
    expect(left == text, || format!("it was changed: {left}"))
}
