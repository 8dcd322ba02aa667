//! What a thread does, as data: named cells and those of the search are made of jobs.
//!
//! A job proceeds in rounds: a number of launches, perhaps a copy, perhaps a wait, a pause; at the end of a round the
//! context or the process may end, and the next one begin. A function's number stands for its handle: an unused
//! number is a function that was never seen.

use crate::simulator::card::WIDTH;
use crate::simulator::dice::Dice;
use crate::simulator::program::{Act, Kernel, Program, rounds};

/// For how long after that a result is not looked for.
const LATE_NS: u64 = 1_000_000;

/// One thread.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its stream.
    pub stream: usize,
    /// The duration of its kernels.
    pub length: Length,
    /// Their functions.
    pub names: Names,
    /// The width of each on the card.
    pub width: u32,
    /// Each launch is a graph of this many nodes.
    pub nodes: Option<u64>,
    /// The kernels are named as collectives.
    pub is_collective: bool,
    /// Launches in a round.
    pub batch: u64,
    /// A round waits for its stream.
    pub waits: bool,
    /// The stream stands still until all launches of a round are queued.
    pub holds: bool,
    /// Copies between host and card, at the end of a round.
    pub copy_ns: u64,
    /// Behind the launches of a round it makes no call until they can have ended, as a program does that looks for results
    /// in memory.
    pub is_silent: bool,
    /// Processor time in a round; random, up to twice this.
    pub pause_ns: u64,
    /// How a round ends.
    pub end: End,
    /// It does nothing before this time of the run, in nanoseconds.
    pub from_ns: u64,
    /// From then on it does nothing.
    pub until_ns: u64,
    /// It works in every other period of this length; all of the time if zero.
    pub period_ns: u64,
}

/// The duration of kernels.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// Constant.
    Of(u64),
    /// One in a fixed number takes longer.
    Rarely {
        /// The duration of most.
        usual_ns: u64,
        /// The duration of the others.
        long_ns: u64,
        /// One in this many is long.
        one_in: u64,
    },
    /// The median; one in six takes three times as long or more, and none more than twenty times.
    Around(u64),
    /// One duration before a time, in nanoseconds of the run, and another from then on.
    Turns {
        /// The time of the change.
        at_ns: u64,
        /// At first.
        before_ns: u64,
        /// Later.
        after_ns: u64,
    },
}

/// The functions of kernels.
#[derive(Debug, Clone, Copy)]
pub enum Names {
    /// This many functions in rotation.
    Of(u64),
    /// A new function each time.
    Fresh,
}

/// How a round ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The next one begins.
    Goes,
    /// The context is destroyed, and another one made, whose functions are new.
    Context,
    /// The process ends, and another one begins after this delay.
    Process(u64),
}

impl Length {
    /// Returns the longest duration.
    #[must_use]
    pub const fn most(self) -> u64 {
        match self {
            Self::Of(ns) => ns,
            Self::Rarely { long_ns, .. } => long_ns,
            Self::Around(ns) => 20 * ns,
            Self::Turns { before_ns, after_ns, .. } => {
                if before_ns > after_ns {
                    before_ns
                } else {
                    after_ns
                }
            }
        }
    }

    fn roll(self, now: u64, dice: &mut Dice) -> u64 {
        match self {
            Self::Of(ns) => ns,
            Self::Rarely { usual_ns, long_ns, one_in } => {
                if dice.between(1, one_in) == 1 {
                    long_ns
                } else {
                    usual_ns
                }
            }
            Self::Around(ns) => dice.lognormal(ns, 1.1).clamp(1_000, 20 * ns),
            Self::Turns { at_ns, before_ns, after_ns } => {
                if now < at_ns {
                    before_ns
                } else {
                    after_ns
                }
            }
        }
    }
}

impl Job {
    /// Makes a job of kernels of one duration and one function that fill the card, one after the other.
    #[must_use]
    pub const fn of(ns: u64) -> Self {
        Self {
            stream: 0,
            length: Length::Of(ns),
            names: Names::Of(1),
            width: WIDTH,
            nodes: None,
            is_collective: false,
            batch: 1,
            waits: false,
            holds: false,
            copy_ns: 0,
            is_silent: false,
            pause_ns: 0,
            end: End::Goes,
            from_ns: 0,
            until_ns: u64::MAX,
            period_ns: 0,
        }
    }

    /// The same, each waited for.
    #[must_use]
    pub const fn waited_for(ns: u64) -> Self {
        Self { waits: true, ..Self::of(ns) }
    }

    /// Returns its calls in a run that begins at `start`.
    #[must_use]
    pub fn program(&self, start: u64) -> Program {
        let job = self.clone();
        let (mut life, mut count) = (0, 0);
        rounds(move |now, dice| {
            let ran = now.saturating_sub(start);
            if ran < job.from_ns {
                return vec![Act::Until(start + job.from_ns)];
            }
            if ran >= job.until_ns {
                return vec![Act::Until(u64::MAX / 2)];
            }
            let period = now.checked_div(job.period_ns).unwrap_or(0);
            if period % 2 == 1 {
                return vec![Act::Until((period + 1) * job.period_ns)];
            }
            let (mut acts, mut work_ns) = (Vec::new(), 0);
            let stream = job.stream;
            if job.holds {
                acts.push(Act::Hold(stream));
            }
            for _ in 0..job.batch {
                count += 1;
                let number = match job.names {
                    Names::Of(functions) => count % functions,
                    Names::Fresh => count,
                };
                let function = (number * 16 + stream as u64 % 16) << 20 | life;
                let (width, nodes, is_collective) = (job.width, job.nodes, job.is_collective);
                let ns = job.length.roll(ran, dice);
                work_ns += ns;
                let kernel = Kernel { function, ns, width, nodes, is_collective };
                acts.push(Act::Launch { stream, kernel });
            }
            if job.holds {
                acts.push(Act::Release(stream));
            }
            if job.copy_ns > 0 {
                acts.push(Act::Copy { stream, ns: job.copy_ns });
            }
            if job.waits {
                acts.push(Act::Sync(Some(stream)));
            }
            if job.is_silent {
                acts.push(Act::Until(now + work_ns + LATE_NS));
            }
            if job.pause_ns > 0 {
                acts.push(Act::Think(dice.between(0, 2 * job.pause_ns)));
            }
            match job.end {
                End::Goes => {}
                End::Context => {
                    life += 1;
                    acts.push(Act::EndContext);
                }
                End::Process(after_ns) => acts.push(Act::Again(after_ns)),
            }
            acts
        })
    }
}

/// Returns a time as it is in the names of cells.
pub(super) fn length(ns: u64) -> String {
    let us = ns / 1_000;
    if us >= 1_000 && us.is_multiple_of(1_000) {
        format!("{} ms", us / 1_000)
    } else {
        format!("{us} us")
    }
}
