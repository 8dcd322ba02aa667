//! One device's time, seen from the host: the gate where launches wait, the events that measure them, and the streams
//! and peers that the meter has to know of.
//!
//! Nearly every launch finds its thread's [allowance](stream_table) in what the thread [remembers](stream_cache). The
//! others, one in some dozens or one per quarter of a millisecond of GPU time, go to the [`gate`] of their device: they
//! wait if they must, and are measured by two [events](timing). The decisions are made in [`gpucap_core::throttle`].
//!
//! Called by [`launch`](mod@crate::launch). Knows no handler, no session and no other device.

mod captures;
mod collectives;
mod gate;
mod idle;
mod key;
mod peers;
pub(crate) mod stream_cache;
mod stream_table;
mod timing;
mod tool_launches;
mod watcher;

pub(crate) use captures::{Capture, Captures};
pub(crate) use collectives::Collectives;
pub(crate) use gate::Gate;
pub(crate) use gate::admit::Admitted;
pub(crate) use key::Key;
pub(crate) use peers::Peers;
pub(crate) use stream_table::{StreamEntry, StreamLookup, StreamTable, ThreadAllowance, WaitsFor};
pub(crate) use timing::{ContextId, Recorded};
pub(crate) use tool_launches::{ToolLaunch, ToolLaunches};

/// What is known about an executable graph. An update keeps the nodes of a graph and changes their parameters, so the
/// collectives of a graph stay as it was made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Contents {
    /// The number of its nodes.
    pub(crate) nodes: u64,
    /// Whether one of its kernels is a collective.
    pub(crate) has_collective: bool,
}
