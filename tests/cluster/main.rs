//! `gpucap-dra` on a Kubernetes: its API server, scheduler, controllers and kubelet, containerd and runc.
//!
//! * [`slices`]: what the scheduler has of the node's cards, and that it follows the driver.
//! * [`story`]: what a user does, as one transcript; the scheduler gives no part of a card twice.
//! * [`limits`]: what a pod gets.
//! * [`counting`]: that no user upsets what the scheduler counts.
//! * [`classes`]: the policy that demands the runtime class.
//! * [`sharing`]: claims that several containers of a pod name.
//! * [`starts`]: how long a pod takes to start, with a claim and with the other ways.
//! * [`installs`]: the chart, by Helm, with its defaults and with all options.
//! * [`many`]: many pods at once, and the driver and the kubelet that end in between.
//!
//! One cluster of one node, for all tests, in a mount, process and network namespace of its own ([`cluster`]), so a
//! test has it alone. The cards are the stub's. Kubernetes' programs are those in the folder `KUBE_BIN`, or in `PATH`;
//! etcd and containerd are of the Debian release that `ci/engines` fetches. Without them each test is skipped.

mod classes;
mod cluster;
mod containerd;
mod counting;
mod daemons;
mod images;
mod installs;
mod kubectl;
mod limits;
mod manifests;
mod many;
mod programs;
mod sharing;
mod slices;
mod starts;
mod story;
mod usage;

#[path = "../containers/cgroups.rs"]
mod cgroups;
#[path = "../containers/enclosure.rs"]
#[allow(dead_code, reason = "the tests of containers need more of it")]
mod enclosure;
#[path = "../containers/image.rs"]
#[allow(dead_code, reason = "the tests of containers need more of it")]
mod image;

/// What the control groups of a run are named after.
mod container {
    pub(crate) const PREFIX: &str = "gpucap-cluster-";
}

use gpucap_tests::{Result, Stop, main as harness};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What takes longer hangs.
const LONGEST: Duration = Duration::from_secs(180);

fn main() -> ExitCode {
    cgroups::remove_left();
    let suites = [
        story::trials,
        slices::trials,
        limits::trials,
        counting::trials,
        classes::trials,
        sharing::trials,
        starts::trials,
        many::trials,
        installs::trials,
    ];
    let code = harness(suites.into_iter().flat_map(|trials| trials()).collect());
    cluster::end();
    code
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(Stop::fail(otherwise())) }
}

/// Waits until there is an answer.
fn waited<T>(what: &str, answer: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    waited_within(LONGEST, what, answer)
}

/// The same for what takes this long at the most.
fn waited_within<T>(
    longest: Duration,
    what: &str,
    mut answer: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(answer) = answer()? {
            return Ok(answer);
        }
        if started.elapsed() > longest {
            return Err(Stop::fail(format!("{what}: not within {} s", longest.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
