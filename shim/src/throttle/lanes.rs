//! Streams as launches find them: by a few comparisons, without a lock.
//!
//! A thread remembers the streams that it launched in last. What it remembers is good as long as no stream of the
//! process has ended since: each ending raises a number under which memories were made. A lane is never freed, and
//! serves another stream of its device when its own has ended: a thread that launches in a stream while another one
//! destroys it charges the wrong stream once, nothing worse.

use super::gate::Gate;
use super::timing::ContextId;
use crate::sys;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use gpucap_abi::cuda::{CU_STREAM_PER_THREAD, CUcontext, CUstream};
use gpucap_core::throttle::{Batch, StreamId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// A stream whose launches pay.
pub(super) struct Lane {
    /// Its device.
    pub(super) gate: &'static Gate,
    /// What it has prepaid.
    pub(super) batch: Arc<Batch>,
    stream: Mutex<Stream>,
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
    known: Mutex<HashMap<Key, &'static Lane>>,
    /// Those whose stream has ended.
    free: Mutex<Vec<&'static Lane>>,
    /// How many streams have ended.
    endings: AtomicU64,
    /// At so many streams those of threads that are gone are looked for.
    sweep_at: AtomicUsize,
}

/// Fewer streams are not worth a look.
const FEW: usize = 64;

impl Lanes {
    /// The stream, if anybody has launched in it.
    pub(super) fn find(&self, key: Key) -> Option<&'static Lane> {
        self.known.lock().get(&key).copied()
    }

    /// Enters a stream of a device, unless another thread has just done so; `begin` tells the meter.
    pub(super) fn enter(
        &self,
        key: Key,
        gate: &'static Gate,
        begin: impl FnOnce(&Arc<Batch>) -> Option<(StreamId, ContextId)>,
    ) -> Option<&'static Lane> {
        let mut known = self.known.lock();
        if let Some(lane) = known.get(&key) {
            return Some(lane);
        }
        let mut free = self.free.lock();
        let unused = free.iter().position(|lane| ptr::eq(lane.gate, gate));
        let batch = unused.and_then(|place| free.get(place)).map(|lane| Arc::clone(&lane.batch));
        let batch = batch.unwrap_or_default();
        let (id, context) = begin(&batch)?;
        let stream = Stream { id: Some(id), context };
        let lane = match unused.map(|place| free.swap_remove(place)) {
            Some(lane) => {
                *lane.stream.lock() = stream;
                lane
            }
            None => {
                let stream = Mutex::new(stream);
                &*Box::leak(Box::new(Lane { gate, batch, stream }))
            }
        };
        known.insert(key, lane);
        Some(lane)
    }

    /// Takes out the streams of which `ended` says so; `tell` tells the meter.
    pub(super) fn end(
        &self,
        mut ended: impl FnMut(&Key, &Lane) -> bool,
        mut tell: impl FnMut(&'static Lane, StreamId),
    ) {
        let mut known = self.known.lock();
        let before = known.len();
        let mut free = self.free.lock();
        for (_, lane) in known.extract_if(|key, lane| ended(key, lane)) {
            // Let go of before the meter is told: who holds the meter may ask for a lane's stream.
            let ended = lane.stream.lock().id.take();
            ended.into_iter().for_each(|id| tell(lane, id));
            free.push(lane);
        }
        if known.len() != before {
            self.endings.fetch_add(1, Ordering::AcqRel);
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

    /// The streams in use of which `wanted` says so.
    pub(super) fn all(&self, mut wanted: impl FnMut(&Lane) -> bool) -> Vec<&'static Lane> {
        self.known.lock().values().copied().filter(|lane| wanted(lane)).collect()
    }

    /// The lane that this thread remembers for a stream.
    #[inline]
    pub(super) fn remembered(&self, stream: CUstream, context: CUcontext) -> Option<&'static Lane> {
        let asked = self.memory(stream, context, None);
        RECENT
            .try_with(|recent| {
                let memory = recent.get(asked.place())?.get();
                if memory.is_for(&asked) { memory.lane } else { None }
            })
            .ok()?
    }

    /// Has this thread remember the lane of a stream.
    pub(super) fn remember(&self, stream: CUstream, context: CUcontext, lane: &'static Lane) {
        let memory = self.memory(stream, context, Some(lane));
        // A thread whose locals are gone remembers nothing.
        let _ = RECENT.try_with(|recent| {
            if let Some(cell) = recent.get(memory.place()) {
                cell.set(memory);
            }
        });
    }

    fn memory(&self, stream: CUstream, context: CUcontext, lane: Option<&'static Lane>) -> Memory {
        let endings = self.endings.load(Ordering::Acquire);
        Memory { of: ptr::from_ref(self), endings, stream, context, lane }
    }
}

/// Streams that a thread remembers.
const REMEMBERED: usize = 4;

thread_local! {
    static RECENT: [Cell<Memory>; REMEMBERED] = const {
        [const { Cell::new(Memory::NOTHING) }; REMEMBERED]
    };
}

#[derive(Clone, Copy)]
struct Memory {
    /// Whose: a child made by `fork` begins anew.
    of: *const Lanes,
    endings: u64,
    stream: CUstream,
    context: CUcontext,
    lane: Option<&'static Lane>,
}

impl Memory {
    const NOTHING: Self = Self {
        of: ptr::null(),
        endings: 0,
        stream: CUstream::NULL,
        context: CUcontext::NULL,
        lane: None,
    };

    #[inline]
    fn place(&self) -> usize {
        // Handles are addresses of aligned objects.
        let mixed = self.stream.address().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(mixed >> 62).unwrap_or(0)
    }

    #[inline]
    fn is_for(&self, asked: &Self) -> bool {
        ptr::eq(self.of, asked.of)
            && self.endings == asked.endings
            && self.stream == asked.stream
            && self.context == asked.context
    }
}
