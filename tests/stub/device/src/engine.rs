//! The compute engine of one unit: which process has it when.
//!
//! Pure: time is an argument. A process that has work queued owns the engine for a time slice, then
//! the next one does, in turn; an idle process is skipped at once. [`Lane`] is one process's view.
//! Its `progress` counts the nanoseconds for which it has owned the engine: a kernel's end is a
//! point on that axis, known when it is queued, whatever the other processes do later. Kernels of
//! one process in different streams run side by side.
//!
//! `last` never goes back, and while a lane has work its progress never stops for good.

/// Processes that can compute on one unit.
pub const LANES: usize = 256;
/// Past stretches of ownership that a lane remembers.
const STRETCHES: usize = 512;
/// Length of one utilisation sample.
pub const SAMPLE_NS: u64 = 1_000_000_000 / 6;
const SAMPLES: usize = 64;

/// One stretch during which a lane owned the engine.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    /// Host time at which it began.
    begin: u64,
    /// Progress at which it began.
    progress: u64,
    /// How long it was.
    length: u64,
}

/// One process on one unit.
#[repr(C)]
#[derive(Debug)]
pub struct Lane {
    /// Nanoseconds of ownership so far.
    progress: u64,
    /// Progress at which all queued work is done.
    tail: u64,
    stretches: [Stretch; STRETCHES],
    /// How many stretches were ever written.
    written: u64,
}

impl Lane {
    /// Progress so far.
    #[must_use]
    pub fn progress(&self) -> u64 {
        self.progress
    }

    /// Host time at which `progress` was reached, if it was; the oldest known time if that is
    /// forgotten.
    #[must_use]
    pub fn reached(&self, progress: u64) -> Option<u64> {
        if progress > self.progress {
            return None;
        }
        // The start of the axis: a lane without any work has always been there.
        let mut oldest = 0;
        for back in 1..=self.written.min(STRETCHES as u64) {
            let stretch = &self.stretches[slot(self.written - back)];
            oldest = stretch.begin;
            if stretch.progress < progress {
                return Some(stretch.begin + (progress - stretch.progress).min(stretch.length));
            }
        }
        Some(oldest)
    }

    /// For how long it owned the engine since `from`, as far as it is remembered.
    #[must_use]
    pub fn owned_since(&self, from: u64) -> u64 {
        let known = (1..=self.written.min(STRETCHES as u64)).map(|back| self.written - back);
        let stretches = known.map(|number| &self.stretches[slot(number)]);
        stretches.map(|it| (it.begin + it.length).saturating_sub(it.begin.max(from))).sum()
    }

    fn busy(&self) -> bool {
        self.tail > self.progress
    }

    fn own(&mut self, begin: u64, length: u64) {
        let previous = self.written.checked_sub(1).map(slot);
        match previous.map(|index| &mut self.stretches[index]) {
            Some(stretch) if stretch.begin + stretch.length == begin => stretch.length += length,
            _ => {
                self.stretches[slot(self.written)] =
                    Stretch { begin, progress: self.progress, length };
                self.written += 1;
            }
        }
        self.progress += length;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the remainder is below STRETCHES")]
fn slot(written: u64) -> usize {
    (written % STRETCHES as u64) as usize
}

/// How processes take turns.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// The time slice of each.
    pub slice: u64,
    /// What a switch from one to another takes, in which nothing is done.
    pub switch: u64,
}

/// The engine of one unit.
#[repr(C)]
#[derive(Debug)]
pub struct Engine {
    /// Host time up to which everything is decided.
    last: u64,
    /// Lane whose turn it is.
    owner: usize,
    /// What is left of its turn.
    turn: u64,
    /// What is left of the switch to it.
    switch: u64,
    /// One past the highest lane ever used.
    used: usize,
    /// Nanoseconds during which any lane had work.
    busy: u64,
    /// Busy nanoseconds of recent samples, by sample number modulo their count.
    samples: [(u64, u64); SAMPLES],
    lanes: [Lane; LANES],
}

impl Engine {
    /// A lane.
    #[must_use]
    pub fn lane(&self, lane: usize) -> &Lane {
        &self.lanes[lane]
    }

    /// Nanoseconds of work done by all lanes.
    #[must_use]
    pub fn busy(&self) -> u64 {
        self.busy
    }

