//! Which container of which pod this is, and whether it is the pod's sandbox.
//!
//! containerd names them in annotations of its own, CRI-O in others and in the kubelet's labels. Each engine sets its
//! own keys, whatever the pod's author wrote there; but it lets those of the other engine through, CRI-O always and
//! containerd where its `pod_annotations` are wide. So where both are present, one of them may come from the author:
//! a container is a sandbox only if no key contradicts it, and all names that the keys give count, of which the
//! lowest limits hold. Without such keys (Docker, podman, a runtime used by hand) there is no pod.

use std::collections::BTreeMap;

use crate::encoding::json;

/// The longest place: a file's name has 255 bytes.
const MOST_PLACE: usize = 200;

/// A container of a pod. Both parts are fit to be one component of a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContainerIdentity {
    /// The UID of the pod.
    pub pod_uid: String,
    /// The name of the container in the pod's specification.
    pub container: String,
}

/// The names by which people know a container of a pod: fit to be shown, and no limit rests on them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Names {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The name of the container in the pod's specification.
    pub container: String,
}

impl Names {
    /// The names in these annotations, unless they contradict each other.
    #[must_use]
    pub fn of(annotations: &BTreeMap<String, String>) -> Option<Self> {
        let keys = [
            ("io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"),
            ("io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"),
            CONTAINER,
        ];
        let [[namespace, pod, container]] = <[_; 1]>::try_from(said(annotations, keys)).ok()?;
        Some(Self { namespace, pod, container })
    }
}

/// The name of a container in its pod: containerd's annotation, and the kubelet's label.
const CONTAINER: (&str, &str) =
    ("io.kubernetes.cri.container-name", "io.kubernetes.container.name");

/// The names under these keys: in containerd's annotations, and in the kubelet's labels, which CRI-O passes on. None,
/// one, or two that differ; an incomplete name counts as none.
fn said<const N: usize>(
    annotations: &BTreeMap<String, String>,
    keys: [(&str, &str); N],
) -> Vec<[String; N]> {
    let labels = annotations.get("io.kubernetes.cri-o.Labels");
    let labels = labels.and_then(|labels| json::parse("labels", labels.as_bytes()).ok());
    let containerd = keys.map(|(key, _)| annotations.get(key).map(String::as_str));
    let crio = keys.map(|(_, key)| json::text(labels.as_ref()?, &[key]));
    let whole = |parts: [Option<&str>; N]| {
        let fit = |part: Option<&str>| part.filter(|part| is_component(part)).map(str::to_owned);
        let parts: Option<Vec<String>> = parts.into_iter().map(fit).collect();
        <[String; N]>::try_from(parts?).ok()
    };
    let mut all: Vec<_> = [containerd, crio].into_iter().filter_map(whole).collect();
    all.dedup();
    all
}

impl ContainerIdentity {
    /// Every container that these annotations say it is: none, one, or two that differ.
    #[must_use]
    pub fn all_of(annotations: &BTreeMap<String, String>) -> Vec<Self> {
        let keys = [("io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid"), CONTAINER];
        let all = said(annotations, keys).into_iter();
        all.map(|[pod_uid, container]| Self { pod_uid, container }).collect()
    }

    /// The place of a container in its pod: what it has in common with each container that is started in its place, and with
    /// no other one. Fit to be the name of a file. `None` if these annotations name none.
    #[must_use]
    pub fn place(annotations: &BTreeMap<String, String>) -> Option<String> {
        let all = Self::all_of(annotations).into_iter();
        // Of two that differ one is the pod's author's word: alone it could be the place of another pod.
        let all: Vec<String> =
            all.map(|Self { pod_uid, container }| format!("{pod_uid}@{container}")).collect();
        let mut place = all.join("+");
        // What an API server gives takes half of it.
        place.truncate(MOST_PLACE);
        (!place.is_empty()).then_some(place)
    }

    /// The path of a node-local allocation for it, below the state directory.
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
