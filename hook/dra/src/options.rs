//! The words of the command line, and the places that follow from them.
//!
//! The defaults are those of a node that the installer has set up. A place of the node is named as it is on the node:
//! the kubelet, engines and the hook read the same paths.

use crate::cdi::Directory;
use gpucap_kubelet::Sockets;
use gpucap_plan::Node;
use std::path::PathBuf;
use std::time::Duration;

/// Publish parts of this node's GPUs to the scheduler of Kubernetes, and prepare the claims that get them
#[derive(Debug, clap::Parser)]
#[command(name = "gpucap-dra", version)]
pub(crate) struct Options {
    /// The name of this node
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub(crate) node: String,
    /// The name of the driver, which classes select
    #[arg(long, value_name = "NAME", default_value = "slice.gpucap.io")]
    pub(crate) name: String,
    /// The address of the API server; without it, that of the cluster or of KUBECONFIG
    #[arg(long, value_name = "URL")]
    pub(crate) api: Option<String>,
    /// The kubelet's directory
    #[arg(long, value_name = "DIRECTORY", default_value = "/var/lib/kubelet")]
    kubelet: PathBuf,
    /// The directory of CDI files that end with the machine
    #[arg(long, value_name = "DIRECTORY", default_value = "/var/run/cdi")]
    cdi: PathBuf,
    /// The command `gpucap` on the node, which the hook calls
    #[arg(long, value_name = "FILE", default_value = "/opt/gpucap/current/bin/gpucap")]
    command: PathBuf,
    /// The node's configuration that the hook is to read
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
    /// The words that start gpucap-driver, parted by blanks: `chroot /host /opt/gpucap/current/lib/gpucap-driver`
    #[arg(
        long,
        value_name = "WORDS",
        value_delimiter = ' ',
        default_value = "/opt/gpucap/current/lib/gpucap-driver"
    )]
    pub(crate) asks: Vec<String>,
    /// The directories of NVIDIA's libraries, if the loader does not know them
    #[arg(long, value_name = "DIRECTORIES")]
    pub(crate) driver_libraries: Option<String>,
    /// The kind of the CDI devices that bring the card itself, named by its UUID; empty: other means bring it
    #[arg(long, value_name = "KIND", default_value = "nvidia.com/gpu")]
    card_kind: String,
    /// How many seconds are between two looks at the cards
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
}

impl Options {
    /// The sockets for the kubelet, and the directory of the driver's own files.
    pub(crate) fn sockets(&self) -> Sockets {
        Sockets::new(&self.kubelet, &self.name)
    }

    /// Where CDI files are written, and what they name.
    pub(crate) fn directory(&self) -> Directory {
        let (path, command) = (self.cdi.clone(), self.command.clone());
        Directory { path, command, config: self.config.clone() }
    }

    /// The kind of the devices that bring the card, if some do.
    pub(crate) fn card_kind(&self) -> Option<String> {
        Some(self.card_kind.clone()).filter(|kind| !kind.is_empty())
    }

    /// The time between two rounds.
    pub(crate) const fn interval(&self) -> Duration {
        Duration::from_secs(self.interval)
    }
}
