//! `gpucap cdi generate`: a slice as a device that podman gives a container.
//!
//! podman has no directory for CDI that a test could name, so the file lies in the system's for as long as the test
//! runs, under a name of its own.

use crate::capped::{begin, is_capped};
use crate::engines::Podman;
use crate::expect;
use gpucap_tests::{Build, Driver, Result, Stop, World, trial};
use libtest_mimic::Trial;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("podman: a slice as a CDI device caps, whatever the user's variable says", podman)]
}

const DIRECTORY: &str = "/var/run/cdi";

/// A device, as long as it lives.
struct Device(PathBuf);

impl Device {
    fn new(name: &str, config: &Path) -> Result<Self> {
        fs::create_dir_all(DIRECTORY)
            .map_err(|why| Stop::skip(format!("{DIRECTORY} cannot be made: {why}")))?;
        let run = World::bare(Driver::Absent).run(&Build::shipped()?.gpucap()?)?;
        let words = ["cdi", "generate", name, "--mem", "1Gi", "--output", DIRECTORY, "--config"];
        let run = words.iter().fold(run, gpucap_tests::Run::arg).arg(config);
        run.output()?.success()?;
        let file = Path::new(DIRECTORY).join(format!("gpucap-slice-{name}.json"));
        expect(file.exists(), || format!("no {}", file.display()))?;
        Ok(Self(file))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

fn podman() -> Result {
    let podman = Podman::new()?;
    fs::remove_file(podman.0.path("hooks.d/gpucap.json"))?;
    let _device = Device::new(podman.0.id(), &podman.0.path("node.json"))?;
    let device = format!("gpucap/slice={}", podman.0.id());
    let mut first = begin(&podman.run_with(&["--device", &device], "64Gi")?)?;
    is_capped(&mut first)?;
    is_capped(&mut begin(&podman.command(&["exec", "-i", podman.0.id(), "/actor"])?)?)?;
    first.end()?.success().map(drop)
}
