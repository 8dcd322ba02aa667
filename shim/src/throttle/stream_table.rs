//! The streams in which a process has launched, and the allowances of its threads in them.
//!
//! A stream of a device with a compute limit has an entry, and each thread that launches in it has an allowance
//! there. A launch finds its allowance in what its thread [remembers](super::stream_cache), which is filled from here.
//! Neither an entry nor an allowance is ever freed. Once its stream has ended, an entry serves another stream of the
//! device: a thread that launches in a stream while another thread destroys it charges the wrong stream once, with no
//! other effect. Once its thread has ended, an allowance goes to another thread. The kernel is asked which threads
//! live, since the end of a thread is not notified.

use super::captures;
use super::gate::Gate;
use super::idle::LatestLaunch;
use super::key::Key;
use super::timing::ContextId;
use crate::driver::DriverCopy;
use crate::fork_page::begin_epoch;
use crate::sys;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use gpucap_abi::cuda::CUstream;
use gpucap_core::throttle::{Allowance, Costs, Signature, StreamId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The entry of a stream whose launches are charged.
pub(crate) struct StreamEntry {
    /// Its device.
    pub(crate) gate: &'static Gate,
    stream: Mutex<Stream>,
    /// It may wait for what another one waits for, and streams that wait for it do not yet.
    is_delayed: AtomicBool,
    /// A launch was admitted in it since it was fenced for what another one waits for.
    has_launched: AtomicBool,
    /// Of a stream that has a name in one thread only.
    latest: Mutex<Option<Arc<LatestLaunch>>>,
    allowances: Mutex<Vec<Owned>>,
}

/// The allowance of one thread in one stream, and all else that the fast path needs.
pub(crate) struct ThreadAllowance {
    pub(crate) prepaid: Arc<Allowance>,
    pub(crate) costs: Costs,
    pub(crate) entry: &'static StreamEntry,
}

/// An allowance, and the only thread that may take out of it.
struct Owned {
    thread: u32,
    allowance: &'static ThreadAllowance,
}

/// The stream of an entry.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    /// Its number in the meter; `None` once it has ended.
    pub(crate) id: Option<StreamId>,
    /// Its context.
    pub(crate) context: ContextId,
    pub(crate) waits: WaitsFor,
}

/// Which streams of its context a stream waits for without an event: "implicit synchronization" of the CUDA programming guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// The legacy default stream: for all that are not made with `CU_STREAM_NON_BLOCKING`.
    Blocking,
    /// Such a stream: for the legacy default stream.
    Legacy,
    /// Another: for none.
    None,
}

impl StreamEntry {
    /// Returns the stream that the entry serves now.
    pub(crate) fn stream(&self) -> Stream {
        *self.stream.lock()
    }

    /// The stream has ended. Its lock is free again: a thread that holds the meter may ask for the stream of an entry.
    fn take_stream(&self) -> Stream {
        let mut stream = self.stream.lock();
        let ended = *stream;
        stream.id = None;
        ended
    }

    /// What it was given last may wait for what another stream waits for.
    pub(crate) fn delay(&self) {
        self.is_delayed.store(true, Ordering::Relaxed);
    }

    /// Returns whether it may, as it is given more.
    pub(crate) fn take_delay(&self) -> bool {
        self.is_delayed.load(Ordering::Relaxed) && self.is_delayed.swap(false, Ordering::Relaxed)
    }

    /// A launch has been admitted, and with it an allowance, perhaps.
    pub(crate) fn launch(&self) {
        self.has_launched.store(true, Ordering::Relaxed);
    }

    /// Returns whether any has, as it is fenced.
    pub(crate) fn take_launched(&self) -> bool {
        self.has_launched.load(Ordering::Relaxed)
            && self.has_launched.swap(false, Ordering::Relaxed)
    }

    /// What shows whether the device has done the latest launch, if no other thread can ask about the stream itself.
    pub(crate) fn latest_launch(&self, copy: &DriverCopy) -> Option<Arc<LatestLaunch>> {
        let known = self.latest.lock().clone();
        known.or_else(|| {
            let Stream { id, context, .. } = self.stream();
            // Without a lock: the driver may call a tool back, which launches.
            let made = self.gate.latest_launch(copy, id?, context)?;
            Some(self.latest.lock().get_or_insert(made).clone())
        })
    }

    /// The next launch makes another one.
    pub(crate) fn forget_latest_launch(&self) {
        *self.latest.lock() = None;
    }

