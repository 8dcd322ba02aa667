//! Real containers: the hook, under the runtimes of this machine, puts them under their limits or keeps them from
//! starting.
//!
//! * [`enforced`]: the slice is there for every process of every kind of container.
//! * [`assigned`]: what a plugin assigned, by its checkpoint on the node.
//! * [`limited`]: the host changes the limits of one that runs.
//! * [`peers`]: those that share a card publish their usage to each other, and can do nothing else to each other.
//! * [`kept`]: what the node keeps for that, and that no container is refused for it.
//! * [`shares`]: what the node tells them of each other's shares.
//! * [`refused`]: one that cannot be held to it prints nothing and leaves nothing.
//! * [`hostile`]: images and volumes that have laid something in the way.
//! * [`way`]: who could take the preload list away.
//! * [`wrapper`]: the same through `gpucap runtime`, with no hook in the bundle.
//! * [`ctr`]: containerd, told of a container by hand.
//! * [`crio`]: CRI-O, if there is one in `PATH`.
//! * [`pods`]: what a kubelet asks of any engine.
//! * [`nri`]: containerd, which asks the plugin about the containers of any pod.
//! * [`cri`], [`docker`], [`podman`]: engines of each release that can be had, told of us by `gpucap configure`.
//! * [`images`]: the chart's images, as podman builds them.
//! * [`component`]: the chart's metrics on a node with a container.
//! * [`sampled`], [`sampled_owners`]: what the driver's samples say of processes, and whose these are.
//! * [`again`]: a container that is started again, in debt.
//! * [`leases`]: a container that keeps others from opening files by leases.
//! * [`excess`]: a container that hides from the library what it does, before the driver's samples.
//! * [`scraped`]: a real Prometheus that scrapes a limited container.
//! * [`earlier`]: hook, library and command of two versions, mixed.
//! * [`older`]: images of older systems, with the files as they are shipped.
//! * [`upgrade`]: containers that outlive the version that put them under their limits.
//! * [`driver`]: what was measured on the node, and limits that the driver keeps by itself.
//!
//! A container is made of this machine's own C library, the stub driver and the actor ([`image`]); it needs root, a
//! runtime and a kernel that lets it have its namespaces. What is missing is skipped aloud.

mod again;
mod assigned;
mod cgroups;
mod claims;
mod component;
mod container;
mod cri;
mod crio;
mod ctr;
mod docker;
mod dra;
mod driver;
mod earlier;
mod enclosure;
mod enforced;
mod excess;
mod hostile;
mod image;
mod images;
mod kept;
mod leases;
mod limited;
mod mounts;
mod node;
mod nri;
mod older;
mod peers;
mod podman;
mod pods;
mod refused;
mod runtime;
mod sampled;
mod sampled_owners;
mod scraped;
mod shares;
mod upgrade;
mod way;
mod wrapper;

use enclosure::Userland;
use gpucap_tests::{Result, Stop, main as harness, trial};
use libtest_mimic::Trial;
use runtime::Runtime;
use std::process::ExitCode;

const GIB: u64 = 1 << 30;
const SUCCESS: u64 = 0;
const OUT_OF_MEMORY: u64 = 2;

fn main() -> ExitCode {
    let suites = [
        enforced::trials,
        assigned::trials,
        limited::trials,
        sampled::trials,
        sampled_owners::trials,
        again::trials,
        excess::trials,
        leases::trials,
        scraped::trials,
        peers::trials,
        kept::trials,
        shares::trials,
        refused::trials,
        hostile::trials,
        way::trials,
        wrapper::trials,
        ctr::trials,
        cri::trials,
        crio::trials,
        nri::trials,
        docker::trials,
        podman::trials,
        images::trials,
        component::trials,
        earlier::trials,
        older::trials,
        upgrade::trials,
        driver::trials,
        claims::trials,
    ];
    cgroups::remove_left();
    harness(suites.into_iter().flat_map(|trials| trials()).collect())
}

/// A rule, and the test that holds it for one runtime.
type Rule = (&'static str, fn(Runtime) -> Result);

/// Each rule under each runtime.
fn trials_of(rules: &'static [Rule]) -> Vec<Trial> {
    let pairs = Runtime::all().flat_map(|runtime| rules.iter().map(move |rule| (runtime, rule)));
    pairs
        .map(|(runtime, (name, test))| {
            trial(format!("{}: {name}", runtime.name()), move || test(runtime))
        })
        .collect()
}

/// A rule of an engine.
type EngineRule = (&'static str, fn(Userland) -> Result);

/// Each rule of an engine in each release that it comes from.
fn trials_of_releases(engine: &'static str, rules: &'static [EngineRule]) -> Vec<Trial> {
    let pairs = Userland::ALL
        .into_iter()
        .flat_map(|userland| rules.iter().map(move |rule| (userland, rule)));
    pairs
        .map(|(userland, (name, test))| {
            trial(format!("{engine} of {}: {name}", userland.name()), move || test(userland))
        })
        .collect()
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(Stop::fail(otherwise())) }
}
