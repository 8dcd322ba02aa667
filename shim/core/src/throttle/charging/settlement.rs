//! What finished work of a process is charged: the smaller of two sums that are both upper bounds.
//!
//! * Presence: the time in which at least one stream was occupied. Too large when a stream waits, copies or starves.
//! * Work: the sum of what each operation costs by itself. Too large when operations run side by side.
//!
//! Busy time is below both. The smaller sum of a single batch is smaller by chance, and charging it would
//! undercharge: so both are summed over an epoch, and the charge follows the smaller total.
//!
//! Beside peers that publish reports, presence is reduced to this process's [turns](crate::throttle::timeline::turns). That is correct in
//! the mean only and no bound: so the charge is never less than the work, as far as the spans show that it did not
//! overlap.
//!
//! Nor is the charge ever less than the time in which the device certainly worked for this process: from when
//! everything of a batch was queued, or an operation had begun, to the event behind it, less what its peers may have
//! been given. That needs no estimate, so launches of one function may differ in any way. Without it,
//! `W19 10 us, some 10 ms, sync` gets 39 at 30 % of the device.
//!
//! What several processes of a container are charged so contains each other's work, if their launches wait for each
//! other. So it counts only as far as together they covered time: see [`time_account`](super::time_account). Without
//! that, `T3 4 of a budget, 10 us, waited for` misses its bound at 30 % of the device.

use super::{
    evidence::{Evidence, is_far_beyond},
    time_account::TimeAccount,
};
use crate::throttle::timeline::{
    coverage::Coverage,
    done::{Certain, Done, Part, Span},
    turns::{Turns, scaled},
};
use crate::throttle::unreported::UnreportedProcesses;

/// The sums of one device and process.
#[derive(Debug)]
pub(crate) struct Settlement {
    coverage: Coverage,
    /// Time in which the device certainly had work of this process, and how much of this epoch's was certainly its
    /// own.
    certain: Coverage,
    certain_ns: u64,
    /// A process on the device may publish no report.
    unreported: UnreportedProcesses,
    /// This epoch's work, the sum of its spans, and what it occupied: as this process sees it, and as far as no other
    /// process of the container has covered the time.
    work_ns: u64,
    spans_ns: u64,
    /// This epoch's work that was more than its batches had time for.
    beyond_ns: u64,
    alone: Occupied,
    together: Occupied,
    /// Time that is certain, and that the spans do not cover.
    certain_new_ns: u64,
    /// What operations had, while no estimate is trusted, of the time that no other process of the container has covered.
    measured_ns: u64,
    /// What of each was passed on to the account, and what was due for it.
    charged_ns: u64,
    covered_ns: u64,
    due_ns: u64,
    epoch_ends: u64,
    /// The part of the work of the latest epochs that was due, as a mean. Without it, `W4 4 streams x 50 us` misses its
    /// bound at 5 % of the device.
    due: u64,
    evidence: Evidence,
}

/// Time in which the device certainly worked for this process.
struct AddedTime {
    from: u64,
    until: u64,
    part: Part,
    /// How much of it was not added before.
    added_ns: u64,
    /// How much of that was certainly this process's own.
    least_ns: u64,
    /// No wait for other processes takes that long.
    is_own: bool,
}

/// What finished work is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// What has flowed in since then counts against it.
    pub(crate) since: u64,
    /// By the process's own measurements, whatever its siblings were charged.
    pub(crate) own_ns: u64,
    /// As far as the container was not charged for the same time.
    pub(crate) ns: u64,
}

/// What the work of an epoch occupied of the device.
#[derive(Clone, Copy, Debug, Default)]
struct Occupied {
    /// The time that its spans cover.
    presence_ns: u64,
    /// How much of that was not given to others, in the mean.
    turns_ns: u64,
}

impl Occupied {
    const fn add(&mut self, presence_ns: u64, turns_ns: u64) {
        self.presence_ns = self.presence_ns.saturating_add(presence_ns);
        self.turns_ns = self.turns_ns.saturating_add(turns_ns);
    }

    /// Returns for how long the device worked for it. As far as the spans show no overlap, it is at least the work.
    fn busy_ns(&self, work_ns: u64, spans_ns: u64) -> u64 {
        self.turns_ns.max(scaled(work_ns, self.presence_ns, spans_ns).min(self.presence_ns))
    }
}

