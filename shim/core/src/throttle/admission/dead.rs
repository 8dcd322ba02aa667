//! What dead processes of a container owe for work that they had in flight.
//!
//! When one died is not known: the process that finds out may have begun an hour later. So a thread of each process notes,
//! each hundredth of a second, that it lives, and up to then its work was in flight. Without that a program that is killed
//! at 50 % and started again 20 s later waited for 20 s. It may have died just before the next note: it owes that long too.

use crate::throttle::timeline::late::WATCH_NS;

/// The work that a dead process had in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Up to when it was paid for.
    pub paid_until: u64,
    /// When the process was last known to live; `None` if no thread of it saw to that.
    pub alive_at: Option<u64>,
}

/// The most that a dead process may owe: it spares a program that hung, and is started again, from waiting for hours.
const MOST_NS: u64 = 60_000_000_000;

impl Unfinished {
    /// Returns how much is owed.
    #[must_use]
    pub fn owed(self, now: u64) -> u64 {
        let died_at = self.alive_at.map(|alive_at| alive_at.saturating_add(WATCH_NS));
        let until = died_at.unwrap_or(now).min(now);
        until.saturating_sub(self.paid_until).min(MOST_NS)
    }
}
