//! A simulated GPU in virtual time.
//!
//! Streams are in order and of bounded depth. A command cannot begin before it has arrived, which is later than the
//! host's call. A timing event is reached as soon as its stream comes to it, at once or in a turn of its process
//! ([`Setup::events_at_once`]), so one recorded on an empty stream is reached before the kernel behind it arrives.
//! Kernels of one process run side by side as far as they fit. The card switches between processes after every slice,
//! and at once when the owner has nothing to run: no work, and no event before it. That is what the manuals of the
//! hardware say: work of a context is taken from its queues while it has its time slice, which ends when it expires, or
//! when the queues are empty or wait for a semaphore; a time stamp ends none (`NV_UDMA_SEM_EXECUTE` in
//! `manuals/ampere/ga100/dev_pbdma.ref.txt`, "TSG" in `dev_ram.ref.txt`, <https://github.com/NVIDIA/open-gpu-doc>). A
//! switch takes [`Setup::switch_ns`], in which nothing runs. Copies have an engine of their own. A collective keeps its
//! place and spins until its peers on the other cards have begun, then runs for its own time: the [world](super::World)
//! knows the peers; it reads what [has begun](Card::begun) and reports when all [have met](Card::met). The busy time
//! kept here is the reference that the meter is judged by.

mod engine;

use super::setup::Setup;
use std::collections::VecDeque;

/// The whole width of the card.
pub const WIDTH: u32 = 1000;
/// The length of the bins in which busy time is kept.
pub const BIN_NS: u64 = 10_000_000;

/// One command in a stream.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// A kernel: its duration by itself and its width.
    Kernel {
        /// Nanoseconds.
        ns: u64,
        /// Of [`WIDTH`].
        width: u32,
    },
    /// A kernel that spins until its peers on other cards have begun.
    Collective {
        /// Nanoseconds from then on.
        ns: u64,
        /// Of [`WIDTH`].
        width: u32,
        /// Its number; its peers have the same one.
        number: Collective,
    },
    /// Notes the time.
    Event(usize),
    /// Keeps the copy engine busy for this many nanoseconds.
    Copy(u64),
    /// Holds the stream until the host releases it.
    Hold,
}

#[derive(Debug, Clone, Copy)]
struct Command {
    arrives: u64,
    what: What,
}

impl Command {
    /// What it is worth by itself, and its width; `None` if it is no kernel.
    const fn kernel(&self) -> Option<(u64, u32)> {
        match self.what {
            What::Kernel { ns, width } | What::Collective { ns, width, .. } => Some((ns, width)),
            What::Event(_) | What::Copy(_) | What::Hold => None,
        }
    }

    /// What it is worth of the whole engine.
    fn share_ns(&self) -> u64 {
        self.kernel().map_or(0, |(ns, width)| ns * u64::from(width) / u64::from(WIDTH))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    /// A copy, or an event that takes no part of the engine, until then.
    Until(u64),
    /// Until the host releases it.
    Held,
    /// A kernel or an event at the front has waited for its process's turn and its place since then.
    Ready(u64),
    /// A collective has waited for its peers since then.
    Spinning(u64),
    /// The nanoseconds that are left of it.
    Running(u64),
}

#[derive(Debug)]
struct Stream {
    process: usize,
    queue: VecDeque<Command>,
    state: State,
    /// Releases that no [`What::Hold`] has used yet.
    releases: usize,
}

impl Stream {
    fn width(&self) -> u32 {
        self.queue.front().and_then(Command::kernel).map_or(0, |(_, width)| width)
    }

    fn wants_engine(&self) -> bool {
        matches!(self.state, State::Ready(_) | State::Spinning(_) | State::Running(_))
    }
}

/// A simulated GPU.
#[derive(Debug)]
pub struct Card {
    now: u64,
    slice_ns: u64,
    event_ns: u64,
    switch_ns: u64,
    events_at_once: bool,
    streams: Vec<Stream>,
    owner: usize,
    slice_ends: u64,
    /// Until then the card is switching to its owner.
    switched_at: u64,
    copies_end: u64,
    reached: Vec<Option<u64>>,
    unused: Vec<usize>,
    /// Per process: nanoseconds in which it had the engine and ran something, by bin.
    busy: Vec<Vec<u64>>,
    busy_ns: Vec<u64>,
    /// Per process: nanoseconds in which the card switched to it, by bin.
    switches: Vec<Vec<u64>>,
    /// Per process: solo nanoseconds of the kernels completed.
    work: Vec<u64>,
    /// Per process: the same of the queued kernels, weighted by their width.
    queued_ns: Vec<u64>,
    /// Per process: how it waited for peers.
    spun: Vec<Spun>,
    /// Collectives that began since the latest query.
    begun: Vec<Collective>,
    changed: bool,
}

/// A collective of the container, on any card: its index among those that its process has launched there.
pub type Collective = u64;

/// How long the card was occupied by collectives whose peers had not begun.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spun {
    /// While nothing else of the process ran.
    pub ns: u64,
    /// The longest wait of one of them.
    pub longest_ns: u64,
}

