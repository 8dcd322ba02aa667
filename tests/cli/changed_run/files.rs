//! The file of a run: whose it is, where it cannot be made, what a damaged one does, and when it goes.

use super::{begin, file_of, limit, of_run, sees};
use crate::look::ledger_of;
use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Build, Driver, Output, Program, Result, Stop, World, trial};
use libtest_mimic::Trial;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::path::PathBuf;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("limit: a directory that another user has laid out is none", laid_out),
        trial("limit: explain knows of a file that the library refuses", refused),
        trial("limit: a run is made also where files may not be long", short_files),
        trial("limit: a run is changed by its user alone", only_by_its_user),
        trial("limit: a run whose file is damaged is allowed no GPU work", damaged),
        trial("limit: what changes a run goes with its ledger", swept),
        trial("limit: a run in the process of a run changes for both", twice),
        trial("limit: a file of another user in the name of a run blocks nothing", forged_name),
    ]
}

const MIB: u64 = 1 << 20;

/// Another user, for whom root can lay out files.
const USER: u32 = 12_345;

/// In place of this user's directory.
fn laid_out() -> Result {
    let name = |user: u32| format!("/dev/shm/gpucap-{user}-runs");
    let victim = USER + 1;
    let (other, raised) = begin(&["--mem", "2Gi"])?;
    limit(&other, &["--mem", "64Gi"])?.success()?;
    let _ = fs::remove_dir_all(name(victim));
    fs::create_dir(name(victim))?;
    if chown(name(victim), Some(USER), None).is_err() {
        fs::remove_dir(name(victim))?;
        return Err(Stop::skip("a directory of another user needs root"));
    }
    let actor = Program::new("actor").build()?.display().to_string();
    let user = victim.to_string();
    let words = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"].map(OsStr::new);
    let with = |mode: u32| -> Result<(u64, Output)> {
        fs::set_permissions(name(victim), fs::Permissions::from_mode(mode))?;
        let run = gpucap(&["run", "--mem", "2Gi", "--", &actor])?.through(&words);
        let card = run.directory().join("theirs");
        fs::create_dir_all(&card)?;
        fs::set_permissions(&card, fs::Permissions::from_mode(0o777))?;
        let run = run.env("STUB_GPU_DIR", &card);
        let mut actor = run.start()?;
        // It has become the program when it answers: then the file is laid for it, as a hard link could be.
        actor.expect(&[("nothing", 9999)])?;
        let ledger = ledger_of(&actor)?;
        let file =
            PathBuf::from(name(victim)).join(PathBuf::from(ledger).file_name().unwrap_or_default());
        fs::copy(file_of(&raised), &file)?;
        chown(&file, Some(victim), None)?;
        actor.expect(&[("init", 0), ("context 0", 0)])?;
        Ok((actor.call("total d 0")?.value, actor.end()?))
    };
    let found = [0o700, 0o755, 0o777].map(with);
    drop(other);
    fs::remove_dir_all(name(victim))?;
    for found in found {
        let (total, end) = found?;
        says(&end, "its directory belongs to another user")?;
        expect(total == 2048 * MIB, || format!("{total} bytes: {end}"))?;
    }
    Ok(())
}

fn refused() -> Result {
    let (first, ledger) = begin(&["--mem", "2Gi"])?;
    let path = file_of(&ledger);
    let content = fs::read(&path)?;
    fs::remove_file(&path)?;
    let output = gpucap(&["explain", "--pid", &first.pid().to_string()])?.output()?;
    fs::write(&path, content)?;
    ended(&output, 0)?;
    says(&output, "is limited")?;
    let file = fs::OpenOptions::new().write(true).open(&path)?;
    file.write_all_at(b"x", fs::metadata(&path)?.len() - 3)?;
    let output = gpucap(&["explain", "--pid", &first.pid().to_string()])?.output()?;
    says(&output, "is allowed no GPU work")?;
    says(&output, &format!("{} is damaged: its checksum does not fit", path.display()))?;
    says(&output, "only gpucap run of the same version may write it")?;
    expect(output.code() != Some(0), || output.to_string())
}

fn short_files() -> Result {
    for blocks in ["0", "2", "8"] {
        let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let words = ["sh", "-c", &script].map(OsStr::new);
        let output = gpucap(&["run", "--mem", "2Gi", "--", "true"])?.through(&words).output()?;
        says(&output.success()?, "would be larger than the limit of file sizes (ulimit -f)")?;
    }
    Ok(())
}

/// A file of another user's run, laid out by root.
fn only_by_its_user() -> Result {
    let (first, ledger) = begin(&["--mem", "2Gi"])?;
    let theirs = ledger.replace("/gpucap-0-run-", &format!("/gpucap-{USER}-run-"));
    if theirs == ledger {
        return Err(Stop::skip("a file of another user needs root"));
    }
    let file = file_of(&theirs);
    let directory = file.parent().unwrap_or(&file).to_owned();
    let made = fs::create_dir(&directory).is_ok();
    fs::copy(file_of(&ledger), &file)?;
    fs::copy(&ledger, &theirs)?;
    [&directory, &file, &PathBuf::from(&theirs)]
        .into_iter()
        .try_for_each(|it| chown(it, Some(USER), None))?;
    let output = gpucap(&["limit", &theirs, "--mem", "4Gi"])?.output();
    let still = fs::read(&file)? == fs::read(file_of(&ledger))?;
    fs::remove_file(&file)?;
    fs::remove_file(&theirs)?;
    if made {
        fs::remove_dir(&directory)?;
    }
    let output = output?;
    ended(&output, 1)?;
    says(&output, &format!("it is a run of user {USER}, who alone can change it"))?;
    expect(still, || "the file was changed".into())?;
    drop(first);
    Ok(())
}

