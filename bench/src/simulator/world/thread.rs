//! A thread, call by call: a small state machine that asks to be woken at a time, or when its stream has advanced.
//!
//! Its calls of the meter are the shim's, step by step and in the same order.

use super::super::card::{Card, What};
use super::super::program::{Act, Kernel, Program, as_launch};
use super::super::setup::Ablation;
use super::World;
use gpucap_core::throttle::{Allowance, Costs, Events, Meter, Permit, Reached, StreamId, Verdict};
use std::cmp::Reverse;
use std::sync::Arc;

pub(super) struct Thread {
    pub(super) process: usize,
    pub(super) program: Program,
    /// Its allowances, by stream.
    pub(super) allowances: Vec<Arc<Allowance>>,
    pub(super) state: State,
    /// Asleep until its stream has advanced.
    pub(super) blocked: bool,
}

pub(super) enum State {
    /// The next call of the program.
    Next,
    /// A launch that the meter has not admitted yet, first called at this time.
    Asking {
        stream: usize,
        kernel: Kernel,
        called: u64,
    },
    /// Admitted: by the meter, or out of the allowance.
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
        pair: Option<[Mark; 2]>,
    },
    Copying {
        stream: usize,
        ns: u64,
    },
    Syncing {
        stream: Option<usize>,
        began: u64,
    },
    /// A synchronizing call has returned.
    Synced {
        stream: Option<usize>,
        began: u64,
    },
    Holding {
        stream: usize,
    },
    /// The driver's call that destroys the context.
    EndingContext,
    /// Another process begins in place of the one that was killed.
    Beginning,
    Gone,
}

/// A stream under a limit: its meter, and the meter's arguments.
pub(super) struct Metered<'w, 'a> {
    pub(super) id: StreamId,
    pub(super) meter: &'w mut Meter<'a, Mark>,
    costs: &'w Costs,
    waits: &'w mut Vec<u64>,
    metered: &'w mut u64,
    pub(super) probe: Probe<'w>,
}

/// A timing event, and the context that it ends with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    event: usize,
    context: u64,
}

/// The driver's answers to queries of events, and a new event at the end of the stream.
pub(super) struct Probe<'c> {
    card: &'c mut Card,
    stream: usize,
    context: u64,
    /// When the previous context ended; `None` while the driver is ending it.
    ended_at: Option<u64>,
    drift_ppm: u64,
}

impl Probe<'_> {
    fn event(&mut self, arrives: u64) -> Mark {
        let event = self.card.event();
        self.card.push(self.stream, arrives, What::Event(event));
        Mark { event, context: self.context }
    }
}

impl Events for Probe<'_> {
    type Event = Mark;

    fn reached(&mut self, mark: &Mark) -> Reached {
        if mark.context != self.context {
            return self.ended_at.map_or(Reached::Pending, Reached::Ended);
        }
        let Some(at) = self.card.reached(mark.event) else { return Reached::Pending };
        // Mapped onto the host's clock once a second.
        let since = at % 1_000_000_000;
        Reached::At(at + since * self.drift_ppm / 1_000_000)
    }

    fn give_back(&mut self, mark: Mark) {
        // One of a context that has ended may still be in a stream.
        if mark.context == self.context {
            self.card.give_back(mark.event);
        }
    }
}

impl<'a> World<'a> {
    /// Advances the thread as far as possible without time passing.
    pub(super) fn step(&mut self, thread: usize) {
        match std::mem::replace(&mut self.threads[thread].state, State::Gone) {
            State::Next => self.begin(thread),
            State::Asking { stream, kernel, called } => self.ask(thread, stream, kernel, called),
            State::Admitted { stream, kernel, permit } => {
                self.submit(thread, stream, kernel, permit)
            }
            State::Launched { stream, permit, returned, pair } => {
                let mut took = self.setup.meter_ns;
                let arrives = self.now + self.setup.record_ns;
                let samples = self.setup.without != Ablation::Spacing;
                if let Some(Metered { id, meter, probe, .. }) = &mut self.metered(thread, stream)
                    && meter.launched(permit, returned, pair, probe)
                    && samples
                {
                    let event = probe.event(arrives);
                    meter.spaced(*id, event, arrives, probe);
                    took += self.setup.record_ns;
                }
                self.later(thread, took, State::Next);
            }
            State::Copying { stream, ns } => {
                let (now, setup) = (self.now, self.setup);
                let (card, number) = self.line(thread, stream);
                if card.queued(number) < setup.depth {
                    self.fence(thread, stream);
                    let (card, number) = self.line(thread, stream);
                    card.push(number, now + setup.launch_ns, What::Copy(ns));
                    self.later(thread, self.setup.launch_ns, State::Next);
                } else {
                    self.block(thread, State::Copying { stream, ns });
                }
            }
            State::Syncing { stream, began } => {
                let process = self.threads[thread].process;
                let lines = &self.processes[process].streams;
                let empty = lines.iter().enumerate().all(|(index, line)| {
                    stream.is_some_and(|only| only != index)
                        || self.cards[line.card].queued(line.number) == 0
                });
                if empty {
                    self.later(thread, self.setup.sync_ns, State::Synced { stream, began });
                } else {
                    self.block(thread, State::Syncing { stream, began });
                }
            }
            State::Synced { stream, began } => {
                self.waits(thread, stream, false);
                let took = self.synced(thread, stream, began);
                self.later(thread, took, State::Next);
            }
            State::Holding { stream } => {
                let arrives = self.now + self.setup.launch_ns;
                self.fence(thread, stream);
                let (card, number) = self.line(thread, stream);
                card.push(number, arrives, What::Hold);
                let took = self.setup.launch_ns;
                self.later(thread, took, State::Next);
            }
            State::EndingContext => self.end_context(thread),
            State::Beginning => self.begin_again(thread),
            State::Gone => {}
        }
    }

