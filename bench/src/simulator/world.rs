//! Threads and the clock: the calls of each thread, what each call costs its caller, and where the meter is involved.
//!
//! The world keeps a calendar of threads by the time at which they continue, and the cards, which advance by
//! themselves in between. Each card has its own buckets and, in each process, its own meter, as in the shim. The
//! cards share the container's programs and their collectives, which end on one card only once they have begun on
//! all.

mod ends;
mod metered;
mod oracle;
mod outcome;
mod pages;
mod thread;
mod unreported;
mod watch;

use super::card::{BIN_NS, Card, Collective};
use super::dice::Dice;
use super::program::Program;
use super::setup::{Ablation, Setup};
use gpucap_core::page::sampled::Sampled;
use gpucap_core::throttle::unreported::UnreportedProcesses;
use gpucap_core::throttle::{
    Bucket, Costs, DeviceWords, Gang, Looks, Meter, PeerReport, StreamId, Totals, Upkeep,
    UsageReport,
};
use gpucap_core::units::ComputeLimit;
use metered::Mark;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;
use thread::{State, Thread};

pub use outcome::Outcome;
pub use pages::{Flaps, Page, Says};

/// A process: its threads, its streams, and its container.
pub struct Process {
    /// What its threads do.
    pub threads: Vec<Program>,
    /// The number of its streams, spread over the cards in rotation.
    pub streams: usize,
    /// The first of its cards.
    pub first: usize,
    /// For each of its cards: its seat in the container, and its limit; `None` where it has none.
    pub limits: Vec<Option<(usize, ComputeLimit)>>,
}

/// The simulated machine and the clock.
pub struct World<'a> {
    setup: Setup,
    /// A process without a limit publishes nothing: the driver lists more processes than there are reports.
    unreported: UnreportedProcesses,
    cards: Vec<Card>,
    seats: &'a [DeviceWords<'a>],
    processes: Vec<Tenant<'a>>,
    threads: Vec<Thread>,
    calendar: BinaryHeap<Reverse<(u64, usize)>>,
    /// The number of cards on which a collective has begun, while it has not on all.
    meeting: HashMap<Collective, usize>,
    /// Pages of containers that have no process here.
    pages: Vec<Page>,
    /// What the node has sampled of processes without a report, by card and process, and how many times on each card.
    sampled: BTreeMap<(usize, usize), Sampled>,
    looks: Vec<u64>,
    /// The largest limit of any process of a container, by card and seat.
    shares: HashMap<(usize, usize), ComputeLimit>,
    /// The number of processes of a container, by card and seat.
    siblings: HashMap<(usize, usize), usize>,
    /// The unfinished work of ended processes.
    left: Vec<ends::Left>,
    ghosts: Vec<pages::Ghost>,
    dice: Dice,
    now: u64,
}

/// A process.
struct Tenant<'a> {
    /// Its number in the pages.
    key: u64,
    /// The number of contexts that it has had.
    context: u64,
    /// When the latest ended context ended; `None` while the driver is ending one.
    ended_at: Option<u64>,
    /// When it held a stream.
    held_at: u64,
    held_most: u64,
    /// The number of its threads, and for how long they have done nothing, in sum.
    threads: u64,
    paused_ns: u64,
    /// The thread that looks at what is in flight; when it does so next, if it does; and since when nothing was.
    watcher: usize,
    looks_at: Option<u64>,
    idle_since: u64,
    first: usize,
    limits: Vec<Option<(usize, ComputeLimit)>>,
    places: Vec<Place<'a>>,
    streams: Vec<Line>,
}

/// A process on a card.
struct Place<'a> {
    /// Its container, and its limit.
    limit: Option<(usize, ComputeLimit)>,
    /// One meter, or with [`Ablation::Union`] one per stream; `None` without a limit.
    meters: Vec<Meter<'a, Mark>>,
    /// Used in place of it if the setup says so.
    oracle: Option<oracle::Oracle<'a>>,
    /// Totals of the meters of earlier processes in this place.
    before: Totals,
    looks: Looks,
    /// The reports of other containers at the latest look at their pages.
    others: Option<Vec<PeerReport>>,
    /// The report in its seat when it took the seat, and when that was.
    seat: (UsageReport, u64),
    /// Its process was killed, and when another one of its container noticed.
    is_dead: bool,
    ended_at: Option<u64>,
    upkeep: Upkeep,
    question: unreported::Question,
    costs: Vec<Costs>,
    waits: Vec<u64>,
    metered: u64,
    /// How many collectives it has launched.
    collectives: u64,
}

