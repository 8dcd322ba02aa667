//! A gate that knows what each kernel takes, and charges what the card worked: what a share can come to at most.
//!
//! It holds launches back as the meter does, in turns of a quantum out of the same bucket, with the same late wake-ups;
//! but it needs no events, no estimates and no pages. What it cannot get out of a card for a program nobody can, and a
//! meter is measured by it. Beside a stream that is held the bucket alone decides.

use super::thread::State;
use super::{Place, World};
use crate::simulator::program::Kernel;
use gpucap_core::throttle::Bucket;

/// The gate of one process on one card.
pub(super) struct Oracle<'a> {
    bucket: Bucket<'a>,
    /// What of the card's time it has charged.
    seen_ns: u64,
    open: bool,
}

/// While its work is out, what becomes of that opens the gate.
const RECHECK_NS: u64 = 200_000;

impl<'a> Oracle<'a> {
    pub(super) const fn new(bucket: Bucket<'a>) -> Self {
        Self { bucket, seen_ns: 0, open: true }
    }

    /// Charges what the card has worked. When to ask again, while so much is out; `None` if the launch may go.
    fn admits(&mut self, busy_ns: u64, out_ns: u64, now: u64) -> Option<u64> {
        self.bucket.charge(busy_ns - self.seen_ns, now);
        self.seen_ns = busy_ns;
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let level = self.bucket.level(now).saturating_sub(signed(out_ns));
        let enough = if self.open { 1 } else { signed(self.bucket.quantum_ns()) };
        self.open = level >= enough;
        let recheck = now + if out_ns > 0 { RECHECK_NS } else { 50 * RECHECK_NS };
        let full_at = self.bucket.holds_at(self.bucket.quantum_ns(), now);
        (!self.open).then(|| full_at.clamp(now + 1, recheck))
    }
}

impl World<'_> {
    /// A launch by the oracle's leave.
    pub(super) fn ask_oracle(&mut self, thread: usize, stream: usize, kernel: Kernel, called: u64) {
        let (now, setup, process) = (self.now, self.setup, self.threads[thread].process);
        let tenant = &mut self.processes[process];
        let number = tenant.streams[stream].card;
        let Place { oracle, waits, .. } = &mut tenant.places[number];
        let card = &self.cards[number];
        let busy_ns = card.busy_ns(process);
        let out_ns = if card.holds(process) { 0 } else { card.queued_ns(process) };
        let until = oracle.as_mut().and_then(|oracle| oracle.admits(busy_ns, out_ns, now));
        match until {
            Some(until) => {
                let (least, most) = setup.wake_ns;
                let late = self.dice.between(least, most);
                self.later(thread, until - now + late, State::Asking { stream, kernel, called });
            }
            None => {
                waits.push(now - called);
                let state = State::Admitted { stream, kernel, permit: None };
                self.later(thread, setup.fast_ns, state);
            }
        }
    }
}
