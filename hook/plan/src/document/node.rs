//! The node's configuration, `/etc/gpucap/config.json`: what its administrator decided.
//!
//! Strict, unlike everything that others wrote: a key that we do not know may be a misspelt policy, and refuses every
//! container that asks for a limit. Without the file, each key has its default; each default is the closed side.

use gpucap_core::config::{ContextPrice, Excerpt, Value as _};
use serde_json::Value;

use crate::encoding::json;
use crate::reason::NodeError;
use crate::source::Source;

/// What the administrator decided. The fields are the keys of the file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Node {
    /// The host's path of the library that is put into containers; by default that beside the command.
    pub library: Option<String>,
    /// The directory of node-local allocations: `<state_dir>/alloc/<pod-uid>/<container>.json`.
    pub state_dir: String,
    /// Where the hook keeps what must outlive it, such as the ledgers.
    pub run_dir: String,
    /// Where the hook writes its log.
    pub log_file: String,
    /// The runtimes that `gpucap runtime` becomes: the first that is there.
    pub next_runtime: Vec<String>,
    /// Our annotations are `<annotation_domain>/mem`, `/core-pct`, `/profile`.
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
    pub kubelet_checkpoint: Option<String>,
    /// Replicas of NVIDIA's device plugin are limits: `1` of `N` is that part of the GPU.
    pub time_slicing: bool,
    /// The checkpoint of NVIDIA's DRA driver, whose claims are limits.
    pub dra_checkpoint: Option<String>,
    /// KAI's `GPU_PORTION` is a part of the time too, not of the memory alone.
    pub kai_portion_of_time: bool,
    /// Bytes of a unit of `ALIYUN_COM_GPU_MEM_*`: the plugin's `--memory-unit`, `GiB` or `MiB`.
    pub aliyun_memory_unit: u64,
    /// Bytes that are charged for a context.
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
    /// The host's directory of the driver's libraries, if the loader does not find them by itself.
    pub driver_libraries: Option<String>,
}

/// Whether the driver itself keeps the memory limits of containers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NativeLimits {
    /// It is not asked to.
    Off,
    /// Where it can.
    Auto,
    /// A container with a memory limit that the driver does not keep is refused.
    Required,
}

/// What becomes of an image without a glibc.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoGlibc {
    /// It runs, and the log says so: the driver's libraries need glibc, so no GPU can be used there either.
    Allow,
    /// It is refused.
    Refuse,
}

/// What becomes of a container that could undo the limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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
        let wrong = |why| NodeError { file: file.to_owned(), why };
        let value = json::parse("it", bytes).map_err(|why| wrong(why.to_string()))?;
        let Value::Object(keys) = value else { return Err(wrong("no JSON object".into())) };
        let mut node = Self::default();
        for (key, value) in &keys {
            let excerpt = |text: &str| Excerpt::new(text.as_bytes());
            let held = || excerpt(&value.to_string());
            node.set(key, value)
                .map_err(|why| wrong(format!("{}: {}: {why}", excerpt(key), held())))?;
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

    fn set(&mut self, key: &str, value: &Value) -> Result<(), &'static str> {
        match key {
            "library" => self.library = Some(path(value)?),
            "state_dir" => self.state_dir = path(value)?,
            "run_dir" => self.run_dir = path(value)?,
            "log_file" => self.log_file = path(value)?,
            "next_runtime" => self.next_runtime = words(value)?,
            "annotation_domain" => self.annotation_domain = domain(value)?,
            "sources" => self.sources = sources(value)?,
            "trusted_sources" => self.trusted_sources = sources(value)?,
            "require_limit_for_gpu" => self.require_limit_for_gpu = flag(value)?,
            "allow_off_switches" => self.allow_off_switches = flag(value)?,
            "kubelet_checkpoint" => {
                self.kubelet_checkpoint = if value.is_null() { None } else { Some(path(value)?) };
            }
            "time_slicing" => {
                self.time_slicing = choice(value, &[("off", false), ("enforce", true)])?;
            }
            "dra_checkpoint" => {
                self.dra_checkpoint = if value.is_null() { None } else { Some(path(value)?) };
            }
            "kai_portion" => {
                self.kai_portion_of_time =
                    choice(value, &[("memory-and-time", true), ("memory", false)])?;
            }
            "aliyun_memory_unit" => {
                self.aliyun_memory_unit = choice(value, &[("GiB", 1 << 30), ("MiB", 1 << 20)])?;
            }
            "context_mem" => self.context_mem = Some(size(value)?),
            "open" => self.open = flag(value)?,
            "no_glibc" => {
                let known = [("allow", NoGlibc::Allow), ("refuse", NoGlibc::Refuse)];
                self.no_glibc = choice(value, &known)?;
            }
            "privileged" => {
                let known = [("inject", Privileged::Inject), ("refuse", Privileged::Refuse)];
                self.privileged = choice(value, &known)?;
            }
            "user_namespaces" => {
                let known = [("inject", Privileged::Inject), ("refuse", Privileged::Refuse)];
                self.user_namespaces = choice(value, &known)?;
            }
            "mask_opencl" => self.mask_opencl = flag(value)?,
            "card_pages" => self.card_pages = flag(value)?,
            "native_limits" => {
                let known = [
                    ("off", NativeLimits::Off),
                    ("auto", NativeLimits::Auto),
                    ("required", NativeLimits::Required),
                ];
                self.native_limits = choice(value, &known)?;
            }
            "driver_libraries" => self.driver_libraries = Some(path(value)?),
            _ => return Err("not a key of this version"),
        }
        Ok(())
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
            driver_libraries: None,
        }
    }
}

fn flag(value: &Value) -> Result<bool, &'static str> {
    value.as_bool().ok_or("not true or false")
}

fn path(value: &Value) -> Result<String, &'static str> {
    let path = value.as_str().filter(|path| path.starts_with('/') && !path.contains('\0'));
    path.map(str::to_owned).ok_or("not an absolute path")
}

fn words(value: &Value) -> Result<Vec<String>, &'static str> {
    const WHY: &str = "not a list of texts";
    let list = value.as_array().filter(|list| !list.is_empty()).ok_or(WHY)?;
    list.iter().map(|word| word.as_str().map(str::to_owned).ok_or(WHY)).collect()
}

fn domain(value: &Value) -> Result<String, &'static str> {
    let fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let fits = |text: &&str| !text.is_empty() && text.bytes().all(fit);
    value.as_str().filter(fits).map(str::to_owned).ok_or("not the domain of an annotation")
}

fn sources(value: &Value) -> Result<Vec<Source>, &'static str> {
    let list = if value.as_array().is_some_and(Vec::is_empty) { vec![] } else { words(value)? };
    let source = |word: &String| Source::of(word).ok_or("not a source of this version");
    list.iter().map(source).collect()
}

fn choice<T: Copy>(value: &Value, known: &[(&str, T)]) -> Result<T, &'static str> {
    let held = value.as_str();
    let found = known.iter().find(|(name, _)| Some(*name) == held);
    found.map(|&(_, meant)| meant).ok_or("not one of its values")
}

fn size(value: &Value) -> Result<u64, &'static str> {
    let text = value.as_str().ok_or("not a size: \"300Mi\"")?;
    ContextPrice::parse(text).map(|price| price.0).map_err(|_| "not a size: \"300Mi\"")
}
