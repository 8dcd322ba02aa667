//! Finished work, as it is passed to charging: when the device can have worked on it, what it costs by itself, and the
//! time in which the device certainly did.

/// The span in which a stream was occupied with a piece of work. If that of each batch were taken to be known,
/// `W4 4 streams x 50 us` would get 8 at 30 % of the device; if none were, `W4 8 streams x 50 us` would miss its bound
/// there beside an unreported process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Span {
    /// One operation.
    Operation(u64, u64),
    /// One on an empty stream that may have waited for a turn of other containers for most of the time.
    Waited(u64, u64),
    /// The launches of a batch, idle time between them included.
    Batch(u64, u64),
    /// The launches of a batch that ended some time before the end: it was as long as their work.
    From(u64, u64),
    /// The launches of a batch that began some time after the start: it was as long as their work.
    Until(u64, u64),
    /// The span is unknown.
    Unknown,
}

/// A finished piece of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) span: Span,
    /// Its cost by itself.
    pub(crate) work_ns: u64,
    pub(crate) certain: Option<Certain>,
}

/// Time in which the device certainly had work of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Certain {
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) part: Part,
}

/// How much of it was this process's. With one case less, the cell that it names misses its bound.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// This amount: the operation's cost is known. `T3 two containers, 300 us, waited for, 30/30`.
    Known(u64),
    /// The same, which is all the time that it took from an empty stream: `T10 1 in 20 takes 130 us, 1 waited for, 30`.
    Alone(u64),
    /// Its turns in the mean: the device had work of the stream before, too.
    /// `T10 1 in 100 takes 1280 us, 50, beside 40`.
    Turns,
    /// At least what remains: the rest may be only the wait for a turn.
    /// `T10 5 of around 5 us, then a wait, 30, beside 40`.
    Rest,
}

impl Done {
    /// A piece of work of which only the cost is known.
    pub(crate) const fn estimated(work_ns: u64) -> Self {
        Self { span: Span::Unknown, work_ns, certain: None }
    }
}
