//! The part of a device that a container may use while others leave theirs unused.
//!
//! What no active container is guaranteed is divided among the active ones that borrow, by what is guaranteed to each;
//! unless one of them gets less than its guarantee: a program that waits for each launch is slower beside more work.
//! Low priority has nothing guaranteed. It gets what is left if no other one borrows and none with a guarantee has work
//! on the device: all of them pause, or are held back by their own limits. Nothing here depends on what a container says of
//! itself but whether it has work, and how much: a false one gets or leaves what was free, and takes from no guarantee.

use crate::units::{ComputeLimit, Share};

/// A container whose work has ended is active for this long: its guarantee is not lent. A launch that takes longer is lent
/// nothing before a pause of its own length: `W5 training step`, 70, pauses for 15 ms, and would lose 7 points to
/// `W2 40 ms kernels`, 30.
pub(crate) const ACTIVE_NS: u64 = 1_000_000;
/// One with work in flight that shows nothing new is active for this long: it may wait for its turn, and may have ended
/// without its process having looked.
pub(crate) const SILENT_NS: u64 = 4_000_000;
/// One in which a thread waits for work, or a launch is held back, is active for this long after the latest news: a
/// process that was killed there waits in its report for ever. Without the notice, in
/// `W1 10 us kernels beside W8 10 us, sync` at 50 % each, the first takes 11 points of the 33 of the second.
pub(crate) const WAITING_NS: u64 = 10_000_000_000;
/// An active container that is behind its guarantee by its share of this time is short. Without it `W8 10 us, sync` at a
/// fixed 30 % gets 20 % beside one of 1 to 100 %, and 29 % beside one of a fixed 1 %.
pub(crate) const SHORT_NS: u64 = 20_000_000;
/// A launch of unknown length is lent nothing before this long a pause.
pub(crate) const UNKNOWN_LAUNCH_NS: u64 = 20_000_000;
/// A borrower is never given all of the device: what comes back to its owner would wait for all that was queued.
const MOST_PARTS: u16 = Share::DENOMINATOR - 1;

/// What the active containers of a device are guaranteed, in parts of [`Share::DENOMINATOR`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    guaranteed: u64,
    /// Of that, what those are guaranteed that borrow.
    borrowing: u64,
    /// How many have low priority.
    low: u64,
    /// One with a guarantee has work on the device, or had lately: its own limit does not hold it back.
    is_used: bool,
    /// One with a guarantee gets less than that.
    is_short: bool,
}

impl Demand {
    /// No container.
    pub(crate) const NONE: Self =
        Self { guaranteed: 0, borrowing: 0, low: 0, is_used: false, is_short: false };

    /// Adds a container.
    pub(crate) fn with(self, limit: ComputeLimit) -> Self {
        let Some(share) = limit.guaranteed() else { return Self { low: self.low + 1, ..self } };
        let parts = u64::from(share.parts());
        let borrowing = if limit.borrows() { parts } else { 0 };
        Self {
            guaranteed: self.guaranteed.saturating_add(parts),
            borrowing: self.borrowing.saturating_add(borrowing),
            ..self
        }
    }

    /// Adds one that is present, with work on the device unless it `is_held` back by its own limit; it gets less than its
    /// guarantee if it `is_short`.
    pub(crate) fn with_present(self, limit: ComputeLimit, is_held: bool, is_short: bool) -> Self {
        let is_used = limit.guaranteed().is_some() && !is_held;
        let (is_used, is_short) = (self.is_used || is_used, self.is_short || is_short);
        Self { is_used, is_short, ..self.with(limit) }
    }

    /// Returns the part of one of these containers; `None` if there is none for it.
    pub(crate) fn part(self, limit: ComputeLimit) -> Option<Share> {
        let own = u64::from(limit.guaranteed().map_or(0, Share::parts));
        let free = u64::from(Share::DENOMINATOR).saturating_sub(self.guaranteed);
        let lent = match own {
            0 if self.borrowing > 0 || self.is_used => 0,
            0 => free / self.low.max(1),
            own if limit.borrows() && !self.is_short => {
                free.saturating_mul(own) / self.borrowing.max(own)
            }
            _ => 0,
        };
        let most = u64::from(limit.most().parts().min(MOST_PARTS)).max(own);
        let parts = own.saturating_add(lent).min(most);
        u16::try_from(parts).ok().and_then(Share::from_parts)
    }

