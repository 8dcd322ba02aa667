//! Which container of which pod this is, and whether it is the pod's sandbox.
//!
//! containerd says it in annotations of its own, CRI-O in others and in the kubelet's labels. Each engine sets its own
//! keys, whatever the pod's author wrote there; but it lets those of the other engine through, CRI-O always and containerd
//! where its `pod_annotations` are wide. So where both speak, one of them may be the author: a container is a sandbox
//! only if nobody denies it, and it is everybody that somebody says it is, of which the lowest limits hold. Without such
//! keys (Docker, podman, a runtime used by hand) there is no pod.

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
    /// Every container that these annotations say it is: none, one, or two that differ.
    #[must_use]
    pub fn all_of(annotations: &BTreeMap<String, String>) -> Vec<Self> {
        let annotation = |key: &str| annotations.get(key).map(String::as_str);
        let containerd = Self::new(
            annotation("io.kubernetes.cri.sandbox-uid"),
            annotation("io.kubernetes.cri.container-name"),
        );
        let labels = annotation("io.kubernetes.cri-o.Labels");
        let labels = labels.and_then(|labels| json::parse("labels", labels.as_bytes()).ok());
        let label = |key: &str| json::text(labels.as_ref()?, &[key]);
        let crio = Self::new(label("io.kubernetes.pod.uid"), label("io.kubernetes.container.name"));
        let mut all: Vec<Self> = containerd.into_iter().chain(crio).collect();
        all.dedup();
        all
    }

    fn new(pod_uid: Option<&str>, container: Option<&str>) -> Option<Self> {
        let part = |part: Option<&str>| part.filter(|part| is_component(part)).map(str::to_owned);
        Some(Self { pod_uid: part(pod_uid)?, container: part(container)? })
    }

    /// Where a node-local allocation for it would lie, below the state directory.
    #[must_use]
    pub fn allocation(&self) -> String {
        format!("alloc/{}/{}.json", self.pod_uid, self.container)
    }
}

/// Whether these annotations are those of a pod's sandbox, which runs nothing of the pod's author.
pub(crate) fn is_sandbox(annotations: &BTreeMap<String, String>) -> bool {
    let keys = ["io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType"];
    let mut kinds = keys.iter().filter_map(|key| annotations.get(*key)).peekable();
    kinds.peek().is_some() && kinds.all(|kind| kind == "sandbox")
}

/// What Kubernetes allows as a name or UID; so nothing that leaves the directory.
fn is_component(part: &str) -> bool {
    let fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !part.is_empty() && part.len() <= 253 && !part.starts_with('.') && part.bytes().all(fit)
}
