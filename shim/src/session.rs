//! This process's part of the container's ledger: its slot, its devices, what it holds.
//!
//! Begins with the first call that needs it (`cuInit`, as a rule) and ends with the process; there is no shutdown
//! step: a slot is reaped once its owner has died. The pointer to it is in a page that a child made by `fork` sees
//! empty: a CUDA context does not survive `fork`, so a child begins a session of its own, with unlocked locks, and
//! its parent's charges stay its parent's.

mod charge;

use crate::allocations::{Allocations, ByAddress, Record};
use crate::attendance::Attendance;
use crate::call::Refusal;
use crate::code::Code;
use crate::contexts::Contexts;
use crate::device::{Device, Standing, Unresolved};
use crate::driver_call_guard::lock;
use crate::graphs::Graphs;
use crate::ledger_file;
use crate::log;
use crate::pools::Pools;
use crate::redirect::DriverCopy;
use crate::state::{self, Policy, Problem};
use crate::sys;
use crate::throttle::{Captures, Collectives, Contents, Gate, StreamTable, ToolLaunches};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use gpucap_abi::cuda::CUdevice;
use gpucap_core::config::LogLevel;
use gpucap_core::ledger::{Kind, Ledger, OverQuota, Slot};
use gpucap_core::physical::{Physical, Shareable};
use gpucap_core::units::Bytes;
use once_cell::race::OnceBox;
use parking_lot::Mutex;

pub(crate) use charge::Charge;

/// How many devices one process can use.
const MAX_DEVICES: usize = 64;

/// What a process keeps.
pub(crate) struct Session {
    /// The limits.
    pub(crate) policy: &'static Policy,
    /// The container's ledger.
    pub(crate) ledger: &'static Ledger,
    /// This process's place in it.
    pub(crate) slot: Slot,
    attendance: Attendance,
    devices: [OnceBox<Standing>; MAX_DEVICES],
    /// Memory at an address: linear, pitched, stream-ordered, managed.
    pub(crate) memory: Allocations,
    /// Arrays.
    pub(crate) arrays: Allocations,
    /// What contexts were made to hold beyond what they start with; the key is context and limit.
    pub(crate) heaps: Allocations,
    /// Modules and libraries.
    pub(crate) code: Code,
    /// Contexts other than the primary ones.
    pub(crate) contexts: Contexts,
    /// Memory of graphs.
    pub(crate) graphs: Graphs,
    /// Stream-ordered pools.
    pub(crate) pools: Pools,
    /// Physical memory of the virtual memory management.
    pub(crate) physical: Mutex<Physical<Record>>,
    /// Something may keep physical memory that the table does not know of: none of it is refunded any more.
    pub(crate) physical_unknown: AtomicBool,
    /// Streams whose launches are charged.
    pub(crate) streams: StreamTable,
    /// Streams whose launches are captured.
    pub(crate) captures: Captures,
    /// Which kernels are hardly held back.
    pub(crate) collectives: Collectives,
    /// What executable graphs were made of; the key is their handle.
    pub(crate) contents: Mutex<ByAddress<Contents>>,
    /// What tools have launched under locks of ours.
    pub(crate) tool_launches: ToolLaunches,
}

/// Lives in a page that a forked child sees as zeros.
#[repr(C)]
struct Anchor {
    session: AtomicPtr<Session>,
    /// 1 while a thread is starting it.
    starting: AtomicU32,
    /// See [`epoch`]; zero before the session.
    epoch: AtomicU64,
}

static ANCHOR: AtomicPtr<Anchor> = AtomicPtr::new(core::ptr::null_mut());
/// The latest epoch of this process or of one that it is a child of.
static LATEST_EPOCH: AtomicU64 = AtomicU64::new(0);

/// The number under which threads remember what handles stand for. Another one begins whenever a handle may stand for
/// something else, and with each session: what a thread remembers of the process that this one is a child of is void.
#[inline]
pub(crate) fn epoch() -> u64 {
    let anchor = ANCHOR.load(Ordering::Acquire);
    // SAFETY: a published anchor is never taken down.
    unsafe { anchor.as_ref() }.map_or(0, |anchor| anchor.epoch.load(Ordering::Acquire))
}

