//! Why a container may not start: asked for a slice, and cannot be held to it.
//!
//! Each reason has a remedy, for the reader of the one line in the engine's message.

use super::abi::Version;
use crate::error::reason;
use crate::machine::NAME;
use crate::node::preload::LIBRARY;
use gpucap_plan as plan;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The one line, in three parts.
#[derive(Debug, Error)]
#[error("{by}: container {container} is not started: {reason}; {}", reason.remedy())]
pub(crate) struct RefusedContainer {
    /// Which command refuses it: `hook` or `runtime`.
    pub(crate) by: &'static str,
    /// The id by which the engine knows the container.
    pub(crate) container: String,
    /// What stood in the way.
    pub(crate) reason: Reason,
}

/// What stood in the way.
#[derive(Debug, Error)]
pub(crate) enum Reason {
    /// What it asks for, or how it is described, cannot be used.
    #[error(transparent)]
    Plan(#[from] plan::Reason),
    /// The state that the runtime gave is not one of a container that is about to start.
    #[error("the state that the runtime gave has {0}")]
    State(&'static str),
    /// The library is not there, or is none.
    #[error("{LIBRARY} {0}")]
    Library(String),
    /// The image has no glibc, and the administrator refuses such images.
    #[error("its image has no glibc for {NAME}, so nothing is preloaded")]
    NoGlibc,
    /// The library would end every program of the image.
    #[error("{LIBRARY} needs glibc {needs}, its image has {has}")]
    TooNew { needs: Version, has: Version },
    /// The same, because another library is missing.
    #[error("{LIBRARY} needs {0}, which its image lacks")]
    Lacks(String),
    /// The container's first process or its mount namespace cannot be reached.
    #[error("its process {pid} cannot be reached: {}", reason(why))]
    Process { pid: u32, why: io::Error },
    /// In the container's mount namespace the root is not the bundle's.
    #[error("{} is not its root in its mount namespace", .0.display())]
    Root(PathBuf),
    /// Something cannot be done at a path of the container.
    #[error("{path} in it cannot be set up: {}", reason(why))]
    Place { path: &'static str, why: io::Error },
    /// The preload list would not stay in front of every user: a directory on the way to it is at fault.
    #[error("/etc/ld.so.preload would not hold for all its users: {directory} {why}")]
    Way { directory: String, why: &'static str },
    /// The driver is to keep its limit too, and does not.
    #[error("this node demands that the driver keeps its limit too: {0}")]
    NativeLimit(String),
    /// Another container has the slice of its claim, and each would have the whole.
    #[error(
        "container {0} has the slice of its claim, and each of the two would have the whole of it"
    )]
    InUse(String),
    /// Which container has a slice cannot be read, or written down.
    #[error("the host cannot tell which container has the slice of its claim: {0}")]
    Records(String),
    /// Everything was done, and it is not as it should be.
    #[error("{0} was changed after it was mounted")]
    NotAsMade(String),
}

impl Reason {
    /// The words of [`Reason::kind`]; labels of a metric, so they stay.
    pub(crate) const KINDS: [&str; 5] = ["request", "policy", "image", "runtime", "node"];

    /// Returns who can remove the reason, in a word: of the request, the node's policy, the image, the runtime, the node.
    pub(crate) const fn kind(&self) -> &'static str {
        use plan::Reason as Plan;
        match self {
            Self::Plan(
                Plan::Value { .. }
                | Plan::NothingInCommon
                | Plan::TooManyGpus
                | Plan::CardsAndInstances
                | Plan::NoMountNamespace
                | Plan::Covered { .. },
            )
            | Self::InUse(_) => "request",
            Self::Plan(
                Plan::NoLimit { .. }
                | Plan::Privileged
                | Plan::UserNamespaces
                | Plan::LowPriority
                | Plan::NotNative { .. },
            )
            | Self::NativeLimit(_) => "policy",
            Self::NoGlibc
            | Self::TooNew { .. }
            | Self::Lacks(_)
            | Self::Place { .. }
            | Self::Way { .. }
            | Self::NotAsMade(_) => "image",
            Self::Plan(Plan::Document { .. })
            | Self::State(_)
            | Self::Process { .. }
            | Self::Root(_) => "runtime",
            Self::Plan(Plan::Node(_)) | Self::Library(_) | Self::Records(_) => "node",
        }
    }

    const fn remedy(&self) -> &'static str {
        match self {
            Self::Plan(plan::Reason::Node(_)) => "correct that file, or name another one",
            Self::Plan(plan::Reason::Document { .. }) => "see that file, and what wrote it",
            Self::Plan(_) => "`gpucap explain BUNDLE` shows which source requested what",
            Self::State(_) => "the hook belongs to the stage createRuntime of an OCI runtime",
            Self::Library(_) => "install it again",
            Self::NoGlibc => {
                "use an image with glibc, or allow such images in the node's configuration"
            }
            Self::TooNew { .. } => {
                "install the library that is built for old systems, or use a newer image"
            }
            Self::Lacks(_) => "add it to the image: it comes with the image's glibc or compiler",
            Self::Process { .. } | Self::Root(_) => {
                "see that the runtime calls the hook as root of the host"
            }
            Self::Place { .. } => {
                "see that the image's root can be written and nothing is mounted there"
            }
            Self::Way { .. } => {
                "have its / and /etc belong to root with mode 755, and mount nothing on /etc"
            }
            Self::NativeLimit(_) => "see what `gpucap calibrate` says, or change native_limits",
            Self::InUse(_) => "give each container of the pod a request or a claim of its own",
            Self::Records(_) => {
                "see that `run_dir` of the node's configuration can be read and written"
            }
            Self::NotAsMade(_) => "see which other hook or mount of the container uses that path",
        }
    }
}
