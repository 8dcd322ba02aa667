//! `gpucap limit` of what `gpucap run` started: it holds at once, for processes of now and later, and is its user's.

use crate::look::ledger_of;
use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Actor, Build, Driver, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::path::PathBuf;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("limit: the memory of a run is lowered, raised and restored", memory),
        trial("limit: what a process of a run sets itself only lowers", own_word),
        trial("limit: what is restored holds for who began after the change", restored),
        trial("limit: a run inside a run keeps a limit of its own", inside),
        trial("limit: a directory that another user has laid out is none", laid_out),
        trial("limit: explain knows of a file that the library refuses", refused),
        trial("limit: a run in the process of a run changes for both", twice),
        trial("limit: a run is made also where files may not be long", short_files),
        trial("limit: of one limit for all GPUs none is named", of_one_gpu),
        trial("limit: the time of a run changes while it works", time),
        trial("limit: a run is lent time and has it taken back", lent),
        trial("limit: what a run was not limited in cannot come later", unprepared),
        trial("limit: status and explain have what holds of a run now", shown),
        trial("limit: a run is changed by its user alone", only_by_its_user),
        trial("limit: a run whose file is damaged is allowed no GPU work", damaged),
        trial("limit: what changes a run goes with its ledger", swept),
    ]
}

const MIB: u64 = 1 << 20;
const OUT_OF_MEMORY: u64 = 2;

/// A run with these options, and the path of its ledger.
fn begin(options: &[&str]) -> Result<(Actor, String)> {
    let actor = Program::new("actor").build()?.display().to_string();
    let mut actor = gpucap(&[&["run"], options, &["--", &actor]].concat())?.start()?;
    actor.expect(&[("init", 0), ("context 0", 0)])?;
    let ledger = ledger_of(&actor)?;
    Ok((actor, ledger))
}

/// A program that is to be a process of it.
fn of_run(program: Run, ledger: &str) -> Result<Run> {
    let library = Build::shipped()?.gpucap()?.with_file_name("libgpucap.so");
    Ok(program.env("GPUCAP_LEDGER", ledger).env("LD_PRELOAD", library))
}

/// One more process of it, with a memory limit in its environment.
fn later(ledger: &str, memory: &str) -> Result<Actor> {
    let run = of_run(World::bare(Driver::Stub).actor()?, ledger)?.env("GPU_MEM_LIMIT", memory);
    let mut actor = run.start()?;
    actor.expect(&[("init", 0), ("context 0", 0)])?;
    Ok(actor)
}

fn limit(run: &Actor, words: &[&str]) -> Result<Output> {
    let name = format!("run-{}", run.pid());
    gpucap(&[&["limit", &name], words].concat())?.output()
}

fn sees(actor: &mut Actor, mebibytes: u64) -> Result {
    let answer = actor.call("total d 0")?;
    expect(answer.value == mebibytes * MIB, || format!("{answer:?}, not {mebibytes} MiB"))
}

/// Where its limits are.
fn file_of(ledger: &str) -> PathBuf {
    let (place, name) = ledger.rsplit_once('/').unwrap_or_default();
    let user = name.split('-').nth(1).unwrap_or_default();
    PathBuf::from(format!("{place}/gpucap-{user}-runs/{name}"))
}

fn memory() -> Result {
    let (mut first, ledger) = begin(&["--mem", "2Gi"])?;
    let half = format!("alloc a {}", 1024 * MIB);
    let rest = format!("alloc b {}", 1024 * MIB);
    first.expect(&[(&half, 0), (&rest, OUT_OF_MEMORY)])?;
    let said = limit(&first, &["--mem", "4Gi"])?.success()?;
    says(&said, "gpu=* mem=2GiB -> 4GiB core=not limited (as started)")?;
    sees(&mut first, 4096)?;
    first.expect(&[(&rest, 0)])?;
    sees(&mut later(&ledger, "2GiB")?, 4096)?;
    limit(&first, &["--mem", "1Gi"])?.success()?;
    sees(&mut first, 1024)?;
    first.expect(&[
        ("free a", 0),
        ("alloc a 1", OUT_OF_MEMORY),
        ("free b", 0),
        ("alloc a 1", 0),
    ])?;
    let said = limit(&first, &["--reset"])?.success()?;
    says(&said, "mem=1GiB -> 2GiB (as started)")?;
    sees(&mut first, 2048)?;
    // By the number of a process, too.
    let name = first.pid().to_string();
    gpucap(&["limit", &name, "--mem", "3Gi"])?.output()?.success()?;
    sees(&mut first, 3072)
}

