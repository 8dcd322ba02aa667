//! `gpucap calibrate`: what the stub driver's contexts take is what is written down, whole or not at all.

use crate::{ended, expect, says};
use gpucap_tests::{Driver, Installation, Output, Result, Scratch, Stop, World, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("calibrate: each card has the price that its driver takes", measured),
        trial("calibrate: of a card with MIG, each instance has one and the card the highest", mig),
        trial(
            "calibrate: an instance out of order keeps no other from being measured",
            one_instance_fails,
        ),
        trial("calibrate: where NVML names no process, the card's loss is the price", by_card),
        trial("calibrate: a price that cannot be is not written", implausible),
        trial("calibrate: a card out of order keeps no other from being measured", one_fails),
        trial("calibrate: a lost card keeps no other from being measured", one_lost),
        trial("calibrate: a lost card keeps no other from being sampled", one_unsampled),
        trial("calibrate: what is there is measured again only if needed", if_needed),
        trial("calibrate: the caller's environment reaches no driver", environment),
        trial("calibrate: without a driver nothing is written", no_driver),
        trial("calibrate: what the driver can keep is found out, and nothing is left", native),
    ]
}

const CONTEXT: u64 = 415 << 20;

struct Host {
    scratch: Scratch,
    installation: Installation,
}

impl Host {
    fn new(settings: &[(&str, &str)]) -> Result<Self> {
        let scratch = Scratch::new()?;
        let installation = Installation::new(&scratch.path().join("node"))?;
        let host = Self { scratch, installation };
        let price = CONTEXT.to_string();
        host.installation.driver(&[&[("STUB_GPU_CONTEXT_MEM", &price[..])], settings].concat())?;
        fs::write(host.path("config"), json!({"state_dir": host.path("state")}).to_string())?;
        Ok(host)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn calibrate(&self, words: &[&str]) -> Result<Output> {
        let run = World::bare(Driver::Absent).run(&self.installation.gpucap())?;
        let run = run.arg("calibrate").arg("--config").arg(self.path("config"));
        words.iter().fold(run, |run, word| run.arg(word)).output()
    }

    /// What was written down of each GPU, by its name's kind, in the order of the file.
    fn written(&self) -> Result<Vec<(String, u64, u64, bool)>> {
        let text = fs::read(self.path("state/driver.json"))?;
        let value: Value = serde_json::from_slice(&text).map_err(Stop::fail)?;
        expect(value["driver"] == "595.10.01" && value["version"] == 1, || value.to_string())?;
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let gpus = value["gpus"].as_object().into_iter().flatten().map(|(name, gpu)| {
            let kind = name.split('-').next().unwrap_or_default().to_owned();
            let able = gpu["native_limits"] == true;
            (kind, number(&gpu["context_bytes"]), number(&gpu["total_bytes"]), able)
        });
        Ok(gpus.collect())
    }

    /// Lets the first question of this kind fail.
    fn fails_once(&self, kind: &str) -> Result {
        let program = self.installation.gpucap().with_file_name("gpucap-driver");
        let text = fs::read_to_string(program)?;
        // Behind the shell's line and that which notes the question.
        let body = text.splitn(3, '\n').nth(2).unwrap_or_default();
        let first = self.path("first");
        self.installation.script(&format!(
            "[ \"$1\" != {kind} ] || ! mkdir {} || {{ echo 'error out of order'; exit 1; }}\n{body}",
            first.display(),
        ))
    }

    /// How often the driver was asked for a context.
    fn contexts(&self) -> usize {
        self.installation.asked().matches("asked context").count()
    }
}

fn gpu(kind: &str, context: u64, gib: u64) -> (String, u64, u64, bool) {
    (kind.into(), context, gib << 30, false)
}

fn measured() -> Result {
    let host = Host::new(&[("STUB_GPU_COUNT", "2"), ("STUB_GPU_MEM", "80GiB,40GiB")])?;
    let output = host.calibrate(&[])?;
    ended(&output, 0)?;
    says(&output, "a context takes 415MiB")?;
    says(&output, "gpucap: calibrate: 2 of 2: GPU-")?;
    let written = host.written()?;
    let expected = [gpu("GPU", CONTEXT, 80), gpu("GPU", CONTEXT, 40)];
    expect(written == expected, || format!("{written:?}"))?;
    // The hook believes it only if no other user could have written it.
    let file = fs::metadata(host.path("state/driver.json"))?;
    expect(file.permissions().mode() & 0o7777 == 0o644, || format!("{file:?}"))?;
    expect(!host.path("state/driver.json.new").exists(), || "half a file was left".into())?;
    // Again: another file in its place, which no reader finds half written.
    ended(&host.calibrate(&[])?, 0)?;
    let again = fs::metadata(host.path("state/driver.json"))?;
    expect(again.ino() != file.ino(), || "it was written in place".into())
}

fn mig() -> Result {
    let host = Host::new(&[("STUB_GPU_COUNT", "2"), ("STUB_GPU_MIG", "1=10GiB+20GiB")])?;
    ended(&host.calibrate(&[])?, 0)?;
    let written = host.written()?;
    let expected = [
        gpu("GPU", CONTEXT, 80),
        gpu("MIG", CONTEXT, 10),
        gpu("MIG", CONTEXT, 20),
        gpu("GPU", CONTEXT, 20),
    ];
    expect(written == expected, || format!("{written:?}"))
}

fn one_instance_fails() -> Result {
    let host = Host::new(&[("STUB_GPU_MIG", "0=10GiB+20GiB")])?;
    host.fails_once("context")?;
    let fails = |expected: &[_]| {
        let output = host.calibrate(&[])?;
        ended(&output, 1)?;
        says(&output, ": out of order")?;
        let written = host.written()?;
        expect(written == expected, || format!("{written:?}"))
    };
    fails(&[gpu("MIG", CONTEXT, 20)])?;
    // What was known of it before stays, and so does that of the card.
    ended(&host.calibrate(&[])?, 0)?;
    fs::remove_dir(host.path("first"))?;
    fails(&[gpu("MIG", CONTEXT, 20), gpu("MIG", CONTEXT, 10), gpu("GPU", CONTEXT, 20)])
}

fn by_card() -> Result {
    let host = Host::new(&[("STUB_GPU_FAIL", "nvmlDeviceGetComputeRunningProcesses:3")])?;
    ended(&host.calibrate(&[])?, 0)?;
    let written = host.written()?;
    expect(written == [gpu("GPU", CONTEXT, 80)], || format!("{written:?}"))?;
    expect(host.contexts() == 3, || host.installation.asked())
}

fn implausible() -> Result {
    for price in ["0", "5GiB"] {
        let host = Host::new(&[])?;
        ended(&host.calibrate(&[])?, 0)?;
        host.installation.driver(&[("STUB_GPU_CONTEXT_MEM", price)])?;
        let output = host.calibrate(&[])?;
        ended(&output, 1)?;
        says(&output, "cannot be")?;
        // What was known of this card under this driver stays so.
        let written = host.written()?;
        expect(written == [gpu("GPU", CONTEXT, 80)], || format!("{written:?}"))?;
        host.installation
            .driver(&[("STUB_GPU_CONTEXT_MEM", price), ("STUB_GPU_DRIVER_VERSION", "595.10.02")])?;
        ended(&host.calibrate(&[])?, 1)?;
        let text = fs::read_to_string(host.path("state/driver.json"))?;
        expect(!text.contains("GPU-") && text.contains("595.10.02"), || text)?;
    }
    Ok(())
}

fn one_fails() -> Result {
    let host = Host::new(&[("STUB_GPU_COUNT", "2"), ("STUB_GPU_MEM", "80GiB,1MiB")])?;
    let output = host.calibrate(&[])?;
    ended(&output, 1)?;
    says(&output, "cuDevicePrimaryCtxRetain answers 2")?;
    let written = host.written()?;
    expect(written == [gpu("GPU", CONTEXT, 80)], || format!("{written:?}"))
}

/// NVML does not find the first card.
const LOST: (&str, &str) = ("STUB_GPU_FAIL", "nvmlDeviceGetHandleByIndex_v2:15@1");

fn one_lost() -> Result {
    let price = CONTEXT.to_string();
    let well = [
        ("STUB_GPU_COUNT", "2"),
        ("STUB_GPU_MEM", "80GiB,40GiB"),
        ("STUB_GPU_CONTEXT_MEM", &price),
    ];
    let lost = [&well[..], &[LOST]].concat();
    let host = Host::new(&lost)?;
    let fails = |words: &[&str]| {
        let output = host.calibrate(words)?;
        ended(&output, 1)?;
        says(&output, "calibrate: GPU 0 does not answer: nvmlDeviceGetHandleByIndex answers 15")
    };
    fails(&[])?;
    let written = host.written()?;
    expect(written == [gpu("GPU", CONTEXT, 40)], || format!("{written:?}"))?;
    host.installation.driver(&well)?;
    ended(&host.calibrate(&[])?, 0)?;
    // Lost after it was measured: what was known of it stays, and the others are not measured again for it.
    host.installation.driver(&lost)?;
    fails(&[])?;
    let (written, contexts) = (host.written()?, host.contexts());
    let expected = [gpu("GPU", CONTEXT, 40), gpu("GPU", CONTEXT, 80)];
    expect(written == expected, || format!("{written:?}"))?;
    fails(&["--if-needed"])?;
    expect(host.contexts() == contexts, || host.installation.asked())
}

fn one_unsampled() -> Result {
    let host = Host::new(&[("STUB_GPU_COUNT", "2"), LOST])?;
    let mut driver = Command::new(host.installation.gpucap().with_file_name("gpucap-driver"));
    let mut driver = driver.arg("samples").stdout(Stdio::piped()).spawn()?;
    let lines = driver.stdout.take().map(|output| BufReader::new(output).lines());
    let mut seen = Vec::new();
    // A card that is idle has a line every half a second.
    for line in lines.into_iter().flatten().take(10) {
        seen.push(line?);
        if seen.last().is_some_and(|line| line.starts_with("look GPU-")) {
            break;
        }
    }
    drop(driver.kill().and_then(|()| driver.wait()));
    let said = "lost 0 nvmlDeviceGetHandleByIndex answers 15";
    let [first, .., last] = &seen[..] else { return Err(Stop::fail(format!("{seen:?}"))) };
    expect(first == said && last.starts_with("look GPU-"), || format!("{seen:?}"))
}

fn if_needed() -> Result {
    let host = Host::new(&[])?;
    for (times, settings) in [
        (1, vec![]),
        (1, vec![]),
        // Another driver, then another card.
        (2, vec![("STUB_GPU_DRIVER_VERSION", "595.10.02")]),
        (4, vec![("STUB_GPU_DRIVER_VERSION", "595.10.02"), ("STUB_GPU_COUNT", "2")]),
        (4, vec![("STUB_GPU_DRIVER_VERSION", "595.10.02"), ("STUB_GPU_COUNT", "2")]),
    ] {
        host.installation.driver(&settings)?;
        ended(&host.calibrate(&["--if-needed"])?, 0)?;
        expect(host.contexts() == times, || format!("not {times}: {}", host.installation.asked()))?;
    }
    fs::set_permissions(host.path("state/driver.json"), fs::Permissions::from_mode(0o666))?;
    ended(&host.calibrate(&["--if-needed"])?, 0)?;
    expect(host.contexts() == 6, || "what others could write was believed".into())?;
    ended(&host.calibrate(&["--dry-run"])?, 0)?;
    let before = fs::read(host.path("state/driver.json"))?;
    host.installation.driver(&[])?;
    ended(&host.calibrate(&["--dry-run"])?, 0)?;
    expect(fs::read(host.path("state/driver.json"))? == before, || "a dry run wrote".into())
}

fn environment() -> Result {
    let host = Host::new(&[])?;
    let run = World::bare(Driver::Absent).run(&host.installation.gpucap())?;
    let run = run.arg("calibrate").arg("--config").arg(host.path("config"));
    let own = ["LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "GPU_MEM_LIMIT", "STUB_GPU_COUNT"];
    let output = own.iter().fold(run, |run, name| run.env(name, "/own")).output()?;
    ended(&output, 0)?;
    let asked = host.installation.asked();
    expect(!asked.contains("/own"), || asked.clone())?;
    expect(asked.contains("CUDA_VISIBLE_DEVICES=GPU-"), || asked.clone())
}

fn no_driver() -> Result {
    let host = Host::new(&[])?;
    host.installation.script("export STUB=\nexec /nonexistent")?;
    let output = host.calibrate(&[])?;
    ended(&output, 1)?;
    expect(output.stderr.lines().count() == 1, || output.to_string())?;
    host.installation.driver(&[("STUB_GPU_FAIL", "nvmlInit_v2:9")])?;
    let output = host.calibrate(&[])?;
    ended(&output, 1)?;
    says(&output, "calibrate: nvmlInit answers 9")?;
    expect(!host.path("state").exists(), || "something was written".into())
}

/// What NVML answers when a cgroup of our own is tried.
fn native() -> Result {
    let unified = fs::read_to_string("/proc/self/mountinfo")?;
    let unified = unified.lines().find(|line| line.contains(" - cgroup2 "));
    let point = unified.and_then(|line| line.split(' ').nth(4));
    let point = point.ok_or_else(|| Stop::skip("no unified hierarchy of cgroups here"))?;
    for (settings, able, text) in [
        (("STUB_GPU_MEMORY_LIMITS", "on"), true, "can keep memory limits"),
        (("STUB_GPU_MEMORY_LIMITS", "off"), false, "it answers 3 Not Supported"),
        (("STUB_GPU_FAIL", "nvmlDeviceSetMemoryLimits_v1:13"), false, "answers 13"),
        // The cgroup that was tried has no controller for device memory; others may have.
        (("STUB_GPU_FAIL", "nvmlDeviceSetMemoryLimits_v1:6"), true, "can keep memory limits"),
    ] {
        let host = Host::new(&[settings])?;
        let output = host.calibrate(&[])?;
        if output.stdout.contains("ermission denied") || output.stdout.contains("ead-only") {
            return Err(Stop::skip(format!("no cgroup can be made in {point}")));
        }
        ended(&output, 0)?;
        says(&output, text)?;
        let written = host.written()?;
        expect(written.iter().all(|gpu| gpu.3 == able), || format!("{written:?}"))?;
    }
    // A card of which the question fails keeps no other from being asked about.
    let host = Host::new(&[("STUB_GPU_MEMORY_LIMITS", "on"), ("STUB_GPU_COUNT", "2")])?;
    host.fails_once("limit")?;
    let output = host.calibrate(&[])?;
    ended(&output, 0)?;
    says(
        &output,
        "can keep memory limits by itself (native_limits), not of every GPU: out of order",
    )?;
    let able: Vec<bool> = host.written()?.iter().map(|gpu| gpu.3).collect();
    expect(able == [false, true], || format!("{able:?}"))?;
    // Of a card that cannot be measured, this is not what it was before.
    let host = Host::new(&[("STUB_GPU_MEMORY_LIMITS", "on")])?;
    ended(&host.calibrate(&[])?, 0)?;
    host.installation.driver(&[("STUB_GPU_CONTEXT_MEM", "0")])?;
    ended(&host.calibrate(&[])?, 1)?;
    let written = host.written()?;
    expect(written == [gpu("GPU", CONTEXT, 80)], || format!("{written:?}"))?;
    // Other tests may be at it: whatever is there has its process.
    let left = fs::read_dir(point)?.flatten().map(|it| it.file_name().display().to_string());
    let pids = left.filter_map(|name| name.strip_prefix("gpucap-probe-").map(str::to_owned));
    let dead: Vec<_> = pids.filter(|pid| !Path::new("/proc").join(pid).exists()).collect();
    expect(dead.is_empty(), || format!("a cgroup was left: {dead:?}"))
}
