//! The node's configuration, `/etc/gpucap/config.json`: what its administrator decided.
//!
//! Strict, unlike everything that others wrote: a key that we do not know may be a misspelt policy, and refuses every
//! container that asks for a limit or has a GPU. Without the file, each key has its default.

use gpucap_core::config::{ContextPrice, Excerpt, Value as _};
use gpucap_core::units::Share;
use serde::de::{Deserialize, Deserializer, Error};

use crate::encoding::json;
use crate::reason::NodeError;
use crate::source::Source;

/// What the administrator decided. The fields are the keys of the file.
#[derive(Clone, Debug, serde::Deserialize, Eq, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Node {
    /// The host's path of the library that is put into containers; by default that beside the command.
    #[serde(deserialize_with = "optional_path")]
    pub library: Option<String>,
    /// The directory of node-local allocations: `<state_dir>/alloc/<pod-uid>/<container>.json`.
    #[serde(deserialize_with = "path")]
    pub state_dir: String,
    /// Where the hook keeps what must outlive it: records, usage pages, counts of refused containers.
    #[serde(deserialize_with = "path")]
    pub run_dir: String,
    /// Where the hook writes its log.
    #[serde(deserialize_with = "path")]
    pub log_file: String,
    /// The runtimes that `gpucap runtime` becomes: the first that is there.
    #[serde(deserialize_with = "words")]
    pub next_runtime: Vec<String>,
    /// Our annotations are `<annotation_domain>/mem`, `/core-pct`, `/profile` and others.
    #[serde(deserialize_with = "domain")]
    pub annotation_domain: String,
    /// The sources that are read. Others are ignored.
    pub sources: Vec<Source>,
    /// Of those, the ones that `require_limit_for_gpu` is content with.
    pub trusted_sources: Vec<Source>,
    /// A container with a GPU and no limit from a trusted source is refused.
    pub require_limit_for_gpu: bool,
    /// `CUDA_DISABLE_CONTROL` and its like, set in a container, take the limit off.
    pub allow_off_switches: bool,
    /// The kubelet's checkpoint, if it is to be read: its format is the kubelet's own business.
    #[serde(deserialize_with = "optional_path")]
    pub kubelet_checkpoint: Option<String>,
    /// Replicas of NVIDIA's device plugin are limits: `1` of `N` is that part of the GPU.
    #[serde(deserialize_with = "time_slicing")]
    pub time_slicing: bool,
    /// The checkpoint of NVIDIA's DRA driver, whose claims are limits.
    #[serde(deserialize_with = "optional_path")]
    pub dra_checkpoint: Option<String>,
    /// KAI's `GPU_PORTION` is a part of the time too, not of the memory alone.
    #[serde(rename = "kai_portion", deserialize_with = "kai_portion")]
    pub kai_portion_of_time: bool,
    /// Bytes of a unit of `ALIYUN_COM_GPU_MEM_*`: the plugin's `--memory-unit`, `GiB` or `MiB`.
    #[serde(deserialize_with = "unit")]
    pub aliyun_memory_unit: u64,
    /// Bytes that are charged for a context.
    #[serde(deserialize_with = "size")]
    pub context_mem: Option<u64>,
    /// A shim that cannot do its work lets the program through.
    pub open: bool,
    /// What becomes of an image without a glibc, in which nothing can be preloaded.
    pub no_glibc: NoGlibc,
    /// What becomes of a container that could undo the limit.
    pub privileged: Privileged,
    /// The policy for a container whose programs may make user namespaces.
    pub user_namespaces: Privileged,
    /// Hides OpenCL, which talks to the GPU past any limit.
    pub mask_opencl: bool,
    /// Whether containers publish their usage of a GPU to one another.
    pub card_pages: bool,
    /// Whether the driver itself is to keep memory limits too, by cgroup.
    pub native_limits: NativeLimits,
    /// Whether containers may use GPU time that others leave unused, beyond what is guaranteed to them.
    pub lending: Lending,
    /// The most of a GPU's time that a container may have with what it borrows, in percent.
    #[serde(deserialize_with = "percent")]
    pub lending_max: Option<Share>,
    /// What becomes of a container that has more of a GPU's time than its limit, by the driver's samples.
    pub sampled_excess: SampledExcess,
    /// The host's directory of the driver's libraries, if the loader does not find them by itself.
    #[serde(deserialize_with = "optional_path")]
    pub driver_libraries: Option<String>,
}

/// Whether the driver itself keeps the memory limits of containers.
#[derive(Clone, Copy, Debug, serde::Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum NativeLimits {
    /// It is not asked to.
    Off,
    /// Where it can.
    Auto,
    /// A container with a memory limit that the driver does not keep is refused.
    Required,
}

/// Whether containers may use time that others leave unused.
#[derive(Clone, Copy, Debug, serde::Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Lending {
    /// Never: each is fixed at its share, whatever it asks for.
    Off,
    /// Those that ask for it.
    Allowed,
    /// All with a compute limit, but those that ask for a fixed one.
    Always,
}

/// What becomes of a container that has more of a GPU's time than its limit, by the driver's samples.
#[derive(Clone, Copy, Debug, serde::Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum SampledExcess {
    /// The metrics say so.
    Report,
    /// It is also held back until it has had no more.
    Hold,
}

/// What becomes of an image without a glibc.
#[derive(Clone, Copy, Debug, serde::Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum NoGlibc {
    /// It runs, and the log says so: the driver's libraries need glibc, so no GPU can be used there either.
    Allow,
    /// It is refused.
    Refuse,
}

/// What becomes of a container that could undo the limit.
#[derive(Clone, Copy, Debug, serde::Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Privileged {
    /// It gets its limit, and the log says that it can take it off.
    Inject,
    /// It is refused.
    Refuse,
}

