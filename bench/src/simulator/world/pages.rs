//! What processes on a card read of each other, and pages of containers that have no process here.
//!
//! A page holds places, and whoever has a container writes what it likes into the places of its own page. A [`Page`]
//! says something of each of its places by the clock alone, true or not, and uses no card. The node knows the
//! container's share.

use super::{Tenant, World};
use crate::simulator::setup::Ablation;
use gpucap_core::throttle::{Heard, Meter, Told};
use gpucap_core::units::Share;

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
/// A launch that was held back is not the last one for a while.
const HELD_BACK_NS: u64 = 1_000_000_000;
/// Numbers of places in pages without processes begin here.
const KEYS: u64 = 1 << 40;

impl World<'_> {
    /// Reads what other processes tell of the card of a stream, if it is time to; how long that took.
    pub(super) fn look_around(&mut self, thread: usize, stream: usize) -> u64 {
        let (now, own) = (self.now, self.threads[thread].process);
        let card = self.processes[own].streams[stream].card;
        let is_due = |tenant: &Tenant<'_>| {
            let place = &tenant.places[card];
            let was_held_back = now.saturating_sub(place.held_back_at) < HELD_BACK_NS;
            let is_due = |meter: &Meter<'_, _>| meter.is_look_due(now, was_held_back);
            now >= place.rests_until && place.meters.first().is_some_and(is_due)
        };
        if self.setup.without == Ablation::Page || !is_due(&self.processes[own]) {
            return 0;
        }
        let own_place = &self.processes[own].places[card];
        let own_page = own_place.limit.map(|(page, _)| page);
        let own_share = own_place.meters.first().map_or(Share::FULL, Meter::largest_share);
        let others = self.processes.iter().enumerate().filter(|(number, _)| *number != own);
        let told = others.filter_map(|(_, tenant)| {
            let place = &tenant.places[card];
            let (page, _) = place.limit?;
            let share = *self.shares.get(&(card, page))?;
            Some((page, share, tenant.key, place.meters.first()?.tells()))
        });
        let told: Vec<_> = told.collect();
        // Of the own container each process is heard for itself, of others all as one.
        let own_told = told.iter().filter(|(page, ..)| Some(*page) == own_page);
        let mut heard: Vec<_> = own_told
            .map(|&(page, _, key, told)| Heard { page: page as u64, share: own_share, key, told })
            .collect();
        let mut pages: Vec<_> = told.iter().map(|&(page, share, ..)| (page, share)).collect();
        pages.sort_unstable();
        pages.dedup_by_key(|(page, _)| *page);
        for (page, share) in pages.into_iter().filter(|(page, _)| Some(*page) != own_page) {
            let of_it = told.iter().filter(|(other, ..)| *other == page);
            let told = Told::together(of_it.map(|(.., told)| *told), now);
            heard.push(Heard { page: page as u64, share, key: KEYS - 1 - page as u64, told });
        }
        for (page, number) in self.pages.iter().zip(KEYS..) {
            let told = Told::together((0..page.places).map(|_| page.says.at(now)), now);
            let share = Share::from_percent(page.percent).unwrap_or(Share::FULL);
            heard.push(Heard { page: number, share, key: number, told });
        }
        let place = &mut self.processes[own].places[card];
        place.meters.iter_mut().for_each(|meter| meter.look(heard.iter().copied(), now));
        let took = self.setup.look_ns * heard.len() as u64;
        place.rests_until = now + took * REST;
        took
    }
}
