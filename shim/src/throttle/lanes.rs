//! The streams in which a process has launched, and what its threads have prepaid in them.
//!
//! A stream of a device whose time is shared has a lane, and each thread that launches in it a purse there. Launches
//! find theirs by what their thread [remembers](super::memory); this is where it learns that from. Neither a lane nor a
//! purse is ever freed. A lane serves another stream of its device when its own has ended: a thread that launches in a
//! stream while another one destroys it charges the wrong stream once, nothing worse. A purse goes to another thread when
//! its own is gone, which the kernel knows: nobody says when a thread ends.

use super::captures;
use super::gate::Gate;
use super::timing::ContextId;
use crate::session::begin_epoch;
use crate::sys;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use gpucap_abi::cuda::{CU_STREAM_PER_THREAD, CUcontext, CUstream};
use gpucap_core::throttle::{Batch, Costs, Signature, StreamId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// A stream whose launches pay.
pub(super) struct Lane {
    /// Its device.
    pub(super) gate: &'static Gate,
    stream: Mutex<Stream>,
    purses: Mutex<Vec<Owned>>,
}

/// What one thread has prepaid in a lane, and all else that its short way needs.
pub(super) struct Purse {
    pub(super) batch: Arc<Batch>,
    pub(super) costs: Costs,
    pub(super) lane: &'static Lane,
}

/// A purse, and the thread that alone takes out of it.
struct Owned {
    thread: u32,
    purse: &'static Purse,
}

/// The stream of a lane.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    /// As the meter knows it; `None` once it has ended.
    pub(super) id: Option<StreamId>,
    /// Its context.
    pub(super) context: ContextId,
}

impl Lane {
    /// The stream that it serves now.
    pub(super) fn stream(&self) -> Stream {
        *self.stream.lock()
    }

    /// The purse of the calling thread, which has this number.
    pub(super) fn purse(&'static self, thread: u32) -> &'static Purse {
        let mut purses = self.purses.lock();
        let own = |purses: &[Owned]| purses.iter().position(|owned| owned.thread == thread);
        // Whenever there are twice as many as the last time: so there are never more than twice as many as threads.
        let unowned = |purses: &[Owned]| {
            let gone = |owned: &Owned| !sys::thread_exists(owned.thread);
            if purses.len().is_power_of_two() { purses.iter().position(gone) } else { None }
        };
        let place = own(&purses).or_else(|| unowned(&purses));
        if let Some(owned) = place.and_then(|place| purses.get_mut(place)) {
            owned.thread = thread;
            return owned.purse;
        }
        let costs = self.gate.costs.clone();
        let purse = &*Box::leak(Box::new(Purse { batch: Arc::default(), costs, lane: self }));
        purses.push(Owned { thread, purse });
        purse
    }
}

impl Purse {
    /// Takes the cost of a launch out of what is prepaid. `None` if that does not cover it, and if its stream may be
    /// captured, and it run nothing.
    #[expect(
        clippy::inline_always,
        reason = "on the way of each launch; a call of it would be half as much again"
    )]
    #[inline(always)]
    pub(super) fn take(&self, signature: Signature) -> Option<u32> {
        if captures::is_any() {
            return None;
        }
        self.costs.small(signature).filter(|cost| self.batch.spend(*cost))
    }
}

/// What tells streams apart. Handles are one of a kind; the names of default streams mean one in each context, or one
/// of each thread, and only for these the rest is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    stream: CUstream,
    context: CUcontext,
    thread: u32,
}

impl Key {
    /// A stream that has a handle of its own; `None` for the names of default streams.
    pub(super) fn of_handle(stream: CUstream) -> Option<Self> {
        let own = stream.address() > CU_STREAM_PER_THREAD.address();
        own.then_some(Self { stream, context: CUcontext::NULL, thread: 0 })
    }

    /// A default stream in the calling thread's current context.
    pub(super) fn of_default(stream: CUstream, current: CUcontext) -> Self {
        if stream == CU_STREAM_PER_THREAD {
            Self { stream, context: current, thread: sys::thread() }
        } else {
            Self { stream: CUstream::NULL, context: current, thread: 0 }
        }
    }
}

/// The streams of a process.
#[derive(Default)]
pub(crate) struct Lanes {
    /// `None`: of a device whose time is not shared.
    known: Mutex<HashMap<Key, Option<&'static Lane>>>,
    /// Those whose stream has ended.
    unused: Mutex<Vec<&'static Lane>>,
    /// At so many streams those of threads that are gone are looked for.
    sweep_at: AtomicUsize,
}

/// Fewer streams are not worth a look.
const FEW: usize = 64;

