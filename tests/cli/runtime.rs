//! `gpucap runtime` before a runtime that only writes down how it was called.
//!
//! Real runtimes behind it are in `tests/containers`.

use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Build, Output, Result, Scratch, Stop, trial};
use libtest_mimic::Trial;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("runtime: every word goes on as it came", words),
        trial("runtime: under the name of a runtime it is one", name),
        trial("runtime: it is never its own next one", not_itself),
        trial("runtime: without a next one it fails", nothing_next),
        trial("runtime: a slip in the configuration leads to no other runtime", slip),
        trial("runtime: a changed config.json keeps its mode", mode),
        trial("runtime: a refusal is in the engine's log, and nothing is started", refusal),
        trial("runtime: a container that did not ask keeps its config.json to the byte", not_asked),
        trial("runtime: a name that is nearly that of a limit is in the log", near_is_logged),
        trial(
            "hook: a name that is nearly that of a limit is in the log",
            near_is_logged_by_the_hook,
        ),
        trial("hook: each line of its log has the level that fits", levels),
        trial("hook: a stage that is not known is in the log", stage_is_logged),
        trial("explain: a bundle is judged as the hook would", explained),
        trial(
            "explain: a configuration that cannot be used is called by its name",
            node_of_its_own,
        ),
        trial("explain: a limit into which nothing fits is doubted", doubted),
        trial("explain: what the runtime would say counts", state),
        trial("explain: a name that is nearly that of a limit is shown", near),
        trial("explain: the node's allocation for the container counts", allocation),
        trial("explain: an allocation that others than root can write is refused", forged),
    ]
}

/// A bundle, a node's configuration and a runtime that writes its words to `said`.
struct Place(Scratch);