fn damaged() -> Result {
    let (first, ledger) = begin(&["--mem", "2Gi"])?;
    let path = file_of(&ledger);
    let good = fs::read(&path)?;
    let file = fs::OpenOptions::new().write(true).open(&path)?;
    file.write_all_at(b"x", good.len() as u64 - 3)?;
    let refused = |what: &str| -> Result {
        let run = of_run(World::bare(Driver::Stub).actor()?, &ledger)?.env("GPU_MEM_LIMIT", "2GiB");
        let mut actor = run.start()?;
        let code = actor.call("init").and_then(|_| actor.call("context 0"))?.code;
        let end = actor.end()?;
        says(&end, &format!("limits: {} {what}", path.display()))?;
        says(&end, "no GPU work is allowed")?;
        expect(code != 0, || format!("it may work: {end}"))
    };
    refused("is damaged: its checksum does not fit")?;
    file.write_all_at(&good, 0)?;
    file.write_all_at(&[0; 16], 64)?;
    let output = limit(&first, &["--mem", "4Gi"])?;
    ended(&output, 1)?;
    says(&output, "its page has no place for *: it was changed")?;
    file.write_all_at(&[0; 8], 0)?;
    refused("is not a page of this version")?;
    file.set_len(100)?;
    refused("has not the size of a page")?;
    let output = limit(&first, &["--mem", "4Gi"])?;
    ended(&output, 1)?;
    let status = gpucap(&["status"])?.output()?.success()?;
    says(&status, "its limits are not known: ")
}

fn swept() -> Result {
    let (mut first, ledger) = begin(&["--mem", "2Gi"])?;
    let file = file_of(&ledger);
    let sweep = || gpucap(&["run", "--mem", "1Gi", "--", "true"])?.output()?.success().map(drop);
    sweep()?;
    expect(file.exists(), || "it was removed while the run lives".into())?;
    first.kill()?;
    let output = limit(&first, &["--mem", "4Gi"])?;
    ended(&output, 1)?;
    says(&output, "no container or run goes by it here")?;
    expect(!file.exists(), || "it is still there".into())
}

/// A shell becomes a second run, which has the process number and the ledger of the first one.
fn twice() -> Result {
    let command = Build::shipped()?.gpucap()?.display().to_string();
    let actor = Program::new("actor").build()?.display().to_string();
    let script = "\"$1\" <\"$2\" & exec env -u GPUCAP_LEDGER -u GPU_MEM_LIMIT \"$0\" run --mem 1Gi -- \"$1\"";
    let run = gpucap(&["run", "--mem", "2Gi", "--", "sh", "-c", script, &command, &actor])?;
    let pipe = run.directory().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status()?;
    expect(made.success(), || "no pipe".into())?;
    let mut second = run.arg(&pipe).start()?;
    let mut orders = fs::OpenOptions::new().write(true).open(&pipe)?;
    // Both answer on the same standard output, one at a time.
    let mut order_first = |command: &str| writeln!(orders, "{command}").map_err(Stop::from);
    for command in ["init", "context 0"] {
        order_first(command)?;
        second.line()?;
    }
    second.expect(&[("init", 0), ("context 0", 0)])?;
    sees(&mut second, 1024)?;
    limit(&second, &["--mem", "512Mi"])?.success()?;
    sees(&mut second, 512)?;
    order_first("total d 0")?;
    let line = second.line()?;
    expect(line.starts_with(&format!("0 {} ", 512 * MIB)), || line.clone())
}

/// Under the number of the run's first process.
fn forged_name() -> Result {
    let (mut first, ledger) = begin(&["--mem", "2Gi"])?;
    let name = ledger.replace("/gpucap-0-run-", &format!("/gpucap-{USER}-run-"));
    let (forged, _start) = name.rsplit_once('-').unwrap_or_default();
    let forged = PathBuf::from(format!("{forged}-99"));
    let pid = first.pid().to_string();
    // Empty; and with the ledger of the run itself in it.
    for content in [Vec::new(), fs::read(&ledger)?] {
        fs::write(&forged, content)?;
        let done = chown(&forged, Some(USER), None).map(|()| {
            let run = format!("run-{pid}");
            let limits =
                [&run, &pid].map(|word| gpucap(&["limit", word, "--mem", "3Gi"])?.output());
            (limits, gpucap(&["status", &pid]).and_then(|run| run.output()))
        });
        fs::remove_file(&forged)?;
        let Ok((limits, status)) = done else {
            return Err(Stop::skip("a file of another user needs root"));
        };
        for output in limits {
            output?.success()?;
        }
        let status = status?.success()?;
        let is_shown = status.stdout.contains(&format!("user-{USER}"));
        expect(!is_shown, || status.to_string())?;
    }
    sees(&mut first, 3072)
}
