//! Whose turn it was: what of the time between two moments the card worked for this process.
//!
//! A card goes round those who have work for it, a few milliseconds each, and an event pair holds the turns of the others
//! too. Who they are is known of those that tell: each process publishes, in its container's [card
//! page](crate::page), two sums, and looks at those of the others now and then.
//!
//! ```text
//! work       what it has had done, and has reserved for what is out        GPU ns
//! occupied   for how long it has had anything out                          ns
//! ```
//!
//! Between two looks a neighbour has been given what it had left to do, or half of the time that it was there, whichever
//! is less; and all of them together, and this process, what there was to give: the least demands in full, the rest in
//! equal parts. That is what turns of equal length come to, and only in the mean: an operation shorter than a turn had
//! the card to itself or waited for a whole turn. Who tells nothing is not seen, and then more is charged than was used,
//! never less; who tells of work that it does not have gives time away and gains none.

use std::collections::VecDeque;

use super::BIG_NS;

/// What a process tells the others of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// GPU nanoseconds: what it has had done, and what is reserved for what is out.
    pub work: u64,
    /// Nanoseconds for which it has had anything out; with [`OUT`] set, the time at which that would have begun if it
    /// had not been interrupted.
    pub occupied: u64,
}

/// Set while something is out.
const OUT: u64 = 1 << 63;

impl Told {
    /// Of a process that had work out for so long, and since then again.
    #[must_use]
    pub(super) const fn new(work: u64, occupied_ns: u64, out_since: Option<u64>) -> Self {
        let occupied = match out_since {
            Some(since) => OUT | since.saturating_sub(occupied_ns),
            None => occupied_ns & !OUT,
        };
        Self { work, occupied }
    }

    /// For how long it had anything out, by now.
    const fn occupied_ns(self, now: u64) -> u64 {
        if self.is_out() { now.saturating_sub(self.occupied & !OUT) } else { self.occupied }
    }

    const fn is_out(self) -> bool {
        self.occupied & OUT != 0
    }
}

/// The turns of this process on one device.
#[derive(Debug)]
pub(super) struct Turns {
    neighbours: Vec<Neighbour>,
    /// By time, how much of it had been this process's by then: points, in between which it goes straight.
    points: VecDeque<(u64, u64)>,
    looked_at: u64,
    /// For how long this process had had anything out then.
    occupied_ns: u64,
}

/// Another process on the device.
#[derive(Debug)]
struct Neighbour {
    key: u64,
    work: u64,
    occupied_ns: u64,
    /// What it has told of and not been given yet, as far as one knows.
    left_ns: u64,
    /// For how long it had anything out since the latest look.
    there_ns: u64,
    is_out: bool,
    seen_at: u64,
}

/// How long a turn is: what CUDA's driver asks for on cards since Volta.
const TURN_NS: u64 = 2_000_000;
/// Looking costs a few system calls for each neighbour.
const LOOK_NS: u64 = 500_000;
/// What is told late, or wrong, is not set against more than this.
const MOST_LEFT_NS: u64 = 10_000_000_000;
/// Nothing was ever taken to be out for so long that was not.
const OTHER_NS: u64 = 1_000_000_000;
const POINTS: usize = 1024;

impl Turns {
    pub(super) const fn new(now: u64) -> Self {
        let points = VecDeque::new();
        Self { neighbours: Vec::new(), points, looked_at: now, occupied_ns: 0 }
    }

    /// Whether it is time to look at the neighbours.
    pub(super) const fn is_look_due(&self, now: u64) -> bool {
        now.saturating_sub(self.looked_at) >= LOOK_NS
    }

    /// What the neighbours tell now, and what this process does.
    pub(super) fn look(&mut self, told: impl Iterator<Item = (u64, Told)>, own: Told, now: u64) {
        let passed = now.saturating_sub(self.looked_at);
        let occupied_ns = own.occupied_ns(now);
        let there = occupied_ns.saturating_sub(self.occupied_ns).min(passed);
        let seen_ns = occupied_ns.max(self.occupied_ns);
        for (key, told) in told {
            let at = self.neighbours.iter().position(|neighbour| neighbour.key == key);
            match at.and_then(|at| self.neighbours.get_mut(at)) {
                Some(neighbour) => neighbour.tells(told, passed, now),
                None => self.neighbours.push(Neighbour::new(key, told, now)),
            }
        }
        self.neighbours.retain(|neighbour| neighbour.seen_at == now);
        // First the time in which this process had nothing out, then that in which it had.
        self.give(passed - there, passed, false);
        let rest = self.give(there, passed, true);
        self.neighbours.iter_mut().for_each(Neighbour::settle);
        if !self.neighbours.is_empty() || !self.points.is_empty() {
            self.note(scaled(passed, rest, there), passed, now);
        }
        (self.looked_at, self.occupied_ns) = (now, seen_ns);
    }

