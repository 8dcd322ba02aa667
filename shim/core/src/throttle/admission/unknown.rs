//! Launches of unknown length: on a device, one at a time of all the processes of a container is in flight.
//!
//! How long such a launch takes is known when its process has seen its end. Several in flight together take turns of the
//! device, all end late, and all of that is paid for afterwards: without it `T2 8 never seen, 20 ms, 50, beside 10 us, 50`
//! leaves the other container 25 of 37. A process notices an end in a call, and it may make none for long: so a thread looks
//! for it ([`Meter::watch`](crate::throttle::Meter::watch)), often where there are other processes of the container, and
//! charges what has passed.
//!
//! One word of the device says which process has one in flight:
//!
//! ```text
//! Word   when it was admitted >> 10:47   it is launched:1   process:16      zero: none
//! ```
//!
//! The driver may take long to launch it, since it loads the function: what is not launched counts for a moment. Kernels of
//! several processes may wait for each other, and a process may die with its word set: none is refused for longer than
//! [`PATIENCE_NS`]. By then what has passed is charged, and the gate is closed.

use crate::sync::Word;

/// The launches of unknown length of one process, among those of its container.
#[derive(Debug)]
pub(crate) struct UnknownLaunches<'a> {
    /// The device's word, and what this process is called in it.
    word: Option<&'a Word>,
    process: u16,
    /// There are other processes on the device.
    is_shared: bool,
    /// What this process has put there.
    noted: Option<u64>,
    /// Since when one of this process is refused.
    refused_since: Option<u64>,
}

/// For how long one is refused.
const PATIENCE_NS: u64 = 500_000_000;
/// In this time the driver launches a function that is loaded, also if the thread loses its processor in between.
const SOON_NS: u64 = 10_000_000;
/// Times are kept in units of 2^10 ns.
const UNIT_BITS: u32 = 10;
const PROCESS_BITS: u32 = 16;
const PROCESS: u64 = (1 << PROCESS_BITS) - 1;
const LAUNCHED: u64 = 1 << PROCESS_BITS;

impl<'a> UnknownLaunches<'a> {
    /// Those of the process with this number, which is not zero.
    pub(crate) const fn new(word: Option<&'a Word>, process: u16) -> Self {
        Self { word, process, is_shared: false, noted: None, refused_since: None }
    }

    /// Sets whether there are other processes of the container on the device.
    pub(crate) const fn set_shared(&mut self, is_shared: bool) {
        self.is_shared = is_shared;
    }

    /// Returns whether one may go now, which is then noted.
    pub(crate) fn begin(&mut self, now: u64) -> bool {
        let Some(word) = self.word.filter(|_| self.is_shared) else { return true };
        let found = word.load();
        let is_others = found != 0 && found & PROCESS != u64::from(self.process);
        let passed = now.abs_diff(found >> (PROCESS_BITS + 1) << UNIT_BITS);
        let noted = now >> UNIT_BITS << (PROCESS_BITS + 1) | u64::from(self.process);
        if is_others && (found & LAUNCHED != 0 || passed < SOON_NS) {
            let since = *self.refused_since.get_or_insert(now);
            if now.saturating_sub(since) < PATIENCE_NS {
                return false;
            }
        }
        let is_noted = word.replace(found, noted).is_ok();
        if is_noted {
            (self.noted, self.refused_since) = (Some(noted), None);
        }
        is_noted
    }

    /// None is refused now: the gate is closed.
    pub(crate) const fn pause(&mut self) {
        self.refused_since = None;
    }

    /// The driver has taken the launch.
    pub(crate) fn launched(&mut self) {
        if let (Some(word), Some(noted)) = (self.word, self.noted) {
            let next = noted | LAUNCHED;
            // Another process did not wait for it.
            self.noted = word.replace(noted, next).is_ok().then_some(next);
        }
    }

    /// Returns whether there are other processes of the container on the device.
    pub(crate) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Forgets what a process has noted that died.
    pub(crate) fn died(&self, process: u16) {
        let Some((word, found)) = self.word.map(|word| (word, word.load())) else { return };
        if found != 0 && found & PROCESS == u64::from(process) {
            let _ = word.replace(found, 0);
        }
    }

    /// None of this process is in flight any more.
    pub(crate) fn end(&mut self) {
        if let (Some(word), Some(noted)) = (self.word, self.noted.take()) {
            let _ = word.replace(noted, 0);
        }
    }
}
