//! Threads and the clock: who calls what when, what each call costs its caller, and where the meter comes in.
//!
//! A calendar of threads by the time at which they go on, and the card, which goes on by itself in between.

mod thread;

use super::card::{BIN_NS, Card};
use super::dice::Dice;
use super::program::Program;
use super::setup::{Ablation, Setup};
use gpucap_core::sync::Word;
use gpucap_core::throttle::{Bucket, Costs, Meter, StreamId, Totals};
use gpucap_core::units::Share;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use thread::{State, Thread};

/// A process: its threads, its streams, and its container.
pub struct Process {
    /// What its threads do.
    pub threads: Vec<Program>,
    /// How many streams it has.
    pub streams: usize,
    /// Which container's bucket, and the share; none for a process without a limit.
    pub limit: Option<(usize, Share)>,
}

/// What became of a process.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Busy time of the card for it, by bin of [`card::BIN_NS`](super::card::BIN_NS).
    pub busy: Vec<u64>,
    /// Solo nanoseconds of the kernels that it completed.
    pub work: u64,
    /// How long each launch was held back.
    pub waits: Vec<u64>,
    /// What its meter says.
    pub totals: Totals,
}

/// Everything, and the clock.
pub struct World<'a> {
    setup: Setup,
    card: Card,
    words: &'a [Word],
    processes: Vec<Tenant<'a>>,
    threads: Vec<Thread>,
    calendar: BinaryHeap<Reverse<(u64, usize)>>,
    dice: Dice,
    now: u64,
}

struct Tenant<'a> {
    /// One, or with [`Ablation::Union`] one per stream.
    meters: Vec<Meter<'a, usize>>,
    costs: Vec<Costs>,
    streams: Vec<Line>,
    waits: Vec<u64>,
}

/// A stream, and what the shim keeps beside it.
struct Line {
    number: usize,
    metered: Option<StreamId>,
}

/// The first moment: the bucket's word is a time, and zero is not a time that a clock shows.
const START_NS: u64 = 1_000_000_000;

impl<'a> World<'a> {
    /// A world with these processes; container `n` has the bucket `words[n]`.
    #[must_use]
    pub fn new(setup: Setup, words: &'a [Word], processes: Vec<Process>) -> Self {
        let mut world = Self {
            card: Card::new(setup.slice_ns, setup.event_ns),
            dice: Dice::new(setup.seed),
            setup,
            words,
            processes: Vec::new(),
            threads: Vec::new(),
            calendar: BinaryHeap::new(),
            now: START_NS,
        };
        for process in processes {
            world.add(process);
        }
        world
    }

    fn add(&mut self, process: Process) {
        let number = self.card.add_process();
        let mut tenant = Tenant {
            meters: Vec::new(),
            costs: Vec::new(),
            streams: Vec::new(),
            waits: Vec::new(),
        };
        if let Some((container, share)) = process.limit {
            let container =
                if self.setup.without == Ablation::SharedBucket { number } else { container };
            let meters = if self.setup.without == Ablation::Union { process.streams } else { 1 };
            for _ in 0..meters {
                let meter = Meter::new(Bucket::new(&self.words[container], share), self.now);
                tenant.costs.push(meter.costs());
                tenant.meters.push(meter);
            }
        }
        for stream in 0..process.streams {
            let meters = tenant.meters.len().max(1);
            let metered =
                tenant.meters.get_mut(stream % meters).map(|meter| meter.stream(self.now));
            tenant.streams.push(Line { number: self.card.add_stream(number), metered });
        }
        self.processes.push(tenant);
        for program in process.threads {
            self.threads.push(Thread {
                process: number,
                program,
                batches: std::iter::repeat_with(Arc::default).take(process.streams).collect(),
                state: State::Next,
                blocked: false,
            });
            let start = self.now + self.dice.between(0, 1_000_000);
            self.calendar.push(Reverse((start, self.threads.len() - 1)));
        }
    }

    /// Lets virtual time pass; what became of each process.
    #[must_use]
    pub fn run(mut self, ns: u64) -> Vec<Outcome> {
        let end = START_NS + ns;
        loop {
            let host = self.calendar.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
            let card = self.card.next_change().unwrap_or(u64::MAX);
            let next = host.min(card);
            if next >= end {
                break;
            }
            self.now = next;
            if self.card.advance(next) {
                self.look_at_blocked();
            }
            while let Some(&Reverse((at, thread))) = self.calendar.peek() {
                if at > self.now {
                    break;
                }
                self.calendar.pop();
                self.step(thread);
            }
        }
        // What runs has run until now.
        self.card.advance(end);
        let first = usize::try_from(START_NS / BIN_NS).unwrap_or(0);
        let outcome = |(number, tenant): (usize, Tenant<'_>)| Outcome {
            busy: self.card.busy(number).get(first..).unwrap_or(&[]).to_vec(),
            work: self.card.work(number),
            waits: tenant.waits,
            totals: sum(&tenant.meters),
        };
        self.processes.into_iter().enumerate().map(outcome).collect()
    }

    /// Threads asleep on a stream look whether they can go on.
    fn look_at_blocked(&mut self) {
        for thread in 0..self.threads.len() {
            if self.threads[thread].blocked {
                self.threads[thread].blocked = false;
                self.step(thread);
            }
        }
    }
}

fn sum(meters: &[Meter<'_, usize>]) -> Totals {
    meters.iter().map(Meter::totals).fold(Totals::default(), |sum, more| Totals {
        busy_ns: sum.busy_ns + more.busy_ns,
        launches: sum.launches + more.launches,
        waits: sum.waits + more.waits,
        stalls: sum.stalls + more.stalls,
    })
}
