//! The buckets of a process: its container's, and one of its own where its share is smaller.
//!
//! Processes of one container may have different shares. The shared word counts in wall time, so all of them must
//! count with one share, or the time that a process with 5 % uses would block one with 90 % for eighteen times as
//! long. They count with the largest share in use, which is published in a word beside the bucket's. A process with a
//! smaller share also has a bucket of its own, and a launch needs both.
//!
//! ```text
//! Word   time of the latest notice >> 20:48   share in parts:16      zero: none so far
//! ```
//!
//! A notice that is not renewed expires: its process has ended, or has nothing to launch.

use super::bucket::{Bucket, PERIOD_NS};
use crate::{
    sync::Word,
    throttle::charging::settlement::Due,
    units::{ComputeLimit, Share},
};

/// The buckets that the launches of a process are charged to.
#[derive(Debug)]
pub(crate) struct Shares<'a> {
    /// The container's, at the largest share in use.
    shared: Bucket<'a>,
    /// Where that share is published.
    largest: Option<&'a Word>,
    /// When this process's own bucket is at zero.
    own: Word,
    share: Share,
    /// The part of the device that the container may have at present, beyond its share.
    lent: Option<Share>,
    /// What may be in flight while a part of it may be borrowed.
    borrowed_ns: u64,
    published_at: u64,
    /// Before this time nothing may be spent.
    held_until: u64,
}

/// How often the largest share is published, and after what time it expires.
const PUBLISH_NS: u64 = 250_000_000;
const FORGET_NS: u64 = 2_000_000_000;
/// What may be in flight while a part of it may be borrowed: its owner waits for that, at most. With 4 ms,
/// `W5 training step`, 70, gets 3 points less beside `W1 10 us kernels`, 30, where both borrow.
const BORROWED_NS: u64 = 1_000_000;
/// The same of low priority: a request of 4 ms takes a quarter longer beside it.
const BORROWED_LOW_NS: u64 = 500_000;
/// How often who is held back asks whether it still is.
const HELD_NS: u64 = 100_000_000;
/// A long launch of low priority leaves half of the device to an owner that comes back. Paid for at this part, it costs
/// the owner 2 points of 100 in the mean. Without it `long` kernels of 1 s, each of a new function, cost one of 65 %
/// 8.5 (`lending cured`).
const REPAID_PERCENT: u16 = 4;
/// Times are kept in units of 2^20 ns.
const UNIT_BITS: u32 = 20;
const SHARE_BITS: u32 = 16;

impl<'a> Shares<'a> {
    /// Makes the buckets of a process with the share of `shared`.
    pub(crate) fn new(shared: Bucket<'a>) -> Self {
        let (largest, own, share, lent) = (None, Word::default(), shared.share(), None);
        let (borrowed_ns, published_at, held_until) = (BORROWED_NS, 0, 0);
        Self { shared, largest, own, share, lent, borrowed_ns, published_at, held_until }
    }

    /// Adds the word in which the processes of the container publish their shares.
    pub(crate) fn published_in(self, largest: Option<&'a Word>) -> Self {
        Self { largest, ..self }
    }

    /// What is lent at present.
    pub(crate) const fn lent(&self) -> Option<Share> {
        self.lent
    }

    /// The share at which this process's launches are paid for.
    pub(crate) fn share(&self) -> Share {
        self.lent.unwrap_or(self.share)
    }

    /// Sets the part of the device that the container may have at present, if that is beyond its share; `None` changes
    /// nothing. What is reserved, `ns`, is paid for at that part from here on: what is due for it, and what comes back of
    /// it, has to be counted as the reservation was. Long launches are not: they were admitted at their part.
    pub(crate) fn lend(&mut self, part: Option<Share>, ns: u64, now: u64) {
        let Some(part) = part else { return };
        let lent = (part > self.shared.share()).then_some(part);
        if lent == self.lent {
            return;
        }
        let before = std::mem::replace(&mut self.lent, lent);
        let container = self.container(before).share();
        self.container(lent).charge_anew(ns, container, now);
        self.own(lent).charge_anew(ns, self.own(before).share(), now);
    }

