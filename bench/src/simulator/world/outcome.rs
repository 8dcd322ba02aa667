//! What a run shows of a process.

use crate::simulator::card::Spun;
use gpucap_core::throttle::Totals;

/// The result of a process on a card.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Busy time of the card for it, by bin of [`BIN_NS`](crate::simulator::card::BIN_NS).
    pub busy: Vec<u64>,
    /// Time in which the card switched to it, by bin.
    pub switches: Vec<u64>,
    /// Solo nanoseconds of the kernels that it completed.
    pub work: u64,
    /// How long each launch was held back.
    pub waits: Vec<u64>,
    /// How many of them the meter admitted: the others went out of an allowance.
    pub metered: u64,
    /// How it waited for its peers on other cards.
    pub spun: Spun,
    /// The longest hold of a stream, from the call that holds to the one that releases.
    pub held_most: u64,
    /// Its meter's totals.
    pub totals: Totals,
    /// For how long its threads did nothing, in the mean of the threads.
    pub paused_ns: u64,
}
