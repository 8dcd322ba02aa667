//! Launches of unknown length: on a device, one at a time of all the processes of a container is in flight.
//!
//! How long such a launch takes is known when its process has seen its end. Several that were in flight together could
//! each take any time, and all of that would be paid for afterwards: without it,
//! `T2 8 processes with functions never seen, 1500 ms, 10` has the whole device for ten seconds.
//!
//! One word of the device says which process has one in flight, and is exchanged by the next one:
//!
//! ```text
//! Word   when it was admitted >> 20:40   how many were not waited for:8   process:16      zero: none
//! ```
//!
//! A process notices an end when it makes a call, and it may make none for long: so another one waits for two seconds at
//! most, and twice as long for one that was admitted in this way itself. The word of a dead process is removed by the
//! first one that finds it dead.

use crate::sync::Word;

/// The launches of unknown length of one process, among those of its container.
#[derive(Debug)]
pub(crate) struct UnknownLaunches<'a> {
    /// The device's word, if there are other processes, and what this process is called in it.
    word: Option<&'a Word>,
    process: u16,
    /// What this process has put there.
    noted: Option<u64>,
}

/// For how long another process waits for the end of one.
const PATIENCE_NS: u64 = 2_000_000_000;
const MOST_DOUBLINGS: u64 = 3;
/// Times are kept in units of 2^20 ns.
const UNIT_BITS: u32 = 20;
const PROCESS_BITS: u32 = 16;
const COUNT_BITS: u32 = 8;
const PROCESS: u64 = (1 << PROCESS_BITS) - 1;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

impl<'a> UnknownLaunches<'a> {
    /// Those of the process with this number, which is not zero.
    pub(crate) const fn new(word: Option<&'a Word>, process: u16) -> Self {
        Self { word, process, noted: None }
    }

    /// Returns whether one may go now, which is then noted: none of another process is in flight.
    pub(crate) fn begin(&mut self, now: u64) -> bool {
        let Some(word) = self.word else { return true };
        let found = word.load();
        let is_free = found == 0 || found & PROCESS == u64::from(self.process);
        let passed = now.abs_diff(found >> (PROCESS_BITS + COUNT_BITS) << UNIT_BITS);
        let count = found >> PROCESS_BITS & COUNT;
        if !is_free && passed < PATIENCE_NS << count.min(MOST_DOUBLINGS) {
            return false;
        }
        let count = if is_free { 0 } else { MOST_DOUBLINGS.min(count + 1) };
        let at = now >> UNIT_BITS << (PROCESS_BITS + COUNT_BITS);
        let noted = at | count << PROCESS_BITS | u64::from(self.process);
        let is_noted = word.replace(found, noted).is_ok();
        if is_noted {
            self.noted = Some(noted);
        }
        is_noted
    }

    /// None of this process is in flight any more.
    pub(crate) fn end(&mut self) {
        if let (Some(word), Some(noted)) = (self.word, self.noted.take()) {
            // Another process did not wait for it.
            let _ = word.replace(noted, 0);
        }
    }

    /// A process has died: none of it is in flight.
    pub(crate) fn died(&self, process: u16) {
        if let Some(word) = self.word {
            let found = word.load();
            if found & PROCESS == u64::from(process) {
                let _ = word.replace(found, 0);
            }
        }
    }
}
