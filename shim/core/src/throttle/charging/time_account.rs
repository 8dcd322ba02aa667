//! What the processes of a container are charged together: no more than the time that they covered.
//!
//! The duration of a launch contains the work of others that it waited for. What other containers had of it is known
//! from their reports. For the processes of one container no report is needed, since they pay out of one bucket: a few
//! words say which time is covered already, and a later duration adds the rest of its time. Another word holds by how
//! much the covered time is ahead of what was charged: each process charges what its own measurements say
//! (see [`settlement`](super::settlement)), as far as covered time allows.
//!
//! ```text
//! covered   end of a stretch of that time >> 10:44   its length >> 10:20      zero: none; ends are modulo 208 days
//! surplus   covered time less charges, in ns, signed
//! ```
//!
//! [`STRETCHES`] stretches are remembered, and at most a second of each: what is forgotten is covered again. The
//! surplus is bounded, so that idle time that looked covered pays for nothing much later.
//!
//! Without the account, `T3 4 of a budget, 10 us, waited for, 30` gets a third less, and
//! `T4 8 short processes at a time, 10 x 20 ms, 30` too. With three stretches,
//! `T10 2 of 1 in 100 takes 9 ms, 8 waited for, 30` gets 24, since short spans make the others' time count twice.

use crate::sync::Word;

/// The words of a device and container.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeAccount<'a> {
    surplus: &'a Word,
    covered: [&'a Word; STRETCHES],
}

/// How many stretches of covered time are remembered.
const STRETCHES: usize = 6;
/// How many words there are.
pub(crate) const WORDS: usize = 1 + STRETCHES;
/// By how much one sum may be ahead of the other.
const MOST_AHEAD_NS: i64 = 20_000_000;

/// A stretch of covered time, in units of 2^10 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stretch {
    from: u64,
    until: u64,
}

const UNIT_BITS: u32 = 10;
const LENGTH_BITS: u32 = 20;
const LONGEST: u64 = (1 << LENGTH_BITS) - 1;
/// No stretch ends farther in the future: 70 minutes. One that seems to is more than a hundred days old.
const FARTHEST: i64 = 1 << 32;

impl Stretch {
    /// Rounded to the nearest unit: rounded inwards, overlaps of 10 us would be short by a tenth.
    fn of(start_ns: u64, end_ns: u64) -> Self {
        let [from, until] =
            [start_ns, end_ns].map(|at| at.saturating_add(1 << (UNIT_BITS - 1)) >> UNIT_BITS);
        Self { from, until }
    }

    /// The stretch of a word, about as old as `near`: of the times that its end can stand for, the closest one.
    fn from_word(word: u64, near: u64) -> Self {
        let ahead = word.wrapping_sub(near << LENGTH_BITS).cast_signed() >> LENGTH_BITS;
        let until = near.saturating_add_signed(ahead);
        if word == 0 || ahead > FARTHEST {
            return Self::default();
        }
        Self { from: until.saturating_sub(word & LONGEST), until }
    }

    fn word(self) -> u64 {
        self.until << LENGTH_BITS | self.length().min(LONGEST)
    }

    const fn length(self) -> u64 {
        self.until.saturating_sub(self.from)
    }

    fn overlap(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), until: self.until.min(other.until) }
    }

    fn meets(self, other: Self) -> bool {
        self.from <= other.until && other.from <= self.until
    }

    fn joined(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), until: self.until.max(other.until) }
    }

    fn contains(self, other: Self) -> bool {
        self.joined(other) == self
    }
}

/// Returns how much of `span` the stretches cover together.
fn covered_of(span: Stretch, mut stretches: [Stretch; STRETCHES]) -> u64 {
    stretches.sort_unstable_by_key(|stretch| stretch.from);
    let mut rest = span;
    let mut covered = 0;
    for stretch in stretches {
        let overlap = rest.overlap(stretch);
        covered += overlap.length();
        rest.from = rest.from.max(stretch.until.min(span.until));
    }
    covered
}

/// Returns which of the stretches to replace, and by what, now that `span` is covered too.
fn add(span: Stretch, stretches: [Stretch; STRETCHES]) -> Option<(usize, Stretch)> {
    let joined = (stretches.iter().filter(|stretch| stretch.meets(span)))
        .fold(span, |joined, stretch| joined.joined(*stretch));
    if stretches.contains(&joined) {
        return None;
    }
    let latest = stretches.iter().fold(joined.until, |latest, stretch| latest.max(stretch.until));
    // A span as long as the stretch that overlaps it ends no later than its length after it.
    let age = |stretch: &Stretch| {
        let length = u128::from(stretch.length().max(1));
        (u128::from(latest - stretch.until) << LENGTH_BITS) / length
    };
    let place = |stretch: &Stretch| match joined.contains(*stretch) {
        true => u128::MAX,
        false => age(stretch),
    };
    let (place, stretch) =
        stretches.iter().enumerate().max_by_key(|(_, stretch)| place(stretch))?;
    (joined.contains(*stretch) || age(stretch) >= age(&joined)).then_some((place, joined))
}

