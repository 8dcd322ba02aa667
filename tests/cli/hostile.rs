//! Root's commands on what others have laid out for them: ledgers that are forged or shortened, and a process whose root
//! has links, fifos and files without an end where files of ours are looked for.
//!
//! Each command is held to memory that it never needs on honest files, and has to end by itself.

use crate::look::begin;
use crate::{ended, expect, gpucap, says};
use gpucap_core::ledger::{DEVICES, Ledger, MAGIC, SLOTS, VERSION};
use gpucap_tests::{Actor, Output, Program, Result, Run, Scratch, Stop, trial};
use libtest_mimic::Trial;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("status: a forged ledger costs bounded memory", forged),
        trial("status: a thousand forged ledgers cost bounded memory", many_forged),
        trial("status: a ledger that is shortened in the mean time ends no process", shortened),
        trial("status: another user's file under a user's name is not believed", misnamed),
        trial("explain: what a process has laid in its root leads nowhere", laid_out),
        trial("explain: a process of another pid namespace holds what it holds", elsewhere),
        trial("explain: of a process there is JSON", as_json),
        trial("explain: words that are of a bundle are not of a process", words_of_a_bundle),
    ]
}

/// What a command may map: many times what it needs, and a fraction of what the files would have it take.
const MOST_KIB: &str = "524288";

/// The command with these words, held to that.
fn bounded(words: &[&str]) -> Result<Run> {
    let shell = format!("ulimit -v {MOST_KIB}; exec timeout 120 \"$@\"");
    let through = ["sh", "-c", &shell, "sh"].map(str::as_ref);
    Ok(gpucap(words)?.through(&through))
}

/// A ledger with every device, in which this number of slots belongs to a process of a pid namespace of its own that is
/// not there, and holds something of each. Written by its layout, as a hostile program would.
fn forge(path: &Path, slots: usize) -> Result {
    const LIVE: u64 = 2;
    const WRITTEN: u64 = 1 << 63;
    let mut words = vec![0_u64; usize::try_from(Ledger::SIZE / 8).unwrap_or(0)];
    let header = [MAGIC, VERSION, Ledger::SIZE, SLOTS as u64, DEVICES as u64, SLOTS as u64];
    words[..header.len()].copy_from_slice(&header);
    for (device, row) in (1..).zip(words[4096 / 8..].chunks_mut(32).take(DEVICES)) {
        row[16..20].fill(WRITTEN | device);
    }
    for (slot, owner) in (1_u64..).zip(words[20480 / 8..].chunks_mut(8).take(slots)) {
        // Number and state; what is written of it in the first life of the slot; every device.
        owner[..5].copy_from_slice(&[slot << 2 | LIVE, slot << 16, 1 << 16, 1 << 16, u64::MAX]);
    }
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    Ok(fs::write(path, bytes)?)
}

fn parsed(output: &Output) -> Result<Value> {
    serde_json::from_str(&output.stdout).map_err(|why| Stop::fail(format!("{why}: {output}")))
}

fn forged() -> Result {
    let scratch = Scratch::new()?;
    let ledger = scratch.path().join("ledger");
    forge(&ledger, SLOTS)?;
    let metrics = bounded(&["metrics"])?.env("GPUCAP_LEDGER", &ledger).output()?;
    ended(&metrics, 0)?;
    let of = format!("gpucap_processes{{kind=\"other\",ledger=\"{}\"", ledger.display());
    let rows: Vec<_> = metrics.stdout.lines().filter(|line| line.starts_with(&of)).collect();
    let counted = rows.iter().all(|row| row.ends_with(&format!(" {SLOTS}.0")));
    expect(rows.len() == DEVICES && counted, || format!("{rows:?}"))?;
    let status = bounded(&["status", "--json"])?.env("GPUCAP_LEDGER", &ledger).output()?;
    ended(&status, 0)?;
    let status = parsed(&status)?;
    let is_it = |it: &&Value| it["path"].as_str() == ledger.to_str();
    let found = status["ledgers"].as_array().and_then(|all| all.iter().find(is_it));
    let devices = found.and_then(|found| found["devices"].as_array());
    let devices = devices.ok_or_else(|| Stop::fail("the ledger is not shown"))?;
    let listed: usize =
        devices.iter().filter_map(|it| Some(it["processes"].as_array()?.len())).sum();
    let unlisted: u64 = devices.iter().filter_map(|it| it["unlisted"].as_u64()).sum();
    expect(devices.len() == DEVICES && listed <= 1024, || format!("{listed} rows"))?;
    expect(listed as u64 + unlisted == (SLOTS * DEVICES) as u64, || format!("{unlisted}"))?;
    let status = bounded(&["status", "--verbose"])?.env("GPUCAP_LEDGER", &ledger).output()?;
    ended(&status, 0)?;
    says(&status, "processes that are not shown: ")?;
    let top = bounded(&["top", "--once", "--interval", "0.1"])?.env("GPUCAP_LEDGER", &ledger);
    let top = top.output()?;
    ended(&top, 0)?;
    let of = |line: &&str| line.contains(&*ledger.to_string_lossy());
    expect(top.stdout.lines().filter(of).count() == DEVICES, || top.to_string())
}

