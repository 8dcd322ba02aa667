//! What the chart renders and the examples, against the API's own schemas: of the oldest release, of the oldest for the
//! DRA driver, and of a late one.
//!
//! `kubernetes-validate` brings them along (`ci/run --install`): nothing is asked of a network or a cluster. A field that
//! the API does not know is a fault, and a value of another type. The kinds of Prometheus's operator are no part of them:
//! [`chart`](crate::chart) compares those with what they must be.

use crate::manifests::with;
use crate::{expect, manifest, manifests};
use gpucap_tests::chart;
use gpucap_tests::{Result, Scratch, Stop, project, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The first that has `appArmorProfile`, the first for the DRA driver, as the manual says of both, and one of today.
const RELEASES: [&str; 3] = ["1.30.0", "1.36.0", "1.37.0"];

/// Kinds that the older release does not have, and the field of a pod that names claims.
const NEWER: [&str; 3] = ["DeviceClass", "ResourceClaimTemplate", "resourceClaims"];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = RELEASES
        .into_iter()
        .map(|release| {
            trial(format!("schemas: Kubernetes {release} takes each object"), move || {
                taken(release)
            })
        })
        .collect();
    trials.push(trial("schemas: an unknown field and a wrong type are refused", bites));
    trials.push(trial("schemas: the manual names the oldest release", named));
    trials
}

fn validate(release: &str, files: &[&Path]) -> Result<Output> {
    let mut command = Command::new("kubernetes-validate");
    command.args(["--strict", "--no-warn", "--kubernetes-version", release]).args(files);
    command
        .output()
        .map_err(|_| Stop::skip("kubernetes-validate is missing (ci/run --install gets it)"))
}

fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

fn taken(release: &str) -> Result {
    let (all, scratch) = (manifests::all()?, Scratch::new()?);
    let mut files = Vec::new();
    for (index, (name, object)) in all.iter().enumerate() {
        let is_newer = NEWER.iter().any(|it| object["kind"] == *it || has_field(object, it));
        let kinds = object["apiVersion"].as_str().unwrap_or_default();
        // Several sets of options have the same object.
        let is_same = all[..index].iter().any(|(_, other)| other == object);
        if is_same
            || (is_newer && release == RELEASES[0])
            || kinds.starts_with("monitoring.coreos.com/")
        {
            continue;
        }
        // The name of the file is in what is said of it.
        let file = name.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
        let file = scratch.path().join(format!("{file}.yaml"));
        fs::write(&file, object.to_string())?;
        files.push(file);
    }
    let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    let output = validate(release, &files)?;
    let said = text(&output);
    expect(output.status.success(), || said.clone())?;
    let passed = said.matches(" passed for resource ").count();
    expect(passed == files.len(), || format!("{passed} of {}: {said}", files.len()))
}

/// Whether an object has a field of this name anywhere.
fn has_field(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, it)| key == name || has_field(it, name)),
        Value::Array(list) => list.iter().any(|it| has_field(it, name)),
        _ => false,
    }
}

fn bites() -> Result {
    let objects = with("uninstall=false")?;
    let scratch = Scratch::new()?;
    for (file, place, value) in [
        ("DaemonSet/gpucap", "/spec/template/spec/hostPid", json!(true)),
        ("DaemonSet/gpucap", "/spec/template/spec/hostPID", json!("true")),
        ("DaemonSet/gpucap", "/spec/updateStrategy/type", json!(3)),
        ("DaemonSet/gpucap", "/spec/selector", json!("gpucap")),
        ("RuntimeClass/gpucap", "/handler", json!(["gpucap"])),
        ("Job/gpucap-validate", "/spec/backoffLimit", json!("0")),
        ("examples/mig.yaml", "/spec/containers/0/resources/limits", json!(["a"])),
    ] {
        let mut object = match file.split_once('/') {
            Some((kind, name)) if kind != "examples" => chart::object(&objects, kind, name)?,
            _ => manifest(file)?,
        };
        let (parent, key) = place.rsplit_once('/').ok_or_else(|| Stop::fail(place))?;
        let parent = object.pointer_mut(parent).ok_or_else(|| Stop::fail(place))?;
        parent[key] = value;
        let path = scratch.path().join("broken.yaml");
        fs::write(&path, object.to_string())?;
        let output = validate(RELEASES[0], &[&path])?;
        let found = !output.status.success() && text(&output).contains("did not validate");
        expect(found, || format!("{file} {place}: {}", text(&output)))?;
    }
    Ok(())
}

fn named() -> Result {
    let page = fs::read_to_string(project().join("docs/src/kubernetes.md"))?;
    let oldest = RELEASES[0].trim_end_matches(".0");
    expect(page.contains(&format!("Kubernetes {oldest}")), || format!("no {oldest} in the manual"))
}
