//! The gate of one device with a compute limit: its meter, and the threads that wait at it.
//!
//! The lock is held while the meter decides and queries events; never while a launch is in progress, an event is
//! recorded or a thread sleeps. A tool that the driver calls back on the same thread in the mean time finds the lock
//! [held](crate::driver::call_guard): its launches [wait](super::tool_launches) afterwards.

pub(crate) mod admit;
mod debt;
mod ends;
mod questions;
mod unreported;
mod watch;

use super::idle::{Asked, LatestLaunch};
use super::peers::{Peers, Reads};
use super::timing::{ContextId, Mark, Spare, Timing};
use super::watcher::Watcher;
use crate::container::held_page::Held;
use crate::container::ledger_file;
use crate::container::live_limits::Live;
use crate::driver::DriverCopy;
use crate::driver::call_guard::DriverCallGuard;
use crate::sys;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use gpucap_abi::cuda::{CUcontext, CUstream};
use gpucap_core::ledger::{DeviceIndex, Ledger, Slot};
use gpucap_core::throttle::{
    Bucket, CallTime, Costs, Gang, Meter, Signature, StreamId, Totals, Unfinished, Upkeep,
    UsageReport,
};
use gpucap_core::units::{ComputeLimit, Share};
use parking_lot::Mutex;
use std::sync::Arc;

/// A device with a compute limit.
pub(crate) struct Gate {
    /// The costs of launches, for those that need not come here.
    pub(crate) costs: Costs,
    index: DeviceIndex,
    ledger: &'static Ledger,
    slot: Slot,
    live: Live,
    call: CallTime,
    upkeep: Upkeep,
    /// The other processes on the device, if they can be seen.
    peers: Option<Peers>,
    /// Until when the node holds the container back.
    held: Option<Held>,
    /// Others have to know of waits.
    is_watched: AtomicBool,
    /// The process has a context on the device, or has had one.
    is_used: AtomicBool,
    /// There is a limit.
    wants_watch: AtomicBool,
    /// Others wait for the end of a launch of unknown length.
    is_awaited: AtomicBool,
    /// The thread that looks at what is in flight, if there is one.
    watcher: Mutex<Watcher>,
    inside: Mutex<Inside>,
}

struct Inside {
    meter: Meter<'static, Mark>,
    timing: Timing,
    limit: ComputeLimit,
    /// The busy time that the ledger has already.
    reported: Totals,
    /// The time up to which the ledger has the work in flight as paid for.
    paid_until: Option<u64>,
    /// The report that the peers have already.
    published: UsageReport,
}

/// How soon to look again whether a program that makes calls still does.
const CALLS_NS: u64 = 10_000_000;

/// What the process with this slot is called among those of its container.
fn number(slot: usize) -> u16 {
    u16::try_from(slot).map_or(u16::MAX, |slot| slot.saturating_add(1))
}

impl Gate {
    /// Makes the gate of the device at this index of the ledger; `None` if the ledger has no such index.
    pub(crate) fn new(
        ledger: &'static Ledger,
        slot: Slot,
        index: DeviceIndex,
        live: Live,
        limit: ComputeLimit,
        peers: Option<Peers>,
        held: Option<Held>,
    ) -> Option<Self> {
        let bucket = Bucket::new(ledger.bucket(index)?, limit.share());
        let gang = Gang::new(ledger.words_of_devices(), index.index(), number(slot.index()));
        let now = sys::monotonic_ns();
        let mut meter = Meter::new(bucket, now).among(gang);
        meter.set_limit(limit, now);
        let costs = meter.costs();
        let reported = Totals::default();
        let timing = Timing::default();
        let published = UsageReport::default();
        let inside =
            Mutex::new(Inside { meter, timing, limit, reported, paid_until: None, published });
        let (call, upkeep) = (CallTime::default(), Upkeep::default());
        Some(Self {
            costs,
            index,
            ledger,
            slot,
            live,
            call,
            upkeep,
            peers,
            held,
            is_watched: AtomicBool::new(false),
            is_used: AtomicBool::new(false),
            wants_watch: AtomicBool::new(false),
            is_awaited: AtomicBool::new(false),
            watcher: Mutex::default(),
            inside,
        })
    }

    /// Registers a stream of a context, which has this name in all threads, if any.
    pub(crate) fn begin_stream(
        &self,
        context: CUcontext,
        name: Option<CUstream>,
    ) -> Option<(StreamId, ContextId)> {
        self.context_begins();
        self.with(|inside| {
            let Inside { meter, timing, .. } = inside;
            let (id, context) = (meter.stream(sys::monotonic_ns()), timing.context(context));
            name.into_iter()
                .for_each(|name| timing.streams.enter(id, Asked::Stream(name), context));
            (id, context)
        })
    }

