//! The library's own thread of a process: it looks for the ends of launches of unknown length, for which other processes
//! of the container wait.

use super::World;
use super::metered::Metered;
use super::thread::{State, Thread};
use crate::simulator::program::Act;

impl Thread {
    /// One that does nothing until it is [needed](World::watch).
    pub(super) fn watcher(process: usize) -> Self {
        let (program, allowances) = (Box::new(|_: u64, _: &mut _| Act::Die), Vec::new());
        Self { process, program, allowances, state: State::Gone, blocked: false }
    }
}

impl World<'_> {
    /// Has it look, if other processes wait for the end of what was launched in a stream.
    pub(super) fn watch(&mut self, thread: usize, stream: usize) {
        let wants = self.metered(thread, stream).is_some_and(|place| place.meter.wants_watch());
        let tenant = &mut self.processes[self.threads[thread].process];
        if wants && !std::mem::replace(&mut tenant.is_watching, true) {
            let watcher = tenant.watcher;
            let (_, late_ns) = self.setup.wake_ns;
            self.later(watcher, late_ns, State::Watching);
        }
    }

    pub(super) fn look_for_ends(&mut self, watcher: usize) {
        let (now, process) = (self.now, self.threads[watcher].process);
        let mut again: Option<u64> = None;
        for stream in 0..self.processes[process].streams.len() {
            self.look_around(watcher, stream, false);
            if let Some(Metered { meter, probe, .. }) = &mut self.metered(watcher, stream) {
                again = again.into_iter().chain(meter.watch(now, probe)).min();
            }
        }
        self.processes[process].is_watching = again.is_some();
        if let Some(at) = again {
            let (_, late_ns) = self.setup.wake_ns;
            self.later(watcher, at - now + late_ns, State::Watching);
        }
    }
}