    /// Ends that. Only a quantum stays saved up: more than the share was there to be used.
    pub(crate) fn gives_back(&mut self, ns: u64, now: u64) {
        self.lend(Some(self.shared.share()), ns, now);
        self.shared.save_less(now);
        self.own(None).save_less(now);
    }

    /// Changes this process's share from now on, also for what is reserved, `ns`.
    pub(crate) fn set_limit(&mut self, limit: ComputeLimit, ns: u64, now: u64) {
        let (share, before) = (limit.share(), [self.shared.share(), self.share]);
        (self.share, self.published_at) = (share, 0);
        let is_low = limit.guaranteed().is_none();
        self.borrowed_ns = if is_low { BORROWED_LOW_NS } else { BORROWED_NS };
        self.shared = self.shared.with_share(share);
        self.count_anew(ns, before, now);
    }

    /// Counts what is reserved at the shares of now: it is given back at those.
    fn count_anew(&self, ns: u64, [container, own]: [Share; 2], now: u64) {
        let buckets = [(self.shared, container), (self.own(None), own)];
        let changed = buckets.iter().filter(|(bucket, before)| bucket.share() != *before);
        if self.lent.is_none() && ns > 0 {
            changed.for_each(|(bucket, before)| bucket.charge_anew(ns, *before, now));
        }
    }

    /// Finds the largest share in use, and publishes this process's if that is the largest. It holds for what is reserved,
    /// `ns`, too.
    pub(crate) fn follow(&mut self, ns: u64, now: u64) {
        let Some(word) =
            self.largest.filter(|_| now.saturating_sub(self.published_at) >= PUBLISH_NS)
        else {
            return;
        };
        self.published_at = now;
        let found = word.load();
        let larger = larger_in(found, self.share, now);
        if larger.is_none() {
            let notice = (now >> UNIT_BITS) << SHARE_BITS | u64::from(self.share.parts());
            // A larger share published at the same time is found at the next look.
            let _ = word.replace(found, notice);
        }
        let before = [self.shared.share(), self.share];
        self.shared = self.shared.with_share(larger.unwrap_or(self.share));
        self.count_anew(ns, before, now);
    }

    /// What the launches of one period are worth, about.
    pub(crate) fn period_ns(&self) -> u64 {
        self.own(self.lent).quantum_ns()
    }

    /// What the bucket must hold before a launch that found it empty may go.
    pub(crate) fn quantum_ns(&self) -> u64 {
        let quantum_ns = self.period_ns();
        if self.lent.is_some() { quantum_ns.min(self.borrowed_ns / 2) } else { quantum_ns }
    }

    /// The most that can be saved up.
    pub(crate) fn capacity_ns(&self) -> u64 {
        let capacity_ns = self.own(self.lent).capacity_ns();
        if self.lent.is_some() { capacity_ns.min(self.borrowed_ns) } else { capacity_ns }
    }

    /// What may be spent now; negative values are a debt.
    pub(crate) fn balance(&self, now: u64) -> i64 {
        let shared = self.container(self.lent).balance(now);
        let balance = self.smaller().map_or(shared, |own| own.balance(now).min(shared));
        if now < self.held_until { balance.min(-1) } else { balance }
    }

    /// Returns when `ns` may be spent, provided that no other process charges or refunds, and when to ask again otherwise:
    /// who is held back may be so for less long by then.
    pub(crate) fn holds_at(&self, ns: u64, now: u64) -> u64 {
        let shared = self.container(self.lent).holds_at(ns, now);
        let at = self.smaller().map_or(shared, |own| own.holds_at(ns, now).max(shared));
        at.max(self.held_until.min(now.saturating_add(HELD_NS)))
    }

    /// Returns how long it takes until something may be spent, also if that is asked again before.
    pub(crate) fn owed_for_ns(&self, now: u64) -> u64 {
        self.holds_at(0, now).max(self.held_until).saturating_sub(now)
    }

    /// Takes `ns`; the result may be a debt.
    pub(crate) fn charge(&self, ns: u64, now: u64) {
        self.container(self.lent).charge(ns, now);
        self.own(self.lent).charge(ns, now);
    }

