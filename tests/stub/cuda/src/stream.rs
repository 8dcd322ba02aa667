//! Streams: ordered work, and what waits for what.
//!
//! An operation's end is a point on the process's lane of the engine (see
//! `gpucap_stub_device::engine`), known when it is queued. A stream is in order; the legacy default
//! stream of a context also waits for every blocking stream of it, and they for it. A stream holds
//! a bounded number of unfinished operations; a launch beyond that waits. Contexts of one process
//! share its lane, so they do not take turns with each other as real ones do.

use crate::arg::Out;
use crate::capture::Capture;
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::host_function::Pending;
use crate::state::{State, Table};
use gpucap_abi::cuda::{CUcontext, CUstream, CuError, CuResult};
use gpucap_stub_device::catalog::Unit;
use gpucap_stub_device::{card, settings};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;

exports! {
    /// Flag 1: does not wait for the legacy default stream.
    fn cuStreamCreate(stream: *mut CUstream, flags: u32)
        => create, context, "cuStreamCreate" @ 2000;
    /// The priority is kept and otherwise ignored.
    fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: u32, priority: i32)
        => create_with_priority, context, "cuStreamCreateWithPriority" @ 5050;
    /// Queued work still runs.
    fn cuStreamDestroy(stream: CUstream) => destroy, driver, "cuStreamDestroy" @ 2000;
    /// Queued work still runs.
    fn cuStreamDestroy_v2(stream: CUstream) => destroy, driver, "cuStreamDestroy" @ 4000;
    /// NOT_READY while there is unfinished work.
    fn cuStreamQuery(stream: CUstream) => query, context, "cuStreamQuery" @ 2000;
    /// NOT_READY while there is unfinished work.
    fn cuStreamQuery_ptsz(stream: CUstream) => query, context, "cuStreamQuery" @ 7000 ptsz;
    /// Waits for all work in the stream.
    fn cuStreamSynchronize(stream: CUstream) => synchronize, context, "cuStreamSynchronize" @ 2000;
    /// Waits for all work in the stream.
    fn cuStreamSynchronize_ptsz(stream: CUstream)
        => synchronize, context, "cuStreamSynchronize" @ 7000 ptsz;
    /// Waits for all work in the context.
    fn cuCtxSynchronize() => synchronize_current, context, "cuCtxSynchronize" @ 2000;
    /// Waits for all work in a context; null is the current one.
    fn cuCtxSynchronize_v2(context: CUcontext)
        => synchronize_context, driver, "cuCtxSynchronize" @ 13000;
}

/// The legacy default stream by name.
const LEGACY: u64 = 1;
/// The per-thread default stream.
pub(crate) const PER_THREAD: CUstream = CUstream(2 as *mut c_void);
pub(crate) const NON_BLOCKING: u32 = 1;
/// `CUDA_ERROR_NOT_READY`
pub(crate) const NOT_READY: CuError = CuError::new(600).unwrap();

/// A stream.
pub(crate) struct Stream {
    pub(crate) context: u64,
    pub(crate) unit: Unit,
    pub(crate) kind: Kind,
    pub(crate) priority: i32,
    /// End of its last operation.
    tail: u64,
    /// Ends of its unfinished operations, oldest first.
    queue: VecDeque<u64>,
    /// The last host function queued in it.
    pub(crate) host: Option<Pending>,
    pub(crate) capture: Option<Capture>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Legacy,
    Blocking,
    NonBlocking,
}

/// How far the streams of a context are.
#[derive(Default, Clone, Copy)]
struct Tails {
    legacy: u64,
    blocking: u64,
    all: u64,
}

/// The streams of the process.
#[derive(Default)]
pub(crate) struct Streams {
    table: Table<Stream>,
    /// Handles of streams that are gone. The next stream gets the latest, as an allocator would have it.
    free: Vec<u64>,
    /// Default streams by context and thread; thread 0 is the legacy one.
    defaults: HashMap<(u64, u64), u64>,
    tails: HashMap<u64, Tails>,
}

/// A point in a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) unit: Unit,
    /// Progress of the process's lane at which it is reached.
    pub(crate) progress: u64,
    /// When it was reached, if that was known when it was made.
    pub(crate) time: Option<u64>,
}

impl Stream {
    const fn new((context, unit): (u64, Unit), kind: Kind, priority: i32) -> Self {
        let queue = VecDeque::new();
        Self { context, unit, kind, priority, tail: 0, queue, host: None, capture: None }
    }
}

impl Point {
    /// When the card reached it, if it has.
    pub(crate) fn reached(&self) -> Option<u64> {
        let ask = || {
            card()
                .with_engine(self.unit, |engine, lane, _| engine.lane(lane).reached(self.progress))
        };
        self.time.or_else(ask)
    }

    /// Whether the host can see that it was reached.
    pub(crate) fn is_seen(&self) -> bool {
        self.reached().is_some_and(|time| seen_at(time) <= card().clock().now())
    }