    fn begin(&mut self, thread: usize) {
        let Thread { program, process, .. } = &mut self.threads[thread];
        let process = *process;
        match program(self.now, &mut self.dice) {
            Act::Launch { stream, kernel } => self.ask(thread, stream, kernel, self.now),
            Act::Copy { stream, ns } => self.later(thread, 0, State::Copying { stream, ns }),
            Act::Sync(stream) => {
                self.waits(thread, stream, true);
                self.later(thread, 0, State::Syncing { stream, began: self.now });
            }
            Act::Think(ns) => self.pause(thread, ns),
            Act::Until(at) => self.pause(thread, at.saturating_sub(self.now)),
            Act::Hold(stream) => {
                self.processes[process].held_at = self.now;
                self.later(thread, 0, State::Holding { stream });
            }
            Act::Release(stream) => {
                let (card, number) = self.line(thread, stream);
                card.release(number);
                let (now, tenant) = (self.now, &mut self.processes[process]);
                tenant.held_most = tenant.held_most.max(now - tenant.held_at);
                self.later(thread, 0, State::Next);
            }
            Act::EndContext => self.about_to_end_context(thread),
            Act::Again(after) => {
                self.leave(process);
                self.later(thread, after, State::Beginning);
            }
            Act::Die => {
                self.leave(process);
                for thread in self.threads.iter_mut().filter(|thread| thread.process == process) {
                    (thread.state, thread.blocked) = (State::Gone, false);
                }
            }
        }
    }

    /// A launch: out of the allowance, or with the meter's permit.
    fn ask(&mut self, thread: usize, stream: usize, kernel: Kernel, called: u64) {
        let (now, setup) = (self.now, self.setup);
        let allowance = Arc::clone(&self.threads[thread].allowances[stream]);
        if setup.oracle {
            return self.ask_oracle(thread, stream, kernel, called);
        }
        self.inherit(thread, stream);
        let look_ns = self.look_around(thread, stream, true);
        let graph_is_free = kernel.nodes.is_some() && setup.without == Ablation::Graphs;
        let metered = self.metered(thread, stream).filter(|_| !graph_is_free);
        let Some(Metered { id, meter, costs, waits, metered, mut probe }) = metered else {
            return self.submit(thread, stream, kernel, None);
        };
        let (signature, launch) = as_launch(kernel, called, setup.without);
        if costs.small(signature).is_some_and(|cost| allowance.spend(cost)) {
            waits.push(now - called + look_ns);
            let state = State::Admitted { stream, kernel, permit: None };
            return self.later(thread, setup.fast_ns + look_ns, state);
        }
        if setup.without == Ablation::Learning {
            meter.changed(signature);
        }
        match meter.before_launch(id, &allowance, launch, now, &mut probe) {
            Verdict::Admit(permit) => {
                waits.push(now - called + look_ns);
                *metered += 1;
                let permit = Some(permit);
                let took = setup.meter_ns + look_ns;
                self.later(thread, took, State::Admitted { stream, kernel, permit });
            }
            Verdict::Wait { until, wants_mark } => {
                if wants_mark && setup.without != Ablation::Marks {
                    let event = probe.event(now + setup.record_ns);
                    meter.marked(id, event, now, &mut probe);
                }
                let tenant = &mut self.processes[self.threads[thread].process];
                let card = tenant.streams[stream].card;
                // The number of processes that publish nothing is known from the beginning.
                let _ = tenant.places[card].upkeep.held_back(now);
                let (least, most) = setup.wake_ns;
                let late = self.dice.between(least, most);
                self.later(
                    thread,
                    until - now + late + look_ns,
                    State::Asking { stream, kernel, called },
                );
            }
        }
    }