impl Lanes {
    /// The stream's lane, if anybody has launched in it; `Some(None)` if its device's time is not shared.
    pub(super) fn find(&self, key: Key) -> Option<Option<&'static Lane>> {
        self.known.lock().get(&key).copied()
    }

    /// Enters a stream of a device whose time is not shared.
    pub(super) fn enter_free(&self, key: Key) {
        self.known.lock().entry(key).or_insert(None);
    }

    /// Forgets all streams of devices whose time is not shared: one of them may have ended, and its handle be that of
    /// a stream of another device.
    pub(super) fn forget_free(&self) {
        self.end(|_, lane| lane.is_none(), |_, _| {});
    }

    /// Enters a stream of a device, unless another thread has just done so; `begin` tells the meter.
    pub(super) fn enter(
        &self,
        key: Key,
        gate: &'static Gate,
        begin: impl FnOnce() -> Option<(StreamId, ContextId)>,
    ) -> Option<&'static Lane> {
        let mut known = self.known.lock();
        if let Some(Some(lane)) = known.get(&key) {
            return Some(lane);
        }
        let (id, context) = begin()?;
        let stream = Stream { id: Some(id), context };
        let mut unused = self.unused.lock();
        let place = unused.iter().position(|lane| ptr::eq(lane.gate, gate));
        let lane = match place.map(|place| unused.swap_remove(place)) {
            Some(lane) => {
                *lane.stream.lock() = stream;
                lane
            }
            None => {
                let (stream, purses) = (Mutex::new(stream), Mutex::default());
                &*Box::leak(Box::new(Lane { gate, stream, purses }))
            }
        };
        known.insert(key, Some(lane));
        Some(lane)
    }

    /// Takes out the streams of which `ended` says so; `tell` tells the meter.
    pub(super) fn end(
        &self,
        mut ended: impl FnMut(&Key, Option<&Lane>) -> bool,
        mut tell: impl FnMut(&'static Lane, StreamId),
    ) {
        let mut known = self.known.lock();
        let before = known.len();
        let mut unused = self.unused.lock();
        for lane in known.extract_if(|key, lane| ended(key, *lane)).filter_map(|(_, lane)| lane) {
            // Let go of before the meter is told: who holds the meter may ask for a lane's stream.
            let ended = lane.stream.lock().id.take();
            ended.into_iter().for_each(|id| tell(lane, id));
            unused.push(lane);
        }
        if known.len() != before {
            begin_epoch();
        }
    }

    /// Takes out the default streams of threads that are gone, whenever there are twice as many streams as were left the
    /// last time: nobody says when a thread ends.
    pub(super) fn sweep(
        &self,
        is_alive: impl Fn(u32) -> bool,
        tell: impl FnMut(&'static Lane, StreamId),
    ) {
        let count = || self.known.lock().len();
        if count() < self.sweep_at.load(Ordering::Relaxed).max(FEW) {
            return;
        }
        self.end(|key, _| key.thread != 0 && !is_alive(key.thread), tell);
        self.sweep_at.store(count().saturating_mul(2), Ordering::Relaxed);
    }

    /// The same, with the handle by which the calling thread can name each in its context.
    pub(super) fn with_handles(
        &self,
        mut wanted: impl FnMut(&Lane) -> bool,
    ) -> Vec<(CUstream, &'static Lane)> {
        let own = |key: &Key| key.thread == 0 || key.thread == sys::thread();
        let known = self.known.lock();
        let named = known.iter().filter(|(key, _)| own(key));
        let named = named.filter_map(|(key, lane)| Some((key.stream, (*lane)?)));
        named.filter(|(_, lane)| wanted(lane)).collect()
    }

    /// The streams in use of which `wanted` says so.
    pub(super) fn all(&self, mut wanted: impl FnMut(&Lane) -> bool) -> Vec<&'static Lane> {
        self.known.lock().values().copied().flatten().filter(|lane| wanted(lane)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread's own default stream.
    fn of(thread: u32) -> Key {
        Key { stream: CU_STREAM_PER_THREAD, context: CUcontext::NULL, thread }
    }

    fn known(lanes: &Lanes) -> Vec<u32> {
        let mut threads: Vec<_> = lanes.known.lock().keys().map(|key| key.thread).collect();
        threads.sort_unstable();
        threads
    }

    #[test]
    fn default_streams_of_dead_threads_are_taken_out_and_no_others() {
        let lanes = Lanes::default();
        (0..100).for_each(|thread| lanes.enter_free(of(thread)));
        lanes.sweep(|thread| thread % 2 == 1, |_, _| {});
        // Number 0 is in the key of a stream that all threads share.
        let left: Vec<_> = (0..100).filter(|thread| *thread == 0 || thread % 2 == 1).collect();
        assert_eq!(known(&lanes), left);
    }

    #[test]
    fn they_are_looked_for_whenever_there_are_twice_as_many_as_were_left() {
        let lanes = Lanes::default();
        let sweep = |alive: u32| lanes.sweep(|thread| thread <= alive, |_, _| {});
        (1..64).for_each(|thread| lanes.enter_free(of(thread)));
        sweep(0);
        assert_eq!(known(&lanes).len(), 63, "too few for a look");
        (64..=100).for_each(|thread| lanes.enter_free(of(thread)));
        sweep(70);
        assert_eq!(known(&lanes).len(), 70);
        (101..170).for_each(|thread| lanes.enter_free(of(thread)));
        sweep(70);
        assert_eq!(known(&lanes).len(), 139, "not yet twice as many");
        lanes.enter_free(of(170));
        sweep(70);
        assert_eq!(known(&lanes).len(), 70);
    }
}
