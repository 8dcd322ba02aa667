//! The chart's two images, made of the files of a release and a few tools: `deploy/Containerfile` in the small.

use crate::cluster::Cluster;
use crate::image::{add, add_needed, add_tools, archive_that_runs};
use gpucap_tests::{Build, Result, Scratch, project};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The installer's image, without the version. The DRA driver's has `-dra` behind it.
pub(crate) const REPOSITORY: &str = "localhost/gpucap";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What it has beside the files of the release: all that `node.sh` runs.
const TOOLS: [&str; 18] = [
    "cat", "chmod", "cmp", "cp", "dirname", "env", "grep", "ln", "mkdir", "mv", "nsenter",
    "readlink", "rm", "rmdir", "sh", "sleep", "tail", "test",
];

/// Makes the installer's image, and gives it to containerd. Its program that asks the driver has the settings that the
/// node's cards have now.
pub(crate) fn installer(cluster: &Cluster) -> Result {
    let (scratch, build) = (Scratch::new()?, Build::shipped()?);
    let root = root(&scratch, &["settings", "run/gpucap", "host/opt", "host/etc"])?;
    add_tools(&root, &TOOLS)?;
    let deploy = project().join("hook/deploy");
    let put = |from: &Path, to: &str| -> Result {
        let to = root.join("gpucap").join(to);
        fs::create_dir_all(to.parent().unwrap_or(&root))?;
        Ok(fs::copy(from, to).map(drop)?)
    };
    for name in ["install.sh", "uninstall.sh", "node.sh"] {
        put(&deploy.join(name), name)?;
    }
    put(&build.gpucap()?, "files/bin/gpucap")?;
    // The pod runs it, too. A release has it with all that it needs in itself; this build has not.
    add_needed(&root, &build.gpucap()?)?;
    put(&build.shim()?, "files/lib/libgpucap.so")?;
    let asks = cluster.installation.gpucap().with_file_name("gpucap-driver");
    put(&asks, "files/lib/gpucap-driver")?;
    fs::write(root.join("gpucap/VERSION"), format!("{VERSION}\n"))?;
    fs::write(root.join("gpucap/PROCESSOR"), format!("{}\n", std::env::consts::ARCH))?;
    give(cluster, &root, REPOSITORY, "/gpucap/node.sh")
}

/// Makes the DRA driver's image, and gives it to containerd.
pub(crate) fn driver(cluster: &Cluster) -> Result {
    let scratch = Scratch::new()?;
    let root = root(&scratch, &["var/run/cdi", "var/lib/kubelet"])?;
    add_tools(&root, &["nsenter"])?;
    add(&root, &Build::dra()?, "gpucap/gpucap-dra")?;
    give(cluster, &root, &format!("{REPOSITORY}-dra"), "/gpucap/gpucap-dra")
}

fn root(scratch: &Scratch, places: &[&str]) -> Result<PathBuf> {
    let root = scratch.path().join("root");
    for place in [&["proc", "dev", "tmp", "etc", "usr/lib64", "usr/lib"], places].concat() {
        fs::create_dir_all(root.join(place))?;
    }
    for link in ["lib64", "lib"] {
        symlink(format!("usr/{link}"), root.join(link))?;
    }
    Ok(root)
}

fn give(cluster: &Cluster, root: &Path, repository: &str, program: &str) -> Result {
    let file = archive_that_runs(root, &format!("{repository}:{VERSION}"), &[program], &[])?;
    cluster.import(&file.display().to_string())
}
