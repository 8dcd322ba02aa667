//! What a simulated thread does, call by call.

use super::card::WIDTH;
use super::dice::Dice;
use super::setup::Ablation;
use gpucap_core::throttle::{Launch, Signature};

/// A kernel or a graph, as launched.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// Which function.
    pub function: u64,
    /// How long it takes by itself.
    pub ns: u64,
    /// How much of the card it takes.
    pub width: u32,
    /// If it is an executable graph, its nodes.
    pub nodes: Option<u64>,
    /// A collective, or a graph with collectives in it: its peers on the container's other cards begin with it.
    pub is_collective: bool,
}

impl Kernel {
    /// A kernel that fills the card.
    #[must_use]
    pub const fn new(function: u64, ns: u64) -> Self {
        Self { function, ns, width: WIDTH, nodes: None, is_collective: false }
    }
}

/// One call of a thread. Streams are numbered within the process, and go round its cards.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// Launches.
    Launch {
        /// Where.
        stream: usize,
        /// What.
        kernel: Kernel,
    },
    /// Copies between host and device, asynchronously.
    Copy {
        /// Where.
        stream: usize,
        /// How long.
        ns: u64,
    },
    /// Waits until a stream is empty, or all of the process's.
    Sync(Option<usize>),
    /// Uses the processor.
    Think(u64),
    /// Does nothing until then.
    Until(u64),
    /// Holds a stream: what is queued behind it waits for the host's release.
    Hold(usize),
    /// Releases a stream that is held.
    Release(usize),
    /// The process's context is destroyed with what is queued in it, and the next one made.
    EndContext,
    /// The process is killed.
    Die,
    /// The process is killed, and another one with the same program begins so much later.
    Again(u64),
}

/// A thread's next call, at this time.
pub type Program = Box<dyn FnMut(u64, &mut Dice) -> Act>;

/// The same calls for ever.
#[must_use]
pub fn repeat(acts: Vec<Act>) -> Program {
    let mut next = acts.into_iter().cycle();
    Box::new(move |_, _| next.next().unwrap_or(Act::Think(1_000_000)))
}

/// A new list of calls each time that the one before is done.
pub fn rounds(mut round: impl FnMut(u64, &mut Dice) -> Vec<Act> + 'static) -> Program {
    let mut rest = Vec::new().into_iter();
    Box::new(move |now, dice| {
        loop {
            if let Some(act) = rest.next() {
                return act;
            }
            rest = round(now, dice).into_iter();
        }
    })
}

/// How the meter sees a launch of it at this time, and under which signature.
#[must_use]
pub fn as_launch(kernel: Kernel, now: u64, without: Ablation) -> (Signature, Launch) {
    match kernel.nodes {
        None => {
            let signature = Signature::kernel(kernel.function, 1 << 16);
            let launch = Launch::kernel(signature);
            (signature, if kernel.is_collective { launch.collective(now) } else { launch })
        }
        Some(nodes) => {
            let signature = Signature::graph(kernel.function);
            let launch = Launch::graph(signature, nodes);
            let launch = match without {
                _ if !kernel.is_collective => launch,
                Ablation::Contents => launch,
                Ablation::Remainder => launch.collective(now),
                _ => launch.with_collectives(),
            };
            (signature, launch)
        }
    }
}