    /// Something other than a launch is about to enter a stream.
    pub(super) fn fence(&mut self, thread: usize, stream: usize) {
        let (now, record_ns) = (self.now, self.setup.record_ns);
        if let Some(Metered { id, meter, mut probe, .. }) = self.metered(thread, stream)
            && meter.fence(id, now)
        {
            let event = probe.event(now + record_ns);
            meter.marked(id, event, now, &mut probe);
        }
    }

    /// The driver's part of a launch, and the events around it.
    fn submit(&mut self, thread: usize, stream: usize, kernel: Kernel, permit: Option<Permit>) {
        let (now, setup) = (self.now, self.setup);
        let (card, number) = self.line(thread, stream);
        if card.queued(number) + 3 > setup.depth {
            return self.block(thread, State::Admitted { stream, kernel, permit });
        }
        let what = self.what(thread, stream, kernel);
        let arrival_ns = self.dice.between(0, setup.arrival_ns);
        let context = self.processes[self.threads[thread].process].context;
        let (card, number) = self.line(thread, stream);
        let measured = permit.as_ref().is_some_and(Permit::wants_events)
            && setup.without != Ablation::Measurement;
        let mut returned = now + setup.launch_ns;
        let event = |card: &mut Card, at| {
            let event = card.event();
            card.push(number, at, What::Event(event));
            Mark { event, context }
        };
        let before = measured.then(|| {
            returned += setup.record_ns;
            event(card, now + setup.record_ns)
        });
        card.push(number, returned + arrival_ns, what);
        let after = measured.then(|| event(card, returned + setup.record_ns));
        let pair = before.zip(after).map(|(before, after)| [before, after]);
        let over = returned + if measured { setup.record_ns } else { 0 } - now;
        let known = if setup.without == Ablation::GapRule { 0 } else { returned };
        let state = match permit {
            Some(permit) => State::Launched { stream, permit, returned: known, pair },
            None => State::Next,
        };
        self.later(thread, over, state);
    }

    fn pause(&mut self, thread: usize, ns: u64) {
        self.processes[self.threads[thread].process].paused_ns += ns;
        self.later(thread, ns, State::Next);
    }

    /// Returns how long it took.
    fn synced(&mut self, thread: usize, stream: Option<usize>, began: u64) -> u64 {
        let now = self.now;
        let streams = self.processes[self.threads[thread].process].streams.len();
        let mut took = 0;
        for index in stream.map_or(0..streams, |only| only..only + 1) {
            took += self.look_around(thread, index, false);
            if let Some(Metered { id, meter, probe, .. }) = &mut self.metered(thread, index) {
                meter.sync_returned([*id], began, now, probe);
            }
        }
        took
    }

    pub(super) fn later(&mut self, thread: usize, ns: u64, state: State) {
        self.threads[thread].state = state;
        self.calendar.push(Reverse((self.now + ns, thread)));
    }

    pub(super) fn block(&mut self, thread: usize, state: State) {
        self.threads[thread].state = state;
        self.threads[thread].blocked = true;
    }

    /// Returns the card of a stream of the thread's process, and the stream's number there.
    pub(super) fn line(&mut self, thread: usize, stream: usize) -> (&mut Card, usize) {
        let line = &self.processes[self.threads[thread].process].streams[stream];
        (&mut self.cards[line.card], line.number)
    }

    /// Returns a launch as a command of the card. Collectives of a process find their peers by their order on each
    /// card.
    fn what(&mut self, thread: usize, stream: usize, kernel: Kernel) -> What {
        let Kernel { ns, width, .. } = kernel;
        if !kernel.is_collective {
            return What::Kernel { ns, width };
        }
        let tenant = &mut self.processes[self.threads[thread].process];
        let number = &mut tenant.places[tenant.streams[stream].card].collectives;
        *number += 1;
        What::Collective { ns, width, number: *number }
    }

    /// Returns the meter of a stream of the thread's process; `None` where it has no limit.
    pub(super) fn metered(&mut self, thread: usize, stream: usize) -> Option<Metered<'_, 'a>> {
        let tenant = &mut self.processes[self.threads[thread].process];
        let (context, ended_at) = (tenant.context, tenant.ended_at);
        let line = &tenant.streams[stream];
        let place = &mut tenant.places[line.card];
        let which = stream % place.meters.len().max(1);
        let (card, drift_ppm) = (&mut self.cards[line.card], self.setup.drift_ppm);
        Some(Metered {
            id: line.metered?,
            meter: place.meters.get_mut(which)?,
            costs: place.costs.get(which)?,
            waits: &mut place.waits,
            metered: &mut place.metered,
            probe: Probe { card, stream: line.number, context, ended_at, drift_ppm },
        })
    }
}