/// As many as are looked at, of one user, each of which has all that fits. The metrics container of the Helm chart may
/// have this much where it samples, and so sees the node's `/dev/shm`.
const OF_METRICS_KIB: &str = "196608";

fn many_forged() -> Result {
    let scratch = Scratch::new()?;
    let ledger = scratch.path().join("ledger");
    forge(&ledger, 1)?;
    let there = Command::new("unshare").args(["--mount", "true"]).output()?;
    if !there.status.success() {
        return Err(Stop::skip("no mount namespace can be made here"));
    }
    let shell = format!(
        "mount -t tmpfs tmpfs /dev/shm && cd /dev/shm && cp --sparse=always {} gpucap-12345-1 && \
         cp gpucap-12345-1 gpucap-54321-1 && chown 12345 gpucap-12345-1 && chown 54321 gpucap-54321-1 && \
         for name in $(seq 2 1100); do ln gpucap-12345-1 gpucap-12345-$name; done && \
         ulimit -v {OF_METRICS_KIB} && exec timeout 120 \"$@\"",
        ledger.display()
    );
    let through = ["unshare", "--mount", "sh", "-c", &shell, "sh"].map(str::as_ref);
    for words in [&["metrics"][..], &["status", "--json"]] {
        let output = gpucap(words)?.through(&through).output()?;
        ended(&output, 0)?;
        let shown = output.stdout.matches("/dev/shm/gpucap-12345-").count();
        expect(shown > 100, || format!("{shown} mentions of a ledger"))?;
        // One of each user in turn.
        says(&output, "/dev/shm/gpucap-54321-1")?;
    }
    let status = gpucap(&["status"])?.through(&through).output()?;
    says(&status, "more ledgers are not shown")
}

fn shortened() -> Result {
    let scratch = Scratch::new()?;
    let ledger = scratch.path().join("ledger");
    forge(&ledger, SLOTS)?;
    let whole = fs::read(&ledger)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // A process of the container, or any user in /dev/shm.
            while !over.load(Ordering::Relaxed) {
                let file = OpenOptions::new().write(true).open(&ledger);
                let Ok(file) = file else { return };
                drop(file.set_len(4096));
                drop(file.set_len(Ledger::SIZE));
                drop(file.write_all_at(&whole, 0));
            }
        });
        let looked = (0..12).try_for_each(|_| {
            for words in [&["status"][..], &["metrics"]] {
                let output = gpucap(words)?.env("GPUCAP_LEDGER", &ledger).output()?;
                ended(&output, 0)?;
            }
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        looked
    })
}

fn misnamed() -> Result {
    // A name that no process of this user has, for a user that this one is not.
    let name = format!("/dev/shm/gpucap-4294967294-{}", std::process::id());
    let made = Made(PathBuf::from(&name));
    forge(&made.0, SLOTS)?;
    let output = gpucap(&["status"])?.output()?;
    ended(&output, 0)?;
    says(&output, &format!("{name}: it belongs to another user than its name says"))
}

/// A file that goes with the value.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

/// A program that waits in a root of its own; ends with the value.
struct Jailed {
    child: Child,
    _root: Scratch,
}

impl Jailed {
    /// `lay_out` is given the root, and the environment that is returned is the program's.
    fn start(lay_out: impl Fn(&Path) -> Result) -> Result<Self> {
        let scratch = Scratch::new()?;
        let root = scratch.path().join("root");
        fs::create_dir_all(root.join("etc"))?;
        fs::create_dir_all(root.join(".gpucap"))?;
        fs::copy(Program::new("waits").flags(&["-static"]).build()?, root.join("waits"))?;
        lay_out(&root)?;
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--root"]).arg(&root).arg("/waits");
        command.env_clear().env("GPU_MEM_LIMIT", "1Gi").env("GPUCAP_LEDGER", "/ledger");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut first = [0; 1];
        let said = child.stdout.as_mut().map(|said| std::io::Read::read(said, &mut first));
        if !matches!(said, Some(Ok(1))) {
            return Err(Stop::skip("no program can be given a root of its own here"));
        }
        Ok(Self { child, _root: scratch })
    }
}

