//! The time for which the processes of a container have been charged for launches of which nothing was measured before.
//!
//! Of such a launch only its duration is known, and if processes begin together, each duration contains the others'
//! work. Reports say nothing of how long unmeasured work takes, and may be left behind by a process that never calls
//! the driver again, so nothing is deducted for them within a container. Instead one word per device says for which
//! time the bucket of all has been charged in full: a later duration is charged for the rest of its time. Together they
//! are charged for the time in which at least one had such work, never for less.
//!
//! ```text
//! Word   end of that time >> 10:44   its length >> 10:20      zero: none so far
//! ```
//!
//! Only one stretch of time is remembered, and at most a second of it. What is forgotten is charged again. Without the
//! word, `T4 4 short processes at a time, 1 x 20 ms, 30` gets half as much.

use crate::sync::Word;

/// Times are kept in units of 2^10 ns.
const UNIT_BITS: u32 = 10;
const LENGTH_BITS: u32 = 20;
const LONGEST: u64 = (1 << LENGTH_BITS) - 1;

/// Adds the time from `start` to `end`, and returns how much of it had not been charged, in ns.
pub(super) fn claim(word: &Word, start: u64, end: u64) -> u64 {
    let length_ns = end.saturating_sub(start);
    // Rounded inwards: an overlap is never larger than it was.
    let (first, last) = (start.div_ceil(1 << UNIT_BITS), end >> UNIT_BITS);
    let mut before = word.load();
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
        match word.replace(before, after) {
            Ok(()) => return length_ns.saturating_sub(overlap << UNIT_BITS),
            Err(found) => before = found,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn close(found: u64, expected: u64) {
        assert!(found.abs_diff(expected) <= 4 << UNIT_BITS, "{found}, not {expected}");
    }

    #[test]
    fn the_same_time_is_charged_once() {
        let word = Word::default();
        close(claim(&word, 100 * MS, 400 * MS), 300 * MS);
        close(claim(&word, 100 * MS, 400 * MS), 0);
        close(claim(&word, 200 * MS, 450 * MS), 50 * MS);
        close(claim(&word, 50 * MS, 460 * MS), 60 * MS);
        close(claim(&word, 900 * MS, 901 * MS), MS);
        close(claim(&word, 50 * MS, 460 * MS), 410 * MS);
    }

    #[test]
    fn a_time_to_come_does_not_cover_the_present() {
        let word = Word::default();
        claim(&word, 5_000 * MS, 5_100 * MS);
        close(claim(&word, 100 * MS, 400 * MS), 300 * MS);
    }

    proptest! {
        /// All of the time is charged, whatever the order and the lengths.
        #[test]
        fn no_less_than_the_union_is_charged(
            spans in prop::collection::vec((1_u64..3_000, 1_u64..1_500), 1..20),
        ) {
            let word = Word::default();
            let charged: u64 =
                spans.iter().map(|(start, ms)| claim(&word, start * MS, (start + ms) * MS)).sum();
            let covered = |ms: &u64| spans.iter().any(|(from, length)| (*from..from + length).contains(ms));
            let union = (0..4_500).filter(covered).count() as u64 * MS;
            prop_assert!(charged >= union, "{charged} of {union}");
        }
    }
}