    /// Takes a lane from a process that is gone: its queued work is dropped.
    pub fn clear(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        lane.progress = 0;
        lane.tail = 0;
        lane.written = 0;
    }

    /// Drops what is queued on a lane, but for what ends at `keep` or before.
    pub fn drop_work(&mut self, lane: usize, keep: u64) {
        let lane = &mut self.lanes[lane];
        lane.tail = lane.tail.min(keep.max(lane.progress));
    }

    /// Queues `duration` behind `after` on a lane; the progress at which it will be done.
    pub fn push(&mut self, lane: usize, after: u64, duration: u64) -> u64 {
        self.used = self.used.max(lane + 1);
        let lane = &mut self.lanes[lane];
        let end = lane.progress.max(after) + duration;
        lane.tail = lane.tail.max(end);
        end
    }

    /// Decides everything up to host time `now`.
    pub fn advance(&mut self, now: u64, turns: Turns) {
        while self.last < now {
            let Some(owner) = self.next_owner() else {
                self.last = now;
                return;
            };
            let alone = !(0..self.used).any(|lane| lane != owner && self.lanes[lane].busy());
            if owner != self.owner {
                self.switch = turns.switch;
            }
            if owner != self.owner || self.turn == 0 || alone {
                self.owner = owner;
                self.turn = turns.slice;
            }
            if self.switch > 0 {
                let length = self.switch.min(now - self.last);
                self.switch -= length;
                self.last += length;
                continue;
            }
            let lane = &self.lanes[owner];
            let mut length = (now - self.last).min(lane.tail - lane.progress);
            if !alone {
                length = length.min(self.turn);
            }
            self.lanes[owner].own(self.last, length);
            self.sample(length);
            self.turn = self.turn.saturating_sub(length);
            self.last += length;
        }
    }

    /// Busy part of the last complete sample before `now`, in percent.
    #[must_use]
    pub fn utilisation(&self, now: u64) -> u64 {
        self.samples(now).last().map_or(0, |(_, busy)| busy)
    }

    /// The latest complete samples before `now`: when each ended, and the busy part in percent.
    pub fn samples(&self, now: u64) -> impl Iterator<Item = (u64, u64)> {
        let present = now / SAMPLE_NS;
        let oldest = present.saturating_sub(SAMPLES as u64 - 1);
        (oldest..present).map(|sample| {
            let (number, busy) = self.samples[sample_slot(sample)];
            let busy = if number == sample { busy } else { 0 };
            ((sample + 1) * SAMPLE_NS, (busy * 100).div_ceil(SAMPLE_NS).min(100))
        })
    }

    /// The owner while it has work and time; else the next lane in turn that has work.
    fn next_owner(&self) -> Option<usize> {
        if self.turn > 0 && self.lanes[self.owner].busy() {
            return Some(self.owner);
        }
        let used = self.used;
        (1..=used).map(|step| (self.owner + step) % used).find(|lane| self.lanes[*lane].busy())
    }

