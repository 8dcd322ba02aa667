//! A thread, call by call: a little state machine that asks to be woken at a time, or when its stream got ahead.
//!
//! What it does with the meter is what the shim does, step by step and in the same order.

use super::super::card::{Card, What};
use super::super::program::{Act, Kernel, Program};
use super::super::setup::Ablation;
use super::World;
use gpucap_core::throttle::{Batch, Events, Launch, Permit, Reached, Signature, Verdict};
use std::cmp::Reverse;
use std::sync::Arc;

pub(super) struct Thread {
    pub(super) process: usize,
    pub(super) program: Program,
    /// What it has prepaid, by stream.
    pub(super) batches: Vec<Arc<Batch>>,
    pub(super) state: State,
    /// Asleep until its stream got ahead.
    pub(super) blocked: bool,
}

pub(super) enum State {
    /// The next call of the program.
    Next,
    /// A launch that the meter has not admitted yet, called at this time.
    Asking {
        stream: usize,
        kernel: Kernel,
        called: u64,
    },
    /// Admitted: by the meter, or out of the batch.
    Admitted {
        stream: usize,
        kernel: Kernel,
        permit: Option<Permit>,
    },
    /// The launch has returned.
    Launched {
        stream: usize,
        permit: Permit,
        returned: u64,
        pair: Option<[usize; 2]>,
    },
    Copying {
        stream: usize,
        ns: u64,
    },
    Syncing {
        stream: Option<usize>,
    },
    /// A synchronizing call has returned.
    Synced {
        stream: Option<usize>,
    },
    Gone,
}

/// The driver's answer to questions about events.
struct Probe<'c> {
    card: &'c mut Card,
    drift_ppm: u64,
}

impl Events for Probe<'_> {
    type Event = usize;

    fn reached(&mut self, event: &usize) -> Reached {
        let Some(at) = self.card.reached(*event) else { return Reached::Pending };
        // Laid onto the host's clock once a second.
        let since = at % 1_000_000_000;
        Reached::At(at + since * self.drift_ppm / 1_000_000)
    }

    fn give_back(&mut self, event: usize) {
        self.card.give_back(event);
    }
}

