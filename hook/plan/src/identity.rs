//! Which container of which pod this is, and whether it is the pod's sandbox.
//!
//! containerd says it in annotations of its own, CRI-O in the kubelet's labels. Both can only be set by the engine:
//! what a pod's author writes reaches the container under other names. Without them (Docker, podman, a runtime used by
//! hand) there is no pod.

use std::collections::BTreeMap;

use crate::json;

/// A container of a pod. Both parts are fit to be one component of a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    /// The UID of the pod.
    pub pod_uid: String,
    /// The name of the container in the pod's specification.
    pub container: String,
}

impl Identity {
    /// What these annotations say.
    #[must_use]
    pub fn of(annotations: &BTreeMap<String, String>) -> Option<Self> {
        let labels = annotations.get("io.kubernetes.cri-o.Labels");
        let labels = labels.and_then(|labels| json::parse("labels", labels.as_bytes()).ok());
        let find = |containerd: &str, label: &str| {
            let labelled = || Some(json::text(labels.as_ref()?, &[label])?.to_owned());
            annotations.get(containerd).cloned().or_else(labelled).filter(|part| is_component(part))
        };
        Some(Self {
            pod_uid: find("io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid")?,
            container: find("io.kubernetes.cri.container-name", "io.kubernetes.container.name")?,
        })
    }

    /// Where a node-local allocation for it would lie, below the state directory.
    #[must_use]
    pub fn allocation(&self) -> String {
        format!("alloc/{}/{}.json", self.pod_uid, self.container)
    }
}

/// Whether these annotations are those of a pod's sandbox, which runs nothing of the pod's author.
pub(crate) fn is_sandbox(annotations: &BTreeMap<String, String>) -> bool {
    ["io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType"]
        .iter()
        .any(|key| annotations.get(*key).is_some_and(|kind| kind == "sandbox"))
}

/// What Kubernetes allows as a name or UID; so nothing that leaves the directory.
fn is_component(part: &str) -> bool {
    let fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !part.is_empty() && part.len() <= 253 && !part.starts_with('.') && part.bytes().all(fit)
}
