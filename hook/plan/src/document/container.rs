//! What `config.json` says of a container, as far as it matters here.
//!
//! Read leniently: a field of a newer specification, or one of an unexpected type, belongs to another program.

use serde_json::Value;
use std::collections::BTreeMap;

use crate::document::env::Env;
use crate::document::paths::{self, cleaned};
use crate::document::seccomp;
use crate::document::slice;
use crate::encoding::json;
use crate::reason::Reason;

/// A container.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Container {
    /// `process.env`, and the variables that the entries of the hook have from CDI devices.
    pub env: Env,
    /// `annotations`.
    pub annotations: BTreeMap<String, String>,
    /// `root.path`: absolute, or relative to the bundle.
    pub root: Option<String>,
    /// `root.readonly`.
    pub readonly_root: bool,
    /// Its mount namespace.
    pub mount_namespace: MountNamespace,
    /// It has a user namespace.
    pub user_namespace: bool,
    /// It may have CAP_SYS_ADMIN, with which a limit can be taken off.
    pub privileged: bool,
    /// Its seccomp profile lets its programs make user namespaces, in which they can hide the library.
    pub may_unshare: bool,
    /// A path that the runtime masks or makes read-only after the hook, and that would cover what the hook mounts.
    pub covered: Option<String>,
    /// The slices that the entries of the hook in it name, as they are written there.
    pub slices: Vec<String>,
    /// What shows that it has an NVIDIA GPU.
    pub gpu: Option<String>,
    /// Its devices, mounts or environment show that, not an annotation alone.
    pub is_given_gpu: bool,
    /// It was assigned particular GPUs, by what shows one: neither all of the node nor by its privileges.
    pub is_assigned_gpu: bool,
    /// It has a GPU, and not for its privileges alone: a privileged container has all devices of the node, and some of them
    /// a node needs to start.
    pub has_own_gpu: bool,
    /// `linux.mountLabel`: what SELinux demands of its files.
    pub mount_label: Option<String>,
}

/// A container's mount namespace.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum MountNamespace {
    /// The runtime's propagation: mounts made there appear on the host.
    #[default]
    Host,
    /// A new one.
    Own,
    /// One that is there already.
    Joined(String),
}

impl Container {
    /// The container that `config.json` with these bytes describes.
    ///
    /// # Errors
    /// It is no JSON.
    pub fn parse(bytes: &[u8]) -> Result<Self, Reason> {
        json::parse("config.json", bytes).map(|value| Self::of(&value))
    }

    /// The container that this `config.json` describes.
    #[must_use]
    pub fn of(config: &Value) -> Self {
        let limits = slice::written(config, slice::LIMIT);
        let own = json::list(config, &["process", "env"]).filter_map(Value::as_str);
        let env = Env::new(own.chain(limits.iter().map(String::as_str)));
        let annotations = json::texts(config, &["annotations"]);
        let given = given_gpu(config, &env);
        let is_given_gpu = given.is_some();
        let gpu = given.or_else(|| annotated_gpu(&annotations));
        let privileged = is_privileged(config);
        let is_assigned_gpu =
            is_assigned_gpu(config, &env, privileged) || annotated_gpu(&annotations).is_some();
        Self {
            has_own_gpu: is_assigned_gpu || gpu.is_some() && !privileged,
            is_assigned_gpu,
            is_given_gpu,
            gpu,
            may_unshare: seccomp::allows_user_namespaces(config),
            covered: paths::covering(config),
            slices: slice::written(config, slice::OPTION),
            env,
            annotations,
            root: json::text(config, &["root", "path"]).map(str::to_owned),
            readonly_root: json::at(config, &["root", "readonly"]) == Some(&Value::Bool(true)),
            mount_namespace: mount_namespace(config),
            user_namespace: namespace(config, "user").is_some(),
            privileged,
            mount_label: json::text(config, &["linux", "mountLabel"])
                .filter(|label| !label.is_empty())
                .map(str::to_owned),
        }
    }
}

fn namespace<'a>(config: &'a Value, kind: &str) -> Option<&'a Value> {
    let is_kind = |entry: &&Value| json::text(entry, &["type"]) == Some(kind);
    json::list(config, &["linux", "namespaces"]).find(is_kind)
}

fn mount_namespace(config: &Value) -> MountNamespace {
    let Some(entry) = namespace(config, "mount") else { return MountNamespace::Host };
    match json::text(entry, &["path"]).filter(|path| !path.is_empty()) {
        Some(path) => MountNamespace::Joined(path.to_owned()),
        None => MountNamespace::Own,
    }
}

