//! The streams in which a thread launched last: a launch finds its allowance by a few comparisons.
//!
//! The cache is valid as long as no stream of the process has ended since: each end begins another [epoch], and so
//! does the session of a child made by `fork`.

use super::stream_table::{StreamLookup, StreamTable, ThreadAllowance};
use crate::fork_page::epoch;
use crate::sys::{self, Own};
use core::cell::Cell;
use core::ptr;
use gpucap_abi::cuda::{CUcontext, CUstream};
use gpucap_core::table::spread;

/// The number of streams that a thread remembers, as a power of two.
const REMEMBERED_BITS: u32 = 4;

/// The cache of one thread.
struct StreamCache {
    /// The epoch in which it was filled.
    epoch: Cell<u64>,
    streams: [Cell<Stream>; 1 << REMEMBERED_BITS],
    /// The table whose streams these are.
    of: Cell<*const StreamTable>,
    /// The thread's number; zero if it has not been asked for.
    thread: Cell<u32>,
}

// SAFETY: zeros are a cache of no epoch, there is nothing to drop, and this type alone is kept in the block.
unsafe impl Own for StreamCache {}

#[derive(Clone, Copy)]
struct Stream {
    handle: CUstream,
    context: CUcontext,
    /// `None`: its device has no compute limit.
    allowance: Option<&'static ThreadAllowance>,
}

impl Stream {
    const NONE: Self = Self { handle: CUstream::NULL, context: CUcontext::NULL, allowance: None };
}

/// Returns what this thread remembers about a stream.
#[inline]
pub(crate) fn recall(
    handle: CUstream,
    context: CUcontext,
) -> StreamLookup<&'static ThreadAllowance> {
    sys::own(|memory: &StreamCache| {
        let Some(stream) = memory.streams.get(place(handle)) else { return StreamLookup::Unknown };
        let stream = stream.get();
        let is_known =
            memory.epoch.get() == epoch() && stream.handle == handle && stream.context == context;
        if is_known { StreamLookup::Known(stream.allowance) } else { StreamLookup::Unknown }
    })
}

/// Remembers a stream that was looked up in this epoch.
pub(crate) fn remember(
    epoch: u64,
    handle: CUstream,
    context: CUcontext,
    allowance: Option<&'static ThreadAllowance>,
) {
    sys::own(|memory: &StreamCache| {
        if memory.epoch.replace(epoch) != epoch {
            memory.streams.iter().for_each(|stream| stream.set(Stream::NONE));
        }
        if let Some(place) = memory.streams.get(place(handle)) {
            place.set(Stream { handle, context, allowance });
        }
    });
}

/// Returns the calling thread's number; the kernel is asked once. In a child made by `fork` it is another one.
pub(crate) fn thread(streams: &StreamTable) -> u32 {
    sys::own(|memory: &StreamCache| {
        if !ptr::eq(memory.of.replace(streams), streams) {
            memory.thread.set(sys::thread());
        }
        memory.thread.get()
    })
}

/// Handles are addresses of aligned objects.
#[inline]
fn place(handle: CUstream) -> usize {
    usize::try_from(spread(handle.address()) >> (u64::BITS - REMEMBERED_BITS)).unwrap_or(0)
}