    /// Makes what shows whether a stream without such a name has done its latest launch. `None` if the driver makes no event.
    pub(crate) fn latest_launch(
        &self,
        copy: &DriverCopy,
        id: StreamId,
        context: ContextId,
    ) -> Option<Arc<LatestLaunch>> {
        let _errno = sys::Errno::keep();
        let [event, other] = self.spare(copy, context)?;
        self.keep([other]);
        let latest = Arc::new(LatestLaunch::new(event.event()));
        let asked = Asked::Latest(latest.clone());
        self.with(|inside| inside.timing.streams.enter(id, asked, context))?;
        Some(latest)
    }

    /// Forgets the cost of an executable graph that was changed.
    pub(crate) fn changed(&self, signature: Signature) {
        self.with(|inside| inside.meter.changed(signature));
    }

    /// Charges the unfinished work of dead processes of the container on the device, if it is time to look for them, and
    /// ends their reports.
    fn inherit(&self, now: u64) {
        // What is owed is found once: it must be possible to charge it.
        let Some(_held) = DriverCallGuard::enter() else { return };
        if !self.upkeep.is_inheriting_due(now) {
            return;
        }
        let present = self.peers.as_ref().map(|peers| peers.present(now)).unwrap_or_default();
        let report = |slot| present.iter().find(|(at, _)| *at == slot).map(|(_, report)| *report);
        let died = |slot| {
            self.think(|inside| inside.meter.sibling_died(number(slot)));
            if let (Some(peers), Some(found)) = (&self.peers, report(slot)) {
                peers.end(slot, found, now);
            }
        };
        let owed = |left: Unfinished| {
            let owed = self.think(|inside| inside.meter.inherit(left, now));
            self.ledger.worked_unfinished(self.index, left.paid_until.saturating_add(owed), owed);
        };
        let shows = |slot| report(slot).is_some();
        self.ledger.find_dead(self.index, self.slot, &ledger_file::alive, shows, died, owed);
        let has_others = self.ledger.has_others(self.slot);
        self.think(|inside| inside.meter.set_shared(has_others));
    }

    /// Reads the peers' reports, if it is time to, before time that was theirs is charged. The files are read outside
    /// of the lock.
    fn look_around(&self, now: u64, is_launch: bool) {
        self.inherit(now);
        self.publish_debt(now);
        if let Some(held) = &self.held {
            held.pass_on(now, |until| self.with(|inside| inside.meter.hold(until, now)));
        }
        let Some(peers) = &self.peers else { return };
        // A container that borrows gives back as soon as another one works.
        let borrows = self.with(|inside| inside.limit.borrows()) == Some(true);
        let reads = match (borrows, self.upkeep.may_take_time(now, is_launch)) {
            (true, _) => Reads::Every,
            (false, true) => Reads::Moving,
            (false, false) => Reads::Own,
        };
        let is_due = || self.with(|inside| inside.meter.is_look_due(now)) == Some(true);
        peers.read_reports(now, reads, is_due, |peers, are_all| {
            self.with(|inside| {
                inside.meter.set_sees_all(are_all);
                inside.meter.take_reports(peers.iter().copied(), now);
            });
        });
    }

    /// Marks where the stream's work ends, and passes the mark to the meter.
    fn mark(
        &self,
        copy: &DriverCopy,
        (id, context): (StreamId, ContextId),
        stream: CUstream,
        pass: impl FnOnce(&mut Inside, StreamId, Mark, u64),
    ) {
        let Some([first, second]) = self.spare(copy, context) else { return };
        match first.record(copy, stream) {
            Ok(mark) => {
                let now = sys::monotonic_ns();
                self.keep([second]);
                self.asking(copy, |inside| pass(inside, id, mark, now));
            }
            Err(first) => self.keep([first, second]),
        }
    }

    fn keep(&self, spare: impl IntoIterator<Item = Spare>) {
        self.with(|inside| spare.into_iter().for_each(|spare| inside.timing.keep(spare)));
    }