/// Its first use of the GPU came after the change.
fn restored() -> Result {
    for (changed, holds) in [("8Gi", 8192), ("512Mi", 512)] {
        let (mut first, ledger) = begin(&["--mem", "2Gi"])?;
        limit(&first, &["--mem", changed])?.success()?;
        let mut second = later(&ledger, "2GiB")?;
        sees(&mut second, holds)?;
        limit(&first, &["--reset"])?.success()?;
        sees(&mut second, 2048)?;
        sees(&mut first, 2048)?;
        second.expect(&[(&format!("alloc a {}", 3072 * MIB), OUT_OF_MEMORY)])?;
    }
    Ok(())
}

fn inside() -> Result {
    let (first, ledger) = begin(&["--mem", "2Gi"])?;
    let actor = Program::new("actor").build()?.display().to_string();
    let inner = |memory: &str| -> Result<Actor> {
        let run = gpucap(&["run", "--mem", memory, "--", &actor])?.env("GPUCAP_LEDGER", &ledger);
        let mut inner = run.env("GPU_MEM_LIMIT", "2GiB").start()?;
        inner.expect(&[("init", 0)])?;
        Ok(inner)
    };
    let (mut before, mut least) = (inner("4Gi")?, inner("1Gi")?);
    sees(&mut before, 2048)?;
    sees(&mut least, 1024)?;
    limit(&first, &["--mem", "8Gi"])?.success()?;
    for (actor, holds) in [(&mut before, 4096), (&mut least, 1024), (&mut inner("3Gi")?, 3072)] {
        sees(actor, holds)?;
    }
    Ok(())
}

/// Another user, for whom root can lay out files.
const USER: u32 = 12_345;

/// In place of this user's directory.
fn laid_out() -> Result {
    let name = |user: u32| format!("/dev/shm/gpucap-{user}-runs");
    let victim = USER + 1;
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
        actor.expect(&[("init", 0), ("context 0", 0)])?;
        Ok((actor.call("total d 0")?.value, actor.end()?))
    };
    let found = [0o700, 0o755, 0o777].map(with);
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
    let file = fs::OpenOptions::new().write(true).open(&path)?;
    file.write_all_at(b"x", fs::metadata(&path)?.len() - 3)?;
    let output = gpucap(&["explain", "--pid", &first.pid().to_string()])?.output()?;
    says(&output, "is allowed no GPU work")?;
    says(&output, &format!("{} is damaged: its checksum does not fit", path.display()))?;
    says(&output, "only `gpucap run` of the same version may write it")?;
    expect(output.code() != Some(0), || output.to_string())
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

fn short_files() -> Result {
    for blocks in ["0", "2", "8"] {
        let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let words = ["sh", "-c", &script].map(OsStr::new);
        let output = gpucap(&["run", "--mem", "2Gi", "--", "true"])?.through(&words).output()?;
        says(&output.success()?, "would be larger than the limit of file sizes (ulimit -f)")?;
    }
    Ok(())
}

fn of_one_gpu() -> Result {
    let (first, _) = begin(&["--mem", "2Gi"])?;
    let uuid = "GPU-00000000-0000-0000-0000-00000000abcd";
    let output = limit(&first, &["--mem", "1Gi", "--gpu", uuid])?;
    ended(&output, 1)?;
    says(
        &output,
        "it has one limit for each of its GPUs (*), and none for this one: leave out --gpu",
    )
}

fn own_word() -> Result {
    let (mut first, ledger) = begin(&["--mem", "2Gi"])?;
    sees(&mut later(&ledger, "64Gi")?, 2048)?;
    limit(&first, &["--mem", "4Gi"])?.success()?;
    for (own, holds) in [("1Gi", 1024), ("3Gi", 3072), ("64Gi", 4096)] {
        sees(&mut later(&ledger, own)?, holds)?;
    }
    // A run inside the run has the same ledger and a variable of its own.
    let actor = Program::new("actor").build()?.display().to_string();
    let inner = gpucap(&["run", "--mem", "1Gi", "--", &actor])?.env("GPUCAP_LEDGER", &ledger);
    let mut inner = inner.env("GPU_MEM_LIMIT", "2GiB").start()?;
    inner.expect(&[("init", 0)])?;
    sees(&mut inner, 1024)?;
    limit(&first, &["--mem", "512Mi"])?.success()?;
    sees(&mut inner, 512)?;
    sees(&mut first, 512)
}