    /// Returns the allowance of the calling thread, which has this number.
    pub(crate) fn allowance(&'static self, thread: u32) -> &'static ThreadAllowance {
        let mut allowances = self.allowances.lock();
        let own = |allowances: &[Owned]| allowances.iter().position(|owned| owned.thread == thread);
        // Dead threads are looked for whenever the number has doubled: so there are never more than twice as many
        // allowances as threads.
        let unowned = |allowances: &[Owned]| {
            let gone = |owned: &Owned| !sys::thread_exists(owned.thread);
            if allowances.len().is_power_of_two() { allowances.iter().position(gone) } else { None }
        };
        let place = own(&allowances).or_else(|| unowned(&allowances));
        if let Some(owned) = place.and_then(|place| allowances.get_mut(place)) {
            if owned.thread != thread {
                owned.thread = thread;
                owned.allowance.prepaid.adopt();
            }
            return owned.allowance;
        }
        let costs = self.gate.costs.clone();
        let allowance =
            &*Box::leak(Box::new(ThreadAllowance { prepaid: Arc::default(), costs, entry: self }));
        allowances.push(Owned { thread, allowance });
        allowance
    }
}

impl ThreadAllowance {
    /// Takes the cost of a launch. `None` if the allowance does not cover it, if its stream may be capturing, in which case the
    /// launch runs nothing, and if the process is ending.
    #[expect(
        clippy::inline_always,
        reason = "on the way of each launch; a call of it would be half as much again"
    )]
    #[inline(always)]
    pub(crate) fn take(&self, signature: Signature) -> Option<u32> {
        if !captures::allow_prepaid() {
            return None;
        }
        self.costs.small(signature).filter(|cost| self.prepaid.spend(*cost))
    }
}

impl ThreadAllowance {
    /// The driver has returned from a launch that took this much, and has taken it or not.
    #[inline]
    pub(crate) fn has_returned(&self, cost: u32, is_taken: bool) {
        if is_taken {
            self.prepaid.returned(cost);
        } else {
            self.prepaid.refused(cost);
        }
    }
}

/// What is known of a stream; `T` is what pays for launches in it.
#[derive(Clone, Copy)]
pub(crate) enum StreamLookup<T> {
    /// Nothing: it was not looked up yet, or the driver will refuse the call.
    Unknown,
    /// What pays; `None`: nothing, its device has no compute limit.
    Known(Option<T>),
}

/// The streams of a process.
#[derive(Default)]
pub(crate) struct StreamTable {
    /// `None`: of a device without a compute limit.
    known: Mutex<HashMap<Key, Option<&'static StreamEntry>>>,
    /// Entries whose stream has ended.
    unused: Mutex<Vec<&'static StreamEntry>>,
    /// How many of the known ones wait for the legacy default stream.
    blocking: AtomicUsize,
    /// At this number of streams those of dead threads are looked for.
    sweep_at: AtomicUsize,
}

/// Fewer streams are not worth a search.
const FEW: usize = 64;

