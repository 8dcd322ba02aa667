//! What finished work costs: what each operation is taken to last by itself, and what of it is due.
//!
//! An operation costs its measurement, as far as that is certainly its own; one that lasts the same each time costs
//! that time ([`Steady`]); one that waited for a turn of its process, the turns that it took; any other, its turns in
//! the mean. Each cost is learned ([`Costs`]), so that launches of the same signature can be paid for in advance. What
//! is due for the sum of costs is decided by [`Settlement`].
//!
//! An operation never costs more than the time between its events, nor less than what its peers' reports leave to this
//! process, set against earlier ones that cost more. The time that was due is never more than the time passed, but for
//! what reports in retrospect correct.

pub(crate) mod costs;
mod evidence;
pub(crate) mod settlement;
pub(crate) mod steady;
pub(crate) mod time_account;

use crate::throttle::unreported::UnreportedProcesses;
use costs::{BIG_NS, Costs, OUTLIER, Sample};
use evidence::is_far_beyond;
use settlement::{Due, Settlement};
use steady::Steady;
use time_account::TimeAccount;

use super::{
    signature::Signature,
    timeline::{
        done::{Certain, Done, Part, Span},
        outcome::Measured,
        stream::Reserved,
        turns::{LONG_TURN_NS, Turns},
    },
};

/// The costs of one process on a device.
#[derive(Debug, Default)]
pub(crate) struct Charging {
    costs: Costs,
    steady: Steady,
    settlement: Settlement,
    /// By how much steady operations lately exceeded the least that peers can have left of the time.
    saved_ns: u64,
    /// Until then, launches that take far longer than expected are taken to come again.
    long_until: u64,
    /// The longest turn of others that operations lately waited for before they began. It decreases with each operation.
    turn_ns: u64,
    /// All that was due.
    due_ns: u64,
}

/// At most one turn is carried over to later measurements: see [`at_least`](Charging::at_least).
const SAVED_NS: u64 = 2_000_000;
/// Each operation takes this part off the longest turn, which is forgotten after a few hundred.
const DECAY: u64 = 64;
/// An operation that took longer has hardly waited for a turn only: turns are of 2 ms by default. If all operations
/// may have waited, `T10 1 in 100 takes 15 ms, 30, beside 40` would get 40.
const MOST_WAITED_NS: u64 = 2_500_000;
/// Half of the shortest time slice: see `cost`.
const BRIEF_NS: u64 = 500_000;
/// Of an operation that took this number of rounds of turns, its mean part is closer than what the number shows. Without
/// this, `W2 40 ms kernels`, 30, get 27 beside `W1 10 us kernels`, 30, and `W4 4 streams x 50 us`, 40.
const MANY_ROUNDS: u64 = 16;
/// For how long a launch that took far longer than expected is taken to come again. Without the notice that follows,
/// `T10 1 in 100 takes 15 ms, waited for`, 30, leaves the other one 23 of 40 %.
const LATELY_NS: u64 = 10_000_000_000;

impl Charging {
    /// The table of costs.
    pub(crate) const fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Forgets the cost of a signature.
    pub(crate) fn forget(&mut self, signature: Signature) {
        self.costs.forget(signature);
        self.steady.forget(signature);
    }

    /// Sets what processes there are on the device that publish no report.
    pub(crate) fn set_unreported(&mut self, unreported: UnreportedProcesses) {
        self.settlement.set_unreported(unreported);
    }

    /// Returns whether a process on the device may work and publish no report.
    pub(crate) const fn beside_unreported_work(&self) -> bool {
        self.settlement.beside_unreported_work()
    }

    /// Returns whether each launch is to be measured by itself for a while.
    pub(crate) const fn is_doubtful(&self, now: u64) -> bool {
        self.settlement.is_doubtful(now)
    }

    /// Returns whether work in flight at `at` may take far longer than expected.
    pub(crate) const fn may_be_long(&self, at: u64) -> bool {
        at < self.long_until
    }

    /// Returns how much of `work_ns` will not be due if it overlaps as work lately did.
    pub(crate) fn overlap_of(&self, work_ns: u64) -> u64 {
        self.settlement.overlap_of(work_ns)
    }

    /// All that was due.
    pub(crate) const fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Handles events of another clock.
    pub(crate) fn clock_moved(&mut self, account: TimeAccount<'_>) {
        self.settlement.clock_moved(account);
    }

    /// Returns what is due for finished work.
    pub(crate) fn charge(
        &mut self,
        done: Done,
        turns: &Turns,
        account: TimeAccount<'_>,
        now: u64,
    ) -> Due {
        let due = self.settlement.settle(done, turns, account, now);
        self.due_ns = self.due_ns.saturating_add(due.ns);
        due
    }