    fn sample(&mut self, length: u64) {
        self.busy += length;
        let (mut at, end) = (self.last, self.last + length);
        // What is older than the ring would be overwritten at once.
        at = at.max(end.saturating_sub(SAMPLES as u64 * SAMPLE_NS));
        while at < end {
            let number = at / SAMPLE_NS;
            let until = end.min((number + 1) * SAMPLE_NS);
            let sample = &mut self.samples[sample_slot(number)];
            if sample.0 != number {
                *sample = (number, 0);
            }
            sample.1 += until - at;
            at = until;
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the remainder is below SAMPLES")]
fn sample_slot(number: u64) -> usize {
    (number % SAMPLES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Turns = Turns { slice: 2_000, switch: 0 };

    fn engine() -> Box<Engine> {
        let layout = std::alloc::Layout::new::<Engine>();
        // SAFETY: the layout has a size above zero.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        // SAFETY: the memory has the layout of an Engine, and all-zero is the state of an unused
        // one.
        unsafe { Box::from_raw(memory.cast()) }
    }

    #[test]
    fn alone_a_lane_progresses_with_the_clock() {
        let mut engine = engine();
        engine.advance(100, SLICE);
        let end = engine.push(0, 0, 5_000);
        engine.advance(3_100, SLICE);
        assert_eq!(engine.lane(0).progress(), 3_000);
        assert_eq!(engine.lane(0).reached(end), None);
        engine.advance(9_000, SLICE);
        assert_eq!(engine.lane(0).reached(end), Some(5_100));
        assert_eq!(engine.busy(), 5_000);
    }

    #[test]
    fn two_lanes_take_turns_and_finish_in_the_sum_of_their_times() {
        let mut engine = engine();
        let ends = [engine.push(0, 0, 10_000), engine.push(1, 0, 4_000)];
        engine.advance(20_000, SLICE);
        assert_eq!(engine.lane(0).reached(ends[0]), Some(14_000));
        let second = engine.lane(1).reached(ends[1]).expect("done");
        assert!((6_000..=8_000).contains(&second), "{second}");
        assert_eq!(engine.busy(), 14_000);
    }

    #[test]
    fn a_switch_takes_time_in_which_nothing_is_done() {
        let mut engine = engine();
        let ends = [engine.push(0, 0, 4_000), engine.push(1, 0, 4_000)];
        engine.advance(20_000, Turns { switch: 100, ..SLICE });
        assert_eq!(engine.lane(1).reached(ends[1]), Some(6_300), "two turns of each, in turn");
        assert_eq!(engine.lane(0).reached(ends[0]), Some(8_400));
        assert_eq!(engine.busy(), 8_000);
        let end = engine.push(0, ends[0], 1_000);
        engine.advance(30_000, Turns { switch: 100, ..SLICE });
        assert_eq!(engine.lane(0).reached(end), Some(21_000), "the last owner goes on at once");
    }

    #[test]
    fn what_is_dropped_is_never_done() {
        let mut engine = engine();
        let kept = engine.push(0, 0, 3_000);
        engine.push(0, 0, 9_000);
        engine.advance(1_000, SLICE);
        engine.drop_work(0, kept);
        engine.advance(20_000, SLICE);
        assert_eq!((engine.lane(0).reached(kept), engine.busy()), (Some(3_000), 3_000));
        engine.push(0, 0, 9_000);
        engine.advance(21_000, SLICE);
        engine.drop_work(0, kept);
        engine.advance(40_000, SLICE);
        assert_eq!(engine.busy(), 4_000, "what it has done is done");
    }

    #[test]
    fn the_order_of_questions_changes_nothing() {
        const SLICE: Turns = Turns { slice: 2_000, switch: 30 };
        let (mut coarse, mut fine) = (engine(), engine());
        for engine in [&mut coarse, &mut fine] {
            engine.push(0, 0, 9_000);
            engine.push(1, 0, 9_000);
            engine.push(2, 0, 1_000);
        }
        coarse.advance(16_000, SLICE);
        for now in (0..=16_000).step_by(7) {
            fine.advance(now, SLICE);
        }
        fine.advance(16_000, SLICE);
        for lane in 0..3 {
            assert_eq!(coarse.lane(lane).progress(), fine.lane(lane).progress(), "lane {lane}");
        }
    }

    #[test]
    fn an_idle_gap_is_not_progress() {
        let mut engine = engine();
        let first = engine.push(0, 0, 1_000);
        engine.advance(50_000, SLICE);
        let second = engine.push(0, first, 1_000);
        engine.advance(60_000, SLICE);
        assert_eq!(second, 2_000);
        assert_eq!(engine.lane(0).reached(second), Some(51_000));
    }

    #[test]
    fn nothing_queued_is_done_at_once() {
        let mut engine = engine();
        assert_eq!(engine.lane(0).reached(0), Some(0));
        engine.push(0, 0, 100);
        assert_eq!(engine.lane(0).reached(0), Some(0));
        assert_eq!(engine.lane(0).reached(1), None);
    }

    #[test]
    fn work_of_a_dead_process_is_dropped() {
        let mut engine = engine();
        engine.push(0, 0, u64::MAX / 2);
        let end = engine.push(1, 0, 100);
        engine.clear(0);
        engine.advance(100, SLICE);
        assert_eq!(engine.lane(1).reached(end), Some(100));
    }

    #[test]
    fn utilisation_is_the_busy_part_of_the_last_whole_sample() {
        let mut engine = engine();
        engine.push(0, 0, SAMPLE_NS / 4);
        engine.advance(SAMPLE_NS + 1, SLICE);
        assert_eq!(engine.utilisation(SAMPLE_NS + 1), 25);
        assert_eq!(engine.utilisation(2 * SAMPLE_NS + 1), 0);
    }
}
