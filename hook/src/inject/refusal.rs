//! Why a container may not start: asked for a slice, and cannot be held to it.
//!
//! Each reason has a remedy, for the reader of the one line in the engine's message.

use super::abi::Version;
use crate::node::preload::LIBRARY;
use gpucap_plan as plan;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The one line, in three parts.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The id by which the engine knows the container.
    pub(crate) container: String,
    /// What stood in the way.
    pub(crate) reason: Reason,
}

/// What stood in the way.
#[derive(Debug)]
pub(crate) enum Reason {
    /// What it asks for, or how it is described, cannot be used.
    Plan(plan::Reason),
    /// The state that the runtime gave is not one of a container that is about to start.
    State(&'static str),
    /// The library is not there, or is none.
    Library(String),
    /// The image has no glibc, and the administrator refuses such images.
    NoGlibc,
    /// The library would end every program of the image.
    TooNew { needs: Version, has: Version },
    /// The same, because another library is missing.
    Lacks(String),
    /// The container's first process or its mount namespace cannot be reached.
    Process { pid: u32, why: io::Error },
    /// In the container's mount namespace the root is not the bundle's.
    Root(PathBuf),
    /// Something cannot be done at a path of the container.
    Place { path: &'static str, why: io::Error },
    /// The preload list would not stay in front of every user: a directory on the way to it is at fault.
    Way { directory: String, why: &'static str },
    /// The driver is to keep its limit too, and does not.
    NativeLimit(String),
    /// Everything was done, and it is not as it should be.
    NotAsMade(String),
}

impl From<plan::Reason> for Reason {
    fn from(why: plan::Reason) -> Self {
        Self::Plan(why)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { container, reason } = self;
        write!(f, "hook: container {container} is not started: {reason}; {}", reason.remedy())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::error::reason;
        match self {
            Self::Plan(why) => why.fmt(f),
            Self::State(what) => write!(f, "the state that the runtime gave has {what}"),
            Self::Library(what) => write!(f, "{LIBRARY} {what}"),
            Self::NoGlibc => {
                f.write_str("its image has no glibc for x86-64, so nothing is preloaded")
            }
            Self::TooNew { needs, has } => {
                write!(f, "{LIBRARY} needs glibc {needs}, its image has {has}")
            }
            Self::Lacks(library) => write!(f, "{LIBRARY} needs {library}, which its image lacks"),
            Self::Process { pid, why } => {
                write!(f, "its process {pid} cannot be reached: {}", reason(why))
            }
            Self::Root(path) => {
                write!(f, "{} is not its root in its mount namespace", path.display())
            }
            Self::Place { path, why } => {
                write!(f, "{path} in it cannot be set up: {}", reason(why))
            }
            Self::Way { directory, why } => {
                write!(f, "/etc/ld.so.preload would not hold for all its users: {directory} {why}")
            }
            Self::NativeLimit(why) => {
                write!(f, "this node demands that the driver keeps its limit too: {why}")
            }
            Self::NotAsMade(what) => write!(f, "{what} was changed after it was mounted"),
        }
    }
}

impl Reason {
    const fn remedy(&self) -> &'static str {
        match self {
            Self::Plan(_) => "`gpucap explain BUNDLE` shows which source asked for what",
            Self::State(_) => "the hook belongs to the stage createRuntime of an OCI runtime",
            Self::Library(_) => "install it again",
            Self::NoGlibc => {
                "use an image with glibc, or allow such images in the node's configuration"
            }
            Self::TooNew { .. } | Self::Lacks(_) => {
                "install the library that is built for old systems, or use a newer image"
            }
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
            Self::NotAsMade(_) => "see which other hook or mount of the container uses that path",
        }
    }
}