/// Five periods of the bucket: enough batches that chance evens out, and what has changed counts for no longer. Only a
/// size: no part of `bench/ablations` tries another.
const EPOCH_NS: u64 = 100_000_000;
/// A ratio of one.
const ONE: u64 = 1 << 16;

/// A mean may be off for a while in either direction: this fraction is subtracted. Without it,
/// `W4 4 streams x 50 us` misses its bound at 30 % of the device beside the same at 70 %.
const MEAN_PARTS: u64 = 16;

impl Default for Settlement {
    fn default() -> Self {
        Self {
            coverage: Coverage::default(),
            certain: Coverage::default(),
            certain_ns: 0,
            unreported: UnreportedProcesses::None,
            work_ns: 0,
            spans_ns: 0,
            beyond_ns: 0,
            alone: Occupied::default(),
            together: Occupied::default(),
            certain_new_ns: 0,
            measured_ns: 0,
            charged_ns: 0,
            covered_ns: 0,
            due_ns: 0,
            epoch_ends: 0,
            due: ONE,
            evidence: Evidence::default(),
        }
    }
}

/// Raises a sum to at least `to_ns`. Returns by how much it grew.
const fn grow(sum_ns: &mut u64, to_ns: u64) -> u64 {
    let more_ns = to_ns.saturating_sub(*sum_ns);
    *sum_ns += more_ns;
    more_ns
}

/// Returns how much of `ns` was certainly what in the mean was `mean_ns` of it.
const fn lower_bound(mean_ns: u64, ns: u64) -> u64 {
    if mean_ns == ns { ns } else { mean_ns / MEAN_PARTS * (MEAN_PARTS - 1) }
}

/// Returns from when on no other process of the container can have had the time of a span. The stream of a batch that was
/// not all queued when it was past what is before it may have been idle for any time but that of the work. If that time
/// counted as covered, kernels of 400 ms at 30 % would get 43 beside a process with 10 us at both ends of their time
/// (`attacks covered`).
fn covers_from(done: &Done, (start, end): (u64, u64)) -> u64 {
    let is_late = done.certain.is_none_or(|certain| matches!(certain.part, Part::Rest));
    match done.span {
        Span::Batch(..) if is_late => start.max(end.saturating_sub(done.work_ns)),
        _ => start,
    }
}