impl Drop for Jailed {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn fifo(path: &Path) -> Result {
    let made = Command::new("mkfifo").arg(path).status()?;
    expect(made.success(), || format!("no fifo at {}", path.display()))
}

fn laid_out() -> Result {
    let outside = Scratch::new()?;
    let secret = outside.path().join("libgpucap.so");
    fs::write(&secret, format!("{}\n", secret.display()))?;
    type LayOut<'a> = &'a dyn Fn(&Path) -> Result;
    let endless = |root: &Path| -> Result {
        File::create(root.join("zeros"))?.set_len(1 << 40)?;
        symlink("/zeros", root.join("etc/ld.so.preload"))?;
        Ok(())
    };
    let device = |root: &Path| Ok(symlink("/dev/zero", root.join("etc/ld.so.preload"))?);
    let fifos = |root: &Path| {
        [".gpucap/limits", ".gpucap/live", ".gpucap/ledger", "etc/ld.so.preload", "ledger"]
            .into_iter()
            .try_for_each(|path| fifo(&root.join(path)))
    };
    // On the host, that is a file which names a library that is there.
    let out = |root: &Path| Ok(symlink(&secret, root.join("etc/ld.so.preload"))?);
    let lays: [(&str, LayOut<'_>); 4] =
        [("endless", &endless), ("device", &device), ("fifos", &fifos), ("out", &out)];
    for (what, lay_out) in lays {
        let jailed = Jailed::start(lay_out)?;
        let pid = jailed.child.id().to_string();
        let output = bounded(&["explain", "--pid", &pid])?.output()?;
        expect(matches!(output.code(), Some(3 | 4)), || format!("{what}: {output}"))?;
        let named = output.stdout.contains(&secret.display().to_string());
        expect(!named, || format!("{what}: a link led to the host: {output}"))?;
    }
    Ok(())
}

/// The process in which an actor runs, if it was started through others: the last of the line.
fn last_child(mut pid: u32) -> Result<u32> {
    loop {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        match children.split_whitespace().next() {
            Some(child) => pid = child.parse().map_err(|_| Stop::fail(&children))?,
            None => return Ok(pid),
        }
    }
}

fn elsewhere() -> Result {
    let actor = Program::new("actor").build()?.display().to_string();
    let through = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
    let through = [&through[..], &["--mount-proc"]].concat();
    let there = Command::new("unshare").args(&through[1..]).arg("true").output()?;
    if !there.status.success() {
        return Err(Stop::skip("no pid namespace of one's own can be had here"));
    }
    let through: Vec<_> = through.iter().map(|word| word.as_bytes()).collect();
    let through: Vec<_> = through.into_iter().map(std::ffi::OsStr::from_bytes).collect();
    let run = gpucap(&["run", "--mem", "2Gi", "--", &actor])?.through(&through);
    let mut actor: Actor = run.start()?;
    actor.expect(&[("init", 0), ("context 0", 0), ("alloc a 104857600", 0)])?;
    let pid = last_child(actor.pid())?.to_string();
    let output = gpucap(&["explain", "--pid", &pid])?.output()?;
    ended(&output, 0)?;
    says(&output, "holds 356 MiB (256 MiB for contexts), limit 2 GiB")
}

fn as_json() -> Result {
    let actor = begin()?;
    let pid = actor.pid().to_string();
    let output = gpucap(&["explain", "--pid", &pid, "--json"])?.output()?;
    ended(&output, 0)?;
    let json = parsed(&output)?;
    expect(json["verdict"] == "limited" && json["reason"].is_null(), || json.to_string())?;
    expect(json["process"]["pid"] == actor.pid(), || json.to_string())?;
    expect(json["limits"]["GPU_MEM_LIMIT"] == "2GiB", || json.to_string())?;
    expect(json["holds"][0]["used_bytes"] == 356_u64 << 20, || json.to_string())?;
    let output = gpucap(&["explain", "--json"])?.output()?;
    ended(&output, 3)?;
    let json = parsed(&output)?;
    expect(json["verdict"] == "not limited" && json["process"].is_null(), || json.to_string())
}

fn words_of_a_bundle() -> Result {
    let pid = std::process::id().to_string();
    for word in ["--config", "--state"] {
        let output = gpucap(&["explain", "--pid", &pid, word, "/nowhere"])?.output()?;
        ended(&output, 2)?;
        says(&output, word)?;
    }
    Ok(())
}