fn is_privileged(config: &Value) -> bool {
    ["bounding", "effective", "permitted"].iter().any(|set| {
        json::list(config, &["process", "capabilities", set])
            .any(|name| name.as_str() == Some("CAP_SYS_ADMIN"))
    })
}

/// The variable from which the NVIDIA runtime takes the GPUs of a container.
const VISIBLE: &str = "NVIDIA_VISIBLE_DEVICES";
/// The directory in which the NVIDIA runtime looks for mounts that are named after GPUs.
const VOLUMES: &str = "/var/run/nvidia-container-devices";

/// The major number of the GPUs' character devices, and the minor numbers from which on they are no GPU's.
const MAJOR: u64 = 195;
const OTHER_MINORS: u64 = 254;

/// What a value of [`VISIBLE`] names, as NVIDIA's container toolkit reads it (`internal/config/image`, 1081cec).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Visible {
    Nothing,
    All,
    Some,
}

impl Visible {
    fn of(value: &str) -> Self {
        let names: Vec<&str> = value.split(',').map(str::trim).collect();
        if ["void", "none"].iter().any(|none| names.contains(none))
            || names.iter().all(|it| it.is_empty())
        {
            Self::Nothing
        } else if names.contains(&"all") {
            Self::All
        } else {
            Self::Some
        }
    }
}

/// The paths of its devices and mounts, cleaned.
fn own_paths(config: &Value) -> impl Iterator<Item = String> + '_ {
    let texts = |list: &'static [&'static str], key: &'static str| {
        json::list(config, list).filter_map(move |entry| json::text(entry, &[key]))
    };
    texts(&["linux", "devices"], "path").chain(texts(&["mounts"], "destination")).map(cleaned)
}

/// The mounts that are named after GPUs; those of IMEX channels are none.
fn is_named_gpu(path: &str) -> bool {
    path.strip_prefix(VOLUMES).is_some_and(|rest| !rest.starts_with("/imex"))
}

/// Whether particular GPUs were assigned to it: by name, or by device files, of which a privileged container has all.
fn is_assigned_gpu(config: &Value, env: &Env, privileged: bool) -> bool {
    let values = || env.iter().filter(|(name, _)| *name == VISIBLE);
    let names = |what| values().any(|(_, value)| Visible::of(value) == what);
    let is_card = |path: String| {
        let number = path.strip_prefix("/dev/nvidia").unwrap_or_default();
        path == "/dev/dxg" || !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit())
    };
    let has_card = || own_paths(config).any(is_card) || numbered(config).is_some();
    let has_name = || own_paths(config).any(|path| is_named_gpu(&path));
    names(Visible::Some) || has_name() || !names(Visible::All) && !privileged && has_card()
}

/// The path of a device that is a GPU by its numbers, whatever its name.
fn numbered(config: &Value) -> Option<String> {
    let number = |entry: &Value, key: &str| json::at(entry, &[key]).and_then(Value::as_u64);
    let is_it = |entry: &&Value| {
        matches!(json::text(entry, &["type"]), Some("c" | "u"))
            && number(entry, "major") == Some(MAJOR)
            && number(entry, "minor").is_none_or(|minor| minor < OTHER_MINORS)
    };
    let found = json::list(config, &["linux", "devices"]).find(is_it)?;
    Some(json::text(found, &["path"]).map_or_else(|| "a device".into(), cleaned))
}

/// The first sign of a GPU that the container is given, for a person to look for.
fn given_gpu(config: &Value, env: &Env) -> Option<String> {
    let device = |path: &String| path.starts_with("/dev/nvidia") || path == "/dev/dxg";
    let last = |wanted: &str| env.iter().filter(|(name, _)| *name == wanted).last();
    // Only the last value counts for the NVIDIA runtime. Without one, an image from before that variable gets all GPUs.
    let visible = || match last(VISIBLE) {
        Some((_, value)) => (Visible::of(value) != Visible::Nothing).then_some(VISIBLE),
        None => {
            let is_set = |name| last(name).is_some_and(|(_, value)| !value.is_empty());
            (is_set("CUDA_VERSION") && !is_set("NVIDIA_REQUIRE_CUDA")).then_some("CUDA_VERSION")
        }
    };
    own_paths(config)
        .find(device)
        .or_else(|| numbered(config))
        .or_else(|| own_paths(config).find(|path| is_named_gpu(path)))
        .or_else(|| visible().map(str::to_owned))
}

/// An annotation by which an engine gives one.
fn annotated_gpu(annotations: &BTreeMap<String, String>) -> Option<String> {
    let cdi = |(key, value): &(&String, &String)| {
        key.starts_with("cdi.k8s.io/") && value.contains("nvidia.com/")
    };
    annotations.iter().find(cdi).map(|(key, _)| format!("annotation {key}"))
}
