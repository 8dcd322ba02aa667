//! Containers of any processes, each with its limit, beside pages.

use crate::accuracy::cell::WARM_UP_NS;
use crate::simulator::card::BIN_NS;
use crate::simulator::program::{Act, Kernel, Program};
use crate::simulator::workloads::Threads;
use crate::simulator::workloads::workload;
use crate::simulator::{Page, Process, Setup, World};
use gpucap_core::sync::Word;
use gpucap_core::throttle::{DEVICE_WORDS, DeviceWords};
use gpucap_core::units::ComputeLimit;

pub(super) const US: u64 = 1_000;
pub(super) const MS: u64 = 1_000_000;

/// A container.
pub(super) struct Actor {
    pub(super) processes: Vec<Threads>,
    pub(super) limit: ComputeLimit,
}

pub(super) fn actor(kind: &str, limit: ComputeLimit) -> Actor {
    Actor { processes: (workload(kind).processes)(), limit }
}

/// Processes of one thread and stream each.
pub(super) fn crowd(
    count: usize,
    limit: ComputeLimit,
    program: impl Fn(usize) -> Program,
) -> Actor {
    let processes = (0..count).map(|number| (vec![program(number)], 1)).collect();
    Actor { processes, limit }
}

pub(super) fn launch(function: u64, ns: u64) -> Act {
    Act::Launch { stream: 0, kernel: Kernel::new(function, ns) }
}

/// What a container got.
#[derive(Debug, Clone, Copy)]
pub(super) struct Got {
    /// In percent of the time after the warm-up.
    pub(super) share: f64,
    /// For how much of the time it did nothing, from 0 to 1.
    paused: f64,
}

impl Got {
    /// By how many points it got less than its guarantee in the time in which it had work, and less than `usual`: it is to
    /// have one of both.
    pub(super) fn loss(self, guarantee: u16, usual: Self) -> f64 {
        let of_its_time = self.share / (1.0 - self.paused);
        (usual.share - self.share).min(f64::from(guarantee) - of_its_time)
    }
}

/// What each got after the warm-up, in percent.
pub(super) fn shares(actors: Vec<Actor>, pages: &[Page], seconds: u64) -> Vec<f64> {
    all(actors, pages, seconds).iter().map(|got| got.share).collect()
}

/// What each got.
pub(super) fn all(actors: Vec<Actor>, pages: &[Page], seconds: u64) -> Vec<Got> {
    all_after(WARM_UP_NS, actors, pages, seconds)
}

/// What each got after this time.
#[expect(clippy::cast_precision_loss, reason = "less than 2^53")]
pub(super) fn all_after(
    from_ns: u64,
    actors: Vec<Actor>,
    pages: &[Page],
    seconds: u64,
) -> Vec<Got> {
    let words: Vec<[Word; DEVICE_WORDS]> =
        actors.iter().map(|_| <[Word; DEVICE_WORDS]>::default()).collect();
    let seats: Vec<DeviceWords<'_>> =
        words.iter().map(|words| DeviceWords::new(words.each_ref())).collect();
    let (mut processes, mut owners) = (Vec::new(), Vec::new());
    let count = actors.len();
    for (seat, actor) in actors.into_iter().enumerate() {
        for (threads, streams) in actor.processes {
            let limits = vec![Some((seat, actor.limit))];
            processes.push(Process { threads, streams, first: 0, limits });
            owners.push(seat);
        }
    }
    let length = from_ns + seconds * 1_000_000_000;
    let world = World::new(Setup::default(), &seats, processes).with_pages(pages.to_vec());
    let outcomes = world.run(length);
    let first = usize::try_from(from_ns / BIN_NS).unwrap_or(0);
    let got = |seat: usize| {
        let own = owners.iter().zip(&outcomes).filter(|(owner, _)| **owner == seat);
        let own: Vec<_> = own.filter_map(|(_, cards)| cards.first()).collect();
        let busy = own.iter().flat_map(|card| card.busy.get(first..).unwrap_or(&[])).sum::<u64>();
        let paused = own.iter().map(|card| card.paused_ns).sum::<u64>();
        Got {
            share: busy as f64 / seconds as f64 / 1e7,
            paused: paused as f64 / length as f64 / own.len().max(1) as f64,
        }
    };
    (0..count).map(got).collect()
}
