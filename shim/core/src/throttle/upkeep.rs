//! What a process does around its launches on a device besides asking the meter, and how often: the part of the launch
//! protocol that the shim and the simulator share.
//!
//! ```text
//! before a launch asks the meter
//!     charge the unfinished work of dead processes of the container        at most every 100 ms
//!     read the reports of other processes: own container                   when the meter says so
//!                                          other containers: their files   the same, if a launch was held back lately
//! a launch, a look at what is in flight, a call that waits for work
//!     publish until when the container is in debt                          at most every 5 ms
//! a launch is held back
//!     look for processes on the device that publish no report, and work    at most every 5 s, at first every second
//! a call that waits for work has returned
//!     read all reports, settle
//! ```
//!
//! All of this takes time, and none of it is worth much while the share is not used up.

use crate::sync::{Counter, Word};

/// When a process last did what, on one device. Its threads share it.
#[derive(Debug, Default)]
pub struct Upkeep {
    dead: Interval,
    unreported: Interval,
    /// How often they were looked for.
    questions: Counter,
    debt: Interval,
    /// When a launch was last held back.
    held_back_at: Counter,
}

/// How often dead processes of the container, and processes without a report, are looked for. This takes milliseconds
/// of a wait.
const DEAD_NS: u64 = 100_000_000;
const UNREPORTED_NS: u64 = 5_000_000_000;
/// The same for the first times: whether they work shows in the time between two, at the latest between three.
const FIRST_UNREPORTED_NS: u64 = 1_000_000_000;
const FIRST_TIMES: u64 = 4;
/// A container that ends owes what it was in debt at most this long ago, and what it has used since.
const DEBT_NS: u64 = 5_000_000;
/// After a launch was held back, others are expected to be for this long.
const HELD_BACK_NS: u64 = 1_000_000_000;

impl Upkeep {
    /// Returns whether to look for work that dead processes of the container left unfinished. A program that launches
    /// a long kernel and is killed has paid only what was reserved.
    #[must_use]
    pub fn is_inheriting_due(&self, now: u64) -> bool {
        self.dead.is_due(now, DEAD_NS)
    }

    /// Returns whether to publish until when the container is in debt.
    #[must_use]
    pub fn is_debt_due(&self, now: u64) -> bool {
        self.debt.is_due(now, DEBT_NS)
    }

    /// Records that a launch is held back. Returns whether to look for processes that publish no report.
    #[must_use]
    pub fn held_back(&self, now: u64) -> bool {
        self.held_back_at.store(now);
        let questions = self.questions.load();
        let every_ns = if questions.saturating_add(1) < FIRST_TIMES {
            FIRST_UNREPORTED_NS
        } else {
            UNREPORTED_NS
        };
        let is_due = self.unreported.is_due(now, every_ns);
        if is_due {
            self.questions.store(questions.saturating_add(1));
        }
        is_due
    }

    /// Returns whether to spend time on the reports of other containers. A launch does so only if launches have been
    /// held back lately: while the share is not used up, it does not matter whose turns are charged.
    #[must_use]
    pub fn may_take_time(&self, now: u64, is_launch: bool) -> bool {
        !is_launch || now.saturating_sub(self.held_back_at.load()) < HELD_BACK_NS
    }
}

/// Looks at the reports of others that take no more than a part of the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    rests_until: u64,
    took_ns: u64,
}

/// The time between two looks, as a multiple of the time that looks take.
const REST: u64 = 50;

impl Looks {
    /// Returns whether the next look may begin.
    #[must_use]
    pub const fn may_begin(&self, now: u64) -> bool {
        now >= self.rests_until
    }

    /// Records a look. A single long one says nothing: the thread may have lost the processor.
    pub fn looked(&mut self, began: u64, now: u64) {
        let took_ns = now.saturating_sub(began);
        let usual_ns = took_ns.min(std::mem::replace(&mut self.took_ns, took_ns));
        self.rests_until = now.saturating_add(usual_ns.saturating_mul(REST));
    }
}

/// When an action is next due. Zero: at once, as when a process comes to a device for the first time.
#[derive(Debug, Default)]
struct Interval(Word);

impl Interval {
    /// Returns whether the action is due and the calling thread is the one to perform it.
    fn is_due(&self, now: u64, every_ns: u64) -> bool {
        let due = self.0.load();
        now >= due && self.0.replace(due, now.saturating_add(every_ns)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn each_action_is_due_once_in_its_interval() {
        let upkeep = Upkeep::default();
        let now = 1_000 * MS;
        assert!(upkeep.is_inheriting_due(now) && !upkeep.is_inheriting_due(now + 99 * MS));
        assert!(upkeep.is_inheriting_due(now + 100 * MS));
        assert!(upkeep.held_back(now) && !upkeep.held_back(now + 999 * MS));
        assert!(upkeep.held_back(now + 1_000 * MS) && upkeep.held_back(now + 2_000 * MS));
        assert!(upkeep.held_back(now + 3_000 * MS) && !upkeep.held_back(now + 7_999 * MS));
        assert!(upkeep.held_back(now + 8_000 * MS) && !upkeep.held_back(now + 12_999 * MS));
        assert!(upkeep.is_debt_due(now) && !upkeep.is_debt_due(now + 4 * MS));
        assert!(upkeep.is_debt_due(now + 5 * MS));
    }

    #[test]
    fn a_launch_takes_time_only_if_one_was_held_back_lately() {
        let upkeep = Upkeep::default();
        let now = 10_000 * MS;
        assert!(!upkeep.may_take_time(now, true) && upkeep.may_take_time(now, false));
        let _ = upkeep.held_back(now);
        assert!(upkeep.may_take_time(now + 999 * MS, true));
        assert!(!upkeep.may_take_time(now + 1_000 * MS, true));
    }

    #[test]
    fn looks_rest_for_a_multiple_of_what_they_usually_take() {
        let mut looks = Looks::default();
        assert!(looks.may_begin(0));
        looks.looked(0, MS);
        assert!(looks.may_begin(MS), "the first one says nothing");
        looks.looked(10 * MS, 11 * MS);
        assert!(!looks.may_begin(60 * MS) && looks.may_begin(61 * MS));
    }
}