impl World<'_> {
    /// The thread goes on as far as it can without time passing.
    pub(super) fn step(&mut self, thread: usize) {
        match std::mem::replace(&mut self.threads[thread].state, State::Gone) {
            State::Next => self.begin(thread),
            State::Asking { stream, kernel, called } => self.ask(thread, stream, kernel, called),
            State::Admitted { stream, kernel, permit } => {
                self.submit(thread, stream, kernel, permit)
            }
            State::Launched { stream, permit, returned, pair } => {
                let place = self.meter_of(thread, stream);
                let (card, drift_ppm) = (&mut self.card, self.setup.drift_ppm);
                let measured = pair.is_some();
                let tenant = &mut self.processes[self.threads[thread].process];
                let mut took = self.setup.meter_ns;
                if let Some(meter) = tenant.meters.get_mut(place) {
                    meter.launched(permit, returned, pair, &mut Probe { card, drift_ppm });
                    let super::Line { number, metered } = tenant.streams[stream];
                    if let Some(id) = metered.filter(|_| measured && meter.wants_spacing()) {
                        let event = self.card.event();
                        let arrives = self.now + self.setup.record_ns;
                        self.card.push(number, arrives, What::Event(event));
                        let (card, drift_ppm) = (&mut self.card, self.setup.drift_ppm);
                        meter.spaced(id, event, arrives, &mut Probe { card, drift_ppm });
                        took += self.setup.record_ns;
                    }
                }
                self.later(thread, took, State::Next);
            }
            State::Copying { stream, ns } => {
                let line = self.line(thread, stream);
                if self.card.queued(line) < self.setup.depth {
                    let arrives = self.now + self.setup.launch_ns;
                    self.card.push(line, arrives, What::Copy(ns));
                    self.later(thread, self.setup.launch_ns, State::Next);
                } else {
                    self.block(thread, State::Copying { stream, ns });
                }
            }
            State::Syncing { stream } => {
                let process = self.threads[thread].process;
                let lines = &self.processes[process].streams;
                let empty = lines.iter().enumerate().all(|(index, line)| {
                    stream.is_some_and(|only| only != index) || self.card.queued(line.number) == 0
                });
                if empty {
                    self.later(thread, self.setup.sync_ns, State::Synced { stream });
                } else {
                    self.block(thread, State::Syncing { stream });
                }
            }
            State::Synced { stream } => {
                self.synced(thread, stream);
                self.later(thread, 0, State::Next);
            }
            State::Gone => {}
        }
    }

    fn begin(&mut self, thread: usize) {
        let Thread { program, process, .. } = &mut self.threads[thread];
        let process = *process;
        match program(self.now, &mut self.dice) {
            Act::Launch { stream, kernel } => self.ask(thread, stream, kernel, self.now),
            Act::Copy { stream, ns } => self.later(thread, 0, State::Copying { stream, ns }),
            Act::Sync(stream) => self.later(thread, 0, State::Syncing { stream }),
            Act::Think(ns) => self.later(thread, ns, State::Next),
            Act::Until(at) => self.later(thread, at.saturating_sub(self.now), State::Next),
            Act::Die => {
                self.card.kill(process);
                for thread in self.threads.iter_mut().filter(|thread| thread.process == process) {
                    (thread.state, thread.blocked) = (State::Gone, false);
                }
            }
        }
    }

    /// A launch: out of the batch, or by the meter's leave.
    fn ask(&mut self, thread: usize, stream: usize, kernel: Kernel, called: u64) {
        let place = self.meter_of(thread, stream);
        let tenant = &mut self.processes[self.threads[thread].process];
        let graph_is_free = kernel.nodes.is_some() && self.setup.without == Ablation::Graphs;
        let batch = &self.threads[thread].batches[stream];
        let metered = tenant.streams[stream].metered;
        let (Some(id), Some(meter), false) = (metered, tenant.meters.get_mut(place), graph_is_free)
        else {
            return self.submit(thread, stream, kernel, None);
        };
        let (signature, launch) = as_launch(kernel, called);
        let small = tenant.costs[place].small(signature);
        if small.is_some_and(|cost| batch.spend(cost)) {
            tenant.waits.push(self.now - called);
            return self.later(
                thread,
                self.setup.fast_ns,
                State::Admitted { stream, kernel, permit: None },
            );
        }
        if self.setup.without == Ablation::Learning {
            meter.changed(signature);
        }
        let (card, drift_ppm) = (&mut self.card, self.setup.drift_ppm);
        match meter.before_launch(id, batch, launch, self.now, &mut Probe { card, drift_ppm }) {
            Verdict::Admit(permit) => {
                tenant.waits.push(self.now - called);
                let permit = Some(permit);
                self.later(thread, self.setup.meter_ns, State::Admitted { stream, kernel, permit });
            }
            Verdict::Wait { until } => {
                if meter.wants_mark(id) && self.setup.without != Ablation::Marks {
                    let event = self.card.event();
                    self.card.push(
                        tenant.streams[stream].number,
                        self.now + self.setup.record_ns,
                        What::Event(event),
                    );
                    let (card, drift_ppm) = (&mut self.card, self.setup.drift_ppm);
                    meter.marked(id, event, self.now, &mut Probe { card, drift_ppm });
                }
                let (least, most) = self.setup.wake_ns;
                let late = self.dice.between(least, most);
                self.later(
                    thread,
                    until - self.now + late,
                    State::Asking { stream, kernel, called },
                );
            }
        }
    }

    /// The driver's part of a launch, and the events around it.
    fn submit(&mut self, thread: usize, stream: usize, kernel: Kernel, permit: Option<Permit>) {
        let line = self.line(thread, stream);
        if self.card.queued(line) + 3 > self.setup.depth {
            return self.block(thread, State::Admitted { stream, kernel, permit });
        }
        let measured = permit.as_ref().is_some_and(Permit::wants_events)
            && self.setup.without != Ablation::Measurement;
        let mut returned = self.now + self.setup.launch_ns;
        let event = |card: &mut Card, at| {
            let event = card.event();
            card.push(line, at, What::Event(event));
            event
        };
        let before = measured.then(|| {
            returned += self.setup.record_ns;
            event(&mut self.card, self.now + self.setup.record_ns)
        });
        let arrives = returned + self.dice.between(0, self.setup.arrival_ns);
        self.card.push(line, arrives, What::Kernel { ns: kernel.ns, width: kernel.width });
        let after = measured.then(|| event(&mut self.card, returned + self.setup.record_ns));
        let pair = before.zip(after).map(|(before, after)| [before, after]);
        let over = returned + if measured { self.setup.record_ns } else { 0 } - self.now;
        let known = if self.setup.without == Ablation::GapRule { 0 } else { returned };
        let state = match permit {
            Some(permit) => State::Launched { stream, permit, returned: known, pair },
            None => State::Next,
        };
        self.later(thread, over, state);
    }

    fn synced(&mut self, thread: usize, stream: Option<usize>) {
        let tenant = &mut self.processes[self.threads[thread].process];
        for (index, line) in tenant.streams.iter().enumerate() {
            if stream.is_some_and(|only| only != index) {
                continue;
            }
            let place = index % tenant.meters.len().max(1);
            if let (Some(id), Some(meter)) = (line.metered, tenant.meters.get_mut(place)) {
                let (card, drift_ppm) = (&mut self.card, self.setup.drift_ppm);
                meter.sync_returned(Some(id), self.now, &mut Probe { card, drift_ppm });
            }
        }
    }

    fn later(&mut self, thread: usize, ns: u64, state: State) {
        self.threads[thread].state = state;
        self.calendar.push(Reverse((self.now + ns, thread)));
    }

    fn block(&mut self, thread: usize, state: State) {
        self.threads[thread].state = state;
        self.threads[thread].blocked = true;
    }

    /// The card's number of a stream of the thread's process.
    fn line(&self, thread: usize, stream: usize) -> usize {
        self.processes[self.threads[thread].process].streams[stream].number
    }

    /// Which of its process's meters has the stream.
    fn meter_of(&self, thread: usize, stream: usize) -> usize {
        stream % self.processes[self.threads[thread].process].meters.len().max(1)
    }
}

fn as_launch(kernel: Kernel, now: u64) -> (Signature, Launch) {
    let (signature, launch) = match kernel.nodes {
        None => {
            let signature = Signature::kernel(kernel.function, 1 << 16);
            (signature, Launch::kernel(signature))
        }
        Some(nodes) => {
            let signature = Signature::graph(kernel.function);
            (signature, Launch::graph(signature, nodes))
        }
    };
    (signature, if kernel.is_collective { launch.collective(now) } else { launch })
}
