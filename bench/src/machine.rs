//! What has to be known of the machine to read the numbers, and nothing that names it.

use crate::files::project;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::thread;

/// The first line of the results.
#[must_use]
pub fn facts(shim: &str) -> Value {
    json!({
        "kind": "machine",
        "driver": "null driver, no card",
        "shim": shim,
        "cpu": cpu(),
        "processors": thread::available_parallelism().map_or(0, usize::from),
        "kernel": kernel(),
        "libc": said("getconf", &["GNU_LIBC_VERSION"]),
        "compiler": said("rustc", &["--version"]),
        "commit": said("git", &["rev-parse", "--short=12", "HEAD"]),
        "date": said("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
        "load": load(),
    })
}

fn cpu() -> String {
    let all = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = all.lines().find_map(|line| line.strip_prefix("model name"));
    model.unwrap_or("unknown").trim_matches([' ', '\t', ':']).to_owned()
}

/// The version alone: what a distribution appends may name a place.
fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().split('-').next().unwrap_or("unknown").to_owned()
}

/// What else the machine had to do in the last minute: processes that wanted to run.
fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(project()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
