//! Containers side by side, each with its workload, its limit, and the times when it works.

use crate::accuracy::cell::{self, Cell};
use crate::simulator::program::{Act, Program};
use crate::simulator::workloads::workload;
use crate::simulator::{Page, Process, Setup, World};
use gpucap_core::sync::Word;
use gpucap_core::throttle::{DEVICE_WORDS, DeviceWords};
use gpucap_core::units::{ComputeLimit, Share};

/// One container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    /// The name of its workload.
    pub(super) workload: &'static str,
    pub(super) limit: ComputeLimit,
    /// When it works.
    pub(super) times: Times,
}

/// When a container works.
#[derive(Debug, Clone, Copy)]
pub(super) enum Times {
    Always,
    /// In every other period of this length. It waits for its work, and then does nothing.
    EveryOther(u64),
    /// The same, without a look at what it has launched.
    EveryOtherUnseen(u64),
}

pub(super) const MS: u64 = 1_000_000;
pub(super) const SHORT: &str = "W1 10 us kernels";
/// Greedy ones; what some do between launches takes longer than their kernels.
pub(super) const KINDS: [&str; 11] = [
    SHORT,
    "W2 40 ms kernel, sync",
    "W2 40 ms kernels",
    "W3 8 ms graph decode",
    "W4 4 streams x 50 us",
    "W5 training step",
    "W6 25 kernels mixed",
    "W7 kernel + copy",
    "W8 10 us, sync",
    "W9 launch-bound 3 us",
    "W10 inference 4 ms",
];

pub(super) fn percent(percent: u16) -> Share {
    Share::from_percent(percent).unwrap_or(Share::FULL)
}

pub(super) fn fixed(of: u16) -> ComputeLimit {
    ComputeLimit::fixed(percent(of))
}

pub(super) fn burst(of: u16) -> ComputeLimit {
    ComputeLimit::burst(percent(of), Share::FULL)
}

pub(super) const LOW: ComputeLimit = ComputeLimit::low_priority(Share::FULL);

pub(super) const fn side(workload: &'static str, limit: ComputeLimit) -> Side {
    Side { workload, limit, times: Times::Always }
}

/// The program at the times when it works.
fn at_times(mut program: Program, times: Times) -> Program {
    let (period_ns, is_seen) = match times {
        Times::Always => return program,
        Times::EveryOther(period_ns) => (period_ns, true),
        Times::EveryOtherUnseen(period_ns) => (period_ns, false),
    };
    let mut has_waited = false;
    Box::new(move |now, dice| {
        let is_pause = now / period_ns % 2 == 1;
        let waits = is_pause && is_seen && !has_waited;
        has_waited = is_pause;
        match (is_pause, waits) {
            (false, _) => program(now, dice),
            (true, true) => Act::Sync(None),
            (true, false) => Act::Until((now / period_ns + 1) * period_ns),
        }
    })
}

/// Runs the containers side by side.
pub(super) fn side_by_side(
    sides: &[Side],
    pages: &[Page],
    seconds: u64,
    setup: &Setup,
) -> Vec<Cell> {
    let words: Vec<[Word; DEVICE_WORDS]> =
        sides.iter().map(|_| <[Word; DEVICE_WORDS]>::default()).collect();
    let seats: Vec<DeviceWords<'_>> =
        words.iter().map(|words| DeviceWords::new(words.each_ref())).collect();
    let (mut processes, mut owners) = (Vec::new(), Vec::new());
    for (seat, side) in sides.iter().enumerate() {
        for (threads, streams) in (workload(side.workload).processes)() {
            let threads =
                threads.into_iter().map(|program| at_times(program, side.times)).collect();
            let limits = vec![Some((seat, side.limit))];
            processes.push(Process { threads, streams, first: 0, limits });
            owners.push(seat);
        }
    }
    let length = cell::WARM_UP_NS + seconds * 1_000_000_000;
    let outcomes = World::new(*setup, &seats, processes).with_pages(pages.to_vec()).run(length);
    let found = |(seat, side): (usize, &Side)| {
        let own = owners.iter().zip(&outcomes).filter(|(owner, _)| **owner == seat);
        let own: Vec<_> = own.filter_map(|(_, cards)| cards.first().cloned()).collect();
        let solo = cell::run(workload(side.workload), None, seconds, setup, None);
        cell::summary(side.workload, Some(100), &own, length, Some(&solo))
    };
    sides.iter().enumerate().map(found).collect()
}