/// The shares are far from one another, so that a machine with other work tells them apart.
fn time() -> Result {
    let program = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
    let (first, ledger) = begin(&["--mem", "2Gi", "--cores", "5"])?;
    let share = World::bare(Driver::Stub).run(&program)?.arg("k_2ms").arg("8").arg("3000");
    let share = of_run(share, &ledger)?.env("GPU_MEM_LIMIT", "2GiB").env("GPU_CORE_PCT", "5%");
    // The stub says how busy a process kept it only of one that holds something.
    let share = share.env("STUB_GPU_CONTEXT_MEM", "1048576");
    let launches =
        || -> Result<u64> { Ok(status(&ledger)?["time"]["launches"].as_u64().unwrap_or(0)) };
    let before = launches()?;
    let share = std::thread::spawn(move || share.output());
    while launches()? == before && !share.is_finished() {
        std::thread::yield_now();
    }
    says(&limit(&first, &["--cores", "60"])?.success()?, "core=5% -> 60%")?;
    let output = share.join().map_err(|_| Stop::fail("a thread ended badly"))??;
    let share = output.number("busy")? * 100 / output.number("clock")?;
    expect((20..=63).contains(&share), || format!("{share} %: {output}"))
}

/// What `status --json` has of the only GPU of this run.
fn status(ledger: &str) -> Result<Value> {
    let output = gpucap(&["status", ledger, "--json"])?.output()?.success()?;
    let json: Value = serde_json::from_str(&output.stdout).map_err(Stop::fail)?;
    Ok(json["ledgers"][0]["devices"][0].clone())
}

fn lent() -> Result {
    let (first, ledger) = begin(&["--mem", "2Gi", "--cores", "30"])?;
    for (words, core) in [
        (&["--core-policy", "burst"][..], "core=30% -> 30% (to 100%)"),
        (&["--core-max", "80"], "core=30% (to 100%) -> 30% (to 80%)"),
        (&["--core-priority", "low"], "core=30% (to 80%) -> low (to 80%)"),
        (&["--reset"], "core=low (to 80%) -> 30% (as started)"),
    ] {
        says(&limit(&first, words)?.success()?, core)?;
    }
    limit(&first, &["--cores", "20", "--core-max", "50"])?.success()?;
    let time = status(&ledger)?["time"].clone();
    let holds = (&time["core_percent"], &time["core_max_percent"]);
    expect(*holds.0 == 20.0 && *holds.1 == 50.0, || format!("{holds:?}"))
}

fn unprepared() -> Result {
    let (first, _) = begin(&["--mem", "2Gi"])?;
    let output = limit(&first, &["--cores", "30"])?;
    ended(&output, 1)?;
    says(&output, "it was started without a limit of time on *: none can come later")?;
    let (first, _) = begin(&["--cores", "30"])?;
    let output = limit(&first, &["--mem", "1Gi"])?;
    ended(&output, 1)?;
    says(&output, "it was started without a limit of memory on *: none can come later")
}

fn shown() -> Result {
    let (first, ledger) = begin(&["--mem", "2Gi", "--cores", "30"])?;
    let name = format!("run-{}", first.pid());
    let explained = || gpucap(&["explain", &name])?.output();
    let unchanged = explained()?;
    expect(!unchanged.stdout.contains("gpucap limit"), || unchanged.to_string())?;
    limit(&first, &["--mem", "3Gi", "--cores", "50"])?.success()?;
    let output = explained()?;
    ended(&output, 0)?;
    says(&output, "changed by `gpucap limit`, in place of what the run was started with:")?;
    says(&output, "*: memory 3GiB, time 50% (at start: memory 2GiB, time 30%)")?;
    let json = gpucap(&["explain", &name, "--json"])?.output()?;
    let json: Value = serde_json::from_str(&json.stdout).map_err(Stop::fail)?;
    let said = &json["limits"]["run"][0];
    let holds = said["memory_bytes"] == 3072 * MIB && said["core_percent"] == 50.0;
    expect(holds && json["limits"]["file"].is_null(), || json.to_string())?;
    let table = gpucap(&["status", &name])?.output()?.success()?;
    says(&table, "limit 50%")?;
    expect(status(&ledger)?["time"]["core_percent"] == 50.0, || "not the limit of now".into())
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
