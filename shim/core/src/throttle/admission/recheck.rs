//! When to ask again about a launch that is held back.

use super::{Admission, YIELD_NS};
use crate::throttle::{charging::Charging, timeline::Timeline};

/// While work is in flight, its settlement can open the bucket before the computed time. So can others that become
/// idle, if their time is lent.
const RECHECK_NS: u64 = 1_000_000;
/// Without a guarantee there is nothing but what others leave: their reports are read this often.
const RECHECK_LENT_NS: u64 = 500_000;
/// So can the first measurement of a function, and much sooner.
const RECHECK_UNMEASURED_NS: u64 = 200_000;
/// A collective of another device can arrive at any moment, and spins until it is noticed.
const RECHECK_GANG_NS: u64 = 200_000;
/// So can work of other processes.
const RECHECK_IDLE_NS: u64 = 10_000_000;
/// No shorter sleep is worth it: by default the kernel adds as much to each (`PR_SET_TIMERSLACK` in prctl(2)).
const SLEEP_NS: u64 = 50_000;

impl Admission<'_> {
    /// Returns when to ask again about a launch; `second_ns` says for how long it has been held back because another
    /// launch of unknown length is in flight.
    pub(super) fn asks_again<E>(
        &self,
        second_ns: Option<u64>,
        now: u64,
        timeline: &Timeline<E>,
        charging: &Charging,
    ) -> u64 {
        // The end of one of its own a process sees at once: it looks as long as there is room for more work.
        if let Some(held_ns) = second_ns.filter(|_| self.unmeasured == 0) {
            let ns = if held_ns < SLEEP_NS { 1 } else { (held_ns / 4).min(RECHECK_UNMEASURED_NS) };
            return now.saturating_add(ns);
        }
        // The bucket holds enough while a turn is left to another process.
        let yields_until = self.yields_since.map_or(0, |since| since.saturating_add(YIELD_NS));
        let until = self.recheck_at(now, timeline, charging);
        until.max(yields_until.min(now.saturating_add(RECHECK_UNMEASURED_NS)))
    }

    fn recheck_at<E>(&self, now: u64, timeline: &Timeline<E>, charging: &Charging) -> u64 {
        let recheck = match (self.gang.meets(now), timeline.has_pending()) {
            (true, _) => RECHECK_GANG_NS,
            (false, _) if self.unmeasured > 0 => RECHECK_UNMEASURED_NS,
            (false, false) if self.limit.guaranteed().is_none() => RECHECK_LENT_NS,
            (false, false) if self.limit.borrows() => RECHECK_NS,
            (false, false) => RECHECK_IDLE_NS,
            (false, true) => RECHECK_NS,
        };
        let enough = if now < self.reopens_at { self.shares.quantum_ns() } else { 1 };
        // Of the little that may be borrowed at once, what comes back is soon a large part.
        let back = match self.lent() {
            Some(_) => self.shares.takes_up(charging.overlap_of(self.reserved_ns)),
            None => 0,
        };
        let holds_at = self.shares.holds_at(enough, now).saturating_sub(back);
        let out_of_debt_at = holds_at.max(self.gang.out_of_debt_at(now));
        out_of_debt_at.clamp(now + 1, now.saturating_add(recheck))
    }
}
