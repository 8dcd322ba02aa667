//! What the tests create: templates of claims, and pods that name them.
//!
//! A pod has the network of its node, so no plugin for networks is asked for, and no token.

use serde_json::{Value, json};

/// The image, which is on the node.
pub(crate) const IMAGE: &str = "registry.k8s.io/pause:test";
/// The class of the chart.
const CLASS: &str = "slice.gpucap.io";

/// A request of a part of the card with this UUID, or of any.
pub(crate) fn request(name: &str, card: Option<&str>, memory: &str, cores: u32) -> Value {
    let requests = json!({"memory": memory, "cores": cores.to_string()});
    let mut exactly = json!({"deviceClassName": CLASS, "capacity": {"requests": requests}});
    if let Some(card) = card {
        let expression = format!("device.attributes[\"{CLASS}\"].uuid == \"{card}\"");
        exactly["selectors"] = json!([{"cel": {"expression": expression}}]);
    }
    json!({"name": name, "exactly": exactly})
}

/// A template of claims with these requests.
pub(crate) fn template(namespace: &str, name: &str, requests: &[Value]) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"spec": {"devices": {"requests": requests}}},
    })
}

/// A container that runs this script and has the pod's claim.
pub(crate) fn container(name: &str, script: &str) -> Value {
    json!({
        "name": name, "image": IMAGE, "imagePullPolicy": "Never",
        "command": ["sh", "-c", script], "resources": {"claims": [{"name": "gpu"}]},
    })
}

/// A pod with a claim of this template, for these containers.
pub(crate) fn pod(namespace: &str, name: &str, template: &str, containers: &[Value]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "hostNetwork": true, "restartPolicy": "Never", "automountServiceAccountToken": false,
            "enableServiceLinks": false, "terminationGracePeriodSeconds": 1,
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            "containers": containers,
        },
    })
}

/// The script of a container that waits to be told what to do.
pub(crate) const WAITS: &str = "exec sleep infinity";
