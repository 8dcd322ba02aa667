//! Why the driver could not do what it was asked: one line, which the kubelet shows in the events of the pod.
//!
//! An error of a claim concerns that claim alone. What it says names the file, the claim or the card, and the reason.
//! Nothing here decides what follows: each caller refuses its claim or withdraws its devices.

use std::io;
use std::path::{Path, PathBuf};

/// What comes of a step.
pub(crate) type Result<T = ()> = std::result::Result<T, Error>;

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file or directory.
    #[error("{}: {why}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The fault.
        why: io::Error,
    },
    /// A document of this driver's own.
    #[error("{}: {why}", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// The program that asks NVIDIA's driver.
    #[error("{0}")]
    Cards(String),
    /// The API server has not answered, or not with what was asked for.
    #[error("the API server: {what}: {why}")]
    Api {
        /// What was asked for.
        what: String,
        /// The fault.
        why: String,
    },
    /// The sockets for the kubelet.
    #[error(transparent)]
    Kubelet(#[from] gpucap_kubelet::Error),
    /// The claim cannot be prepared.
    #[error("claim {claim}: {why}")]
    Claim {
        /// Its namespace and name.
        claim: String,
        /// The fault.
        why: String,
    },
}

impl Error {
    /// A file or directory.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |why| Self::File { path, why }
    }

    /// The claim of this name.
    pub(crate) fn claim(claim: &str, why: impl ToString) -> Self {
        Self::Claim { claim: claim.to_owned(), why: why.to_string() }
    }
}
