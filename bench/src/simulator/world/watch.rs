//! The library's own thread of a process: it looks at what is in flight, and more often while other processes of the
//! container wait for the end of a launch of unknown length.

use super::World;
use super::metered::Metered;
use super::thread::{State, Thread};
use crate::simulator::program::Act;

/// How often it looks while nothing is in flight, and for how long.
const IDLE_NS: u64 = 10_000_000;
const LINGER_NS: u64 = 1_000_000_000;

impl Thread {
    /// One that does nothing until it is [needed](World::watch).
    pub(super) fn watcher(process: usize) -> Self {
        let (program, allowances) = (Box::new(|_: u64, _: &mut _| Act::Die), Vec::new());
        Self { process, program, allowances, state: State::Gone, blocked: false }
    }
}

impl World<'_> {
    /// Sees to it that it looks at what was launched in a stream.
    pub(super) fn watch(&mut self, thread: usize, stream: usize) {
        let (now, process) = (self.now, self.threads[thread].process);
        let begins = self.processes[process].looks_at.is_none();
        let Some(Metered { meter, .. }) = &mut self.metered(thread, stream) else { return };
        if begins {
            meter.set_watched(true, now);
        }
        let (wants, is_awaited) = (meter.wants_watch(), meter.is_awaited());
        let tenant = &self.processes[self.threads[thread].process];
        if wants && (is_awaited || tenant.looks_at.is_none()) {
            self.looks_again(tenant.watcher, self.now);
        }
    }

    fn looks_again(&mut self, watcher: usize, at: u64) {
        let (_, late_ns) = self.setup.wake_ns;
        let after_ns = at.saturating_sub(self.now) + late_ns;
        self.processes[self.threads[watcher].process].looks_at = Some(self.now + after_ns);
        self.later(watcher, after_ns, State::Watching);
    }

    pub(super) fn look_in_flight(&mut self, watcher: usize) {
        let (now, process) = (self.now, self.threads[watcher].process);
        let tenant = &mut self.processes[process];
        if tenant.looks_at != Some(now) {
            // It was woken in the mean time.
            self.threads[watcher].state = State::Watching;
            return;
        }
        let (mut again, streams): (Option<u64>, _) = (None, tenant.streams.len());
        for stream in 0..streams {
            let next = match self.metered(watcher, stream) {
                None => None,
                Some(mut place) if !place.meter.is_watch_due(now) => {
                    let _ = place.meter.watch_unmarked(now, &mut place.probe);
                    Some(now + IDLE_NS)
                }
                Some(_) => {
                    self.look_around(watcher, stream, false);
                    self.metered(watcher, stream)
                        .and_then(|mut place| place.meter.watch(now, &mut place.probe))
                }
            };
            again = again.into_iter().chain(next).min();
        }
        let tenant = &mut self.processes[process];
        if again.is_some() {
            tenant.idle_since = now;
        }
        let mut goes_on = now - tenant.idle_since < LINGER_NS;
        if !goes_on {
            tenant.looks_at = None;
            for stream in 0..streams {
                let rests = self.metered(watcher, stream).map(|place| place.meter.rest(now));
                goes_on |= rests == Some(true);
            }
        }
        if goes_on {
            self.looks_again(watcher, again.unwrap_or(now + IDLE_NS));
        }
    }
}