    /// Returns the most that one of these containers may have had, work in flight when others came back included.
    pub(crate) fn most(self, limit: ComputeLimit) -> Option<Share> {
        Self { is_used: false, is_short: false, ..self }.part(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn percent(percent: u16) -> Share {
        Share::from_percent(percent).expect("a share")
    }

    fn burst(of: u16) -> ComputeLimit {
        ComputeLimit::burst(percent(of), Share::FULL)
    }

    const LOW: ComputeLimit = ComputeLimit::low_priority(Share::FULL);

    fn parts(own: ComputeLimit, others: &[ComputeLimit]) -> u16 {
        let demand = others.iter().fold(Demand::NONE.with(own), |all, other| all.with(*other));
        demand.part(own).map_or(0, Share::parts)
    }

    #[test]
    fn what_no_active_container_is_guaranteed_is_divided_by_guarantees() {
        assert_eq!(parts(burst(30), &[]), MOST_PARTS);
        assert_eq!(parts(burst(30), &[burst(30)]), 5_000);
        assert_eq!(parts(burst(10), &[burst(20)]), 3_333);
        assert_eq!(parts(burst(20), &[burst(10)]), 6_666);
        let fixed = ComputeLimit::fixed(percent(50));
        assert_eq!(parts(burst(30), &[fixed]), 5_000);
        assert_eq!(parts(burst(30), &[fixed, burst(10)]), 3_750);
    }

    #[test]
    fn no_container_gets_more_than_its_most_or_less_than_its_guarantee() {
        assert_eq!(parts(ComputeLimit::burst(percent(30), percent(40)), &[]), 4_000);
        assert_eq!(parts(burst(60), &[burst(70)]), 6_000, "more is guaranteed than there is");
        assert_eq!(parts(ComputeLimit::fixed(percent(30)), &[]), 3_000);
        assert_eq!(parts(ComputeLimit::fixed(Share::FULL), &[]), Share::DENOMINATOR);
    }

    #[test]
    fn low_priority_has_only_what_is_left() {
        let beside = |is_held: bool, others: &[ComputeLimit]| {
            let add = |all: Demand, other: &ComputeLimit| all.with_present(*other, is_held, false);
            let demand = others.iter().fold(Demand::NONE, add).with(LOW);
            demand.part(LOW).map_or(0, Share::parts)
        };
        let fixed = ComputeLimit::fixed(percent(60));
        assert_eq!(beside(false, &[]), MOST_PARTS);
        assert_eq!(beside(false, &[fixed]), 0, "the other one has work on the device");
        assert_eq!(beside(true, &[fixed]), 4_000, "its own limit holds it back");
        assert_eq!(beside(false, &[LOW]), 5_000);
        assert_eq!(beside(true, &[burst(10)]), 0, "the other one takes all");
        assert_eq!(parts(burst(10), &[LOW]), MOST_PARTS);
    }

    proptest! {
        #[test]
        fn all_parts_together_are_the_device_or_what_is_guaranteed(
            kinds in prop::collection::vec((0_u8..3, 100_u16..=10_000, 100_u16..=10_000), 1..9),
        ) {
            let share = |parts| Share::from_parts(parts).expect("a share");
            let limits: Vec<ComputeLimit> = kinds.into_iter().map(|(kind, parts, most)| match kind {
                0 => ComputeLimit::fixed(share(parts)),
                1 => ComputeLimit::burst(share(parts), share(most)),
                _ => ComputeLimit::low_priority(share(most)),
            }).collect();
            let all = limits.iter().fold(Demand::NONE, |all, limit| all.with_present(*limit, false, false));
            let of = |limit: Option<Share>| u32::from(limit.map_or(0, Share::parts));
            let guaranteed: u32 = limits.iter().map(|limit| of(limit.guaranteed())).sum();
            let given: u32 = limits.iter().map(|limit| of(all.part(*limit))).sum();
            prop_assert!(given <= guaranteed.max(u32::from(Share::DENOMINATOR)), "{given}");
            for limit in limits {
                prop_assert!(of(all.part(limit)) >= of(limit.guaranteed()));
                prop_assert!(all.part(limit).is_none_or(|part| part <= limit.most()));
            }
        }
    }
}