impl Place {
    fn new(env: &str) -> Result<Self> {
        let place = Self(Scratch::new()?);
        let script = format!("#!/bin/sh\nprintf '<%s>' \"$@\" > {}\n", place.file("said"));
        fs::write(place.path("next"), script)?;
        fs::set_permissions(place.path("next"), fs::Permissions::from_mode(0o755))?;
        place.next(&[&place.file("next")])?;
        let config = format!(
            r#"{{"of2030":[1.50],"process":{{"env":["A=1",{env:?}]}},"linux":{{"namespaces":[{{"type":"mount"}}]}}}}"#
        );
        fs::write(place.path("config.json"), config)?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Tells the node which runtimes come next.
    fn next(&self, runtimes: &[&str]) -> Result {
        let list: Vec<String> = runtimes.iter().map(|name| format!("{name:?}")).collect();
        let (run, log) = (self.file("run"), self.file("node.log"));
        let text = format!(
            r#"{{"next_runtime":[{}],"run_dir":{run:?},"log_file":{log:?}}}"#,
            list.join(",")
        );
        Ok(fs::write(self.path("node.json"), text)?)
    }

    fn run(&self, words: &[&str]) -> Result<Output> {
        let config = format!("--gpucap-config={}", self.file("node.json"));
        gpucap(&[&["runtime", &config], words].concat())?.output()
    }

    fn create(&self) -> Result<Output> {
        let (log, bundle) = (self.file("log"), self.file(""));
        self.run(&["--log", &log, "--log-format", "json", "create", "--bundle", &bundle, "id"])
    }

    /// What the hook logs of a container with this bundle, by level, that ends with this code: its process is not there.
    fn hook(&self, stage: &str, code: i32) -> Result<Vec<(String, String)>> {
        let state = format!(r#"{{"id":"a","bundle":{:?},"status":"creating"}}"#, self.file(""));
        fs::write(self.path("state.json"), state)?;
        let run = gpucap(&["hook", stage, "--config", &self.file("node.json")])?;
        let shell = format!("exec \"$@\" <{}", self.file("state.json"));
        ended(&run.through(&["sh", "-c", &shell, "sh"].map(str::as_ref)).output()?, code)?;
        self.logged()
    }

    /// The lines of the hook's log: level and message.
    fn logged(&self) -> Result<Vec<(String, String)>> {
        let log = fs::read_to_string(self.path("node.log")).unwrap_or_default();
        let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        log.lines()
            .map(|line| {
                let line: Value = serde_json::from_str(line).map_err(Stop::fail)?;
                Ok((text(&line, "level"), text(&line, "message")))
            })
            .collect()
    }

    fn said(&self) -> String {
        fs::read_to_string(self.path("said")).unwrap_or_default()
    }
}

fn words() -> Result {
    let place = Place::new("GPU_MEM_LIMIT=4Gi")?;
    for line in [
        &["--help"] as &[_],
        &["--version"],
        &["-h", "features"],
        &["--root", "/r", "exec", "-t", "id", "sh", "-c", "a b\n\"c\"", "", "--", "--bundle", "x"],
        &["--color", "never", "kill", "id"],
        &["kill", "id", "KILL"],
    ] {
        place.run(line)?.success()?;
        let expected: String = line.iter().map(|word| format!("<{word}>")).collect();
        expect(place.said() == expected, || format!("{line:?}: {}", place.said()))?;
    }
    Ok(())
}

fn name() -> Result {
    let place = Place::new("GPU_MEM_LIMIT=4Gi")?;
    let own = place.path("gpucap-runtime");
    symlink(Build::shipped()?.gpucap()?, &own)?;
    let config = format!("--gpucap-config={}", place.file("node.json"));
    let run = gpucap(&[])?.program(&own);
    run.arg(config).arg("run").arg("id").output()?;
    // There is no config.json where it ran: so it has read the words as a runtime's.
    expect(place.said().is_empty(), || place.said())?;
    let config = format!("--gpucap-config={}", place.file("node.json"));
    gpucap(&[])?.program(&own).arg(config).arg("state").arg("id").output()?.success()?;
    expect(place.said() == "<state><id>", || place.said())
}

fn not_itself() -> Result {
    let place = Place::new("GPU_MEM_LIMIT=4Gi")?;
    symlink(Build::shipped()?.gpucap()?, place.path("runc"))?;
    place.next(&[&place.file("runc"), &place.file("next")])?;
    place.run(&["state", "id"])?.success()?;
    expect(place.said() == "<state><id>", || place.said())
}

fn slip() -> Result {
    let place = Place::new("A=2")?;
    let text = fs::read_to_string(place.path("node.json"))?;
    fs::write(place.path("node.json"), text.replace('{', "{\"typo\": 1, "))?;
    place.run(&["delete", "--force", "id"])?.success()?;
    expect(place.said() == "<delete><--force><id>", || place.said())?;
    // Which one it is cannot be known.
    for text in ["{", "{\"next_runtime\": 7}"] {
        fs::remove_file(place.path("said"))?;
        fs::write(place.path("said"), "")?;
        fs::write(place.path("node.json"), text)?;
        let output = place.run(&["delete", "--force", "id"])?;
        ended(&output, 1)?;
        expect(output.stderr.lines().count() == 1 && place.said().is_empty(), || {
            output.to_string()
        })?;
    }
    fs::remove_file(place.path("node.json"))?;
    symlink("nowhere", place.path("node.json"))?;
    let output = place.run(&["delete", "--force", "id"])?;
    ended(&output, 1)?;
    says(&output, "a link that leads nowhere")
}

fn nothing_next() -> Result {
    let place = Place::new("GPU_MEM_LIMIT=4Gi")?;
    place.next(&["/nowhere/runc"])?;
    let output = place.run(&["state", "id"])?;
    ended(&output, 1)?;
    says(
        &output,
        "gpucap: runtime: no next runtime found (other than gpucap itself) in /nowhere/runc",
    )
}

fn mode() -> Result {
    let place = Place::new("GPU_MEM_LIMIT=4Gi")?;
    let path = place.path("config.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640))?;
    place.create()?.success()?;
    let text = fs::read_to_string(&path)?;
    let kept = [r#""env":["A=1","GPU_MEM_LIMIT=4GiB"]"#, r#"{"of2030":[1.5],"#, "createRuntime"];
    for part in kept {
        expect(text.contains(part), || format!("no {part} in {text}"))?;
    }
    let mode = fs::metadata(&path)?.permissions().mode() & 0o7777;
    expect(mode == 0o640, || format!("{mode:o}"))?;
    let left = fs::read_dir(place.path(""))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let left: Vec<_> = left.filter(|name| name.contains(".gpucap-")).collect();
    expect(left.is_empty(), || format!("{left:?}"))
}

fn refusal() -> Result {
    let place = Place::new("GPU_MEM_LIMIT=5gg")?;
    let output = place.create()?;
    ended(&output, 1)?;
    expect(place.said().is_empty(), || place.said())?;
    let log = fs::read_to_string(place.path("log"))?;
    let line = r#"{"level":"error","msg":"gpucap: runtime: container id is not started: environment GPU_MEM_LIMIT="#;
    expect(log.starts_with(line) && log.lines().count() == 1, || log)?;
    // And where the hook's refusals are.
    let log = fs::read_to_string(place.path("node.log"))?;
    let is_said = log.contains("\"container\":\"id\"") && log.contains("is not started");
    expect(is_said && log.lines().count() == 1, || log)?;
    let counted = fs::metadata(place.path("run/refused/request"))?.len();
    expect(counted == 1, || format!("{counted} refusals"))
}

fn levels() -> Result {
    let logged = Place::new("GPU_MEM_LIMIT=2048")?.hook("createRuntime", 6)?;
    // What the kernel allows the container's programs is a warning too.
    let levels = [("warning", "is 2048Mi meant?"), ("error", "is not started")];
    for (level, part) in levels {
        let is_it = |(own, line): &&(String, String)| own == level && line.contains(part);
        expect(logged.iter().filter(is_it).count() == 1, || format!("{logged:?}"))?;
    }
    let is_wrong = |(own, _): &(String, String)| levels.iter().all(|(level, _)| own != level);
    expect(!logged.iter().any(is_wrong), || format!("{logged:?}"))
}

const MISS: &str = "environment GPU_MEM_LIMT is not read: is GPU_MEM_LIMIT meant?";

fn near_is_logged() -> Result {
    let place = Place::new("GPU_MEM_LIMT=4Gi")?;
    place.create()?.success()?;
    expect(place.said().ends_with("<id>"), || place.said())?;
    let logged = place.logged()?;
    expect(logged == [("warning".into(), MISS.into())], || format!("{logged:?}"))
}

fn near_is_logged_by_the_hook() -> Result {
    let logged = Place::new("GPU_MEM_LIMT=4Gi")?.hook("createRuntime", 0)?;
    expect(logged == [("warning".into(), MISS.into())], || format!("{logged:?}"))?;
    let logged = Place::new("B=2")?.hook("createRuntime", 0)?;
    expect(logged.is_empty(), || format!("{logged:?}"))
}

fn stage_is_logged() -> Result {
    let logged = Place::new("B=2")?.hook("createContainer", 5)?;
    let [(level, line)] = &logged[..] else { return Err(Stop::fail(format!("{logged:?}"))) };
    expect(level == "error" && line.contains("\"createContainer\""), || format!("{logged:?}"))
}

fn not_asked() -> Result {
    let place = Place::new("B=2")?;
    let before = fs::read(place.path("config.json"))?;
    place.create()?.success()?;
    expect(fs::read(place.path("config.json"))? == before, || "it was changed".into())?;
    expect(place.said().ends_with("<id>"), || place.said())
}

fn explained() -> Result {
    for (env, code, answer) in [
        ("GPU_MEM_LIMIT=4Gi", 0, "would be limited.\n\n  *: memory 4GiB, time not limited\n"),
        ("B=2", 3, "would not be limited: no limit is requested."),
        (
            "GPU_MEM_LIMIT=0",
            4,
            "would be refused:\n  environment GPU_MEM_LIMIT=\"0\": must be more",
        ),
    ] {
        let place = Place::new(env)?;
        let (bundle, node) = (place.file(""), place.file("node.json"));
        let output = gpucap(&["explain", &bundle, "--config", &node])?.output()?;
        ended(&output, code)?;
        says(&output, answer)?;
        let output = gpucap(&["explain", &bundle, "--config", &node, "--json"])?.output()?;
        ended(&output, code)?;
        let plan = match code {
            0 => "\"plan\": \"limits\"",
            3 => "\"plan\": \"not asked\"",
            _ => "\"plan\": \"refused\"",
        };
        says(&output, plan)?;
    }
    Ok(())
}

/// What `explain` says of a place with these options.
fn explain(place: &Place, options: &[&str], code: i32, answer: &str) -> Result {
    let (bundle, node) = (place.file(""), place.file("node.json"));
    let words = [&["explain", &bundle, "--config", &node], options].concat();
    let output = gpucap(&words)?.output()?;
    ended(&output, code)?;
    says(&output, answer)
}

fn node_of_its_own() -> Result {
    let place = Place::new("GPU_MEM_LIMIT=4Gi")?;
    fs::write(place.path("node.json"), "{\"opne\": true}")?;
    let why = format!("{}: \"opne\": \"true\": not a key", place.file("node.json"));
    explain(&place, &[], 4, &why)
}

fn near() -> Result {
    let miss = "environment GPU_MEM_LIMT is not read: is GPU_MEM_LIMIT meant?";
    explain(&Place::new("GPU_MEM_LIMT=4Gi")?, &[], 3, miss)
}

fn doubted() -> Result {
    let place = Place::new("GPU_MEM_LIMIT=2048")?;
    let doubt =
        "environment GPU_MEM_LIMIT=\"2048\": nothing fits into 2048 bytes; is 2048Mi meant?";
    explain(&place, &[], 0, doubt)
}

fn state() -> Result {
    let place = Place::new("GPU_MEM_LIMIT=4Gi")?;
    let state =
        r#"{"id":"a","bundle":"/b","status":"starting","annotations":{"gpucap/mem":"1Gi"}}"#;
    fs::write(place.path("state.json"), state)?;
    explain(&place, &["--state", &place.file("state.json")], 0, "  *: memory 1GiB,")?;
    explain(&place, &["--state", &place.file("nothing.json")], 1, "nothing.json: ")
}

/// A pod's container with an allocation of 2 GiB on one card.
fn allocated() -> Result<Place> {
    let place = Place::new("GPU_MEM_LIMIT=4Gi")?;
    fs::create_dir_all(place.path("alloc/u1"))?;
    let gpu = "GPU-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
    fs::write(
        place.path("alloc/u1/app.json"),
        format!(r#"{{"gpus":{{"{gpu}":{{"mem":"2Gi"}}}}}}"#),
    )?;
    fs::write(place.path("node.json"), format!(r#"{{"state_dir":"{}"}}"#, place.file("")))?;
    let state = r#"{"id":"a","bundle":"/b","annotations":{
        "io.kubernetes.cri.sandbox-uid":"u1","io.kubernetes.cri.container-name":"app"}}"#;
    fs::write(place.path("state.json"), state)?;
    Ok(place)
}

fn allocation() -> Result {
    let place = allocated()?;
    let state = place.file("state.json");
    let answer =
        "\n\n  GPU-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa: memory 2GiB, time not limited\n\n";
    explain(&place, &["--state", &state], 0, answer)?;
    fs::remove_file(place.path("alloc/u1/app.json"))?;
    explain(&place, &["--state", &state], 0, "  *: memory 4GiB,")?;
    fs::create_dir(place.path("alloc/u1/app.json"))?;
    explain(&place, &["--state", &state], 1, "the allocation cannot be read: ")
}

fn forged() -> Result {
    let place = allocated()?;
    let path = place.path("alloc/u1/app.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
    let answer = "the allocation cannot be read: ";
    explain(&place, &["--state", &place.file("state.json")], 1, answer)
}
