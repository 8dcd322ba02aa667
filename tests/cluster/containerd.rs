//! The node's containerd: its configuration, its images, and that it is started again.
//!
//! Pods have the network of their node, or one of their own by the plugin `ptp`, from which they reach the node alone.

use crate::cluster::Cluster;
use crate::image::{Image, add_nvidia_smi, archive};
use crate::manifests::IMAGE;
use gpucap_tests::{Driver, Result, Scratch, Stop};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

/// Its configuration.
pub(crate) const CONFIG: &str = "/etc/containerd/config.toml";
/// Where it looks for plugins for networks.
const PLUGINS: &str = "/opt/cni/bin";
/// Where its release has them.
const DEBIAN_PLUGINS: &str = "/usr/lib/cni";

impl Cluster {
    /// Starts it, for the first time.
    pub(crate) fn start_containerd(&self) -> Result {
        let enclosure = &self.daemons.enclosure;
        let text = enclosure.output(&["containerd", "config", "default"])?;
        let pause = text.split(['"', '\'']).find(|it| it.contains("/pause:"));
        let pause = pause.ok_or_else(|| Stop::fail("no image for a pod's sandbox"))?;
        // Less than what this process has itself cannot be given without CAP_SYS_RESOURCE.
        let text = text
            .replace(pause, IMAGE)
            .replace("restrict_oom_score_adj = false", "restrict_oom_score_adj = true");
        fs::create_dir(enclosure.path("/etc/containerd"))?;
        fs::write(enclosure.path(CONFIG), text)?;
        let addresses = json!({
            "type": "host-local", "ranges": [[{"subnet": "198.51.100.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        });
        let network = json!({
            "cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": addresses}],
        });
        fs::create_dir_all(enclosure.path("/etc/cni/net.d"))?;
        fs::write(enclosure.path("/etc/cni/net.d/pods.conflist"), network.to_string())?;
        // What is installed there is gone with the cluster.
        let place = self.scratch.path().join("opt");
        fs::create_dir(&place)?;
        enclosure.output(&["mount", "--bind", &place.display().to_string(), "/opt"])?;
        fs::create_dir_all(enclosure.path(PLUGINS))?;
        for name in ["loopback", "ptp", "host-local"] {
            let plugin = enclosure.path(&format!("{PLUGINS}/{name}"));
            symlink(format!("{DEBIAN_PLUGINS}/{name}"), plugin)?;
        }
        self.daemons.start("containerd", &["containerd"])?;
        self.answers()?;
        let scratch = Scratch::new()?;
        let root = scratch.path().join("root");
        Image::Glibc.make(&root)?;
        // Without it, what asks for it is left out.
        drop(add_nvidia_smi(&root, &Driver::Real("535")));
        self.import(&archive(&root, IMAGE)?.display().to_string())
    }

    /// Gives it the image of an archive.
    pub(crate) fn import(&self, file: &str) -> Result {
        let words = ["ctr", "--namespace", "k8s.io", "image", "import", file];
        self.daemons.enclosure.output(&words).map(drop)
    }

    /// Starts it again, so that it reads its configuration.
    pub(crate) fn restart_containerd(&self) -> Result {
        self.daemons.end("containerd", "TERM")?;
        self.daemons.start_again("containerd")?;
        self.answers()
    }

    fn answers(&self) -> Result {
        crate::waited("containerd", || {
            let version = self.daemons.enclosure.run(&["ctr", "version"])?.output()?;
            Ok((version.code() == Some(0)).then_some(()))
        })
    }
}
