//! Hook, library and command of an earlier commit and of this one, mixed, around a real container.
//!
//! `ci/run --full versions` builds the earlier ones. What does not understand the other says so in one line; nothing
//! runs without its limit.

use crate::container::{Container, json};
use crate::enforced::{begin, is_enforced, is_limited};
use crate::runtime::Runtime;
use crate::{GIB, expect, trials_of};
use gpucap_tests::{Build, Result, Run};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("an earlier hook puts this library in", |runtime| {
            is_enforced(&mixed(runtime, Build::earlier()?, Build::shipped()?)?)
        }),
        ("this hook puts an earlier library in", |runtime| {
            is_enforced(&mixed(runtime, Build::shipped()?, Build::earlier()?)?)
        }),
        ("this command looks at and changes a container of an earlier version", |runtime| {
            looked_at(runtime, Build::earlier()?, Build::shipped()?)
        }),
        ("an earlier command looks at and changes a container of this version", |runtime| {
            looked_at(runtime, Build::shipped()?, Build::earlier()?)
        }),
    ])
}

/// A container that the hook of one build puts under the library of another.
fn mixed(runtime: Runtime, hook: &Build, library: &Build) -> Result<Container> {
    let container = Container::new(runtime)?.called(&hook.gpucap()?);
    let config = container.path("node.json");
    let mut node = json(&config)?;
    node["library"] = json!(library.shim()?);
    fs::write(&config, node.to_string())?;
    Ok(container)
}

fn looked_at(runtime: Runtime, container: &Build, command: &Build) -> Result {
    let container = mixed(runtime, container, container)?;
    let run = container.run(&["/actor"])?;
    let mut actor = begin(&run)?;
    is_limited(&mut actor)?;
    changed(&container, &run, &command.gpucap()?)?;
    let total = actor.call("total d 0")?;
    expect(total.value == GIB / 2, || format!("{total:?}"))?;
    actor.end()?.success().map(drop)
}

/// Has the command look at the container, change its limits, and keep what still runs.
pub(crate) fn changed(container: &Container, run: &Run, gpucap: &Path) -> Result {
    let config = container.path("node.json").display().to_string();
    let call = |words: &[&str]| {
        let run = words.iter().fold(run.clone().program(gpucap), Run::arg);
        run.arg("--config").arg(&config).output()?.success()
    };
    call(&["gc"])?;
    let seen = call(&["status", container.id()])?;
    expect(seen.stdout.contains(container.id()), || seen.to_string())?;
    call(&["limit", container.id(), "--mem", "512Mi"]).map(drop)
}