    /// Takes what work has used up until now beyond what was taken for it. What has flowed in since then counts against it,
    /// but where time may be borrowed.
    pub(crate) fn charge_late(&self, ns: u64, now: u64) {
        let since = if self.lent.is_some() { now } else { now.saturating_sub(ns) };
        self.container(self.lent).charge_as_of(since, ns, now);
        self.own(self.lent).charge_as_of(since, ns, now);
    }

    /// Takes what another process of the container owed since `then`.
    pub(crate) fn charge_as_of(&self, then: u64, ns: u64, now: u64) {
        self.container(self.lent).charge_as_of(then, ns, now);
    }

    /// Returns until when the container is in debt, if it owes `ns` more.
    pub(crate) fn in_debt_until(&self, ns: u64, now: u64) -> u64 {
        self.container(self.lent).holds_at(ns, now)
    }

    /// Lets nothing be spent before this time.
    pub(crate) const fn hold(&mut self, until: u64) {
        self.held_until = until;
    }

    /// Puts back `ns` of what was charged.
    pub(crate) fn refund(&self, ns: u64) {
        self.container(self.lent).refund(ns);
        self.own(self.lent).refund(ns);
    }

    /// Replaces what was reserved by what is due. Time for which a sibling was charged costs the container nothing more,
    /// and this process as much as any: else the sibling would lift its smaller share. What flowed in while the work ran
    /// counts against it, even beyond what the bucket holds: without this, `T2 1 never seen, 100 ms, 50, beside 10 us, 50` gets 17
    /// points more.
    /// `lent` is what was lent when it was reserved, or has been counted as since.
    pub(crate) fn settle(&self, reserved_ns: u64, lent: Option<Share>, due: Due, now: u64) {
        for (bucket, due_ns) in [(self.container(lent), due.ns), (self.own(lent), due.own_ns)] {
            if due_ns > reserved_ns {
                bucket.charge_as_of(due.since, due_ns - reserved_ns, now);
            } else {
                bucket.refund(reserved_ns - due_ns);
            }
        }
    }

    /// Counts anew what was due for work in flight when an owner came back: at the part that this left. Of low priority,
    /// which had none: what is longer than the owner makes up for. It had half of the device, and may have saved two periods
    /// of it. `lent` is what was lent when it was settled.
    pub(crate) fn repays(&self, due: Due, lent: Option<Share>, left: Option<Share>, now: u64) {
        let (part, free_ns) = match left {
            Some(part) => (Some(part), 0),
            None => (Share::from_percent(REPAID_PERCENT), 4 * PERIOD_NS),
        };
        for (bucket, ns) in [(self.container(lent), due.ns), (self.own(lent), due.own_ns)] {
            if let Some(part) = part.filter(|part| *part < bucket.share()) {
                let late_ns = ns.saturating_sub(free_ns);
                bucket.with_share(part).charge_anew(late_ns, bucket.share(), now);
            }
        }
    }

    /// The wall time in which `ns` flow in.
    pub(crate) fn takes_up(&self, ns: u64) -> u64 {
        self.own(self.lent).takes_up(ns)
    }

    fn own(&self, lent: Option<Share>) -> Bucket<'_> {
        Bucket::new(&self.own, lent.unwrap_or(self.share))
    }

    /// The container's bucket as it fills while this is lent to it.
    fn container(&self, lent: Option<Share>) -> Bucket<'a> {
        lent.map_or(self.shared, |part| self.shared.with_share(part))
    }

    /// This process's own bucket, if its share is smaller than the container's. Without it,
    /// `T5 90 beside 5, 100 us, 90 first` misses its bound by 80 points.
    fn smaller(&self) -> Option<Bucket<'_>> {
        (self.lent.is_none() && self.share < self.shared.share()).then(|| self.own(None))
    }
}

/// Returns the published share if it is larger than this one and has not expired. If each process counted with its own,
/// `T5 90 beside 5, 1 ms, waited for, 5 first` would miss its bound by 80 points.
fn larger_in(word: u64, share: Share, now: u64) -> Option<Share> {
    let noticed_at = (word >> SHARE_BITS) << UNIT_BITS;
    let is_fresh = now.abs_diff(noticed_at) < FORGET_NS;
    let parts = u16::try_from(word & ((1 << SHARE_BITS) - 1)).ok()?;
    Share::from_parts(parts).filter(|published| is_fresh && *published > share)
}