    /// Returns an operation with its cost, which is learned.
    pub(crate) fn operation(
        &mut self,
        Reserved { signature, is_collective, .. }: Reserved,
        measured: &Measured,
        turns: &Turns,
        now: u64,
    ) -> Done {
        let Measured { start, end, whole_ns, .. } = *measured;
        let took_ns = end.saturating_sub(start);
        let sample_ns = self.cost(signature, measured, took_ns, turns, now);
        let is_explained = measured.is_explained;
        let mean_ns = self.costs.estimate(signature);
        let is_far_beyond = mean_ns.is_some_and(|mean_ns| is_far_beyond(sample_ns, mean_ns));
        // Shorter ones may have waited for a turn.
        if is_far_beyond && took_ns >= turns.longest_wait_ns() {
            self.long_until = now.saturating_add(LATELY_NS);
        }
        let small = self.costs.small(signature).filter(|_| !self.settlement.is_doubtful(now));
        let (ns, clean, explained) = (sample_ns, measured.is_clean, is_explained);
        // One that does nothing now may have begun: without that, `W9 launch-bound 3 us` at 30 % gets 14 beside one.
        let has_others = turns.has_others() || self.settlement.has_unreported();
        let is_alone = measured.is_alone && !has_others;
        // On an empty stream the thread may have been held up between the events, for milliseconds. Without the second
        // part, `T10 1 in 40 takes 130 us, 1 waited for, 30` gets 36.
        let is_whole = is_alone && (clean || ns < BIG_NS);
        self.costs.learn(signature, Sample { ns, clean, is_whole, is_collective, explained });
        let work_ns = small.map_or(sample_ns, u64::from);
        // The measurement contains the distance of two events, which is not work.
        let from = start.saturating_add(took_ns - whole_ns.min(took_ns));
        let is_known = measured.is_queued || !is_alone || is_collective;
        let part = if is_known { Part::Known } else { Part::Alone }(sample_ns);
        let certain = Some(Certain { from, until: end, part });
        let span =
            if self.may_have_waited(measured, took_ns) { Span::Waited } else { Span::Operation };
        Done { span: span(start, end), work_ns, certain }
    }

    /// Returns what an operation cost by itself.
    fn cost(
        &mut self,
        signature: Signature,
        measured: &Measured,
        took_ns: u64,
        turns: &Turns,
        now: u64,
    ) -> u64 {
        let Measured { whole_ns, own_ns, least_ns, turns_ns, waited_ns, .. } = *measured;
        let others = turns.others();
        let waited_ns = waited_ns.checked_div(others).unwrap_or(0);
        let turn_ns = self.turn(waited_ns);
        let began_with_turn = waited_ns >= BIG_NS;
        // A short operation behind other work of its stream seldom meets the end of a turn.
        let is_short = measured.is_queued && took_ns < BIG_NS;
        // Less than a turn contains none of another process.
        let is_within = took_ns < turn_ns;
        // A brief one behind other work is often not interrupted: its least time is its own. If others' reports could lower that,
        // `T3 3 containers, 20 us, waited for, 20 each, beside 40 of 300 us` would leave the three 0.6 each, where events are
        // reached at once: their waits are in their reports. Where one borrows, all have more turns: `lending siblings` of low
        // priority with kernels of 0.4 ms leave another one with 2 ms a fortieth of its launches.
        let lends = turns.are_watched() || turns.borrows();
        let is_brief = measured.is_queued && took_ns < if lends { BIG_NS } else { BRIEF_NS };
        let turns_ns = if is_brief || is_within { whole_ns } else { turns_ns };
        // Nothing is certain beside work that no process reports, and less than reports leave beside a container that borrows.
        // Without the latter, `W2 40 ms kernel, sync beside W10 inference 4 ms` loses 1.1 points of 70 by lending.
        let knows_others = !self.beside_unreported_work() && !turns.are_watched();
        // Siblings that do the same leave each other nothing, and what other containers leave is theirs in equal parts. Without
        // that, `T15 3 of 1 in 3 takes 3500 us, others 700 us, 50, beside 1 ms, 30` gets up to 90.
        let of_container_ns = turns.least_part_of_container(took_ns, measured.start, measured.end);
        let of_each_ns = (of_container_ns / (turns.siblings() + 1)).min(whole_ns);
        let certain_ns = if knows_others { least_ns.max(of_each_ns) } else { 0 };
        // On an empty stream it may have waited in any time that nothing accounts for, such as that of a switch. If that
        // counted, `T3 two containers, 300 us, waited for, 20/20` would get 9 where switches take 0.5 ms.
        let certain_ns = measured.is_queued.then_some(certain_ns);
        self.steady.note(signature, whole_ns, turns_ns, certain_ns);
        let mean_ns = self.costs.estimate(signature).unwrap_or(0);
        let varies = self.settlement.is_doubtful(now) && !self.beside_unreported_work();
        let steady = self.steady.time(signature).filter(|&time_ns| {
            if varies && measured.is_queued && turn_ns > 0 {
                // The usual time is not that of the others. Without this,
                // `T10 1 in 100 takes 1280 us, 50 waited for, 30, beside 40` gets 38 of 30 %.
                false
            } else if is_short {
                // It contains no turn, so a time far below the mean is that of some launches only. Without this,
                // `T10 5 of around 5 us, then a wait, 30, beside 40` gets 6 points more than its bound allows.
                mean_ns / OUTLIER <= time_ns
            } else if began_with_turn {
                turn_ns <= took_ns && took_ns <= with_turns(time_ns, turn_ns, others)
            } else {
                // No wait for a turn takes that long: the operation has another length. Without this,
                // `T10 1 in 50 takes 50 ms, others 300 us, 30, beside 40` gets up to 11 points more than its share.
                took_ns < turns.longest_wait_ns() || took_ns / OUTLIER < time_ns
            }
        });
        match steady {
            _ if measured.is_alone => whole_ns,
            Some(time_ns) => self.at_least(time_ns.min(whole_ns), least_ns),
            None if is_short || began_with_turn && is_within => whole_ns,
            None if began_with_turn && took_ns < MANY_ROUNDS * turn_ns * (others + 1) => {
                let time_ns = from_its_turn(took_ns, turn_ns, others);
                time_ns.max(least_ns).min(whole_ns)
            }
            // No estimate is trusted: what other containers report is. Without this,
            // `T10 5 of around 5 us, then a wait, 30, beside 40` gets 21 where events are reached at once.
            None if varies && self.may_have_waited(measured, took_ns) => least_ns,
            None => own_ns,
        }
    }

