//! Why a container is refused: one line that names the source, what it held and what is wrong.

use gpucap_core::config::Excerpt;
use std::fmt;
use thiserror::Error;

/// Why no plan can be made. Prints as one line.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Reason {
    /// A source says something that cannot be used.
    #[error("{source}={held}: {why}")]
    Value {
        /// The source: `environment GPU_MEM_LIMIT`, `annotation hami.io/...`.
        r#source: String,
        /// What it held.
        held: Excerpt,
        /// The fault.
        why: String,
    },
    /// A document of the engine cannot be read: the state, `config.json`.
    #[error("{what} cannot be read: {why}")]
    Document {
        /// Which one.
        what: &'static str,
        /// The fault.
        why: String,
    },
    /// The node's configuration cannot be used, and this container would need it.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// No GPU is left that all sources allow.
    #[error("the sources name different GPUs: none is left that all of them allow")]
    NothingInCommon,
    /// Together the sources name more GPUs than any machine has.
    #[error("the sources name more GPUs than any machine has")]
    TooManyGpus,
    /// Some sources name GPUs, others MIG instances; whether they mean the same is unknown here.
    #[error("some sources name GPUs and others MIG instances: name the same devices in all")]
    CardsAndInstances,
    /// The node demands a limit for each container with a GPU, and none was given.
    #[error(
        "this node demands a limit for each container with a GPU, and there is {gpu} but none of the sources that it \
         trusts says a limit"
    )]
    NoLimit {
        /// What shows that it has a GPU.
        gpu: String,
    },
    /// The node admits no privileged container next to a limit.
    #[error("privileged (CAP_SYS_ADMIN): this node allows no such container a limited GPU")]
    Privileged,
    /// The node admits no container whose programs may make user namespaces beside a limit.
    #[error(
        "its programs may make user namespaces: this node allows no such container a limited GPU; a seccomp profile \
         such as RuntimeDefault forbids them; that of podman does not"
    )]
    UserNamespaces,
    /// The runtime would mount something over what the hook shows the container.
    #[error(
        "the runtime masks {path} or makes it read-only, which would cover what the limit depends on"
    )]
    Covered {
        /// The path that it masks or makes read-only.
        path: Excerpt,
    },
    /// It has no mount namespace of its own: the library would be put into the host.
    #[error("no mount namespace of its own, so a limit cannot be put into it")]
    NoMountNamespace,
    /// Low priority needs a node that lends, or a share to be fixed at.
    #[error(
        "low priority (GPU_CORE_PRIORITY=low) without a share of time (GPU_CORE_PCT), and this node lends none \
         (lending: off): nothing would limit its time"
    )]
    LowPriority,
    /// The node demands that the driver keeps the limit, and here it does not.
    #[error(
        "this node demands that the driver keeps the limit too (native_limits), and for {gpu} it does not: {why}"
    )]
    NotNative {
        /// The GPU, as the limits file calls it.
        gpu: String,
        /// Why not.
        why: &'static str,
    },
}

/// The configuration cannot be used.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{file}: {why}")]
pub struct NodeError {
    /// The file.
    pub file: String,
    /// The error in it.
    pub why: String,
    /// The runtimes that it names all the same: containers that run are theirs. `None` if it cannot be read so far.
    pub next_runtime: Option<Vec<String>>,
}

impl Reason {
    /// A value that cannot be used.
    pub(crate) fn value(source: impl Into<String>, held: &str, why: impl fmt::Display) -> Self {
        let (held, why) = (Excerpt::new(held.as_bytes()), why.to_string());
        Self::Value { source: source.into(), held, why }
    }

    /// The same, of a source that is called otherwise.
    pub(crate) fn renamed(self, name: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Value { source, held, why } => Self::Value { source: name(&source), held, why },
            other => other,
        }
    }

    /// A document that cannot be read.
    pub(crate) fn document(what: &'static str, why: impl fmt::Display) -> Self {
        // What a parser says may quote the document.
        let why = why.to_string().escape_default().take(200).collect();
        Self::Document { what, why }
    }
}

impl NodeError {
    /// The file is there and cannot be read.
    #[must_use]
    pub fn unreadable(file: &str, why: impl fmt::Display) -> Self {
        let why = format!("it cannot be read: {why}");
        Self { file: file.to_owned(), why, next_runtime: None }
    }
}
