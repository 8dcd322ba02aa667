//! Which launches take the same time each time, whatever else is on the device.
//!
//! Beside peers a measurement gives only bounds for an operation: all of the time that it took, and that time less
//! what the peers may have been given. But an operation of constant duration is recognisable: the least times recur,
//! and a longer time contains a wait. Such an operation is taken to last that least time, within the two bounds; any
//! other, its turns in the mean. If all of them waited, the least waited too, and the turns in the mean are less. And
//! what was certainly their own is in the mean no more than a constant duration: if it is, some are longer.
//!
//! Without this, `300 us kernels` miss their bound at 30 % of the device beside the same at 70 %.

use super::costs::BIG_NS;
use crate::throttle::signature::Signature;

/// What was measured of some signatures. A newcomer replaces another entry.
#[derive(Debug)]
pub(crate) struct Steady {
    known: Vec<Known>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    signature: Option<Signature>,
    /// The mean of its least durations.
    least_ns: u64,
    /// The mean of its turns.
    own_ns: u64,
    /// The mean of what was certainly its own of each.
    certain_ns: u64,
    /// How often the latest durations were about the least: increased by [`AGAIN`] by each that was, decreased by one
    /// by each longer one.
    agree: u8,
}

/// Only a size: signatures in one place displace each other, and while their launches alternate, neither is steady.
const PLACES: usize = 1024;
/// One duration about the least outweighs this number of longer ones.
const AGAIN: u8 = 3;
/// This count makes a signature steady: one in four, in the long run.
const ENOUGH: u8 = 9;
/// A steady signature stays so through 15 longer ones in a row. Only a size.
const MOST: u8 = 24;
/// About the same: within this fraction of the mean, and the clock's error, at most as much again: with more, the shortest of
/// launches that last 4 us on average are steady, and `T10 2 of around 4 us, 20 waited for, 30, beside 50 of 30 us, waited
/// for, and 10` gets 60. Each sample moves a mean by the same fraction.
const PART: u64 = 8;
const OFF_NS: u64 = 1_000;
/// Each sample moves the mean of what is certain by this fraction: reports are late, so that of one launch says little.
const CERTAIN_PART: u64 = 32;
/// By which part of the least the mean of what is certain may exceed it: with an eighth, `W6 25 kernels mixed`, 30, are charged
/// 7.3 % more than they use, beside the same (allowed 7).
const LONGER_PART: u64 = 4;

impl Default for Steady {
    fn default() -> Self {
        Self { known: vec![Known::default(); PLACES] }
    }
}

impl Steady {
    /// Notes how long a launch took, and how much of that were its turns in the mean, and certainly; `None` if that says nothing
    /// about its length.
    pub(crate) fn note(
        &mut self,
        signature: Signature,
        took_ns: u64,
        own_ns: u64,
        certain_ns: Option<u64>,
    ) {
        let Some(known) = self.place(signature) else { return };
        if known.signature != Some(signature) {
            *known = Known { signature: Some(signature), own_ns, ..Known::default() };
        }
        let part = known.least_ns / PART;
        let off = part + part.min(OFF_NS);
        if known.agree == 0 || took_ns < known.least_ns.saturating_sub(off) {
            (known.least_ns, known.agree) = (took_ns, AGAIN);
        } else if took_ns <= known.least_ns.saturating_add(off) {
            known.agree = MOST.min(known.agree + AGAIN);
            known.least_ns = mean(known.least_ns, took_ns, PART);
        } else {
            known.agree -= 1;
        }
        known.own_ns = mean(known.own_ns, own_ns, PART);
        if let Some(certain_ns) = certain_ns {
            known.certain_ns = mean(known.certain_ns, certain_ns, CERTAIN_PART);
        }
    }

    /// Returns the duration of a launch by itself, if it is the same each time.
    pub(crate) fn time(&mut self, signature: Signature) -> Option<u64> {
        let known = self.place(signature).filter(|known| known.signature == Some(signature))?;
        (known.agree >= ENOUGH && !known.is_longer()).then(|| known.least_ns.min(known.own_ns))
    }

    /// Forgets a signature that now stands for something else.
    pub(crate) fn forget(&mut self, signature: Signature) {
        if let Some(known) = self.place(signature).filter(|it| it.signature == Some(signature)) {
            *known = Known::default();
        }
    }