    /// Waits until the host can see that it was reached.
    pub(crate) fn wait(&self) {
        let time = self.time.unwrap_or_else(|| card().wait(self.unit, self.progress));
        card().clock().reach(seen_at(time));
    }
}

/// When the host sees what happened on the card at `time`: that takes as long as an operation to arrive.
fn seen_at(time: u64) -> u64 {
    time.saturating_add(2 * settings().arrival_ns)
}

impl Streams {
    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut Stream> {
        self.table.get_mut(handle)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.table.values_mut()
    }

    /// Forgets the streams of a context.
    pub(crate) fn end_context(&mut self, context: u64) {
        let here = self.table.iter().filter(|(_, stream)| stream.context == context);
        let made = here.map(|(handle, _)| handle).filter(|handle| !self.is_default(*handle));
        let mut made: Vec<_> = made.collect();
        made.sort_unstable();
        self.free.append(&mut made);
        self.table.drain_if(|stream| stream.context == context);
        self.defaults.retain(|(of, _), _| *of != context);
        self.tails.remove(&context);
    }

    /// Whether it is a default stream, which has no handle of its own.
    fn is_default(&self, handle: u64) -> bool {
        self.defaults.values().any(|default| *default == handle)
    }

    /// A stream that the program asked for: it may get the handle of one that is gone.
    fn add(&mut self, stream: Stream) -> u64 {
        match self.free.pop() {
            Some(handle) => self.table.put(handle, stream),
            None => self.table.add(stream),
        }
    }

    /// The streams of a context.
    pub(crate) fn of_context(&self, context: u64) -> Vec<CUstream> {
        let here = self.table.iter().filter(|(_, stream)| stream.context == context);
        here.map(|(handle, _)| CUstream(handle as *mut c_void)).collect()
    }

    /// A point behind everything queued in a context.
    pub(crate) fn end_of_context(&self, context: u64, unit: Unit) -> Point {
        let progress = self.tails.get(&context).map_or(0, |tails| tails.all);
        Point { unit, progress, time: None }
    }
}

impl State {
    /// The handle of a stream, with the names of default streams resolved in the current context.
    pub(crate) fn stream(
        &mut self,
        stream: CUstream,
        current: (u64, Unit),
    ) -> Result<u64, CuError> {
        let (thread, kind) = match stream.address() {
            0 | LEGACY => (0, Kind::Legacy),
            named if named == PER_THREAD.address() => (thread_number(), Kind::Blocking),
            handle if self.streams.table.get(handle).is_some() => return Ok(handle),
            _ => return Err(CuError::INVALID_HANDLE),
        };
        let key = (current.0, thread);
        if let Some(handle) = self.streams.defaults.get(&key) {
            return Ok(*handle);
        }
        let handle = self.streams.table.add(Stream::new(current, kind, 0));
        self.streams.defaults.insert(key, handle);
        Ok(handle)
    }

    /// Whether a stream is one.
    pub(crate) fn check_stream(&self, stream: CUstream) -> CuResult {
        let handle = stream.address();
        let known = handle <= PER_THREAD.address() || self.streams.table.get(handle).is_some();
        if known { Ok(()) } else { Err(CuError::INVALID_HANDLE) }
    }

    /// Makes a stream wait for a point.
    pub(crate) fn stream_waits(&mut self, handle: u64, progress: u64) {
        if let Some(stream) = self.streams.get_mut(handle) {
            stream.tail = stream.tail.max(progress);
        }
    }

    /// Queues an operation in a stream that has room; the point of its end.
    fn queue(&mut self, handle: u64, duration: u64) -> Result<Point, CuError> {
        let stream = self.streams.table.get_mut(handle).ok_or(CuError::INVALID_HANDLE)?;
        let tails = self.streams.tails.entry(stream.context).or_default();
        let after = match stream.kind {
            Kind::Legacy => stream.tail.max(tails.blocking),
            Kind::Blocking => stream.tail.max(tails.legacy),
            Kind::NonBlocking => stream.tail,
        };
        let unit = stream.unit;
        let (progress, time) = card().with_engine(unit, |engine, lane, now| {
            let done = engine.lane(lane).progress();
            while stream.queue.front().is_some_and(|end| *end <= done) {
                stream.queue.pop_front();
            }
            let end = engine.push(lane, after, duration);
            (end, (end <= done).then_some(now))
        });
        stream.tail = progress;
        if time.is_none() && duration > 0 {
            stream.queue.push_back(progress);
        }
        match stream.kind {
            Kind::Legacy => tails.legacy = tails.legacy.max(progress),
            Kind::Blocking => tails.blocking = tails.blocking.max(progress),
            Kind::NonBlocking => {}
        }
        tails.all = tails.all.max(progress);
        Ok(Point { unit, progress, time })
    }

    /// The oldest unfinished operation of a stream that has no room.
    fn full(&mut self, handle: u64) -> Option<Point> {
        let stream = self.streams.get_mut(handle)?;
        let oldest = stream.queue.len() >= settings().queue_depth;
        let progress = *stream.queue.front().filter(|_| oldest)?;
        Some(Point { unit: stream.unit, progress, time: None })
    }
}

