//! The manifests against the API's own schemas, of the oldest and of a late release of Kubernetes.
//!
//! `kubernetes-validate` brings them along (`ci/run --install`): nothing is asked of a network or a cluster. What
//! [`shape`](crate::shape) cannot know is here: values that the API allows, and that a release still has a field. A
//! misspelt field is a fault in either.

use crate::{expect, manifest, manifests};
use gpucap_tests::{Result, Scratch, Stop, project, trial};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The first that has `appArmorProfile`, as the manual says, and one of today.
const RELEASES: [&str; 2] = ["1.30.0", "1.37.0"];

/// Manifests with kinds or fields that the older release does not have: claims of a pod, and classes of devices.
const NEWER: [&str; 3] = ["dra/deviceclass.yaml", "examples/dra.yaml", "examples/slice.yaml"];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = RELEASES
        .into_iter()
        .map(|release| {
            trial(format!("schemas: Kubernetes {release} takes each manifest"), move || {
                taken(release)
            })
        })
        .collect();
    trials.push(trial("schemas: a fault is found", bites));
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
    for (name, object) in &all {
        if NEWER.contains(&name.as_str()) && release == RELEASES[0] {
            continue;
        }
        // Of kustomize's own kinds no API server hears.
        let kinds = object["apiVersion"].as_str().unwrap_or_default();
        if !kinds.starts_with("kustomize.") {
            let file = scratch.path().join(format!("{}.yaml", files.len()));
            fs::write(&file, object.to_string())?;
            files.push(file);
        }
    }
    let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    let output = validate(release, &files)?;
    let said = text(&output);
    expect(output.status.success(), || said.clone())?;
    let passed = said.matches(" passed for resource ").count();
    expect(passed == files.len(), || format!("{passed} of {}: {said}", files.len()))
}

fn bites() -> Result {
    let scratch = Scratch::new()?;
    for (file, place, value) in [
        ("daemonset.yaml", "/spec/template/spec/hostPid", json!(true)),
        ("daemonset.yaml", "/spec/template/spec/hostPID", json!("true")),
        ("daemonset.yaml", "/spec/updateStrategy/type", json!(3)),
        ("daemonset.yaml", "/spec/selector", json!("gpucap")),
        ("runtimeclass.yaml", "/handler", json!(["gpucap"])),
        ("validate.yaml", "/spec/backoffLimit", json!("0")),
        ("examples/mig.yaml", "/spec/containers/0/resources/limits", json!(["a"])),
    ] {
        let mut object = manifest(file)?;
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
