//! What the processes of a container are charged together: no more than the time that they covered.
//!
//! The duration of a launch contains the work of others that it waited for. What other containers had of it is known
//! from their reports. For the processes of one container no report is needed, since they pay out of one bucket: one
//! word says which time is covered already, and a later duration adds the rest of its time. Another word holds by how
//! much the covered time is ahead of what was charged: each process charges what its own measurements say
//! (see [`settlement`](super::settlement)), as far as covered time allows.
//!
//! ```text
//! covered   end of that time >> 10:44   its length >> 10:20      zero: none so far
//! surplus   covered time less charges, in ns, signed
//! ```
//!
//! Only one stretch of time is remembered, and at most a second of it: what is forgotten is covered again. The surplus
//! is bounded, so that idle time that looked covered pays for nothing much later.
//!
//! Without the account, `T3 4 of a budget, 10 us, waited for, 30` gets a third less, and
//! `T4 8 short processes at a time, 10 x 20 ms, 30` too.

use crate::sync::Word;

/// The two words of a device and container.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeAccount<'a> {
    covered: &'a Word,
    surplus: &'a Word,
}

/// Times are kept in units of 2^10 ns.
const UNIT_BITS: u32 = 10;
const LENGTH_BITS: u32 = 20;
const LONGEST: u64 = (1 << LENGTH_BITS) - 1;
/// By how much one sum may be ahead of the other.
const MOST_AHEAD_NS: i64 = 20_000_000;

impl<'a> TimeAccount<'a> {
    pub(crate) const fn new(covered: &'a Word, surplus: &'a Word) -> Self {
        Self { covered, surplus }
    }

    /// Covers the time from `start` to `end`. Returns how much of it was not covered before, in ns.
    pub(crate) fn cover(self, start: u64, end: u64) -> u64 {
        let length_ns = end.saturating_sub(start);
        // Rounded to the nearest: rounded inwards, overlaps of 10 us would be short by a tenth.
        let [first, last] =
            [start, end].map(|at| at.saturating_add(1 << (UNIT_BITS - 1)) >> UNIT_BITS);
        let mut before = self.covered.load();
        loop {
            let (until, length) = (before >> LENGTH_BITS, before & LONGEST);
            let from = until.saturating_sub(length);
            let overlap = until.min(last).saturating_sub(from.max(first));
            let meets = first <= until && from <= last;
            let (from, until) = match (meets, last > until) {
                (true, _) => (from.min(first), until.max(last)),
                (false, true) => (first, last),
                (false, false) => (from, until),
            };
            let after = until << LENGTH_BITS | until.saturating_sub(from).min(LONGEST);
            match self.covered.replace(before, after) {
                Ok(()) => return length_ns.saturating_sub(overlap << UNIT_BITS),
                Err(found) => before = found,
            }
        }
    }

    /// Forgets which time is covered: the clock has changed.
    pub(crate) fn forget(self) {
        self.covered.store(0);
    }

    /// Adds to what the processes would be charged by themselves, and to the covered time. Returns by how much the smaller
    /// sum grew, in ns.
    pub(crate) fn charge(self, apart_ns: u64, covered_ns: u64) -> u64 {
        let bounded = |ns: i64| ns.clamp(-MOST_AHEAD_NS, MOST_AHEAD_NS);
        let mut before = self.surplus.load();
        loop {
            let was = bounded(before.cast_signed());
            let is = was.saturating_add_unsigned(covered_ns).saturating_sub_unsigned(apart_ns);
            // The smaller sum is the first one, less by how much the covered time is behind it.
            let (was_behind, is_behind) = (was.min(0).unsigned_abs(), is.min(0).unsigned_abs());
            let due = apart_ns.saturating_add(was_behind).saturating_sub(is_behind);
            match self.surplus.replace(before, bounded(is).cast_unsigned()) {
                Ok(()) => return due,
                Err(found) => before = found,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    /// The words of an account.
    #[derive(Default)]
    struct Words([Word; 2]);

    impl Words {
        fn account(&self) -> TimeAccount<'_> {
            let [covered, surplus] = &self.0;
            TimeAccount::new(covered, surplus)
        }
    }

    fn close(found: u64, expected: u64) {
        assert!(found.abs_diff(expected) <= 4 << UNIT_BITS, "{found}, not {expected}");
    }

    #[test]
    fn the_same_time_is_covered_once() {
        let words = Words::default();
        let account = words.account();
        close(account.cover(100 * MS, 400 * MS), 300 * MS);
        close(account.cover(100 * MS, 400 * MS), 0);
        close(account.cover(200 * MS, 450 * MS), 50 * MS);
        close(account.cover(50 * MS, 460 * MS), 60 * MS);
        close(account.cover(900 * MS, 901 * MS), MS);
        close(account.cover(50 * MS, 460 * MS), 410 * MS);
    }

    #[test]
    fn a_time_to_come_does_not_cover_the_present() {
        let words = Words::default();
        words.account().cover(5_000 * MS, 5_100 * MS);
        close(words.account().cover(100 * MS, 400 * MS), 300 * MS);
    }

    #[test]
    fn the_sums_are_compared_not_their_pieces() {
        let words = Words::default();
        let account = words.account();
        assert_eq!(account.charge(5 * MS, MS), MS);
        assert_eq!(account.charge(MS, 6 * MS), 5 * MS);
        assert_eq!(account.charge(MS, 0), MS);
        assert_eq!(account.charge(MS, 0), 0);
    }

    #[test]
    fn a_sum_that_is_far_ahead_is_forgotten() {
        let words = Words::default();
        let account = words.account();
        assert_eq!(account.charge(0, 1_000 * MS), 0);
        assert_eq!(account.charge(1_000 * MS, 0), MOST_AHEAD_NS.unsigned_abs());
        assert_eq!(account.charge(0, 1_000 * MS), MOST_AHEAD_NS.unsigned_abs());
    }

    proptest! {
        /// All of the time is covered, whatever the order and the lengths.
        #[test]
        fn no_less_than_the_union_is_covered(
            spans in prop::collection::vec((1_u64..3_000, 1_u64..1_500), 1..20),
        ) {
            let words = Words::default();
            let cover = |(start, ms): &(u64, u64)| words.account().cover(start * MS, (start + ms) * MS);
            let sum: u64 = spans.iter().map(cover).sum();
            let covered = |ms: &u64| spans.iter().any(|(from, length)| (*from..from + length).contains(ms));
            let union = (0..4_500).filter(covered).count() as u64 * MS;
            // Each is rounded by a unit at most.
            prop_assert!(sum + ((spans.len() as u64 * 2) << UNIT_BITS) >= union, "{sum} of {union}");
        }

        /// As long as neither is far ahead, the smaller of the sums is charged, whatever a container wrote before.
        #[test]
        fn the_smaller_sum_is_charged(
            pieces in prop::collection::vec((0_u64..MS, 0_u64..MS), 1..20),
            written in prop::option::of(any::<u64>()),
        ) {
            let words = Words::default();
            words.0[1].store(written.unwrap_or(0));
            let due: u64 = pieces.iter().map(|(work, covered)| words.account().charge(*work, *covered)).sum();
            let work: u64 = pieces.iter().map(|(work, _)| work).sum();
            let covered: u64 = pieces.iter().map(|(_, covered)| covered).sum();
            let most = MOST_AHEAD_NS.unsigned_abs();
            match written {
                None => prop_assert_eq!(due, work.min(covered)),
                Some(_) => prop_assert!(due <= work + most && due + most >= work.min(covered)),
            }
        }
    }
}
