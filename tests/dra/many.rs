//! Many claims, prepared and undone in any order, while the driver and the kubelet start again in between.
//!
//! The order is drawn from a fixed seed. What a prepare takes is printed, with the API server's answer in it: that server is
//! a thread of the test.

use crate::expect;
use crate::kubelet::sockets;
use crate::messages::{Claim, Prepared};
use crate::node::{Node, claim, device, share, well};
use gpucap_tests::{Result, trial};
use libtest_mimic::Trial;
use std::fs;
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("many: claims in any order, with restarts in between, leave nothing", any_order)]
}

const CLAIMS: usize = 200;

/// Numbers that look drawn: xorshift, the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % count
    }
}

/// Kills the driver, and starts another one.
fn restart(node: &mut Node) -> Result {
    node.kill_driver()?;
    // What is left in the registry, a kubelet could take for the next one.
    for socket in sockets(&node.path("k/plugins_registry")) {
        fs::remove_file(socket)?;
    }
    node.start_driver()
}

fn any_order() -> Result {
    let mut node = Node::start()?;
    let devices = [device(&node, 0)?, device(&node, 1)?];
    let part = |number: usize| {
        let id = format!("7f1c0000-0000-4000-8000-{number:012x}");
        claim(&node, &number.to_string(), &[share(&devices[number % 2], &id, "64Mi", "1")])
    };
    let mut waiting: Vec<Claim> = (1..=CLAIMS).map(part).collect();
    let mut prepared: Vec<(Claim, Prepared)> = Vec::new();
    let (mut draw, mut times, mut restarts) = (Draw(0x9e37_79b9_7f4a_7c15), Vec::new(), [0, 0]);
    let (mut kubelet, mut has_asked) = (node.kubelet()?, true);
    while !waiting.is_empty() || !prepared.is_empty() {
        match draw.below(24) {
            0 => {
                restarts[0] += 1;
                restart(&mut node)?;
                kubelet = node.kubelet()?;
                has_asked = false;
            }
            1 => {
                restarts[1] += 1;
                kubelet = node.kubelet()?;
            }
            2..=4 if !prepared.is_empty() => {
                let (again, before) = &prepared[draw.below(prepared.len())];
                let after = well(kubelet.prepare_one(again)?)?;
                expect(after == *before, || format!("{before:?}, then {after:?}"))?;
            }
            5..=14 if !waiting.is_empty() => {
                let next = waiting.swap_remove(draw.below(waiting.len()));
                let since = Instant::now();
                // A driver that has just started asks the API server first.
                let devices = if has_asked {
                    kubelet.prepare_one(&next)
                } else {
                    kubelet.prepare_once_known(&next)
                };
                let devices = well(devices?)?;
                has_asked = true;
                times.push(since.elapsed());
                prepared.push((next, devices));
            }
            _ if !prepared.is_empty() => {
                let (done, _) = prepared.swap_remove(draw.below(prepared.len()));
                expect(kubelet.unprepare(&done)?.is_empty(), || node.log())?;
            }
            _ => {}
        }
        let mut files: Vec<_> =
            prepared.iter().map(|(claim, _)| format!("gpucap-claim-{}.json", claim.uid)).collect();
        files.sort();
        expect(node.cdi_files() == files, || format!("{:?}, not {files:?}", node.cdi_files()))?;
    }
    times.sort();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    let [driver, kubelet] = restarts;
    println!(
        "{} claims, {driver} drivers killed, {kubelet} new kubelets: a prepare takes {:?} (p50), {:?} (p99)",
        times.len(),
        at(50),
        at(99),
    );
    expect(times.len() == CLAIMS && driver > 5 && kubelet > 5, || format!("{restarts:?}"))?;
    let kept = fs::read_to_string(node.path("k/plugins/slice.gpucap.io/checkpoint.json"))?;
    expect(!kept.contains("00000000-0000-4000-8000"), || kept.clone())?;
    // Far above what it takes on a busy machine: a prepare that waits for something is found.
    expect(at(50) < Duration::from_secs(1), || format!("{:?}", at(50)))
}