impl<'a> TimeAccount<'a> {
    pub(crate) const fn new([surplus, covered @ ..]: [&'a Word; WORDS]) -> Self {
        Self { surplus, covered }
    }

    /// Covers the time from `start` to `end`. Returns how much of it was not covered before, in ns.
    pub(crate) fn cover(self, start: u64, end: u64) -> u64 {
        self.cover_the_end(start, start, end)
    }

    /// Covers the time from `from` to `end` alone. Returns how much of that since `start`, which is no later, was not covered
    /// before, in ns.
    pub(crate) fn cover_the_end(self, start: u64, from: u64, end: u64) -> u64 {
        let (span, covers) = (Stretch::of(start, end), Stretch::of(from, end));
        loop {
            let before = self.covered.map(Word::load);
            let stretches = before.map(|word| Stretch::from_word(word, span.until));
            let covered = covered_of(span, stretches);
            let is_noted = add(covers, stretches).is_none_or(|(place, stretch)| {
                let word = self.covered.get(place).zip(before.get(place));
                word.is_none_or(|(word, before)| word.replace(*before, stretch.word()).is_ok())
            });
            if is_noted {
                return end.saturating_sub(start).saturating_sub(covered << UNIT_BITS);
            }
        }
    }

    /// Forgets which time is covered: the clock has changed.
    pub(crate) fn forget(self) {
        for word in self.covered {
            word.store(0);
        }
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
    struct Words([Word; WORDS]);

    impl Words {
        fn account(&self) -> TimeAccount<'_> {
            TimeAccount::new(self.0.each_ref())
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
        close(account.cover(50 * MS, 901 * MS), 440 * MS);
    }

    /// The rest of a span may be time in which its stream was idle: that is another one's.
    #[test]
    fn of_a_span_its_end_alone_can_be_covered() {
        let words = Words::default();
        let account = words.account();
        close(account.cover_the_end(100 * MS, 190 * MS, 200 * MS), 100 * MS);
        close(account.cover(100 * MS, 200 * MS), 90 * MS);
        close(account.cover_the_end(150 * MS, 250 * MS, 260 * MS), 60 * MS);
    }

    /// A sibling launches a little now and then, apart from what the others cover.
    #[test]
    fn short_spans_do_not_make_long_ones_count_twice() {
        let words = Words::default();
        let account = words.account();
        close(account.cover(100 * MS, 200 * MS), 100 * MS);
        for at in 201..220 {
            close(account.cover(at * MS, at * MS + MS / 10), MS / 10);
        }
        close(account.cover(100 * MS, 200 * MS), 0);
    }

    /// A sibling waits for others' turns, with pauses between, while a launch of this process is under way.
    #[test]
    fn spans_with_pauses_between_do_not_make_a_long_one_count_twice() {
        let words = Words::default();
        let account = words.account();
        for at in 0..5 {
            close(
                account.cover((100 + at * 2) * MS, (102 + at * 2) * MS - MS / 20),
                2 * MS - MS / 20,
            );
        }
        close(account.cover(100 * MS, 110 * MS), MS / 4);
    }

    /// After a stretch no span that overlaps it is expected for longer than its length.
    #[test]
    fn long_stretches_are_forgotten_once_they_are_old() {
        let words = Words::default();
        let account = words.account();
        for at in [1_000, 2_000, 3_000] {
            account.cover(at * MS, (at + 100) * MS);
        }
        for at in 8_000..8_003 {
            account.cover(at * MS, at * MS + MS / 10);
        }
        close(account.cover(8_001 * MS, 8_002 * MS), MS - MS / 10);
    }

    /// A stretch has room for 208 days.
    #[test]
    fn the_same_time_is_covered_once_however_long_the_machine_runs() {
        const DAY: u64 = 86_400_000 * MS;
        for day in [207, 208, 209, 300, 416, 417, 1_000, 5_000] {
            let words = Words::default();
            let account = words.account();
            for hour in 0..50 {
                let start = day * DAY + hour * DAY / 24;
                close(account.cover(start, start + 100 * MS), 100 * MS);
                close(account.cover(start, start + 100 * MS), 0);
                close(account.cover(start + 50 * MS, start + 150 * MS), 50 * MS);
            }
        }
    }

    /// After 150 idle days what was covered seems to end 58 days from now.
    #[test]
    fn what_was_covered_long_ago_keeps_no_place() {
        const DAY: u64 = 86_400_000 * MS;
        let words = Words::default();
        let account = words.account();
        for hour in 0..3 {
            account.cover(10 * DAY + hour * DAY / 24, 10 * DAY + hour * DAY / 24 + 100 * MS);
        }
        close(account.cover(160 * DAY, 160 * DAY + 100 * MS), 100 * MS);
        close(account.cover(160 * DAY, 160 * DAY + 100 * MS), 0);
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
            words.0[0].store(written.unwrap_or(0));
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