/// Begins another epoch. One thread at a time: the caller holds a lock of the session, or begins it.
pub(crate) fn begin_epoch() {
    let anchor = ANCHOR.load(Ordering::Acquire);
    // SAFETY: a published anchor is never taken down.
    if let Some(anchor) = unsafe { anchor.as_ref() } {
        let before = LATEST_EPOCH.fetch_add(1, Ordering::AcqRel);
        anchor.epoch.store(before.wrapping_add(1), Ordering::Release);
    }
}

impl Session {
    /// The session of this process, begun if need be.
    ///
    /// # Errors
    /// It cannot begin. What stands in the way may pass (no descriptor, no memory, no free slot): the next call tries
    /// again.
    pub(crate) fn current(policy: &'static Policy) -> Result<&'static Self, &'static Problem> {
        let anchor = ANCHOR.load(Ordering::Acquire);
        // SAFETY: a published anchor is never taken down.
        if let Some(anchor) = unsafe { anchor.as_ref() } {
            let session = anchor.session.load(Ordering::Acquire);
            // SAFETY: a published session is leaked; in a forked child the page reads as null.
            if let Some(session) = unsafe { session.as_ref() } {
                return Ok(session);
            }
        }
        let _errno = sys::Errno::keep();
        start(policy).map_err(state::lacking)
    }

