//! The DRA driver, between a kubelet and an API server of our own, over the real sockets.
//!
//! * [`prepare`]: what the kubelet gets for a claim, and that asking again changes nothing.
//! * [`registration`]: the call by which a real kubelet gets to know the driver, byte by byte.
//! * [`failures`]: each rule for what can fail, and that what is refused is refused in one line.
//! * [`restarts`]: the kubelet, the driver and the machine start again, at any moment.
//! * [`many`]: many claims in any order, with restarts in between.
//! * [`slices`]: what the scheduler is told of the cards, when, and when no more.
//! * [`health`]: what the kubelet is told of cards while they work and when they do not.
//!
//! No kubelet and no API server of Kubernetes takes part: what those do with the answers is not tested here.

mod failures;
mod health;
mod kubelet;
mod many;
mod messages;
mod node;
mod prepare;
mod registration;
mod restarts;
mod server;
mod slices;

use gpucap_tests::{Result, Stop, main as harness};
use std::process::ExitCode;

fn main() -> ExitCode {
    let suites = [
        registration::trials,
        prepare::trials,
        failures::trials,
        restarts::trials,
        many::trials,
        slices::trials,
        health::trials,
    ];
    harness(suites.into_iter().flat_map(|trials| trials()).collect())
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(Stop::fail(otherwise())) }
}