    /// Gives the neighbours what there was of `ns` out of `passed`, and this process too if it was there; what is left.
    fn give(&mut self, ns: u64, passed: u64, is_there: bool) -> u64 {
        let own = u64::from(is_there);
        let wants = |neighbour: &Neighbour| {
            neighbour.left_ns.min(scaled(neighbour.there_ns, ns, passed) / (1 + own))
        };
        self.neighbours.sort_unstable_by_key(wants);
        let mut takers = self.neighbours.len() as u64 + own;
        let mut rest = ns;
        for neighbour in &mut self.neighbours {
            let given_ns = wants(neighbour).min(rest / takers.max(1));
            neighbour.left_ns -= given_ns;
            rest -= given_ns;
            takers -= 1;
        }
        rest
    }

    /// What of the time from `start` to `end` was this process's.
    pub(super) fn of(&self, start: u64, end: u64) -> u64 {
        if self.points.is_empty() {
            end.saturating_sub(start)
        } else {
            self.until(end).saturating_sub(self.until(start))
        }
    }

    /// What an operation took of the device's time. A short one had it to itself, unless it is an outlier. A long one that
    /// this process had waited for had a whole turn first.
    pub(super) fn own(&self, start: u64, end: u64, is_first: bool) -> u64 {
        let took = end.saturating_sub(start);
        if took < BIG_NS || is_first && took <= TURN_NS {
            return took;
        }
        let own = self.of(start, end);
        let first = if is_first { scaled(TURN_NS / 2, took.saturating_sub(own), took) } else { 0 };
        own.saturating_add(first).min(took)
    }

    /// What an operation takes by itself, as far as one tells: one that is no longer than a turn had nobody else's in it,
    /// more likely than not.
    pub(super) fn alone(&self, start: u64, end: u64, is_first: bool) -> u64 {
        let took = end.saturating_sub(start);
        if took <= TURN_NS { took } else { self.own(start, end, is_first) }
    }

    /// Whether the others' turns may be most of what lies between two moments.
    pub(super) fn explain(&self, start: u64, end: u64) -> bool {
        let took = end.saturating_sub(start);
        self.of(start, end) < took / 8 * 7
    }

    /// What of `ns` between them was.
    pub(super) fn part(&self, ns: u64, start: u64, end: u64) -> u64 {
        let passed = end.saturating_sub(start);
        scaled(ns, self.of(start, end), passed).min(ns)
    }

    fn note(&mut self, own_ns: u64, passed: u64, now: u64) {
        if self.points.is_empty() {
            self.points.push_back((now.saturating_sub(passed), now));
        }
        let before = self.points.back().map_or(now, |(_, own)| *own);
        if self.points.len() >= POINTS {
            // What is long ago is told less exactly.
            let mut place = 0;
            self.points.retain(|_| {
                place += 1;
                place > POINTS / 2 || place % 2 == 1
            });
        }
        self.points.push_back((now, before.saturating_add(own_ns)));
    }

    /// How much had been this process's by then.
    fn until(&self, at: u64) -> u64 {
        let after = self.points.partition_point(|(time, _)| *time < at);
        let point = |place: usize| self.points.get(place).copied().unwrap_or_default();
        if after == 0 {
            let (time, own) = point(0);
            return own.saturating_sub(time.saturating_sub(at));
        }
        // Beyond the latest look it goes on as it did up to it.
        let last = self.points.len() - 1;
        let (from, to) =
            if after > last { (last.saturating_sub(1), last) } else { (after - 1, after) };
        let ((time, own), (until, own_until)) = (point(from), point(to));
        let (passed, gained) = (until.saturating_sub(time), own_until.saturating_sub(own));
        own.saturating_add(scaled(at.saturating_sub(time), gained, passed))
    }
}

/// `ns`, as much of it as `part` is of `whole`; all of it if that is nothing.
pub(super) fn scaled(ns: u64, part: u64, whole: u64) -> u64 {
    let scaled = (u128::from(ns) * u128::from(part)).checked_div(whole.into());
    scaled.map_or(ns, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
}

impl Neighbour {
    /// What it has out already nobody knows: it is taken to be nothing.
    const fn new(key: u64, told: Told, now: u64) -> Self {
        let (work, occupied_ns, is_out) = (told.work, told.occupied_ns(now), told.is_out());
        Self { key, work, occupied_ns, left_ns: 0, there_ns: 0, is_out, seen_at: now }
    }

    fn tells(&mut self, told: Told, passed: u64, now: u64) {
        let occupied_ns = told.occupied_ns(now);
        self.there_ns = occupied_ns.saturating_sub(self.occupied_ns).min(passed);
        let more = told.work.wrapping_sub(self.work).cast_signed();
        self.left_ns = self.left_ns.saturating_add_signed(more).min(MOST_LEFT_NS);
        // What was too much for the time being is not told again. Less by far is another process in the same seat.
        let is_other = self.occupied_ns.saturating_sub(occupied_ns) > OTHER_NS;
        self.occupied_ns = if is_other { occupied_ns } else { self.occupied_ns.max(occupied_ns) };
        self.work = told.work;
        (self.is_out, self.seen_at) = (told.is_out(), now);
    }

    /// What it wanted and had nothing out for any more, it was given while nobody looked.
    fn settle(&mut self) {
        if !self.is_out {
            self.left_ns = 0;
        }
    }
}