impl Node {
    /// Its path.
    pub const PATH: &'static str = "/etc/gpucap/config.json";
    /// The path of the kubelet's checkpoint, where a setting needs one and none names it.
    const KUBELET_CHECKPOINT: &'static str =
        "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";

    /// The configuration that this file holds.
    ///
    /// # Errors
    /// If it is no JSON object, or has an unknown key or value.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, NodeError> {
        let unread = |why| NodeError { file: file.to_owned(), why, next_runtime: None };
        let value = json::parse("it", bytes).map_err(|why| unread(why.to_string()))?;
        if !value.is_object() {
            return Err(unread("no JSON object".into()));
        }
        let next_runtime = match value.get("next_runtime") {
            None => Some(Self::default().next_runtime),
            Some(names) => serde_json::from_value(names.clone()).ok(),
        };
        let wrong = |why| NodeError { next_runtime: next_runtime.clone(), ..unread(why) };
        let mut node: Self = serde_path_to_error::deserialize(&value).map_err(|why| {
            let key = why.path().to_string();
            let key = key.split('[').next().unwrap_or_default();
            let held = value.get(key).unwrap_or_default().to_string();
            let [key, held] = [key, &held].map(|text| Excerpt::new(text.as_bytes()));
            let why =
                why.inner().to_string().replace("unknown field", "not a key of this version:");
            wrong(format!("{key}: {held}: {}", why.replace(char::is_control, "?")))
        })?;
        // A value keeps the last of two with one key.
        if let Err(why) = serde_json::from_slice::<Self>(bytes) {
            return Err(wrong(why.to_string().replace(char::is_control, "?")));
        }
        if node.time_slicing {
            node.kubelet_checkpoint.get_or_insert_with(|| Self::KUBELET_CHECKPOINT.into());
        }
        // A source that is not read cannot be one to rely on.
        let Self { sources, trusted_sources, .. } = &mut node;
        trusted_sources.retain(|source| sources.contains(source));
        Ok(node)
    }

    /// Whether a limit of the source of this name is one to rely on.
    pub(crate) fn trusts(&self, name: &str) -> bool {
        self.trusted_sources.iter().any(|source| source.name() == name)
    }
}

impl Default for Node {
    /// What holds without a file.
    fn default() -> Self {
        Self {
            library: None,
            state_dir: "/var/lib/gpucap".into(),
            run_dir: "/run/gpucap".into(),
            log_file: "/var/log/gpucap.log".into(),
            next_runtime: ["nvidia-container-runtime", "runc", "crun"].map(Into::into).into(),
            annotation_domain: "gpucap".into(),
            sources: Source::ALL.to_vec(),
            trusted_sources: Source::ALL.to_vec(),
            require_limit_for_gpu: false,
            allow_off_switches: false,
            kubelet_checkpoint: None,
            time_slicing: false,
            dra_checkpoint: None,
            kai_portion_of_time: true,
            aliyun_memory_unit: 1 << 30,
            context_mem: None,
            open: false,
            no_glibc: NoGlibc::Allow,
            privileged: Privileged::Inject,
            user_namespaces: Privileged::Inject,
            mask_opencl: true,
            card_pages: true,
            native_limits: NativeLimits::Off,
            lending: Lending::Off,
            lending_max: None,
            sampled_excess: SampledExcess::Report,
            driver_libraries: None,
        }
    }
}

fn fitting<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    value: D,
    fits: impl Fn(&T) -> bool,
    why: &str,
) -> Result<T, D::Error> {
    T::deserialize(value).ok().filter(fits).ok_or_else(|| D::Error::custom(why))
}

fn path<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    optional_path(value)?.ok_or_else(|| D::Error::custom(NO_PATH))
}

fn optional_path<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let fits = |path: &String| path.starts_with('/') && !path.contains('\0');
    fitting(value, |path: &Option<String>| path.iter().all(fits), NO_PATH)
}

fn words<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    fitting(value, |list: &Vec<_>| !list.is_empty(), "not a list of texts")
}

fn domain<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    let fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let fits = |text: &String| !text.is_empty() && text.bytes().all(fit);
    fitting(value, fits, "not the domain of an annotation")
}

fn unit<'de, D: Deserializer<'de>>(value: D) -> Result<u64, D::Error> {
    one_of(value, [("GiB", 1 << 30), ("MiB", 1 << 20)])
}

fn time_slicing<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    one_of(value, [("off", false), ("enforce", true)])
}

fn kai_portion<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    one_of(value, [("memory-and-time", true), ("memory", false)])
}

/// The meaning of one of these words.
fn one_of<'de, T: Copy, D: Deserializer<'de>, const COUNT: usize>(
    value: D,
    known: [(&str, T); COUNT],
) -> Result<T, D::Error> {
    let held = String::deserialize(value).ok();
    let found = known.iter().find(|(name, _)| held.as_deref() == Some(*name));
    let why = || D::Error::custom(format!("not {}", known.map(|(name, _)| name).join(" or ")));
    found.map(|&(_, meant)| meant).ok_or_else(why)
}

fn percent<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Share>, D::Error> {
    let share =
        |percent: u16| Share::from_percent(percent).ok_or_else(|| D::Error::custom(NO_PERCENTAGE));
    let held = Option::<u16>::deserialize(value).map_err(|_| D::Error::custom(NO_PERCENTAGE))?;
    held.map(share).transpose()
}

fn size<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(value).ok();
    let price = text.and_then(|text| ContextPrice::parse(&text).ok());
    price.map(|price| Some(price.0)).ok_or_else(|| D::Error::custom("not a size: \"300Mi\""))
}

const NO_PERCENTAGE: &str = "not a whole number from 1 to 100, in percent";
const NO_PATH: &str = "not an absolute path";
