//! Evidence that the expected costs of launches say little about the time that they take.
//!
//! An estimate is a mean with outliers cut off, and most launches are charged an estimate. A function whose duration
//! varies by orders of magnitude, with its data, goes far beyond it. Of work that is not waited for all time is certain
//! (see [`settlement`](super::settlement)), and no estimate is needed. Of a batch that a call waited for only a part
//! is, and little of it beside other processes. So where much is beyond the estimates, none is used for a while: each
//! launch is measured by itself, and charged its measurement.
//!
//! What is beyond them here is never more than what was certainly beyond, less the work of other streams at that time.

use super::costs::OUTLIER;

/// What was seen, and until when estimates are not used.
///
/// Without it, `T10 1 in 100 takes 1280 us, 50 waited for, 30, beside 40` gets 37.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Of batches that a call waited for. Without it, `T10 1 in 100 takes 15 ms, waited for, 50, beside 40` leaves the
    /// other one 29.
    waits: Beyond,
    /// Of operations that were measured, with the device for themselves, on an empty stream. Without it,
    /// `T10 1 in 20 takes 130 us, 1 waited for, 30` gets 40: no wait is longer than a call takes to return.
    measured: Beyond,
    /// What was expected of all other work, and how long it took, in the mean.
    work_ns: u64,
    length_ns: u64,
    since: u64,
    doubtful_until: u64,
}

/// What was expected of some work, or is certain of it if that is far more, and how much of that was not expected.
#[derive(Debug, Default)]
struct Beyond {
    ns: u64,
    beyond_ns: u64,
}

/// The period over which evidence is collected.
const TRIAL_NS: u64 = 5_000_000_000;
/// How long estimates are not used then.
const DOUBT_NS: u64 = 10_000_000_000;
/// Less than this beyond what was expected, in a trial, may be a thread that ran late.
const LEAST_BEYOND_NS: u64 = 5_000_000;
/// The part of the work that may be beyond what was expected: of all of it, where batches were waited for, which
/// contains what a process that began at that time had; of the operations that were measured, where those were. Switches
/// between processes, which no report contains, are about a ninth of these for kernels of 10 us beside others, if events
/// are reached at once.
const MOST_BEYOND: u64 = 4;
/// Copies between launches double the apparent work, and processes that share the device multiply it by their number;
/// a larger ratio is no accident.
const MOST_LENGTH: u64 = 16;
/// A wait in which nothing of this process was seen in flight may be one for a turn of others, but estimates that are less
/// than this part of it are doubted. Four in place of it leave `T10 2 of around 4 us, 20 waited for, 30, beside 50 of
/// 30 us, waited for, and 10` far beyond its bound.
const MOST_UNSEEN: u64 = 2;
/// Less than this may be a few turns of other processes.
const LEAST_LENGTH_NS: u64 = 50_000_000;

/// Returns whether something took longer than expected by a factor that no mean explains.
pub(super) const fn is_far_beyond(ns: u64, expected_ns: u64) -> bool {
    ns / OUTLIER > expected_ns
}

impl Beyond {
    /// Adds work, of which `certain_ns` is certain, and whether that is beyond what was expected.
    const fn add(&mut self, work_ns: u64, certain_ns: u64, is_beyond: bool) {
        let beyond_ns = if is_beyond { certain_ns.saturating_sub(work_ns) } else { 0 };
        self.ns = self.ns.saturating_add(work_ns).saturating_add(beyond_ns);
        self.beyond_ns = self.beyond_ns.saturating_add(beyond_ns);
    }

    /// Returns whether too much was beyond what was expected: more than this.
    const fn is_over(&self, most_ns: u64) -> bool {
        self.beyond_ns >= LEAST_BEYOND_NS && self.beyond_ns > most_ns
    }
}

impl Evidence {
    /// Returns whether estimates are not used now.
    pub(super) const fn is_doubtful(&self, now: u64) -> bool {
        now < self.doubtful_until
    }

    /// Adds a batch that a call waited for.
    pub(super) fn add_waited_for(&mut self, work_ns: u64, certain_ns: u64, now: u64) {
        self.add_wait(work_ns, certain_ns, is_far_beyond(certain_ns, work_ns), now);
    }

    /// Adds one of which nothing was seen in flight in some of the time. Without this,
    /// `T10 2 of around 4 us, 50 waited for, 30, beside 40` gets 49.
    pub(super) fn add_unseen(&mut self, work_ns: u64, unseen_ns: u64, now: u64) {
        self.add_wait(work_ns, unseen_ns, unseen_ns / MOST_UNSEEN > work_ns, now);
    }

    fn add_wait(&mut self, work_ns: u64, certain_ns: u64, is_beyond: bool, now: u64) {
        self.waits.add(work_ns, certain_ns, is_beyond);
        let all_ns = self.waits.ns.saturating_add(self.work_ns);
        self.doubt_if(self.waits.is_over(all_ns / MOST_BEYOND), now);
    }

    /// Adds an operation that was measured on an empty stream, and nothing else explains how long.
    pub(super) fn add_measured(&mut self, work_ns: u64, took_ns: u64, now: u64) {
        self.measured.add(work_ns, took_ns, is_far_beyond(took_ns, work_ns));
        self.doubt_if(self.measured.is_over(self.measured.ns / MOST_BEYOND), now);
    }

    /// Adds work in a time that another stream was seen to be occupied for: it waited for that. Without this,
    /// `W4 8 streams x 50 us` gets 24 at 30 % beside an unreported process whose turns the node samples.
    pub(super) const fn explain(&mut self, work_ns: u64) {
        self.waits.beyond_ns = self.waits.beyond_ns.saturating_sub(work_ns);
        self.measured.beyond_ns = self.measured.beyond_ns.saturating_sub(work_ns);
    }

    /// Adds work that was not waited for, or was measured. Without it `T10 1 in 100 takes 15 ms, 30, beside an idle one` gets
    /// all of the device, and 33 % with it.
    pub(super) fn add_known(&mut self, work_ns: u64, length_ns: u64, now: u64) {
        self.work_ns = self.work_ns.saturating_add(work_ns);
        self.length_ns = self.length_ns.saturating_add(length_ns);
        let too_long = self.length_ns > self.work_ns.saturating_mul(MOST_LENGTH);
        self.doubt_if(too_long && self.length_ns >= LEAST_LENGTH_NS, now);
    }

    fn doubt_if(&mut self, is_beyond: bool, now: u64) {
        let begins = is_beyond && !self.is_doubtful(now);
        if begins || now.saturating_sub(self.since) >= TRIAL_NS {
            let until = if begins { now.saturating_add(DOUBT_NS) } else { self.doubtful_until };
            *self = Self { since: now, doubtful_until: until, ..Self::default() };
        }
    }
}