impl StreamTable {
    /// Returns the stream's entry, if a thread has launched in it.
    pub(crate) fn find(&self, key: Key) -> StreamLookup<&'static StreamEntry> {
        let known = self.known.lock().get(&key).copied();
        known.map_or(StreamLookup::Unknown, StreamLookup::Known)
    }

    /// Enters a stream of a device without a compute limit.
    pub(crate) fn enter_free(&self, key: Key) {
        self.known.lock().entry(key).or_insert(None);
    }

    /// Forgets all streams of devices without a compute limit: one of them may have ended, and its handle may be
    /// reused for a stream of another device.
    pub(crate) fn forget_free(&self) {
        self.end(|_, entry| entry.is_none(), |_, _| {});
    }

    /// Returns whether any of them waits for the legacy default stream.
    pub(crate) fn has_blocking(&self) -> bool {
        self.blocking.load(Ordering::Relaxed) > 0
    }

    /// Enters a stream of a device, unless another thread has just done so; `begin` registers it with the meter.
    pub(crate) fn enter(
        &self,
        key: Key,
        gate: &'static Gate,
        waits: WaitsFor,
        begin: impl FnOnce() -> Option<(StreamId, ContextId)>,
    ) -> Option<&'static StreamEntry> {
        let mut known = self.known.lock();
        if let Some(Some(entry)) = known.get(&key) {
            return Some(entry);
        }
        let (id, context) = begin()?;
        let stream = Stream { id: Some(id), context, waits };
        let mut unused = self.unused.lock();
        let place = unused.iter().position(|entry| ptr::eq(entry.gate, gate));
        let entry = match place.map(|place| unused.swap_remove(place)) {
            Some(entry) => {
                *entry.stream.lock() = stream;
                *entry.latest.lock() = None;
                entry.is_delayed.store(false, Ordering::Relaxed);
                entry
            }
            None => {
                let (stream, latest) = (Mutex::new(stream), Mutex::default());
                let (allowances, is_delayed) = (Mutex::default(), AtomicBool::new(false));
                let has_launched = AtomicBool::new(false);
                let entry =
                    StreamEntry { gate, stream, is_delayed, has_launched, latest, allowances };
                &*Box::leak(Box::new(entry))
            }
        };
        if waits == WaitsFor::Legacy {
            self.blocking.fetch_add(1, Ordering::Relaxed);
        }
        known.insert(key, Some(entry));
        Some(entry)
    }

    /// Removes the streams for which `ended` is true; `pass` hands each to the meter.
    pub(crate) fn end(
        &self,
        mut ended: impl FnMut(&Key, Option<&StreamEntry>) -> bool,
        mut pass: impl FnMut(&'static StreamEntry, StreamId),
    ) {
        let mut known = self.known.lock();
        let before = known.len();
        let mut unused = self.unused.lock();
        for entry in
            known.extract_if(|key, entry| ended(key, *entry)).filter_map(|(_, entry)| entry)
        {
            let Stream { id, waits, .. } = entry.take_stream();
            if waits == WaitsFor::Legacy {
                self.blocking.fetch_sub(1, Ordering::Relaxed);
            }
            id.into_iter().for_each(|id| pass(entry, id));
            unused.push(entry);
        }
        if known.len() != before {
            begin_epoch();
        }
    }

    /// Removes the default streams of dead threads, whenever the number of streams has doubled since the last
    /// removal: the end of a thread is not notified.
    pub(crate) fn sweep(
        &self,
        is_alive: impl Fn(u32) -> bool,
        pass: impl FnMut(&'static StreamEntry, StreamId),
    ) {
        let count = || self.known.lock().len();
        if count() < self.sweep_at.load(Ordering::Relaxed).max(FEW) {
            return;
        }
        self.end(|key, _| key.thread != 0 && !is_alive(key.thread), pass);
        self.sweep_at.store(count().saturating_mul(2), Ordering::Relaxed);
    }

    /// The same, with the handle by which the calling thread can name each of them in its context.
    pub(crate) fn with_handles(
        &self,
        mut wanted: impl FnMut(&Key, &StreamEntry) -> bool,
    ) -> Vec<(CUstream, &'static StreamEntry)> {
        let own = |key: &Key| key.thread == 0 || key.thread == sys::thread();
        let known = self.known.lock();
        let named = known.iter().filter(|(key, _)| own(key));
        let named = named.filter_map(|(key, entry)| Some((key, (*entry)?)));
        let named = named.filter(|(key, entry)| wanted(key, entry));
        named.map(|(key, entry)| (key.stream, entry)).collect()
    }

    /// Returns those that have a name in another thread only.
    pub(crate) fn of_other_threads(
        &self,
        mut wanted: impl FnMut(&Key, &StreamEntry) -> bool,
    ) -> Vec<&'static StreamEntry> {
        let others = |key: &Key| key.thread != 0 && key.thread != sys::thread();
        let known = self.known.lock();
        let entries = known.iter().filter(|(key, _)| others(key));
        let entries = entries.filter_map(|(key, entry)| Some((key, (*entry)?)));
        entries.filter(|(key, entry)| wanted(key, entry)).map(|(_, entry)| entry).collect()
    }

    /// Returns the streams in use for which `wanted` is true.
    pub(crate) fn all(
        &self,
        mut wanted: impl FnMut(&StreamEntry) -> bool,
    ) -> Vec<&'static StreamEntry> {
        self.known.lock().values().copied().flatten().filter(|entry| wanted(entry)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpucap_abi::cuda::{CU_STREAM_PER_THREAD, CUcontext};

    /// A thread's own default stream.
    fn of(thread: u32) -> Key {
        Key { stream: CU_STREAM_PER_THREAD, context: CUcontext::NULL, thread }
    }

    fn known(streams: &StreamTable) -> Vec<u32> {
        let mut threads: Vec<_> = streams.known.lock().keys().map(|key| key.thread).collect();
        threads.sort_unstable();
        threads
    }

    #[test]
    fn default_streams_of_dead_threads_are_taken_out_and_no_others() {
        let streams = StreamTable::default();
        (0..100).for_each(|thread| streams.enter_free(of(thread)));
        streams.sweep(|thread| thread % 2 == 1, |_, _| {});
        // Number 0 is in the key of a stream that all threads share.
        let left: Vec<_> = (0..100).filter(|thread| *thread == 0 || thread % 2 == 1).collect();
        assert_eq!(known(&streams), left);
    }

    #[test]
    fn they_are_looked_for_whenever_there_are_twice_as_many_as_were_left() {
        let streams = StreamTable::default();
        let sweep = |alive: u32| streams.sweep(|thread| thread <= alive, |_, _| {});
        (1..64).for_each(|thread| streams.enter_free(of(thread)));
        sweep(0);
        assert_eq!(known(&streams).len(), 63, "too few for a look");
        (64..=100).for_each(|thread| streams.enter_free(of(thread)));
        sweep(70);
        assert_eq!(known(&streams).len(), 70);
        (101..170).for_each(|thread| streams.enter_free(of(thread)));
        sweep(70);
        assert_eq!(known(&streams).len(), 139, "not yet twice as many");
        streams.enter_free(of(170));
        sweep(70);
        assert_eq!(known(&streams).len(), 70);
    }
}