/// A stream, and what the shim keeps beside it.
struct Line {
    card: usize,
    number: usize,
    metered: Option<StreamId>,
}

/// The first moment: the bucket's word is a time, and a clock never shows zero.
const START_NS: u64 = 1_000_000_000;

impl<'a> World<'a> {
    /// Makes a world with these processes, and as many cards as they have. The seats are those of containers on
    /// cards.
    #[must_use]
    pub fn new(setup: Setup, seats: &'a [DeviceWords<'a>], processes: Vec<Process>) -> Self {
        let cards =
            processes.iter().map(|process| process.first + process.limits.len()).max().unwrap_or(0);
        let card = || Card::new(&setup);
        let mut world = Self {
            cards: std::iter::repeat_with(card).take(cards).collect(),
            dice: Dice::new(setup.seed),
            setup,
            unreported: unreported::listed(
                setup.samples.is_none()
                    && processes.iter().flat_map(|process| &process.limits).any(Option::is_none),
            ),
            seats,
            processes: Vec::new(),
            threads: Vec::new(),
            calendar: BinaryHeap::new(),
            meeting: HashMap::new(),
            pages: Vec::new(),
            sampled: BTreeMap::new(),
            looks: vec![0; cards],
            left: Vec::new(),
            ghosts: Vec::new(),
            shares: HashMap::new(),
            siblings: HashMap::new(),
            now: START_NS,
        };
        for process in &processes {
            for (card, limit) in (process.first..).zip(&process.limits) {
                let Some((seat, limit)) = *limit else { continue };
                *world.siblings.entry((card, seat)).or_default() += 1;
                let most = world.shares.entry((card, seat)).or_insert(limit);
                *most = if limit.guaranteed() > most.guaranteed() { limit } else { *most };
            }
        }
        for process in processes {
            world.add(process);
        }
        world
    }

    /// The same with pages of other containers beside those of the processes.
    #[must_use]
    pub fn with_pages(self, pages: Vec<Page>) -> Self {
        Self { pages, ..self }
    }

    fn add(&mut self, process: Process) {
        let number = self.processes.len();
        self.cards.iter_mut().for_each(|card| {
            card.add_process();
        });
        let Process { threads, streams, first, limits } = process;
        let of_streams = (0..streams).map(|stream| {
            let card = first + stream % limits.len();
            Line { card, number: self.cards[card].add_stream(number), metered: None }
        });
        let of_streams = of_streams.collect();
        let (places, key) = (Vec::new(), number as u64);
        let (context, held_at, held_most) = (0, 0, 0);
        let streams_made = of_streams;
        self.processes.push(Tenant {
            key,
            context,
            ended_at: None,
            held_at,
            held_most,
            threads: threads.len() as u64,
            paused_ns: 0,
            watcher: self.threads.len(),
            looks_at: None,
            idle_since: self.now,
            first,
            limits,
            places,
            streams: streams_made,
        });
        self.begin_process(number);
        self.threads.push(Thread::watcher(number));
        for program in threads {
            self.threads.push(Thread {
                process: number,
                program,
                allowances: std::iter::repeat_with(Arc::default).take(streams).collect(),
                state: State::Next,
                blocked: false,
            });
            let start = self.now + self.dice.between(0, 1_000_000);
            self.calendar.push(Reverse((start, self.threads.len() - 1)));
        }
    }

    /// Gives a process its meters, and makes its streams known to them.
    fn begin_process(&mut self, process: usize) {
        let places = (0..self.cards.len()).map(|card| self.place(card, process)).collect();
        self.processes[process].places = places;
        self.name_streams(process);
    }

    /// Registers the streams of a process with its meters, as new ones.
    fn name_streams(&mut self, process: usize) {
        let (now, tenant) = (self.now, &mut self.processes[process]);
        for (stream, line) in tenant.streams.iter_mut().enumerate() {
            let Place { meters, .. } = &mut tenant.places[line.card];
            let count = meters.len().max(1);
            line.metered = meters.get_mut(stream % count).map(|meter| meter.stream(now));
        }
    }

    /// Returns the limit of a process on a card.
    fn place(&self, card: usize, process: usize) -> Place<'a> {
        let mut place = Place {
            limit: None,
            meters: Vec::new(),
            oracle: None,
            before: Totals::default(),
            looks: Looks::default(),
            others: None,
            seat: (UsageReport::default(), self.now),
            is_dead: false,
            ended_at: None,
            upkeep: Upkeep::default(),
            question: unreported::Question::default(),
            costs: Vec::new(),
            waits: Vec::new(),
            metered: 0,
            collectives: 0,
        };
        let tenant = &self.processes[process];
        let limit = card.checked_sub(tenant.first).and_then(|card| tenant.limits.get(card));
        place.limit = limit.copied().flatten();
        let Some((seat, limit)) = place.limit else { return place };
        let share = limit.share();
        let (own, seat_of) = (process * self.cards.len() + card, seat);
        let seat = if self.setup.without == Ablation::SharedBucket { own } else { seat };
        let gang = || match self.setup.without {
            Ablation::Gang => Gang::alone(),
            _ => Gang::new(self.seats.to_vec(), seat, ends::number(process)),
        };
        if self.setup.oracle {
            let container =
                self.shares.get(&(card, seat)).copied().map_or(share, ComputeLimit::share);
            let bucket = Bucket::new(self.seats[seat].bucket(), container);
            place.oracle = Some(oracle::Oracle::new(bucket, share));
            return place;
        }
        let meters = if self.setup.without == Ablation::Union { tenant.streams.len() } else { 1 };
        for _ in 0..meters {
            let bucket = Bucket::new(self.seats[seat].bucket(), share);
            let mut meter = Meter::new(bucket, self.now).among(gang());
            meter.set_limit(limit, self.now);
            meter.set_unreported(self.unreported);
            meter.set_shared(self.siblings.get(&(card, seat_of)).is_some_and(|count| *count > 1));
            place.costs.push(meter.costs());
            place.meters.push(meter);
        }
        place
    }

    /// Lets virtual time pass. Returns the result of each process on each card.
    #[must_use]
    pub fn run(mut self, ns: u64) -> Vec<Vec<Outcome>> {
        let end = START_NS + ns;
        loop {
            let host = self.calendar.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
            let next = host.min(self.next_on_cards());
            if next >= end {
                break;
            }
            self.now = next;
            if self.advance_cards(next) {
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
        self.advance_cards(end);
        let first = usize::try_from(START_NS / BIN_NS).unwrap_or(0);
        let cards = &self.cards;
        let outcome = |process: usize, (place, card): (Place<'_>, &Card)| Outcome {
            busy: card.busy(process).get(first..).unwrap_or(&[]).to_vec(),
            switches: card.switches(process).get(first..).unwrap_or(&[]).to_vec(),
            work: card.work(process),
            spun: card.spun(process),
            totals: place.totals(),
            waits: place.waits,
            metered: place.metered,
            ..Outcome::default()
        };
        let tenants = self.processes.into_iter().enumerate();
        let outcomes = tenants.map(|(process, tenant)| {
            let held_most = tenant.held_most;
            let paused_ns = tenant.paused_ns / tenant.threads.max(1);
            let places = tenant.places.into_iter().zip(cards);
            let outcomes =
                places.map(|place| Outcome { held_most, paused_ns, ..outcome(process, place) });
            outcomes.collect()
        });
        outcomes.collect()
    }

    /// Returns the next time at which something can happen on a card without a call.
    fn next_on_cards(&mut self) -> u64 {
        loop {
            let next = self.cards.iter_mut().filter_map(Card::next_change).min();
            if !self.meet() {
                return next.unwrap_or(u64::MAX);
            }
        }
    }

    fn advance_cards(&mut self, to: u64) -> bool {
        self.cards.iter_mut().fold(false, |ahead, card| card.advance(to) | ahead)
    }

    /// Continues the collectives that have begun on all cards. Returns true if there were any.
    fn meet(&mut self) -> bool {
        let begun: Vec<_> = self.cards.iter_mut().flat_map(Card::begun).collect();
        let mut met = false;
        for collective in begun {
            let there = self.meeting.entry(collective).or_default();
            *there += 1;
            if *there == self.cards.len() {
                self.meeting.remove(&collective);
                self.cards.iter_mut().for_each(|card| card.met(collective));
                met = true;
            }
        }
        met
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

impl Place<'_> {
    fn totals(&self) -> Totals {
        self.meters.iter().map(Meter::totals).fold(self.before, |sum, more| Totals {
            busy_ns: sum.busy_ns + more.busy_ns,
            borrowed_ns: sum.borrowed_ns + more.borrowed_ns,
            launches: sum.launches + more.launches,
            waits: sum.waits + more.waits,
            stalls: sum.stalls + more.stalls,
        })
    }
}