impl Settlement {
    /// Returns the charge for finished work.
    pub(crate) fn settle(
        &mut self,
        done: Done,
        turns: &Turns,
        account: TimeAccount<'_>,
        now: u64,
    ) -> Due {
        if now >= self.epoch_ends {
            self.begin_epoch(now);
        }
        let certain = self.certain(done.certain, turns);
        let work_ns = match certain {
            Some(AddedTime { part: Part::Rest, is_own: true, least_ns, .. })
                if is_far_beyond(least_ns, done.work_ns) =>
            {
                // Some launch of it took far longer than expected. Without this,
                // `T10 1 in 430 takes 1280 us, 20 waited for, 60` gets 70 in its richest 10 s.
                least_ns
            }
            _ => done.work_ns,
        };
        // A batch with work before and behind it occupied its stream all of the time. Without this,
        // `W4 8 streams x 50 us` misses its bound at 30 % beside an unreported process. One that a wait ended, or
        // followed, was as long as its work: without that, `W4 4 streams x 50 us` misses its at 30 %.
        let known = match done.span {
            Span::Operation(start, end) | Span::Waited(start, end) | Span::Batch(start, end) => {
                Some((start, end))
            }
            Span::From(start, end) => Some((start, start + self.fit(work_ns, start, end, turns))),
            Span::Until(start, end) => Some((end - self.fit(work_ns, start, end, turns), end)),
            Span::Unknown => None,
        };
        if let Some(Certain { from, until, part }) = done.certain
            && !matches!(part, Part::Rest)
        {
            self.evidence.add_known(work_ns, turns.of(from, until), now);
        }
        let length_ns = match known {
            Some((start, end)) => {
                let added_ns = self.coverage.add(start, end);
                self.alone.add(added_ns, turns.part(added_ns, start, end));
                let from = covers_from(&done, (start, end));
                let new_ns = added_ns.min(account.cover_the_end(start, from, end));
                let container_ns = turns.part_of_container(new_ns, start, end);
                self.together.add(new_ns, container_ns);
                let least_ns = match done.span {
                    Span::Operation(..) => Some(lower_bound(container_ns, new_ns)),
                    // Without this, `T3 4 of a budget, 8 x 10 us, waited for, 30, beside 70 of 20 ms kernels` gets 12 where
                    // events are reached at once.
                    Span::Waited(..) => Some(turns.least_part_of_container(new_ns, start, end)),
                    _ => None,
                };
                if let Some(least_ns) = least_ns.filter(|_| self.doubts_siblings(turns, now)) {
                    self.measured_ns = self.measured_ns.saturating_add(least_ns);
                }
                end.saturating_sub(start)
            }
            None => {
                self.alone.add(work_ns, work_ns);
                self.together.add(work_ns, work_ns);
                work_ns
            }
        };
        if let Some(AddedTime { from, until, part, added_ns, least_ns, is_own }) = certain {
            self.certain_ns = self.certain_ns.saturating_add(least_ns);
            self.evidence.explain(done.work_ns.min(until.saturating_sub(from) - added_ns));
            match part {
                Part::Rest if is_own => self.evidence.add_waited_for(done.work_ns, least_ns, now),
                // Beside a container that borrows it is a wait for turns more often: if it were evidence there, `W8 10 us, sync` at
                // a fixed 50 % would get 26 of 41 beside processes of 30 to 100 % that are killed each 300 ms (`attacks killed`).
                Part::Rest if turns.are_watched() => {}
                Part::Rest => {
                    let unseen_ns = turns.unseen(from, until).min(added_ns);
                    self.evidence.add_unseen(done.work_ns, unseen_ns, now);
                }
                Part::Alone(_) => self.evidence.add_measured(done.work_ns, least_ns, now),
                _ => {}
            }
            // What is not this process's own may be its siblings'. Without that,
            // `T11 1 of around 3 ms and one with 10 us each 200 us, 30` gets 12 points more than its bound allows.
            let new_ns = added_ns.min(account.cover(from, until));
            let new_ns = turns.part_of_container(new_ns, from, until);
            self.certain_new_ns = self.certain_new_ns.saturating_add(new_ns);
        }
        self.work_ns = self.work_ns.saturating_add(work_ns);
        self.spans_ns = self.spans_ns.saturating_add(length_ns);
        let busy_ns = self.alone.busy_ns(self.work_ns, self.spans_ns);
        let busy_ns = busy_ns.min(self.work_ns).max(self.certain_ns).max(self.measured_ns);
        let alone_ns = grow(&mut self.charged_ns, busy_ns);
        let busy_ns = self.together.busy_ns(self.work_ns, self.spans_ns);
        let new_ns = grow(&mut self.covered_ns, busy_ns.saturating_add(self.certain_new_ns));
        let due = account.charge(alone_ns, new_ns);
        self.due_ns = self.due_ns.saturating_add(due);
        // Of an operation, as many turns of others count as it had itself: what flows in while they leave it hardly one is not
        // saved up. Any other span may contain time in which the stream was idle.
        let since = match done.span {
            Span::Operation(start, end) | Span::Waited(start, end) => {
                start.max(end.saturating_sub(alone_ns.saturating_mul(2)))
            }
            Span::Batch(_, end) | Span::From(_, end) | Span::Until(_, end) => {
                end.saturating_sub(alone_ns)
            }
            Span::Unknown => now.saturating_sub(alone_ns),
        };
        Due { since: since.min(now), own_ns: alone_ns, ns: due }
    }

