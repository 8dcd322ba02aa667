//! Contexts and processes that end, and their work in flight.
//!
//! The calls are the shim's, in its order. A context takes its events along: what was in flight then ended with it. A
//! process that is killed takes its meter along; what it had not paid for is found by the next process of the
//! container.

use super::Place;
use super::World;
use super::metered::Metered;
use super::pages::Ghost;
use super::thread::State;
use gpucap_core::throttle::{Meter, Unfinished, UsageReport};
use std::sync::Arc;

/// The unfinished work of a process on a card, and its container.
pub(super) struct Left {
    card: usize,
    seat: usize,
    process: u16,
    work: Unfinished,
}

/// The host's least time for destroying a context and making the next one.
const CONTEXT_NS: u64 = 20_000;

impl World<'_> {
    /// The shim's part before the driver's call.
    pub(super) fn about_to_end_context(&mut self, thread: usize) {
        let now = self.now;
        let process = self.threads[thread].process;
        let streams = self.processes[process].streams.len();
        for stream in 0..streams {
            self.look_around(thread, stream, false);
            self.fence(thread, stream);
            if let Some(Metered { meter, probe, .. }) = &mut self.metered(thread, stream) {
                meter.settle_all(now, probe);
            }
        }
        let tenant = &mut self.processes[process];
        (tenant.context, tenant.ended_at) = (tenant.context + 1, None);
        for stream in 0..streams {
            if let Some(Metered { id, meter, .. }) = &mut self.metered(thread, stream) {
                meter.stream_destroyed(*id, now);
            }
        }
        if !self.setup.end_waits {
            self.cards.iter_mut().for_each(|card| card.kill(process));
        }
        self.later(thread, CONTEXT_NS, State::EndingContext);
    }

    /// The driver's call, and the next context.
    pub(super) fn end_context(&mut self, thread: usize) {
        let process = self.threads[thread].process;
        let lines = &self.processes[process].streams;
        if lines.iter().any(|line| self.cards[line.card].queued(line.number) > 0) {
            return self.block(thread, State::EndingContext);
        }
        let (now, streams) = (self.now, lines.len());
        self.processes[process].ended_at = Some(now);
        for stream in 0..streams {
            if let Some(Metered { meter, probe, .. }) = &mut self.metered(thread, stream) {
                meter.settle_all(now, probe);
            }
        }
        self.renew_allowances(process);
        self.name_streams(process);
        self.later(thread, 0, State::Next);
    }

    /// A process is killed.
    pub(super) fn leave(&mut self, process: usize) {
        self.cards.iter_mut().for_each(|card| card.kill(process));
        let tenant = &mut self.processes[process];
        tenant.places.iter_mut().for_each(|place| place.is_dead = true);
        for (card, place) in tenant.places.iter().enumerate() {
            let limit = card.checked_sub(tenant.first).and_then(|card| tenant.limits.get(card));
            if let Some((seat, _)) = limit.copied().flatten()
                && let Some(paid_until) = place.meters.iter().find_map(Meter::paid_until)
            {
                let work = Unfinished { paid_until, alive_at: Some(self.now) };
                self.left.push(Left { card, seat, process: number(process), work });
            }
        }
    }

    /// Replaces a killed process of a single thread by another process, with its number or another one.
    pub(super) fn begin_again(&mut self, thread: usize) {
        let process = self.threads[thread].process;
        let tenant = &mut self.processes[process];
        let old = std::mem::take(&mut tenant.places);
        let seats: Vec<_> = old.iter().map(Place::usage_report).collect();
        let moves = self.dice.between(0, 1) == 1;
        if moves {
            let ghost = |(card, (report, place)): (usize, (&Option<UsageReport>, &Place<'_>))| {
                let (page, _) = place.limit?;
                Some(Ghost { card, page, key: tenant.key, report: (*report)? })
            };
            self.ghosts.extend(seats.iter().zip(&old).enumerate().filter_map(ghost));
            tenant.key += 1 << 20;
        }
        (tenant.context, tenant.ended_at) = (tenant.context + 1, Some(self.now));
        self.begin_process(process);
        let now = self.now;
        let places = self.processes[process].places.iter_mut().zip(old).zip(seats);
        for ((new, old), seat) in places {
            new.seat = (seat.filter(|_| !moves).unwrap_or_default(), now);
            new.before = old.totals();
            new.oracle = old.oracle.or_else(|| new.oracle.take());
            (new.waits, new.metered, new.collectives) = (old.waits, old.metered, old.collectives);
        }
        self.renew_allowances(process);
        self.later(thread, 0, State::Next);
    }

    fn renew_allowances(&mut self, process: usize) {
        for thread in self.threads.iter_mut().filter(|thread| thread.process == process) {
            thread.allowances.fill_with(Arc::default);
        }
    }

    /// Charges the unfinished work of ended processes of the container on a stream's card, if it is time to look, and
    /// ends their reports.
    pub(super) fn inherit(&mut self, thread: usize, stream: usize) {
        let now = self.now;
        let tenant = &mut self.processes[self.threads[thread].process];
        let card = tenant.streams[stream].card;
        let limit = card.checked_sub(tenant.first).and_then(|card| tenant.limits.get(card));
        let place = &mut tenant.places[card];
        let (Some((own, _)), Some(meter)) = (limit.copied().flatten(), place.meters.first_mut())
        else {
            return;
        };
        if !place.upkeep.is_inheriting_due(now) {
            return;
        }
        self.left.retain(|left| {
            let is_own = (left.card, left.seat) == (card, own);
            if is_own {
                meter.sibling_died(left.process);
                meter.inherit(left.work, now);
            }
            !is_own
        });
        let ghosts = self.ghosts.iter_mut().filter(|ghost| (ghost.card, ghost.page) == (card, own));
        ghosts.for_each(|ghost| ghost.report = ghost.report.ended(now));
        for tenant in &mut self.processes {
            let place = &mut tenant.places[card];
            if place.is_dead && place.limit.is_some_and(|(page, _)| page == own) {
                place.ended_at.get_or_insert(now);
            }
        }
    }
}

/// What a process is called among those of its container.
pub(super) fn number(process: usize) -> u16 {
    u16::try_from(process + 1).unwrap_or(u16::MAX)
}