impl Card {
    /// Makes a card with the durations of the setup.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        Self {
            now: 0,
            slice_ns: setup.slice_ns,
            event_ns: setup.event_ns,
            switch_ns: setup.switch_ns,
            events_at_once: setup.events_at_once,
            streams: Vec::new(),
            owner: 0,
            slice_ends: 0,
            switched_at: 0,
            copies_end: 0,
            reached: Vec::new(),
            unused: Vec::new(),
            busy: Vec::new(),
            busy_ns: Vec::new(),
            switches: Vec::new(),
            work: Vec::new(),
            queued_ns: Vec::new(),
            spun: Vec::new(),
            begun: Vec::new(),
            changed: false,
        }
    }

    /// Adds a process. Returns its number.
    pub fn add_process(&mut self) -> usize {
        self.busy.push(Vec::new());
        self.busy_ns.push(0);
        self.switches.push(Vec::new());
        self.work.push(0);
        self.queued_ns.push(0);
        self.spun.push(Spun::default());
        self.busy.len() - 1
    }

    /// Adds a stream of a process. Returns its number.
    pub fn add_stream(&mut self, process: usize) -> usize {
        let (queue, state) = (VecDeque::new(), State::Free);
        self.streams.push(Stream { process, queue, state, releases: 0 });
        self.streams.len() - 1
    }

    /// Returns the number of commands on the stream that have not ended.
    #[must_use]
    pub fn queued(&self, stream: usize) -> usize {
        self.streams[stream].queue.len()
    }

    /// Returns whether a stream of a process stands still until the host releases it.
    #[must_use]
    pub fn holds(&self, process: usize) -> bool {
        let mut own = self.streams.iter().filter(|stream| stream.process == process);
        own.any(|stream| matches!(stream.state, State::Held))
    }

    /// Queues a command on a stream.
    pub fn push(&mut self, stream: usize, arrives: u64, what: What) {
        let command = Command { arrives, what };
        self.queued_ns[self.streams[stream].process] += command.share_ns();
        self.streams[stream].queue.push_back(command);
        self.changed = true;
    }

    /// Releases a stream from a [`What::Hold`], present or future.
    pub fn release(&mut self, stream: usize) {
        let stream = &mut self.streams[stream];
        match stream.state {
            State::Held => stream.state = State::Until(self.now),
            _ => stream.releases += 1,
        }
    }

    /// Drops what a process has not begun, and stops what it has.
    pub fn kill(&mut self, process: usize) {
        for stream in self.streams.iter_mut().filter(|stream| stream.process == process) {
            stream.queue.clear();
            (stream.state, stream.releases) = (State::Free, 0);
        }
        self.queued_ns[process] = 0;
        self.changed = true;
    }

    /// Returns a timing event that is not recorded yet.
    pub fn event(&mut self) -> usize {
        if let Some(event) = self.unused.pop() {
            self.reached[event] = None;
            return event;
        }
        self.reached.push(None);
        self.reached.len() - 1
    }

    /// Returns when the card reached an event.
    #[must_use]
    pub fn reached(&self, event: usize) -> Option<u64> {
        self.reached[event]
    }

    /// Makes an event available for reuse.
    pub fn give_back(&mut self, event: usize) {
        self.unused.push(event);
    }

    /// Returns the busy time of a process, by bin.
    #[must_use]
    pub fn busy(&self, process: usize) -> &[u64] {
        &self.busy[process]
    }

    /// Returns the time in which the card switched to a process, by bin.
    #[must_use]
    pub fn switches(&self, process: usize) -> &[u64] {
        &self.switches[process]
    }

    /// Returns its total busy time.
    #[must_use]
    pub fn busy_ns(&self, process: usize) -> u64 {
        self.busy_ns[process]
    }

    /// Returns the busy time of all processes.
    #[must_use]
    pub fn all_busy_ns(&self) -> u64 {
        self.busy_ns.iter().sum()
    }

    /// Returns the solo time of the kernels that a process completed.
    #[must_use]
    pub fn work(&self, process: usize) -> u64 {
        self.work[process]
    }

    /// Returns the engine time that a process's queued kernels are worth.
    #[must_use]
    pub fn queued_ns(&self, process: usize) -> u64 {
        self.queued_ns[process]
    }

    /// Returns how a process waited for its peers on other cards.
    #[must_use]
    pub fn spun(&self, process: usize) -> Spun {
        self.spun[process]
    }

    /// Returns the collectives that began since the latest call, each once.
    pub fn begun(&mut self) -> Vec<Collective> {
        std::mem::take(&mut self.begun)
    }

    /// Ends the spinning of a collective: all its peers have begun.
    pub fn met(&mut self, number: Collective) {
        for stream in &mut self.streams {
            let (State::Spinning(since), Some(front)) = (stream.state, stream.queue.front()) else {
                continue;
            };
            if let What::Collective { ns, number: own, .. } = front.what
                && own == number
            {
                stream.state = State::Running(ns);
                let longest = &mut self.spun[stream.process].longest_ns;
                *longest = self.now.saturating_sub(since).max(*longest);
            }
        }
    }
}