    /// The session, if one has begun.
    pub(crate) fn begun() -> Option<&'static Self> {
        let anchor = ANCHOR.load(Ordering::Acquire);
        // SAFETY: a published anchor is never taken down.
        let anchor = unsafe { anchor.as_ref() }?;
        let session = anchor.session.load(Ordering::Acquire);
        // SAFETY: a published session is leaked.
        unsafe { session.as_ref() }
    }

    /// The device with this CUDA ordinal; `None` if its memory is not capped or there is none.
    ///
    /// # Errors
    /// Its limits cannot be resolved: the process is broken from here on.
    pub(crate) fn device(
        &self,
        driver: &DriverCopy,
        ordinal: CUdevice,
    ) -> Result<Option<&Device>, Refusal> {
        Ok(self.standing(driver, ordinal)?.and_then(|standing| standing.memory.as_ref()))
    }

    /// What holds for the device with this CUDA ordinal; `None` if there is none.
    ///
    /// # Errors
    /// If its limits cannot be enforced: the process is broken from here on, or this call fails for lack of room.
    pub(crate) fn standing(
        &self,
        driver: &DriverCopy,
        ordinal: CUdevice,
    ) -> Result<Option<&Standing>, Refusal> {
        let place = usize::try_from(ordinal).ok().and_then(|index| self.devices.get(index));
        let Some(place) = place else { return Ok(None) };
        if let Some(standing) = place.get() {
            return Ok(Some(standing));
        }
        match Device::resolve(self, driver, ordinal) {
            Ok(Some(standing)) => Ok(Some(place.get_or_init(|| Box::new(standing)))),
            Ok(None) => Ok(None),
            Err(why) => {
                let problem = match why {
                    Unresolved::Broken(text) => state::break_with(text),
                    Unresolved::ForNow(text) => state::lacking(text),
                };
                problem.report();
                Err(Refusal::NotInitialized)
            }
        }
    }

    /// Takes bytes from a device's cap. A charge that is dropped without [`Charge::commit`] is given back.
    ///
    /// # Errors
    /// It does not fit, even after everything that dead processes held has come back.
    pub(crate) fn charge(
        &'static self,
        device: &Device,
        kind: Kind,
        bytes: u64,
    ) -> Result<Charge, OverQuota> {
        let _one_at_a_time = device.turn.lock();
        let (slot, index) = (self.slot, device.index);
        let all_live = || self.attendance.all_live();
        let cap = device.cap();
        self.ledger.charge_or_reap(
            slot,
            index,
            kind,
            bytes,
            cap,
            &all_live,
            &ledger_file::alive,
        )?;
        Ok(Charge { session: self, record: Record { bytes, home: 0, device: index, kind } })
    }

    /// Charges for what the driver holds already and what cannot be given back, whether it fits or not: the limit is full
    /// until it has gone.
    pub(crate) fn charge_held(&'static self, device: &Device, kind: Kind, bytes: u64) -> Charge {
        let _one_at_a_time = device.turn.lock();
        // Without a limit it fits, and dead processes are not in the way.
        let _ = self.ledger.charge(self.slot, device.index, kind, bytes, u64::MAX);
        Charge { session: self, record: Record { bytes, home: 0, device: device.index, kind } }
    }

    /// Bytes of a device that the container's processes hold, without those that have been dead for half a second.
    pub(crate) fn used(&self, device: &Device) -> u64 {
        self.attendance.keep_up();
        self.ledger.used(device.index)
    }

    /// Counts a refusal that the application sees, and logs the first one.
    pub(crate) fn refused(&self, device: &Device, over: &OverQuota) {
        static LOGGED: log::Once = log::Once::new();
        self.ledger.count_refusal(self.slot, device.index);
        if LOGGED.first() {
            let (limit, used, request) =
                (Bytes(over.limit), Bytes(over.used), Bytes(over.requested));
            self.policy.log(
                LogLevel::Warn,
                format_args!(
                    "memory: refused at the cap cap={limit} used={used} request={request}; further ones are only counted"
                ),
            );
        }
    }

    /// A pool is about to be destroyed: what a device takes from next is asked of the driver.
    pub(crate) fn forget_current_pool(&self, pool: u64) {
        for (_, device) in self.capped() {
            let current = &device.current_pool;
            // Where this fails, it was another pool.
            let _ = current.compare_exchange(pool, 0, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// The devices with a compute limit that this process has used.
    pub(crate) fn gates(&self) -> impl Iterator<Item = &Gate> {
        self.devices.iter().filter_map(|place| place.get()?.time.as_ref())
    }

    /// The gate of a device that this process has used; `None` if it has no compute limit.
    pub(crate) fn gate(&self, ordinal: CUdevice) -> Option<&Gate> {
        self.devices.get(usize::try_from(ordinal).ok()?)?.get()?.time.as_ref()
    }

    /// The devices with a memory limit that this process has used, with their ordinals.
    pub(crate) fn capped(&self) -> impl Iterator<Item = (CUdevice, &Device)> {
        let devices = (0..).zip(&self.devices);
        devices.filter_map(|(ordinal, place)| Some((ordinal, place.get()?.memory.as_ref()?)))
    }

    /// Works on the table of physical memory, outside of the driver's calls. `None` in the rare moment when a call of
    /// the driver is under way that holds the table, and waiting for it could be waiting for oneself.
    pub(crate) fn with_physical<R>(
        &self,
        work: impl FnOnce(&mut Physical<Record>) -> R,
    ) -> Option<R> {
        lock(&self.physical).map(|mut physical| work(&mut physical))
    }

    /// Refunds physical memory that only files kept which the program has closed since. False if there was none.
    pub(crate) fn collect_closed(&self) -> bool {
        let is_open = |file: &Shareable| shareable(file.descriptor) == Some(*file);
        let gone = self.with_physical(|physical| physical.collect(is_open)).unwrap_or_default();
        let any = !gone.is_empty();
        self.refund_physical(gone);
        any
    }

    /// Refunds physical memory that nothing refers to any more, as far as the table knows.
    pub(crate) fn refund_physical(&self, gone: Vec<Record>) {
        if !self.physical_unknown.load(Ordering::Acquire) {
            gone.into_iter().for_each(|record| self.refund(record));
        }
    }

    /// Bytes that this process holds of a device.
    pub(crate) fn holds(&self, device: &Device) -> u64 {
        let own = self.ledger.processes().find(|process| process.slot() == self.slot.index());
        own.and_then(|own| own.account(device.index)).map_or(0, |account| account.used)
    }

    /// Gives the bytes of a record back.
    pub(crate) fn refund(&self, record: Record) {
        if record.bytes == 0 {
            return;
        }
        if let Some((_, device)) = self.capped().find(|(_, device)| device.index == record.device) {
            let _one_at_a_time = device.turn.lock();
            self.ledger.refund(self.slot, record.device, record.kind, record.bytes);
        }
    }
}

/// The file behind a descriptor of the program, as the table of physical memory knows it; `None` if it is closed.
pub(crate) fn shareable(descriptor: i32) -> Option<Shareable> {
    Some(Shareable { descriptor, file: sys::file_behind(descriptor)? })
}

fn anchor() -> Result<&'static Anchor, String> {
    let known = ANCHOR.load(Ordering::Acquire);
    // SAFETY: a published anchor is never taken down.
    if let Some(anchor) = unsafe { known.as_ref() } {
        return Ok(anchor);
    }
    let page = sys::page_wiped_on_fork()
        .ok_or("session: the kernel gives no page that fork wipes (Linux 4.14)")?;
    let published = ANCHOR.compare_exchange(
        core::ptr::null_mut(),
        page.cast(),
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    let anchor = published.map_or_else(
        |other| {
            sys::unmap_page(page);
            other
        },
        |_| page.cast(),
    );
    // SAFETY: a page of zeros is a valid anchor, and it stays mapped.
    unsafe { anchor.as_ref() }.ok_or_else(|| "session: no page".into())
}

/// Lets one thread at a time try to start the session; the others wait for it, at most ten seconds.
fn start(policy: &'static Policy) -> Result<&'static Session, String> {
    let anchor = anchor()?;
    for _ in 0..10_000 {
        let session = anchor.session.load(Ordering::Acquire);
        // SAFETY: a published session is leaked.
        if let Some(session) = unsafe { session.as_ref() } {
            return Ok(session);
        }
        if anchor.starting.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return start_alone(anchor, policy);
        }
        sys::nap();
    }
    Err("session: another thread could not start it".into())
}

fn start_alone(anchor: &Anchor, policy: &'static Policy) -> Result<&'static Session, String> {
    let session = anchor.session.load(Ordering::Acquire);
    // SAFETY: a published session is leaked. It may have come between the caller's look and its turn.
    let there = unsafe { session.as_ref() };
    let begun = there.map_or_else(|| begin(policy), Ok);
    if let (None, Ok(session)) = (there, begun.as_ref()) {
        begin_epoch();
        anchor.session.store(core::ptr::from_ref(*session).cast_mut(), Ordering::Release);
    }
    anchor.starting.store(0, Ordering::Release);
    begun
}

fn begin(policy: &'static Policy) -> Result<&'static Session, String> {
    let ledger = ledger_file::ledger(policy)?;
    let slot = ledger
        .claim(ledger_file::own_identity(), sys::boot_time_ns(), &ledger_file::alive)
        .map_err(|_full| "ledger: no place for another process")?;
    // After the claim: a process that is present without a slot would stand in for a dead one.
    let attendance = Attendance::join(ledger, ledger_file::is_by_hook(policy));
    Ok(Box::leak(Box::new(Session {
        policy,
        ledger,
        slot,
        attendance,
        devices: [const { OnceBox::new() }; MAX_DEVICES],
        memory: Allocations::new(),
        arrays: Allocations::new(),
        heaps: Allocations::new(),
        code: Code::default(),
        contexts: Contexts::new(),
        graphs: Graphs::default(),
        pools: Pools::default(),
        physical: Mutex::default(),
        physical_unknown: AtomicBool::new(false),
        streams: StreamTable::default(),
        captures: Captures::new(),
        collectives: Collectives::default(),
        contents: Mutex::default(),
        tool_launches: ToolLaunches::default(),
    })))
}
