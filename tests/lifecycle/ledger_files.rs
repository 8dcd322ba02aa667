//! What the ledger file may be. One that cannot be used means no GPU work: a limit that silently is none is worse.

use crate::{NOT_READY, SUCCESS, begin, limited};
use gpucap_tests::{Result, Run, Stop, trial};
use libtest_mimic::Trial;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    type Make = fn(&Path) -> Result;
    let bad: [(&str, &str, Make); 5] = [
        ("lies where no folder is", "no such file or directory (errno 2)", |_| Ok(())),
        ("is a folder", "is a directory (errno 21)", |path| Ok(fs::create_dir_all(path)?)),
        ("is too short", " has 100 bytes, not ", |path| write(path, &[0; 100])),
        ("holds something else", ", known is ", |path| write(path, &vec![0x55; 32 << 20])),
        ("leads elsewhere", "too many levels of symbolic links (errno 40)", |path| {
            Ok(std::os::unix::fs::symlink("/proc/self/mem", at_home(path)?)?)
        }),
    ];
    let mut trials: Vec<_> = bad
        .into_iter()
        .map(|(what, why, make)| {
            trial(format!("a ledger that {what} means no GPU work"), move || {
                let run = limited()?;
                let path = run.directory().join("books/ledger");
                make(&path)?;
                refused(&run.env("GPUCAP_LEDGER", &path), why)
            })
        })
        .collect();
    trials.push(trial("the ledger belongs to its user alone", private));
    trials
}

fn at_home(path: &Path) -> Result<&Path> {
    fs::create_dir_all(path.parent().ok_or_else(|| Stop::fail("no parent"))?)?;
    Ok(path)
}

fn write(path: &Path, bytes: &[u8]) -> Result {
    Ok(fs::write(at_home(path)?, bytes)?)
}

fn refused(run: &Run, why: &str) -> Result {
    let mut actor = run.start()?;
    actor.expect(&[("init", NOT_READY)])?;
    if actor.call("alloc a 1")?.code == SUCCESS {
        return Err(Stop::fail("memory was given"));
    }
    let output = actor.end()?;
    if output.stderr.lines().count() == 1 && output.stderr.contains(why) {
        Ok(())
    } else {
        Err(Stop::fail(output))
    }
}

fn private() -> Result {
    let run = limited()?;
    let path = run.directory().join("ledger");
    let _actor = begin(&run)?;
    let mode = fs::metadata(&path)?.permissions().mode() & 0o777;
    if mode == 0o600 { Ok(()) } else { Err(Stop::fail(format!("mode {mode:o}"))) }
}