    /// Returns whether most of an operation's time may have been a wait for a turn of its process, and no event shows where
    /// that ended: events are reached at once here. Its stream was empty: if that did not matter,
    /// `T10 2 of around 4 us, 50 waited for, 30, beside 40` would get 34. No wait for a turn was seen before an operation
    /// lately: if that did not matter, the same beside 50 of 100 us, waited for, and 10 would get 33.
    const fn may_have_waited(&self, measured: &Measured, took_ns: u64) -> bool {
        !measured.is_queued && self.turn_ns < BIG_NS && took_ns < MOST_WAITED_NS
    }

    /// Returns how long a turn of another process is: the longest that operations lately waited for.
    fn turn(&mut self, waited_ns: u64) -> u64 {
        self.turn_ns -= self.turn_ns / DECAY;
        if waited_ns >= BIG_NS {
            self.turn_ns = self.turn_ns.max(waited_ns.min(LONG_TURN_NS));
        }
        self.turn_ns
    }

    /// Returns the cost of a steady operation: its usual time, but at least what the peers' reports leave to this
    /// process. The reports are late, so a minimum above the usual time is first set against earlier ones below it.
    /// Without the least, `T15 1 in 3 takes 500 us, others 1900 us, 30, beside 300 us, 60` gets 14 points more than its bound
    /// allows, with turns of 4 ms; if it were not set against earlier ones, `300 us kernels` at 50 % would get 43 beside `W2 40 ms kernels` at 50 %.
    fn at_least(&mut self, time_ns: u64, least_ns: u64) -> u64 {
        let saved_ns = self.saved_ns.saturating_add(time_ns.saturating_sub(least_ns));
        let missing_ns = least_ns.saturating_sub(time_ns);
        self.saved_ns = saved_ns.saturating_sub(missing_ns).min(SAVED_NS);
        time_ns.saturating_add(missing_ns.saturating_sub(saved_ns))
    }
}

/// Returns how much of an operation's time was its own, if it began with a turn of its process, and those of others are as
/// long. Without this, `T15 1 in 3 takes 500 us, others 1900 us, waited for, 30, beside 300 us, 60` gets 6 points more
/// than its bound allows, with turns of 1 ms: its steady time is the shorter one.
fn from_its_turn(took_ns: u64, turn_ns: u64, others: u64) -> u64 {
    let round_ns = turn_ns.saturating_mul(others.saturating_add(1)).max(1);
    (took_ns / round_ns).saturating_mul(turn_ns).saturating_add(turn_ns.min(took_ns % round_ns))
}

/// Returns how long an operation of this length may take if it begins with a turn of its process, and those of others are
/// as long: the last one of its own may end up to a quarter of a turn early. If each were charged by the turns, `T3 two
/// containers, 1 ms, waited for, 30/30` would get 25 where turns are of 1 ms and switches take 0.1.
fn with_turns(time_ns: u64, turn_ns: u64, others: u64) -> u64 {
    let interrupted = time_ns.saturating_add(turn_ns / 4) / turn_ns.max(1);
    time_ns.saturating_add(interrupted.saturating_mul(turn_ns).saturating_mul(others))
}
