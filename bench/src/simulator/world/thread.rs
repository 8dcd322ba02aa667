//! A thread, call by call: a small state machine that asks to be woken at a time, or when its stream has advanced.
//!
//! A launch follows the same [protocol] as in the shim.

use super::super::card::{Card, What};
use super::super::program::{Act, Kernel, Program, as_launch};
use super::super::setup::Ablation;
use super::World;
use super::metered::{Mark, Metered, Probe};
use gpucap_core::throttle::protocol::{self, Asked, Ended};
use gpucap_core::throttle::{Allowance, Permit};
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
        /// What was taken out of the allowance.
        prepaid: Option<u32>,
    },
    /// The launch has returned, at the time that the meter is to know.
    Launched {
        stream: usize,
        returned: u64,
        ended: Ended<Mark>,
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
    /// The library's own thread looks at what is in flight.
    Watching,
    Gone,
}

impl<'a> World<'a> {
    /// Advances the thread as far as possible without time passing.
    pub(super) fn step(&mut self, thread: usize) {
        match std::mem::replace(&mut self.threads[thread].state, State::Gone) {
            State::Next => self.begin(thread),
            State::Asking { stream, kernel, called } => self.ask(thread, stream, kernel, called),
            State::Admitted { stream, kernel, permit, prepaid } => {
                if self.submit(thread, stream, kernel, permit, prepaid) {
                    let allowance = &self.threads[thread].allowances[stream];
                    prepaid.into_iter().for_each(|cost| allowance.returned(cost));
                }
            }
            State::Launched { stream, returned, ended } => {
                let mut took = self.setup.meter_ns;
                let began = self.now;
                if let Some(mut place) = self.metered(thread, stream) {
                    place.returned = returned;
                    protocol::returned(&mut place, ended);
                    took += place.now - began;
                }
                self.watch(thread, stream);
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
            State::Watching => self.look_in_flight(thread),
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
        let Some(mut place) = metered else {
            self.submit(thread, stream, kernel, None, None);
            return;
        };
        let (signature, launch) = as_launch(kernel, called, setup.without);
        if let Some(cost) = place.costs.small(signature).filter(|cost| allowance.spend(*cost)) {
            place.waits.push(now - called + look_ns);
            let state = State::Admitted { stream, kernel, permit: None, prepaid: Some(cost) };
            return self.later(thread, setup.fast_ns + look_ns, state);
        }
        if setup.without == Ablation::Learning {
            place.meter.changed(signature);
        }
        place.allowance = Some(allowance);
        place.marks = setup.without != Ablation::Marks;
        match protocol::ask(&mut place, launch) {
            None => {}
            Some(Asked::Admitted(permit)) => {
                place.waits.push(now - called + look_ns);
                *place.metered += 1;
                let permit = Some(permit);
                let took = setup.meter_ns + look_ns;
                let state = State::Admitted { stream, kernel, permit, prepaid: None };
                self.later(thread, took, state);
            }
            Some(Asked::HeldBack { until }) => {
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
        if let Some(mut place) = self.metered(thread, stream) {
            protocol::fence(&mut place);
        }
    }

    /// The driver's part of a launch, and the events around it. Returns whether the driver has taken it: if not, its queue is
    /// full.
    fn submit(
        &mut self,
        thread: usize,
        stream: usize,
        kernel: Kernel,
        permit: Option<Permit>,
        prepaid: Option<u32>,
    ) -> bool {
        let (now, setup) = (self.now, self.setup);
        let (card, number) = self.line(thread, stream);
        if card.queued(number) + 3 > setup.depth {
            self.block(thread, State::Admitted { stream, kernel, permit, prepaid });
            return false;
        }
        let what = self.what(thread, stream, kernel);
        let arrival_ns = self.dice.between(0, setup.arrival_ns);
        let limited = permit.and_then(|permit| Some((permit, self.metered(thread, stream)?)));
        let Some((permit, mut place)) = limited else {
            let (card, number) = self.line(thread, stream);
            card.push(number, now + setup.launch_ns + arrival_ns, what);
            self.later(thread, setup.launch_ns, State::Next);
            return true;
        };
        let begun = protocol::begin(&mut place, permit);
        let returned = place.now + setup.launch_ns;
        place.probe.push(returned + arrival_ns, what);
        place.now = returned;
        let ended = protocol::end(&mut place, begun);
        let over = place.now - now;
        let returned = if setup.without == Ablation::GapRule { 0 } else { returned };
        let state = State::Launched { stream, returned, ended };
        self.later(thread, over, state);
        true
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
            upkeep: &place.upkeep,
            asks: &mut place.question.is_due,
            waits: &mut place.waits,
            metered: &mut place.metered,
            probe: Probe {
                card,
                stream: line.number,
                id: line.metered,
                context,
                ended_at,
                drift_ppm,
            },
            setup: &self.setup,
            allowance: None,
            marks: true,
            now: self.now,
            returned: self.now,
        })
    }
}
