//! A gate that knows the duration of each kernel and charges what the card worked: the upper bound of what a share
//! can yield.
//!
//! It holds launches back as the meter does, in turns of a quantum out of the same bucket, with the same late
//! wake-ups; but it needs no events, no estimates and no pages. No gate can get more out of a card for a program, so
//! a meter is compared with it. Beside a stream that is held only the bucket decides.

use super::thread::State;
use super::{Place, World};
use crate::simulator::program::Kernel;
use gpucap_core::sync::Word;
use gpucap_core::throttle::Bucket;
use gpucap_core::units::Share;

/// The gate of one process on one card.
pub(super) struct Oracle<'a> {
    /// The container's, under the container's share.
    bucket: Bucket<'a>,
    /// The process's own, under a share of its own.
    own: (Word, Share),
    /// The card's time that it has charged.
    seen_ns: u64,
    open: bool,
}

/// While its work is in flight, the outcome of that can open the gate.
const RECHECK_NS: u64 = 200_000;

impl<'a> Oracle<'a> {
    pub(super) fn new(bucket: Bucket<'a>, share: Share) -> Self {
        Self { bucket, own: (Word::default(), share), seen_ns: 0, open: true }
    }

    /// Charges what the card has worked. Returns when to ask again while this much is in flight; `None` if the launch
    /// may go.
    fn admits(&mut self, busy_ns: u64, in_flight_ns: u64, now: u64) -> Option<u64> {
        let own = Bucket::new(&self.own.0, self.own.1);
        let worked_ns = busy_ns - std::mem::replace(&mut self.seen_ns, busy_ns);
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let mut full_at = 0;
        let mut open = true;
        for bucket in [self.bucket, own] {
            // It began no later: what has flowed in since then counts, even beyond the bucket's capacity.
            bucket.charge_as_of(now.saturating_sub(worked_ns), worked_ns, now);
            let balance = bucket.balance(now).saturating_sub(signed(in_flight_ns));
            open &= balance >= if self.open { 1 } else { signed(bucket.quantum_ns()) };
            full_at = full_at.max(bucket.holds_at(bucket.quantum_ns(), now));
        }
        self.open = open;
        let recheck = now + if in_flight_ns > 0 { RECHECK_NS } else { 50 * RECHECK_NS };
        (!open).then(|| full_at.clamp(now + 1, recheck))
    }
}

impl World<'_> {
    /// Launches with the oracle's permission.
    pub(super) fn ask_oracle(&mut self, thread: usize, stream: usize, kernel: Kernel, called: u64) {
        let (now, setup, process) = (self.now, self.setup, self.threads[thread].process);
        let tenant = &mut self.processes[process];
        let number = tenant.streams[stream].card;
        let Place { oracle, waits, .. } = &mut tenant.places[number];
        let card = &self.cards[number];
        let busy_ns = card.busy_ns(process);
        let in_flight_ns = if card.holds(process) { 0 } else { card.queued_ns(process) };
        let until = oracle.as_mut().and_then(|oracle| oracle.admits(busy_ns, in_flight_ns, now));
        match until {
            Some(until) => {
                let (least, most) = setup.wake_ns;
                let late = self.dice.between(least, most);
                self.later(thread, until - now + late, State::Asking { stream, kernel, called });
            }
            None => {
                waits.push(now - called);
                let state = State::Admitted { stream, kernel, permit: None, prepaid: None };
                self.later(thread, setup.fast_ns, state);
            }
        }
    }
}
