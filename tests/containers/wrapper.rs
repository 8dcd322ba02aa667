//! `gpucap runtime` before a runtime: the bundle has no hook, and the container is limited all the same.

use crate::container::{Container, json};
use crate::enforced::{begin, is_enforced, is_limited};
use crate::runtime::Runtime;
use crate::{expect, trials_of};
use gpucap_tests::Result;
use libtest_mimic::Trial;
use serde_json::Value;
use std::fs;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("the wrapper limits a container without a hook", limited),
        ("the wrapper shows the limit to the first process", shown),
        ("the wrapper shows the limit to a program that joins", joined),
        ("the wrapper leaves one alone that did not ask", not_asked),
        ("the wrapper refuses a value that cannot be used", refused),
    ])
}

fn limited(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.through_gpucap()?;
    is_enforced(&container)?;
    expect(container.records() == 0, || "a record of one that is over".into())
}

fn config(container: &Container) -> Result<Value> {
    json(&container.path("config.json"))
}

fn shown(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.through_gpucap()?.env("GPU_PROFILE=1g.5gb");
    let output = container.output(&["env"])?.success()?;
    for entry in ["GPU_MEM_LIMIT=1GiB\n", "GPU_CORE_PCT=14.28%\n"] {
        expect(output.stdout.contains(entry), || format!("no {entry} in {output}"))?;
    }
    let config = config(&container)?;
    for stage in ["createRuntime", "poststop"] {
        let hooks = config["hooks"][stage].as_array().map_or(0, Vec::len);
        expect(hooks == 1, || format!("{hooks} hooks at {stage}"))?;
    }
    Ok(())
}

fn joined(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.through_gpucap()?;
    let mut first = begin(&container.run(&["/actor"])?)?;
    is_limited(&mut first)?;
    // As containerd does it: a file with the process, whose environment knows nothing of the limit.
    let process = serde_json::json!({
        "terminal": false, "user": {"uid": 0, "gid": 0}, "cwd": "/", "args": ["env"],
        "env": ["PATH=/bin", "GPU_MEM_LIMIT=64Gi"],
    });
    let path = container.path("process.json");
    fs::write(&path, process.to_string())?;
    let path = path.display().to_string();
    let output = container.exec(&["--process", &path], &[])?.output()?.success()?;
    // In whatever order: runtimes do as they like.
    let told: Vec<_> = output.stdout.lines().filter(|it| it.starts_with("GPU_")).collect();
    let keeps = output.stdout.lines().any(|line| line == "PATH=/bin");
    expect(told == ["GPU_MEM_LIMIT=1GiB"] && keeps, || output.to_string())?;
    first.end().map(drop)
}

fn not_asked(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.through_gpucap()?.env("GPU_MEM_LIMIT=");
    container.output(&["true"])?.success()?;
    let config = config(&container)?;
    expect(config["hooks"] == serde_json::json!({}), || config["hooks"].to_string())
}

fn refused(runtime: Runtime) -> Result {
    let container = Container::new(runtime)?.through_gpucap()?.env("GPU_MEM_LIMIT=5gg");
    let output = container.output(&["cat", "/proc/self/status"])?;
    expect(output.code() == Some(1) && output.stdout.is_empty(), || output.to_string())?;
    let says = "is not started: environment GPU_MEM_LIMIT=";
    expect(output.stderr.contains(says), || output.to_string())?;
    // As a refusal of the hook's: in the node's log with its id, and counted.
    let log = container.log();
    let is_said = log.contains(says) && log.contains(container.id());
    expect(is_said && log.lines().count() == 1, || format!("log: {log}"))?;
    let counted = fs::metadata(container.path("run/refused/request"))?.len();
    expect(counted == 1, || format!("{counted} refusals"))
}
