//! The admission policy of the chart: a pod that requests a GPU has the runtime class, or is not created.

use crate::cluster::cluster;
use crate::{expect, waited};
use gpucap_tests::{Result, chart, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("where the class is required, no pod with a GPU is created without it", required)]
}

const KINDS: [&str; 3] =
    ["RuntimeClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];

/// A pod with one of this resource, in an init container or in its only one.
fn pod(namespace: &str, class: Option<&str>, resource: &str, is_first: bool) -> Value {
    let container = |name: &str, has: bool| {
        let limits = if has { json!({ resource: "1" }) } else { json!({"memory": "1Mi"}) };
        json!({"name": name, "image": "none", "resources": {"limits": limits}})
    };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "generateName": "p-"},
        "spec": {
            "automountServiceAccountToken": false,
            "initContainers": [container("first", is_first)],
            "containers": [container("app", !is_first)],
        },
    });
    if let Some(class) = class {
        pod["spec"]["runtimeClassName"] = json!(class);
    }
    pod
}

fn required() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    let options = "runtimeClass.required.enabled=true,runtimeClass.required.namespaces.gpus=shared";
    let mut objects = chart::rendered(&["--set", options])?;
    objects.retain(|it| KINDS.iter().any(|kind| it["kind"] == *kind));
    expect(objects.len() == KINDS.len(), || format!("{objects:?}"))?;
    kubectl.apply(&objects)?;
    kubectl.namespace("required")?;
    kubectl.namespace("free")?;
    kubectl.prints(&["label", "namespace", "required", "gpus=shared"])?;
    let asked = |pod: &Value| kubectl.asked(&["create", "--dry-run=server"], pod);
    // The API server learns of a policy a moment later.
    let plain = pod("required", None, "nvidia.com/gpu", false);
    let refusal = waited("the policy", || {
        let output = asked(&plain)?;
        Ok((output.code() != Some(0)).then_some(output.stderr))
    })?;
    expect(refusal.contains("must have runtimeClassName: gpucap"), || refusal.clone())?;
    for (namespace, class, resource, is_first, well) in [
        ("required", None, "nvidia.com/mig-1g.5gb", true, false),
        ("required", None, "nvidia.com/gpu.shared", false, false),
        ("required", Some("gpucap"), "nvidia.com/gpu", false, true),
        ("required", None, "example.com/other", false, true),
        ("free", None, "nvidia.com/gpu", false, true),
    ] {
        let pod = pod(namespace, class, resource, is_first);
        let output = asked(&pod)?;
        expect((output.code() == Some(0)) == well, || format!("{pod}: {output}"))?;
    }
    kubectl.end_namespace("required")?;
    kubectl.end_namespace("free")?;
    kubectl.delete(&objects)
}