    /// Adds the time in which the device certainly worked for this process. The turns of processes without a report are
    /// contained in it, and look like launches that take long now and then: beside one that works, nothing is certain.
    fn certain(&mut self, certain: Option<Certain>, turns: &Turns) -> Option<AddedTime> {
        let Certain { from, until, part } = certain.filter(|_| !self.beside_unreported_work())?;
        let added_ns = self.certain.add(from, until);
        let passed = until.saturating_sub(from);
        let mean_ns = turns.part(added_ns, from, until);
        let is_own = !turns.has_others() || passed >= turns.longest_wait_ns();
        // What an operation cost is certain: without this, `T3 two containers, 300 us, waited for` misses its bound at
        // 30 % each.
        let least_ns = match part {
            Part::Known(ns) | Part::Alone(ns) => scaled(added_ns, ns.min(passed), passed),
            Part::Rest => {
                let least_ns = turns.least_part(added_ns, from, until);
                // If others had twice what they report, it was a wait for their turns. Without this,
                // `T3 two containers, 100 us, waited for, 30/70` gets 17, not 24, of 25: what each takes for its own work, its
                // report takes from the charge of the other, whose report is less by it.
                if is_own { least_ns } else { least_ns.saturating_sub(added_ns - least_ns) }
            }
            Part::Turns => lower_bound(mean_ns, added_ns),
        };
        Some(AddedTime { from, until, part, added_ns, least_ns, is_own })
    }

    /// Returns for how long the device was at a batch that was as long as its work, of which one end is known. Batches
    /// of launches that vary are longer and shorter than what was expected of each, so what one had no time for may
    /// have been done in another. Without this, `T10 5 of around 5 us, then a wait, 30, beside 40` gets 4 points more.
    fn fit(&mut self, work_ns: u64, start: u64, end: u64, turns: &Turns) -> u64 {
        let passed_ns = end.saturating_sub(start);
        if turns.of(start, end) < passed_ns {
            // In turns of others it was done in none.
            return work_ns.min(passed_ns);
        }
        let wanted_ns = work_ns.saturating_add(self.beyond_ns);
        let fits_ns = wanted_ns.min(passed_ns);
        self.beyond_ns = wanted_ns - fits_ns;
        fits_ns
    }

    /// Returns whether a process on the device may publish no report.
    pub(crate) const fn has_unreported(&self) -> bool {
        !matches!(self.unreported, UnreportedProcesses::None)
    }

    /// Returns whether such a process may work.
    pub(crate) const fn beside_unreported_work(&self) -> bool {
        matches!(self.unreported, UnreportedProcesses::Working)
    }

    /// Sets what processes there are that publish no report. Before one was known to work, its turns were evidence of launches
    /// that differ by their data.
    pub(crate) fn set_unreported(&mut self, unreported: UnreportedProcesses) {
        let did_work = self.beside_unreported_work();
        self.unreported = unreported;
        if self.beside_unreported_work() && !did_work {
            self.evidence = Evidence::default();
        }
    }

    /// Returns whether each launch is to be measured by itself for a while, and charged its measurement.
    pub(crate) const fn is_doubtful(&self, now: u64) -> bool {
        self.evidence.is_doubtful(now)
    }

    /// Returns whether no estimate is trusted, nor the reports of siblings, whose launches may differ too. Without this,
    /// `T10 2 of 1 in 35 takes 4500 us, 8 waited for, 30` gets all of the device. Beside other containers alone, a launch that
    /// is measured costs less: if this were so there too, `T10 1 in 20 takes 130 us, 1 waited for, 30, beside 40` would get 20.
    fn doubts_siblings(&self, turns: &Turns, now: u64) -> bool {
        self.is_doubtful(now) && turns.has_siblings() && !self.beside_unreported_work()
    }

    /// Restarts the spans: the events' time base changed, and the clock went back.
    pub(crate) fn clock_moved(&mut self, account: TimeAccount<'_>) {
        account.forget();
        self.coverage.clear();
        self.certain.clear();
    }

    /// Returns how much of `work_ns` will not be due if it overlaps as work lately did.
    pub(crate) fn overlap_of(&self, work_ns: u64) -> u64 {
        work_ns.saturating_mul(ONE - self.due) / ONE
    }

    fn begin_epoch(&mut self, now: u64) {
        if let Some(due) = self.due_ns.saturating_mul(ONE).checked_div(self.work_ns) {
            self.due = (self.due * 3 + due.min(ONE)) / 4;
        }
        (self.work_ns, self.spans_ns, self.beyond_ns) = (0, 0, 0);
        (self.certain_ns, self.certain_new_ns, self.measured_ns) = (0, 0, 0);
        (self.alone, self.together) = (Occupied::default(), Occupied::default());
        (self.charged_ns, self.covered_ns, self.due_ns) = (0, 0, 0);
        self.epoch_ends = now.saturating_add(EPOCH_NS);
    }
}