    /// Returns whether what is in flight is looked at.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.wants_watch.load(Relaxed)
    }

    /// Returns whether containers that borrow have to know of waits.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Relaxed)
    }

    /// Publishes that this thread begins to wait in a call of the driver for work of the device.
    pub(crate) fn wait_begins(&self) {
        self.with(|inside| inside.meter.wait_begins());
    }

    /// Publishes that it has returned.
    pub(crate) fn wait_ends(&self) {
        self.with(|inside| inside.meter.wait_ends());
    }

    /// Records that the host has seen these streams empty, having waited for that since `began`.
    pub(crate) fn synced(
        &self,
        copy: &DriverCopy,
        streams: impl Iterator<Item = StreamId>,
        began: u64,
    ) {
        let now = sys::monotonic_ns();
        self.look_around(now, false);
        self.asking(copy, |inside| {
            let mut events = inside.timing.reader(copy);
            inside.meter.sync_returned(streams, began, now, &mut events);
        });
    }

    /// Settles what has finished.
    pub(crate) fn settle(&self, copy: &DriverCopy) {
        let now = sys::monotonic_ns();
        self.look_around(now, false);
        self.asking(copy, |inside| {
            inside.meter.settle_finished(now, &mut inside.timing.reader(copy));
        });
    }

    /// Looks at what is in flight, at all of it if that `hurries`, as far as the driver `may` be asked once the lock is had.
    /// Returns when to do so again.
    fn look_in_flight(
        &self,
        copy: &DriverCopy,
        hurries: bool,
        may: impl Fn() -> bool,
    ) -> Option<u64> {
        let now = sys::monotonic_ns();
        let is_due = self.with(|inside| inside.meter.is_watch_due(now)) != Some(false);
        if is_due || hurries {
            self.look_around(now, false);
        }
        self.asking(copy, |inside| {
            let Inside { meter, timing, .. } = inside;
            timing.any_context().filter(|_| may())?;
            let mut events = timing.reader(copy);
            if is_due || hurries {
                return meter.watch(now, &mut events);
            }
            meter.watch_unmarked(now, &mut events);
            Some(now.saturating_add(CALLS_NS))
        })
        .flatten()
    }

    fn spare(&self, copy: &DriverCopy, context: ContextId) -> Option<[Spare; 2]> {
        let (mut first, mut second, handle) = self.with(|inside| {
            let handle = inside.timing.handle(context)?;
            Some((inside.timing.spare(context), inside.timing.spare(context), handle))
        })??;
        let fresh = || Spare::new(copy, handle, context);
        first = first.or_else(fresh);
        second = second.or_else(fresh);
        match (first, second) {
            (Some(first), Some(second)) => Some([first, second]),
            (first, second) => {
                self.keep(first.into_iter().chain(second));
                None
            }
        }
    }

    /// Returns once every event query that might predate the current captures has finished.
    pub(crate) fn wait_for_questions(&self) {
        self.with(|_| ());
    }

    /// Runs the meter.
    fn with<T>(&self, work: impl FnOnce(&mut Inside) -> T) -> Option<T> {
        let _held = DriverCallGuard::enter()?;
        Some(self.think(work))
    }

    fn think<T>(&self, work: impl FnOnce(&mut Inside) -> T) -> T {
        let mut inside = self.inside.lock();
        self.follow(&mut inside);
        let done = work(&mut inside);
        self.publish(&mut inside);
        done
    }

    /// Returns the limit that holds now. There is one, or the gate would not have been made.
    fn limit(&self) -> ComputeLimit {
        self.live.now().core.unwrap_or(ComputeLimit::fixed(Share::LEAST))
    }

    /// Applies the limit that holds now.
    fn follow(&self, inside: &mut Inside) {
        let limit = self.limit();
        if limit != inside.limit {
            inside.limit = limit;
            inside.meter.set_limit(limit, sys::monotonic_ns());
        }
    }

    /// Writes what has been settled to the ledger, and publishes the report for the peers.
    fn publish(&self, inside: &mut Inside) {
        self.is_watched.store(inside.meter.is_watched(), Relaxed);
        self.wants_watch.store(inside.meter.wants_watch(), Relaxed);
        self.is_awaited.store(inside.meter.is_awaited(), Relaxed);
        let totals = inside.meter.totals();
        let reported = core::mem::replace(&mut inside.reported, totals);
        inside.reported.busy_ns = totals.busy_ns.max(reported.busy_ns);
        let busy = totals.busy_ns.saturating_sub(reported.busy_ns);
        if busy > 0 {
            self.ledger.worked(self.slot, self.index, sys::monotonic_ns(), busy);
        }
        let borrowed = totals.borrowed_ns.saturating_sub(reported.borrowed_ns);
        if borrowed > 0 {
            self.ledger.borrowed(self.index, borrowed);
        }
        let launches = totals.launches.saturating_sub(reported.launches);
        if launches > 0 {
            self.ledger.launched(self.slot, self.index, launches);
        }
        let paid_until = inside.meter.paid_until();
        if paid_until != inside.paid_until {
            inside.paid_until = paid_until;
            self.ledger.unfinished(self.slot, self.index, paid_until);
        }
        if let Some(peers) = &self.peers {
            let published = inside.meter.usage_report();
            if published != inside.published {
                inside.published = published;
                peers.publish(published);
            }
        }
    }
}
