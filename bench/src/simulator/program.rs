//! What a simulated thread does, call by call.

use super::card::WIDTH;
use super::dice::Dice;
use super::setup::Ablation;
use gpucap_core::throttle::{Launch, Signature};

/// A kernel or a graph, as launched.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// The function.
    pub function: u64,
    /// Its duration by itself.
    pub ns: u64,
    /// Its width on the card.
    pub width: u32,
    /// The number of nodes if it is an executable graph.
    pub nodes: Option<u64>,
    /// A collective, or a graph with collectives in it: its peers on the container's other cards begin with it.
    pub is_collective: bool,
}

impl Kernel {
    /// Makes a kernel that fills the card.
    #[must_use]
    pub const fn new(function: u64, ns: u64) -> Self {
        Self { function, ns, width: WIDTH, nodes: None, is_collective: false }
    }
}

/// One call of a thread. Streams are numbered within the process, and are spread over its cards in rotation.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// Launches.
    Launch {
        /// The stream.
        stream: usize,
        /// The kernel or graph.
        kernel: Kernel,
    },
    /// Copies between host and device, asynchronously.
    Copy {
        /// The stream.
        stream: usize,
        /// The duration.
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
    /// The process's context is destroyed with its queued work, and the next one is made.
    EndContext,
    /// The process is killed.
    Die,
    /// The process is killed, and another one with the same program begins after this delay.
    Again(u64),
}

/// A thread's next call, at this time.
pub type Program = Box<dyn FnMut(u64, &mut Dice) -> Act>;

/// The same calls, repeated.
#[must_use]
pub fn repeat(acts: Vec<Act>) -> Program {
    let mut next = acts.into_iter().cycle();
    Box::new(move |_, _| next.next().unwrap_or(Act::Think(1_000_000)))
}

/// A new list of calls each time that the previous one is done.
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

/// Returns the launch as the meter sees it at this time, under a signature.
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
