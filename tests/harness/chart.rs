//! The Helm chart, `hook/deploy/helm/gpucap`, as Helm itself renders it.
//!
//! `ci/run --install` gets Helm; without it, a test that needs it is skipped aloud. No cluster and no network are asked, and
//! nothing of the user's own configuration of Helm is read.

use crate::{Result, Stop, project, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Mutex;

/// The namespace into which it is rendered.
pub const NAMESPACE: &str = "gpucap";

/// The directory of the chart.
#[must_use]
pub fn directory() -> PathBuf {
    project().join("hook/deploy/helm/gpucap")
}

/// Runs Helm with these words.
///
/// # Errors
/// Skips without Helm.
pub fn helm(words: &[&str]) -> Result<Output> {
    let mut helm = Command::new("helm");
    for home in ["HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        helm.env(home, scratch::shared()?);
    }
    let missing = |_| Stop::skip("helm is missing (ci/run --install gets it)");
    helm.env_remove("KUBECONFIG").args(words).output().map_err(missing)
}

/// What Helm says about the chart with these options, for this release of Kubernetes.
///
/// # Errors
/// Skips without Helm.
pub fn template(kubernetes: &str, options: &[&str]) -> Result<Output> {
    let chart = directory().display().to_string();
    let words = ["template", "gpucap", &chart, "--namespace", NAMESPACE, "--kube-version"];
    helm(&[&words[..], &[kubernetes], options].concat())
}

/// The objects of the chart with these options, on a late release of Kubernetes.
///
/// # Errors
/// If Helm refuses the options, or what it renders is no YAML. Skips without Helm.
pub fn rendered(options: &[&str]) -> Result<Vec<Value>> {
    // Many rules hold for the same objects.
    static KNOWN: Mutex<BTreeMap<String, Vec<Value>>> = Mutex::new(BTreeMap::new());
    let key = options.join(" ");
    let known = || KNOWN.lock().map_err(Stop::fail);
    if let Some(objects) = known()?.get(&key) {
        return Ok(objects.clone());
    }
    let output = template("1.37.0", options)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Stop::fail(format!("helm template {options:?}: {said}")));
    }
    let objects = documents(&String::from_utf8_lossy(&output.stdout))?;
    known()?.insert(key, objects.clone());
    Ok(objects)
}

/// The object of this kind and name.
///
/// # Errors
/// If there is none, or more than one.
pub fn object(objects: &[Value], kind: &str, name: &str) -> Result<Value> {
    let is_it = |it: &&Value| it["kind"] == kind && it["metadata"]["name"] == name;
    let found: Vec<_> = objects.iter().filter(is_it).collect();
    match found[..] {
        [one] => Ok(one.clone()),
        _ => Err(Stop::fail(format!("{} times {kind} {name}", found.len()))),
    }
}

/// The documents of a text, without the empty ones.
///
/// # Errors
/// If it is no YAML.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    let each = text.split("\n---\n").map(|text| serde_yaml_ng::from_str(text).map_err(Stop::fail));
    let all: Vec<Value> = each.collect::<Result<_>>()?;
    Ok(all.into_iter().filter(|it| !it.is_null()).collect())
}
