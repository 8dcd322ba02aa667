//! The simulated engine: what begins when, and which process has its turn.
//!
//! Time advances in steps from one [change](Card::next_change) to the next: between two of them the owner's kernels
//! run, copies and events proceed, and nothing begins or ends. Commands that can begin are looked for after each step
//! and after each command that the host queued.

use super::{BIN_NS, Card, Command, State, WIDTH, What};

impl Card {
    /// Returns the next time at which something can happen without a call.
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
                State::Held => u64::MAX,
                State::Running(left) if mine => self.now.max(self.switched_at) + left,
                State::Free => stream.queue.front().map_or(u64::MAX, |front| front.arrives),
                State::Running(_) | State::Spinning(_) | State::Ready(_) => {
                    rivals |= !mine;
                    u64::MAX
                }
            };
            next = next.min(at);
        }
        if self.now < self.switched_at {
            next = next.min(self.switched_at);
        }
        if rivals {
            next = next.min(self.slice_ends);
        }
        (next < u64::MAX).then_some(next)
    }

    /// Lets time pass, up to the next change at most. Returns true if a stream advanced.
    pub fn advance(&mut self, to: u64) -> bool {
        // Never beyond the end of a switch, in which nothing runs.
        let passed = to.saturating_sub(self.now.max(self.switched_at));
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
                if let Some(command) = stream.queue.pop_front() {
                    work += command.kernel().map_or(0, |(ns, _)| ns);
                    self.queued_ns[stream.process] -= command.share_ns();
                }
                stream.state = State::Free;
                ahead = true;
            }
        }
        if ran || spun {
            self.busy_ns[owner] += passed;
            note(&mut self.busy[owner], to - passed, to);
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
                What::Event(event) if self.events_at_once => {
                    self.reached[event] = Some(now);
                    // It ends no turn: what is behind it is in the queue.
                    if stream.process == self.owner {
                        State::Running(self.event_ns)
                    } else {
                        State::Until(now + self.event_ns)
                    }
                }
                What::Hold if stream.releases == 0 => State::Held,
                What::Hold => {
                    stream.releases -= 1;
                    State::Until(now)
                }
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

    /// Selects the process that has its turn.
    fn turn(&mut self) {
        let processes = self.busy.len();
        let wants = |process| {
            self.streams.iter().any(|stream| stream.process == process && stream.wants_engine())
        };
        if processes == 1 || (wants(self.owner) && self.now < self.slice_ends) {
            return;
        }
        // The next one in the rotation; the owner again if no other has work.
        let next = (1..=processes).map(|step| (self.owner + step) % processes).find(|&p| wants(p));
        if let Some(next) = next {
            let takes = if next == self.owner { 0 } else { self.switch_ns };
            self.owner = next;
            self.switched_at = self.now + takes;
            self.slice_ends = self.switched_at + self.slice_ns;
            note(&mut self.switches[next], self.now, self.switched_at);
        }
    }

    /// Starts the owner's kernels, the longest waiting first, while they fit.
    fn place(&mut self) {
        if self.now < self.switched_at {
            return;
        }
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
}

/// Adds a time to the bins that it reaches into.
fn note(bins: &mut Vec<u64>, mut from: u64, to: u64) {
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
