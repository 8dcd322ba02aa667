//! What things cost on the simulated machine, and what of the method is left out.

/// What things cost, all in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Turns between processes.
    pub slice_ns: u64,
    /// A switch from one process to another takes so much of the card's time, in which nothing runs.
    pub switch_ns: u64,
    /// A timing event is reached as soon as its stream comes to it; otherwise in a turn of its process only.
    pub events_at_once: bool,
    /// A context that ends waits for its work; otherwise it drops it.
    pub end_waits: bool,
    /// Commands that a stream takes before a call blocks.
    pub depth: usize,
    /// A launch call.
    pub launch_ns: u64,
    /// The kernel arrives at the card this long after the launch returned, at most.
    pub arrival_ns: u64,
    /// The host's part of recording an event.
    pub record_ns: u64,
    /// The stream's part of it.
    pub event_ns: u64,
    /// A launch out of a batch, beyond the driver's own.
    pub fast_ns: u64,
    /// One call of the meter, with its lock and its look at events.
    pub meter_ns: u64,
    /// How late a sleeper wakes: least and most.
    pub wake_ns: (u64, u64),
    /// From the end of the work to the return of the call that waits for it.
    pub sync_ns: u64,
    /// The card's clock is this many parts in a million fast.
    pub drift_ppm: u64,
    /// What a look at one place of another process's page takes of the thread that looks.
    pub look_ns: u64,
    /// Launches are held back by a gate that knows what each kernel takes, in place of the meter.
    pub oracle: bool,
    /// Of everything that chance decides.
    pub seed: u64,
    /// What of the shim's part is left out, to see what it is good for.
    pub without: Ablation,
}

/// A part of the method that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ablation {
    /// Nothing.
    Nothing,
    /// One view of all streams: each stream has a meter of its own.
    Union,
    /// The launch's return as the earliest start of what it launched.
    GapRule,
    /// What launches taught: each is the first of its signature.
    Learning,
    /// Measurement: everything is charged at its estimate.
    Measurement,
    /// Charging graphs.
    Graphs,
    /// The mark at the beginning of a wait.
    Marks,
    /// One bucket for all processes of a container.
    SharedBucket,
    /// What the cards of a container know of each other.
    Party,
    /// That a graph has collectives in it.
    Contents,
    /// That what else is in it is work: it goes through the gate as a collective does.
    Remainder,
    /// What processes on a card tell each other.
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
            oracle: false,
            seed: 1,
            without: Ablation::Nothing,
        }
    }
}
