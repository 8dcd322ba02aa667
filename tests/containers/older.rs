//! Images of older systems, under the files as they are shipped: an old glibc, and no `libgcc_s`.
//!
//! They run with `ci/run --full shipped`, which builds everything for old machines and names it in `GPUCAP_ARTIFACTS`.

use crate::container::Container;
use crate::enforced::is_enforced;
use crate::image::{Image, add_nvidia_smi_alone};
use crate::runtime::Runtime;
use crate::{expect, trials_of};
use gpucap_tests::{Driver, Result};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("Debian 11 without libgcc_s: the slice holds", debian_11),
        ("Debian 11 without libgcc_s: a program without a GPU notices nothing", no_gpu),
        ("Debian 11 without libgcc_s: the real nvidia-smi shows the slice", nvidia_smi),
    ])
}

fn debian_11(runtime: Runtime) -> Result {
    let container = Container::of(runtime, Image::Debian11)?;
    let library = container.root().join("lib/x86_64-linux-gnu/libc-2.31.so");
    expect(library.exists(), || format!("no {}", library.display()))?;
    for place in ["lib", "usr/lib"] {
        let library = container.root().join(place).join("x86_64-linux-gnu/libgcc_s.so.1");
        expect(!library.exists(), || format!("{} is there", library.display()))?;
    }
    is_enforced(&container)
}

fn no_gpu(runtime: Runtime) -> Result {
    let container = Container::of(runtime, Image::Debian11)?;
    let maps = container.output(&["cat", "/proc/self/maps"])?.success()?;
    expect(maps.stdout.contains("/.gpucap/libgpucap.so"), || maps.to_string())?;
    expect(maps.stderr.is_empty(), || maps.to_string())
}

fn nvidia_smi(runtime: Runtime) -> Result {
    let container = Container::of(runtime, Image::Debian11)?;
    add_nvidia_smi_alone(&container.root(), &Driver::Real("535"))?;
    let words = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader"];
    let seen = container.output(&words)?.success()?;
    expect(seen.stdout.trim() == "1024 MiB", || seen.to_string())
}
