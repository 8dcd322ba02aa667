//! What a release and a cluster put on a machine: `ci/release`, the scripts and the Helm chart of `hook/deploy`.
//!
//! * [`release`]: the archive installs below any root, upgrades, and leaves nothing behind.
//! * [`node`]: what the DaemonSet runs keeps a node whole at each step, on a node made of stand-ins.
//! * [`chart`]: what each option of the Helm chart adds, and how gpucap leaves the nodes.
//! * [`options`]: each is described and in the schema, and a wrong value is refused.
//! * [`manifests`]: what the chart renders agrees with itself, with the scripts and with the command.
//! * [`schema`]: the API's own schemas, in two releases. No cluster is asked.
//! * [`option`]: the DaemonSet with the plugin for NRI, and with metrics.
//! * [`monitoring`]: the alerts and the dashboard ask for metrics that there are, and each alert fires.
//! * [`dra`]: the DRA driver's objects agree with the driver.
//! * [`examples`]: each example gets the slice that it shows, and the validation tells a slice from a card.

mod chart;
mod dra;
mod examples;
mod manifests;
mod monitoring;
mod node;
mod option;
mod options;
mod release;
mod schema;

use gpucap_tests::chart::documents;
use gpucap_tests::{Result, Stop, main as harness, project};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let suites = [
        release::trials,
        node::trials,
        chart::trials,
        options::trials,
        manifests::trials,
        option::trials,
        dra::trials,
        schema::trials,
        monitoring::trials,
        examples::trials,
    ];
    harness(suites.into_iter().flat_map(|trials| trials()).collect())
}

/// The directory of all that is about clusters.
fn deploy() -> PathBuf {
    project().join("hook/deploy")
}

/// The objects of one file, which has one document.
fn manifest(name: &str) -> Result<Value> {
    let text = fs::read_to_string(deploy().join(name))?;
    documents(&text)?.pop().ok_or_else(|| Stop::fail(name))
}

/// Runs it; what it printed, if it ended as it should.
fn ended(command: &mut Command, well: bool) -> Result<String> {
    let output = command.output()?;
    let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    expect(output.status.success() == well, || format!("{command:?}: {}: {text}", output.status))?;
    Ok(text)
}

/// A script in place of a program.
fn script(path: &Path, body: &str) -> Result {
    fs::write(path, format!("#!/bin/sh\n{body}\n"))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

/// Everything below a directory, sorted; links are not followed.
fn tree(path: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            found.extend(tree(&entry.path())?.into_iter().map(|below| format!("{name}/{below}")));
        }
        found.push(name);
    }
    found.sort();
    Ok(found)
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(Stop::fail(otherwise())) }
}
