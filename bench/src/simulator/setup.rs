//! The durations on the simulated machine, and the parts of the method that are left out.

/// Durations in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Time slices of processes.
    pub slice_ns: u64,
    /// The card's time for a switch from one process to another, in which nothing runs.
    pub switch_ns: u64,
    /// A timing event is reached as soon as its stream comes to it; otherwise only in a turn of its process.
    pub events_at_once: bool,
    /// A context that ends waits for its work; otherwise it drops it.
    pub end_waits: bool,
    /// The number of commands that a stream holds before a call blocks.
    pub depth: usize,
    /// A launch call.
    pub launch_ns: u64,
    /// The longest time from the return of the launch call to the arrival of the kernel at the card.
    pub arrival_ns: u64,
    /// The host's part of recording an event.
    pub record_ns: u64,
    /// The stream's part of it.
    pub event_ns: u64,
    /// A launch out of an allowance, beyond the driver's own part.
    pub fast_ns: u64,
    /// One call of the meter, with its lock and its look at events.
    pub meter_ns: u64,
    /// How late a sleeper wakes: minimum and maximum.
    pub wake_ns: (u64, u64),
    /// From the end of the work to the return of the call that waits for it.
    pub sync_ns: u64,
    /// The card's clock is this many parts in a million fast.
    pub drift_ppm: u64,
    /// The time of reading one seat of a peer's page, for the thread that reads.
    pub look_ns: u64,
    /// The node publishes samples of processes without a report; `None` if it does not.
    pub samples: Option<Samples>,
    /// Launches are held back by a gate that knows the duration of each kernel, in place of the meter.
    pub oracle: bool,
    /// The seed of everything random.
    pub seed: u64,
    /// The part of the method that is left out, to show its effect.
    pub without: Ablation,
}

/// How the driver samples processes, and how late the node publishes it.
#[derive(Debug, Clone, Copy)]
pub struct Samples {
    /// The length of a sample, in bins of [`BIN_NS`](super::card::BIN_NS).
    pub bins: u64,
    /// From the end of a sample to its publication.
    pub delay_ns: u64,
}

impl Samples {
    /// Those of the driver: six in a second, in whole percents, and a node that looks ten times a second.
    pub const DRIVER: Self = Self { bins: 17, delay_ns: 60_000_000 };
}

/// A part of the method that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ablation {
    /// Nothing.
    Nothing,
    /// The union of all streams: each stream has a meter of its own.
    Union,
    /// The launch's return as the earliest start of what it launched.
    GapRule,
    /// Learned costs: each launch is the first of its signature.
    Learning,
    /// Measurement: everything is charged at its estimate.
    Measurement,
    /// The distance of two events, which a measurement contains.
    Spacing,
    /// Charging graphs.
    Graphs,
    /// The mark at the beginning of a wait.
    Marks,
    /// One bucket for all processes of a container.
    SharedBucket,
    /// The gang: what the cards of a container know of each other.
    Gang,
    /// The knowledge that a graph has collectives in it.
    Contents,
    /// The rule that the other nodes of such a graph are work: the graph passes the gate as a collective does.
    Remainder,
    /// The reports that processes on a card publish.
    Page,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            slice_ns: 2_000_000,
            switch_ns: 0,
            events_at_once: false,
            end_waits: true,
            depth: 1000,
            launch_ns: 4_000,
            arrival_ns: 400,
            record_ns: 1_000,
            event_ns: 300,
            fast_ns: 20,
            meter_ns: 500,
            wake_ns: (50_000, 110_000),
            sync_ns: 1_000,
            drift_ppm: 0,
            look_ns: 0,
            samples: None,
            oracle: false,
            seed: 1,
            without: Ablation::Nothing,
        }
    }
}
