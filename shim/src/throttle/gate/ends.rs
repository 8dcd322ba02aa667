//! What ends on a device: streams, contexts and the work launched so far; and launches whose end is not measured.
//!
//! Before a stream or a context ends, an event is recorded behind its work if there is none; work in flight when a
//! context ends is charged up to the driver's return. The decisions are the meter's. This module keeps the order of
//! the calls: an event that the driver may have freed is never queried.

use super::super::stream_table::{Stream, StreamEntry};
use super::super::timing::{ContextId, Recorded, Timing};
use super::{Gate, Inside};
use crate::driver::DriverCopy;
use crate::driver::cuda::time as driver;
use crate::sys;
use gpucap_abi::cuda::{CUcontext, CUstream};
use gpucap_core::throttle::{Bucket, Launch, Signature, StreamId};

impl Inside {
    fn stream_ends(&mut self, id: StreamId) {
        self.timing.leave(id);
        self.meter.stream_destroyed(id, sys::monotonic_ns());
    }
}

impl Gate {
    /// Records a launch that a tool has made while this thread held a lock, between two events in the stream's context.
    pub(crate) fn launched_unheld(
        &self,
        copy: &DriverCopy,
        entry: &StreamEntry,
        launch: Launch,
        pair: [Recorded; 2],
    ) {
        let Stream { id, context, .. } = entry.stream();
        let Some(id) = id else { return };
        let [_, after] = &pair;
        let returned = after.asked();
        let spare = self.asking(copy, |inside| {
            let pair = pair.map(|recorded| recorded.mark(context));
            let mut events = inside.timing.reader(copy);
            inside.meter.launched_unheld(id, launch, returned, Some(pair), &mut events);
            [inside.timing.spare(context), inside.timing.spare(context)]
        });
        // Two were made for this launch: as many of those that are over are given back to the driver.
        spare.into_iter().flatten().flatten().for_each(|spare| spare.destroy(copy));
    }

    /// Records a launch that was to be captured, and that the driver may have carried out: the capture is over.
    pub(crate) fn launched_uncaptured(
        &'static self,
        copy: &'static DriverCopy,
        entry: &StreamEntry,
        launch: Launch,
    ) {
        let _errno = sys::Errno::keep();
        let Some(id) = entry.stream().id else { return };
        let now = sys::monotonic_ns();
        self.asking(copy, |inside| {
            let mut events = inside.timing.reader(copy);
            inside.meter.launched_unheld(id, launch, now, None, &mut events);
        });
        self.watch(copy);
    }

    /// Returns when the bucket is out of debt. `None` if this thread is inside a call of the driver.
    pub(crate) fn out_of_debt_at(&self, now: u64) -> Option<u64> {
        self.with(|inside| inside.meter.out_of_debt_at(now))
    }

    /// Charges a launch of a tool at a guess: its context has ended since, and nothing can be measured.
    pub(crate) fn launched_by_tool(&self, signature: Signature) {
        self.paid_by_tool(self.costs.guess(signature));
    }

    /// Charges a launch of a tool that took this long, without a lock. Returns when the bucket is out of debt.
    pub(crate) fn paid_by_tool(&self, ns: u64) -> u64 {
        let now = sys::monotonic_ns();
        self.ledger.worked(self.slot, self.index, now, ns);
        self.ledger.launched(self.slot, self.index, 1);
        self.ledger.bucket(self.index).map_or(now, |word| {
            let bucket = Bucket::new(word, self.limit().share());
            bucket.charge(ns, now);
            bucket.holds_at(0, now)
        })
    }

    /// Handles a stream that has ended, or will at once.
    pub(crate) fn end_stream(&self, id: StreamId) {
        self.with(|inside| inside.stream_ends(id));
    }

    /// The same for a stream that was first used while its context ended, which it has.
    pub(crate) fn end_stream_of_ended(&self, copy: &DriverCopy, id: StreamId) {
        self.asking(copy, |inside| {
            inside.timing.leave(id);
            let now = sys::monotonic_ns();
            inside.meter.ended_with_context(id, now, &mut inside.timing.reader(copy));
        });
    }

    /// As [`end_stream`](Self::end_stream), for a caller that [holds](crate::driver::call_guard) the guard already.
    pub(crate) fn end_stream_held(&self, id: StreamId) {
        self.think(|inside| inside.stream_ends(id));
    }

    /// Returns the number of a context in which something has been launched.
    pub(crate) fn context(&self, handle: CUcontext) -> Option<ContextId> {
        self.with(|inside| inside.timing.find(handle))?
    }

    /// Handles a context that the driver is about to end: its events are not touched until the outcome is known.
    pub(crate) fn context_is_ending(&self, id: ContextId) {
        self.with(|inside| inside.timing.is_ending(id, true));
    }

    /// Handles the driver's return. If the context has ended, its events are never touched again, and its work in
    /// flight is charged up to now.
    pub(crate) fn context_ended(&self, copy: &DriverCopy, id: ContextId, has_ended: bool) {
        let now = sys::monotonic_ns();
        self.asking(copy, |inside| {
            if has_ended {
                inside.timing.end(id, now);
                inside.meter.settle_all(now, &mut inside.timing.reader(copy));
            } else {
                inside.timing.is_ending(id, false);
            }
        });
    }

    /// Has a context go by another handle from now on, as [`Timing::rename`] does.
    pub(crate) fn rename(&self, before: CUcontext, handle: CUcontext) -> Option<ContextId> {
        self.with(|inside| inside.timing.rename(before, handle))?
    }

    /// The same by number.
    pub(crate) fn name(&self, id: ContextId, handle: CUcontext) {
        self.with(|inside| inside.timing.name(id, handle));
    }

    /// [`fence`](Self::fence) for a stream whose context may not be the current one.
    pub(crate) fn fence_in(&self, copy: &DriverCopy, entry: &StreamEntry, stream: CUstream) {
        let context = entry.stream().context;
        let handle = self.with(|inside| inside.timing.handle(context)).flatten();
        if let Some(handle) = handle {
            driver::in_context(copy, handle, || self.fence(copy, entry, stream));
        }
    }

    /// The same for a stream that has a name in another thread only: what is behind its latest launch marks all of them.
    pub(crate) fn fence_latest(&self, copy: &DriverCopy, id: StreamId) {
        let now = sys::monotonic_ns();
        self.asking(copy, |inside| {
            let Inside { meter, timing, .. } = inside;
            if let Some(mark) = timing.latest(id) {
                let _ = meter.fence(id, now);
                meter.marked(id, mark, now, &mut timing.reader(copy));
            }
        });
    }

    /// Runs `work`, which may end contexts of this device, with all queries of their events excluded. The caller
    /// [holds](crate::driver::call_guard) the guard already.
    pub(crate) fn with_queries_excluded<T>(&self, work: impl FnOnce(&mut Timing) -> T) -> T {
        work(&mut self.inside.lock().timing)
    }

    /// Settles everything that has finished.
    pub(crate) fn settle_all(&self, copy: &DriverCopy) {
        let now = sys::monotonic_ns();
        self.look_around(now, false);
        self.asking(copy, |inside| {
            inside.meter.settle_all(now, &mut inside.timing.reader(copy));
        });
    }

    /// The same for a caller that [holds](crate::driver::call_guard) the guard already.
    pub(crate) fn settle_all_held(&self, copy: &DriverCopy) {
        let now = sys::monotonic_ns();
        self.asking_held(copy, |inside| {
            inside.meter.settle_all(now, &mut inside.timing.reader(copy));
        });
    }
}
