//! A card in virtual time.
//!
//! Streams are in order and of bounded depth. A command cannot begin before it has arrived, which is later than the
//! host's call; a timing event is reached as soon as its stream comes to it in a turn of its process, so one recorded on an
//! empty stream is reached before the kernel behind it arrives. Kernels of one process run side by side as far as they fit. Between
//! processes the card turns every slice, and at once when the owner has nothing to run. Copies have an engine of their
//! own. A collective keeps its place and spins until its peers on the other cards have begun, then runs for its own time:
//! who they are the [world](super::World) knows, which is told what [has begun](Card::begun) and says when all
//! [have met](Card::met). The busy time kept here is the truth that the meter is judged by.

use std::collections::VecDeque;

/// All of the card's width.
pub const WIDTH: u32 = 1000;
/// Busy time is kept in bins of this length.
pub const BIN_NS: u64 = 10_000_000;

/// One thing that a stream does.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// Runs so long by itself, on so much of the card.
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
        /// Which it is: its peers have the same number.
        number: Collective,
    },
    /// Notes the time.
    Event(usize),
    /// Keeps the copy engine busy for so many nanoseconds.
    Copy(u64),
}

#[derive(Debug, Clone, Copy)]
struct Command {
    arrives: u64,
    what: What,
}

impl Command {
    /// What it is worth by itself, and how wide it is; none if it is no kernel.
    const fn kernel(&self) -> Option<(u64, u32)> {
        match self.what {
            What::Kernel { ns, width } | What::Collective { ns, width, .. } => Some((ns, width)),
            What::Event(_) | What::Copy(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    /// A copy, until then.
    Until(u64),
    /// A kernel or an event at the front waits for its process's turn and its place, since then.
    Ready(u64),
    /// A collective whose peers have not all begun, since then.
    Spinning(u64),
    /// So much is left of it.
    Running(u64),
}

#[derive(Debug)]
struct Stream {
    process: usize,
    queue: VecDeque<Command>,
    state: State,
}

impl Stream {
    fn width(&self) -> u32 {
        self.queue.front().and_then(Command::kernel).map_or(0, |(_, width)| width)
    }

    fn wants_engine(&self) -> bool {
        matches!(self.state, State::Ready(_) | State::Spinning(_) | State::Running(_))
    }
}

/// The card.
#[derive(Debug)]
pub struct Card {
    now: u64,
    slice_ns: u64,
    event_ns: u64,
    streams: Vec<Stream>,
    owner: usize,
    slice_ends: u64,
    copies_end: u64,
    reached: Vec<Option<u64>>,
    unused: Vec<usize>,
    /// Per process: nanoseconds in which it had the engine and ran something, by bin.
    busy: Vec<Vec<u64>>,
    /// Per process: solo nanoseconds of the kernels completed.
    work: Vec<u64>,
    /// Per process: how it waited for peers.
    spun: Vec<Spun>,
    /// Collectives that began since somebody asked.
    begun: Vec<Collective>,
    changed: bool,
}

/// A collective of the container, on any card: how many its process has launched there.
pub type Collective = u64;

/// For how long the card was kept by collectives whose peers had not begun.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spun {
    /// While nothing else of the process ran.
    pub ns: u64,
    /// The longest wait of one of them.
    pub longest_ns: u64,
}

impl Card {
    /// A card whose slices and events take so long.
    #[must_use]
    pub fn new(slice_ns: u64, event_ns: u64) -> Self {
        Self {
            now: 0,
            slice_ns,
            event_ns,
            streams: Vec::new(),
            owner: 0,
            slice_ends: 0,
            copies_end: 0,
            reached: Vec::new(),
            unused: Vec::new(),
            busy: Vec::new(),
            work: Vec::new(),
            spun: Vec::new(),
            begun: Vec::new(),
            changed: false,
        }
    }

    /// One more process; its number.
    pub fn add_process(&mut self) -> usize {
        self.busy.push(Vec::new());
        self.work.push(0);
        self.spun.push(Spun::default());
        self.busy.len() - 1
    }

    /// One more stream of a process; its number.
    pub fn add_stream(&mut self, process: usize) -> usize {
        self.streams.push(Stream { process, queue: VecDeque::new(), state: State::Free });
        self.streams.len() - 1
    }

    /// Commands on the stream that have not ended.
    #[must_use]
    pub fn queued(&self, stream: usize) -> usize {
        self.streams[stream].queue.len()
    }

    /// Puts a command on a stream.
    pub fn push(&mut self, stream: usize, arrives: u64, what: What) {
        self.streams[stream].queue.push_back(Command { arrives, what });
        self.changed = true;
    }

    /// Throws away what a process has not begun, and stops what it has.
    pub fn kill(&mut self, process: usize) {
        for stream in self.streams.iter_mut().filter(|stream| stream.process == process) {
            stream.queue.clear();
            stream.state = State::Free;
        }
        self.changed = true;
    }

    /// A timing event that nobody recorded yet.
    pub fn event(&mut self) -> usize {
        if let Some(event) = self.unused.pop() {
            self.reached[event] = None;
            return event;
        }
        self.reached.push(None);
        self.reached.len() - 1
    }

    /// When the card came to an event.
    #[must_use]
    pub fn reached(&self, event: usize) -> Option<u64> {
        self.reached[event]
    }

    /// The event may be used again.
    pub fn give_back(&mut self, event: usize) {
        self.unused.push(event);
    }

    /// Busy time of a process, by bin.
    #[must_use]
    pub fn busy(&self, process: usize) -> &[u64] {
        &self.busy[process]
    }

    /// Solo time of the kernels that a process completed.
    #[must_use]
    pub fn work(&self, process: usize) -> u64 {
        self.work[process]
    }

    /// How a process waited for its peers on other cards.
    #[must_use]
    pub fn spun(&self, process: usize) -> Spun {
        self.spun[process]
    }

    /// The collectives that began since the latest call, each once.
    pub fn begun(&mut self) -> Vec<Collective> {
        std::mem::take(&mut self.begun)
    }

    /// All peers of a collective have begun: it spins no longer.
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

    /// The next time at which anything can happen by itself.
    pub fn next_change(&mut self) -> Option<u64> {
        if self.changed {
            self.start();
        }
        let mut next = u64::MAX;
        let mut rivals = false;
        for stream in &self.streams {
            let mine = stream.process == self.owner;
            let at = match stream.state {
                State::Until(end) => end,
                State::Running(left) if mine => self.now + left,
                State::Free => stream.queue.front().map_or(u64::MAX, |front| front.arrives),
                State::Running(_) | State::Spinning(_) | State::Ready(_) => {
                    rivals |= !mine;
                    u64::MAX
                }
            };
            next = next.min(at);
        }
        if rivals {
            next = next.min(self.slice_ends);
        }
        (next < u64::MAX).then_some(next)
    }

    /// Lets time pass, not beyond the next change. True if a stream got ahead.
    pub fn advance(&mut self, to: u64) -> bool {
        let passed = to - self.now;
        let owner = self.owner;
        let (mut ran, mut spun, mut ahead, mut work) = (false, false, false, 0);
        self.now = to;
        for stream in &mut self.streams {
            spun |= stream.process == owner && matches!(stream.state, State::Spinning(_));
            let over = match &mut stream.state {
                State::Running(left) if stream.process == owner => {
                    ran |= stream.queue.front().and_then(Command::kernel).is_some();
                    *left -= passed;
                    *left == 0
                }
                State::Until(end) => *end <= to,
                _ => false,
            };
            if over {
                let kernel = stream.queue.pop_front().as_ref().and_then(Command::kernel);
                work += kernel.map_or(0, |(ns, _)| ns);
                stream.state = State::Free;
                ahead = true;
            }
        }
        if ran || spun {
            self.note_busy(to - passed, to);
            self.spun[owner].ns += if ran { 0 } else { passed };
        }
        self.work[owner] += work;
        self.start();
        ahead
    }

    /// Begins whatever can begin now.
    fn start(&mut self) {
        self.changed = false;
        let now = self.now;
        for stream in &mut self.streams {
            let arrived = stream.queue.front().filter(|front| front.arrives <= now);
            let (State::Free, Some(front)) = (stream.state, arrived) else { continue };
            stream.state = match front.what {
                What::Kernel { .. } | What::Collective { .. } | What::Event(_) => State::Ready(now),
                What::Copy(ns) => {
                    self.copies_end = self.copies_end.max(now) + ns;
                    State::Until(self.copies_end)
                }
            };
        }
        self.turn();
        self.place();
    }

    /// Whose turn it is.
    fn turn(&mut self) {
        let processes = self.busy.len();
        let wants = |process| {
            self.streams.iter().any(|stream| stream.process == process && stream.wants_engine())
        };
        if processes == 1 || (wants(self.owner) && self.now < self.slice_ends) {
            return;
        }
        // The next one in the round; the owner again if it alone wants.
        let next = (1..=processes).map(|step| (self.owner + step) % processes).find(|&p| wants(p));
        if let Some(next) = next {
            self.owner = next;
            self.slice_ends = self.now + self.slice_ns;
        }
    }

    /// Lets the owner's kernels onto the card, the longest waiting first, while they fit.
    fn place(&mut self) {
        let mine = self.streams.iter_mut().filter(|stream| stream.process == self.owner);
        for stream in mine.filter(|stream| matches!(stream.state, State::Ready(_))) {
            if let Some(Command { what: What::Event(event), .. }) = stream.queue.front() {
                self.reached[*event] = Some(self.now);
                stream.state = State::Running(self.event_ns);
            }
        }
        loop {
            let mut used = 0;
            let mut first: Option<(u64, usize)> = None;
            for (index, stream) in self.streams.iter().enumerate() {
                if stream.process != self.owner {
                    continue;
                }
                match stream.state {
                    State::Running(_) | State::Spinning(_) => used += stream.width(),
                    State::Ready(since) if first.is_none_or(|(other, _)| since < other) => {
                        first = Some((since, index));
                    }
                    _ => {}
                }
            }
            let Some((_, index)) = first else { return };
            let stream = &mut self.streams[index];
            if used + stream.width() > WIDTH {
                return;
            }
            match stream.queue.front().map(|front| front.what) {
                Some(What::Kernel { ns, .. }) => stream.state = State::Running(ns),
                Some(What::Collective { number, .. }) => {
                    stream.state = State::Spinning(self.now);
                    self.begun.push(number);
                }
                _ => {}
            }
        }
    }

    fn note_busy(&mut self, mut from: u64, to: u64) {
        let bins = &mut self.busy[self.owner];
        while from < to {
            let bin = usize::try_from(from / BIN_NS).unwrap_or(usize::MAX);
            let end = to.min((from / BIN_NS + 1) * BIN_NS);
            if bins.len() <= bin {
                bins.resize(bin + 1, 0);
            }
            bins[bin] += end - from;
            from = end;
        }
    }
}