    fn place(&mut self, signature: Signature) -> Option<&mut Known> {
        // The highest bits: the lowest are those of the table of costs.
        #[allow(clippy::cast_possible_truncation)]
        let place = (signature.0 >> 40) as usize % PLACES;
        self.known.get_mut(place)
    }
}

impl Known {
    /// Returns whether some launches are certainly longer than the least. Without this,
    /// `T15 1 in 3 takes 500 us, others 1900 us, 30, beside 10 us, 60` gets 38; if the least itself had to be that long,
    /// `T15 1 of 1 in 2 takes 190 us, others 2 ms, 10, beside 10 us, 80` would get 24. Where what is certain is short, too,
    /// the reports say too little: if it held there, `T3 1 of a budget, 8 x 10 us, waited for, 30, beside 70 of 300 us,
    /// waited for` would get 8 where it can use 14, where switches take time.
    fn is_longer(&self) -> bool {
        let most_ns = self.least_ns + self.least_ns / LONGER_PART + OFF_NS;
        self.least_ns.max(self.certain_ns) >= BIG_NS && self.certain_ns > most_ns
    }
}

/// A mean that each further sample moves by this part of the difference.
fn mean(before_ns: u64, ns: u64, parts: u64) -> u64 {
    before_ns - before_ns / parts + ns / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: Signature = Signature::kernel(7, 1024);
    const MS: u64 = 1_000_000;

    fn close(found: Option<u64>, expected: u64) {
        let found = found.unwrap();
        assert!(found.abs_diff(expected) < expected / 50, "{found}, not {expected}");
    }

    #[test]
    fn a_constant_duration_is_steady() {
        let mut steady = Steady::default();
        (0..3).for_each(|_| {
            assert_eq!(steady.time(KERNEL), None);
            steady.note(KERNEL, MS, MS, Some(MS));
        });
        close(steady.time(KERNEL), MS);
        steady.forget(KERNEL);
        assert_eq!(steady.time(KERNEL), None);
    }

    /// Half of them wait for a peer's.
    #[test]
    fn a_launch_that_sometimes_waits_is_taken_without_its_waits() {
        let mut steady = Steady::default();
        for turn in 0..200_u64 {
            let waited = turn % 2 * (turn % 7) * MS / 7;
            steady.note(KERNEL, MS + waited, MS + waited / 2, Some(MS));
        }
        close(steady.time(KERNEL), MS);
    }

    /// As for two processes that launch and wait at the same times.
    #[test]
    fn a_launch_that_always_waits_is_its_turns() {
        let mut steady = Steady::default();
        (0..100).for_each(|_| steady.note(KERNEL, 2 * MS, MS, None));
        close(steady.time(KERNEL), MS);
    }

    #[test]
    fn what_varies_is_not_steady() {
        let mut steady = Steady::default();
        for turn in 0..100_u64 {
            let ns = MS + turn * 7 % 11 * 400_000;
            steady.note(KERNEL, ns, ns, None);
        }
        assert_eq!(steady.time(KERNEL), None);
    }

    /// The shortest of very short ones recur within the clock's error.
    #[test]
    fn what_varies_is_not_steady_because_it_is_short() {
        let mut steady = Steady::default();
        for turn in 0..100_u64 {
            // Up to twice 2 us.
            let ns = 100 + turn * 7 % 40 * 100;
            steady.note(KERNEL, ns, ns, None);
            assert_eq!(steady.time(KERNEL), None, "after {turn}");
        }
    }

    #[test]
    fn what_changes_is_steady_again_after_a_while() {
        let mut steady = Steady::default();
        (0..20).for_each(|_| steady.note(KERNEL, MS, MS, Some(MS)));
        (0..80).for_each(|_| steady.note(KERNEL, 5 * MS, 5 * MS, Some(5 * MS)));
        close(steady.time(KERNEL), 5 * MS);
    }

    /// Each third one takes the least time; of the others, which take nearly four times that, half may be turns of others.
    #[test]
    fn what_is_certainly_longer_in_the_mean_is_not_steady() {
        for (least_ns, is_steady) in [(MS / 2, false), (BIG_NS - 1, false), (BIG_NS / 2, true)] {
            let mut steady = Steady::default();
            for turn in 0..300 {
                let ns = if turn % 3 == 0 { least_ns } else { least_ns * 19 / 5 };
                steady.note(KERNEL, ns, ns / 2, Some(ns / 2));
            }
            assert_eq!(steady.time(KERNEL).is_some(), is_steady, "{least_ns}");
        }
    }
}
