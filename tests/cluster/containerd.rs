//! The node's containerd: its configuration, its images, and that it is started again.
//!
//! Pods have the network of their node, or one of their own with nothing in it: the plugins for networks are a script, and
//! give each pod the same address, by which none is reached.

use crate::cluster::Cluster;
use crate::image::{Image, add_nvidia_smi, archive};
use crate::manifests::IMAGE;
use gpucap_tests::{Driver, Result, Scratch, Stop};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Its configuration.
pub(crate) const CONFIG: &str = "/etc/containerd/config.toml";
/// Where it looks for plugins for networks.
const PLUGINS: &str = "/opt/cni/bin";
/// A plugin: what it is told, and what it answers.
const PLUGIN: &str = r#"#!/bin/sh
cat >/dev/null
case $CNI_COMMAND in
    ADD) echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "eth0", "sandbox": "pod"}],
        "ips": [{"version": "4", "interface": 0, "address": "192.0.2.2/32"}]}' ;;
    VERSION) echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.3.1", "0.4.0"]}' ;;
esac
"#;

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
        let network = json!({"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]});
        fs::create_dir_all(enclosure.path("/etc/cni/net.d"))?;
        fs::write(enclosure.path("/etc/cni/net.d/none.conflist"), network.to_string())?;
        // What is installed there is gone with the cluster.
        let place = self.scratch.path().join("opt");
        fs::create_dir(&place)?;
        enclosure.output(&["mount", "--bind", &place.display().to_string(), "/opt"])?;
        fs::create_dir_all(enclosure.path(PLUGINS))?;
        for name in ["loopback", "none"] {
            let plugin = enclosure.path(&format!("{PLUGINS}/{name}"));
            fs::write(&plugin, PLUGIN)?;
            fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755))?;
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
