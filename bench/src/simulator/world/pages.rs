//! What processes on a card read of each other, and pages of containers that have no process here.
//!
//! A page holds places, and whoever has a container writes what it likes into the places of its own page. A [`Page`]
//! says something of each of its places by the clock alone, true or not, and uses no card. The node knows the
//! container's share.

use super::{Tenant, World};
use crate::simulator::setup::Ablation;
use gpucap_core::throttle::{Meter, Told};

/// A page of a container without a process on the card.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// How many places say something.
    pub places: u64,
    /// The container's share in percent, as the node knows it.
    pub percent: u16,
    /// What they say.
    pub says: Says,
}

/// What each place of a page says.
#[derive(Debug, Clone, Copy)]
pub enum Says {
    /// What a process said that is no more: it never changes.
    Nothing,
    /// Work has been out since the beginning, and that much is done in a hundred nanoseconds.
    Busy(u64),
    /// The same, though nothing was ever out.
    Unseen(u64),
    /// Work is out in every other period of so many nanoseconds, and three times as much as fits into one is done.
    Now(u64),
    /// Work goes up and down by an hour.
    Swings,
    /// Nothing but the largest number.
    Most,
}

/// Set in the second word while something is out.
const OUT: u64 = 1 << 63;

impl Says {
    fn at(self, now: u64) -> Told {
        let (work, occupied) = match self {
            Self::Nothing => (0, 0),
            Self::Busy(rate) => (now / 100 * rate, OUT | 1),
            Self::Unseen(rate) => (now / 100 * rate, 0),
            Self::Now(period) => {
                let (turn, half) = (now / period, now / period / 2 * period);
                // So long before, and since the beginning of this period if it is one of those.
                let occupied = if turn % 2 == 1 { OUT | (now - half - now % period) } else { half };
                (turn.div_ceil(2) * period * 3, occupied)
            }
            Self::Swings => (now / 1_000_000 % 2 * 3_600_000_000_000, OUT | 1),
            Self::Most => (u64::MAX, u64::MAX),
        };
        Told { work, occupied }
    }
}

/// For one part of the time that looks, so many do not.
const REST: u64 = 50;
/// Numbers of places in pages without processes begin here.
const KEYS: u64 = 1 << 40;

impl World<'_> {
    /// Reads what other processes tell of the card of a stream, if it is time to; how long that took.
    pub(super) fn look_around(&mut self, thread: usize, stream: usize) -> u64 {
        let (now, own) = (self.now, self.threads[thread].process);
        let card = self.processes[own].streams[stream].card;
        let is_due = |tenant: &Tenant<'_>| {
            let place = &tenant.places[card];
            let is_due = |meter: &Meter<'_, _>| meter.is_look_due(now);
            now >= place.rests_until && place.meters.first().is_some_and(is_due)
        };
        if self.setup.without == Ablation::Page || !is_due(&self.processes[own]) {
            return 0;
        }
        let others = self.processes.iter().enumerate().filter(|(number, _)| *number != own);
        let tell = |(_, tenant): (usize, &Tenant<'_>)| {
            Some((tenant.key, tenant.places[card].meters.first()?.tells()))
        };
        let of_pages = self.pages.iter().zip(KEYS..).flat_map(|(page, number)| {
            (0..page.places).map(move |place| (number << 10 | place, page.says.at(now)))
        });
        let told: Vec<_> = others.filter_map(tell).chain(of_pages).collect();
        let place = &mut self.processes[own].places[card];
        place.meters.iter_mut().for_each(|meter| meter.look(told.iter().copied(), now));
        let took = self.setup.look_ns * told.len() as u64;
        place.rests_until = now + took * REST;
        took
    }
}