/// Queues an operation, waiting for room and for host functions in front of it.
pub(crate) fn push(stream: CUstream, duration: u64) -> Result<Point, CuError> {
    let current = current()?;
    loop {
        let mut state = state()?;
        let handle = state.stream(stream, current)?;
        let host = state.streams.get_mut(handle).and_then(|stream| stream.host.take());
        if let Some(host) = host {
            drop(state);
            host.wait();
            continue;
        }
        let Some(oldest) = state.full(handle) else { return state.queue(handle, duration) };
        drop(state);
        oldest.wait();
        // Finished operations leave the queue at the next push; make sure that this one does.
        let mut state = crate::driver::state()?;
        if let Some(stream) = state.streams.get_mut(handle) {
            stream.queue.retain(|end| *end > oldest.progress);
        }
    }
}

/// The end of what is queued in a stream.
fn end(stream: CUstream) -> Result<(Point, Option<Pending>), CuError> {
    let current = current()?;
    let mut state = state()?;
    let handle = state.stream(stream, current)?;
    if let Some(id) = crate::capture::capture_of_legacy(&mut state, handle) {
        crate::capture::spoil(&mut state, id);
        return Err(crate::capture::IMPLICIT);
    }
    let found = state.streams.get_mut(handle).ok_or(CuError::INVALID_HANDLE)?;
    if found.capture.is_some() {
        return Err(crate::capture::fail(&mut state, handle));
    }
    let host = found.host.clone();
    let (unit, kind, context, tail) = (found.unit, found.kind, found.context, found.tail);
    let blocking = state.streams.tails.get(&context).map_or(0, |tails| tails.blocking);
    let progress = if kind == Kind::Legacy { tail.max(blocking) } else { tail };
    Ok((Point { unit, progress, time: None }, host))
}

/// The end of what is queued in a stream, and the stream's context.
pub(crate) fn end_and_context(stream: CUstream) -> Result<(Point, u64), CuError> {
    let ((point, _), current) = (end(stream)?, current()?);
    let mut state = state()?;
    let handle = state.stream(stream, current)?;
    Ok((point, state.streams.get_mut(handle).ok_or(CuError::INVALID_HANDLE)?.context))
}

/// A number for the calling thread.
pub(crate) fn thread_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    // A thread past the end of its thread-locals gets a stream of its own for this call.
    NUMBER
        .try_with(|number| {
            if number.get() == 0 {
                number.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            number.get()
        })
        .unwrap_or_else(|_| NEXT.fetch_add(1, Ordering::Relaxed))
}

fn create(stream: Out<CUstream>, flags: u32) -> CuResult {
    create_with_priority(stream, flags, 0)
}

fn create_with_priority(stream: Out<CUstream>, flags: u32, priority: i32) -> CuResult {
    create_in(current()?, stream, flags, priority)
}

/// Makes a stream in a context.
pub(crate) fn create_in(
    context: (u64, Unit),
    stream: Out<CUstream>,
    flags: u32,
    priority: i32,
) -> CuResult {
    stream.required()?;
    let kind = match flags {
        0 => Kind::Blocking,
        NON_BLOCKING => Kind::NonBlocking,
        _ => return Err(CuError::INVALID_VALUE),
    };
    let handle = state()?.streams.add(Stream::new(context, kind, priority.clamp(-5, 0)));
    stream.put(CUstream(handle as *mut c_void))
}

fn destroy(stream: CUstream) -> CuResult {
    let mut state = state()?;
    state.streams.table.remove(stream.address()).ok_or(CuError::INVALID_HANDLE)?;
    state.streams.free.push(stream.address());
    state.attributes.forget(stream.address());
    Ok(())
}

fn query(stream: CUstream) -> CuResult {
    let (point, host) = end(stream)?;
    let ran = host.is_none_or(|host| host.is_done());
    if ran && point.is_seen() { Ok(()) } else { Err(NOT_READY) }
}

fn synchronize(stream: CUstream) -> CuResult {
    let (point, host) = end(stream)?;
    point.wait();
    if let Some(host) = host {
        host.wait();
    }
    state()?.release_reserves();
    Ok(())
}

fn synchronize_current() -> CuResult {
    synchronize_context(CUcontext::NULL)
}

fn synchronize_context(context: CUcontext) -> CuResult {
    let (handle, unit) = crate::context::or_current(context)?;
    let mut state = state()?;
    crate::capture::forbid_in_context(&mut state, handle)?;
    let point = state.streams.end_of_context(handle, unit);
    let of_context = state.streams.iter_mut().filter(|stream| stream.context == handle);
    let hosts: Vec<_> = of_context.filter_map(|stream| stream.host.clone()).collect();
    drop(state);
    point.wait();
    hosts.iter().for_each(Pending::wait);
    crate::driver::state()?.release_reserves();
    Ok(())
}
