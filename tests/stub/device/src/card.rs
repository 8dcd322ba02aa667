//! The card that all processes share: who holds how much, and whose turn the engine has.
//!
//! One sparse file, mapped by both stub libraries in every process. A process that allocates holds
//! a slot in it; the slot is alive while the process holds a record lock on the slot's byte of the
//! file, or, should a program have closed our descriptor, while the process of that pid and start
//! time runs. Everything that a dead process held is taken back before anything is reported or
//! refused, so killing a process at any point costs no other process anything. Invariant under the lock:
//! `used` of a unit is the sum over the slots.

use crate::catalog::{MAX_UNITS, Unit, slices_of};
use crate::clock::Clock;
use crate::engine::{Engine, LANES};
use crate::lock::{Held, RobustLock};
use crate::map;
use crate::partition::{self, Limit, Lineage, NotSet, Partition};
use crate::process::{self, Identity};
use crate::settings::Settings;
use std::cell::UnsafeCell;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What a process holds on a unit.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holding {
    /// Overhead of its contexts.
    pub contexts: u64,
    /// Everything it allocated.
    pub memory: u64,
}

impl Holding {
    /// All of it.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.contexts + self.memory
    }
}

/// One process on one unit, for the process lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenant {
    /// As the process itself sees it.
    pub pid: u32,
    /// What it holds there.
    pub holding: Holding,
    /// GPU time it has had there.
    pub busy_ns: u64,
}

#[repr(C)]
struct Process {
    /// Pid 0: the slot is free.
    identity: Identity,
    lineage: Lineage,
    holdings: [Holding; MAX_UNITS],
}

#[repr(C)]
struct Book {
    used: [u64; MAX_UNITS],
    /// The most that was ever in use at one moment.
    peak: [u64; MAX_UNITS],
    processes: [Process; LANES],
    limits: [Limit; partition::MOST],
    engines: [Engine; MAX_UNITS],
}

#[repr(C)]
struct Shared {
    magic: AtomicU64,
    clock: AtomicU64,
    lock: RobustLock,
    book: UnsafeCell<Book>,
}

// SAFETY: `book` is reached through `Card::open_book` only, which holds `lock`.
unsafe impl Sync for Shared {}

/// "stubcard" in ASCII; set last, when the file is ready.
const MAGIC: u64 = u64::from_be_bytes(*b"stubcard");

/// The card.
pub struct Card {
    file: File,
    shared: &'static Shared,
    settings: &'static Settings,
    /// Slot of this process, once it has one.
    slot: OnceLock<usize>,
    /// What a peer holds of device 0 that only this process sees.
    peer: AtomicI64,
}

/// The card's book while the lock is held.
struct OpenBook<'a> {
    book: &'a mut Book,
    _held: Held<'a>,
}

impl Card {
    /// Maps the card file, making it if it is not there; ends the process if that is impossible.
    #[must_use]
    pub fn open(settings: &'static Settings) -> Self {
        match Self::try_open(settings) {
            Ok(card) => card,
            Err(error) => {
                eprintln!("stub gpu: no card in {}: {error}", settings.dir);
                std::process::abort()
            }
        }
    }

    fn try_open(settings: &'static Settings) -> std::io::Result<Self> {
        std::fs::create_dir_all(&settings.dir)?;
        let clock = if settings.virtual_clock { "virtual" } else { "real" };
        // Cards of another layout or clock are other files: processes that could not share one
        // never meet.
        let path = format!("{}/card-{:x}-{clock}", settings.dir, size_of::<Shared>());
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.lock()?;
        file.set_len(size_of::<Shared>() as u64)?;
        // SAFETY: every bit pattern of the plain fields is valid, all-zero is an empty card, and the file is never
        // shortened.
        let shared: &'static Shared = unsafe { map::shared(&file) }?;
        if shared.magic.load(Ordering::SeqCst) != MAGIC {
            shared.lock.init();
            shared.magic.store(MAGIC, Ordering::SeqCst);
        }
        file.unlock()?;
        let peer = AtomicI64::new(0);
        Ok(Self { file, shared, settings, slot: OnceLock::new(), peer })
    }

    /// The clock of the card.
    #[must_use]
    pub fn clock(&self) -> Clock<'static> {
        if self.settings.virtual_clock { Clock::Virtual(&self.shared.clock) } else { Clock::Real }
    }

    /// Charges `bytes` to this process; `false` if the unit does not have them.
    #[must_use]
    pub fn take(&self, unit: Unit, bytes: Holding) -> bool {
        let slot = self.slot();
        let capacity = unit.memory(self.settings).saturating_sub(self.settings.reserved);
        let more = bytes.total();
        let within = |used: u64, most| used.checked_add(more).is_some_and(|used| used <= most);
        let fits = |book: &Book| {
            let group = book.partition(Lineage::own(), unit);
            within(book.used[unit.index()], capacity)
                && group.is_none_or(|it| within(it.used, it.hard))
        };
        let open = self.open_book();
        let is_most = |book: &Book| !within(book.used[unit.index()], book.peak[unit.index()]);
        if !fits(open.book) || is_most(open.book) {
            self.reap(open.book);
        }
        if !fits(open.book) {
            return false;
        }
        let holding = &mut open.book.processes[slot].holdings[unit.index()];
        holding.contexts += bytes.contexts;
        holding.memory += bytes.memory;
        let Book { used, peak, .. } = open.book;
        used[unit.index()] += bytes.total();
        peak[unit.index()] = peak[unit.index()].max(used[unit.index()]);
        true
    }

    /// Takes back what [`Card::take`] gave.
    pub fn give(&self, unit: Unit, bytes: Holding) {
        let slot = self.slot();
        let open = self.open_book();
        let holding = &mut open.book.processes[slot].holdings[unit.index()];
        holding.contexts -= bytes.contexts;
        holding.memory -= bytes.memory;
        open.book.used[unit.index()] -= bytes.total();
    }

    /// Bytes in use; those of a whole device include its slices.
    #[must_use]
    pub fn used(&self, unit: Unit) -> u64 {
        let open = self.open_book();
        self.reap(open.book);
        let used: u64 = self.parts(unit).map(|part| open.book.used[part.index()]).sum();
        let peer = self.peer.load(Ordering::Relaxed);
        if unit.device == 0 { used.saturating_add_signed(peer) } else { used }
    }

    /// The most bytes of a unit that all processes ever held at one moment.
    #[must_use]
    pub fn peak(&self, unit: Unit) -> u64 {
        self.open_book().book.peak[unit.index()]
    }

    /// What this process holds of a unit.
    #[must_use]
    pub fn held(&self, unit: Unit) -> u64 {
        let own =
            |slot: usize| self.open_book().book.processes[slot].holdings[unit.index()].total();
        self.slot.get().copied().map_or(0, own)
    }

    /// What holds on a unit for the cgroup of this lineage, if its memory is limited.
    #[must_use]
    pub fn partition(&self, lineage: &Lineage, unit: Unit) -> Option<Partition> {
        let open = self.open_book();
        self.reap(open.book);
        open.book.partition(lineage, unit)
    }

    /// Limits a cgroup's memory on a unit to `(soft, hard)` bytes.
    ///
    /// # Errors
    /// It holds more already, or there are too many limits.
    pub fn limit(&self, lineage: &Lineage, unit: Unit, bytes: (u64, u64)) -> Result<(), NotSet> {
        let open = self.open_book();
        self.reap(open.book);
        let own = partition::has_own(&open.book.limits, lineage, unit);
        if own && open.book.partition(lineage, unit).is_some_and(|it| it.used > bytes.1) {
            return Err(NotSet::InUse);
        }
        partition::set(&mut open.book.limits, lineage, unit, bytes)
    }

    /// Has a peer take bytes of device 0, or give them back, as this process sees it. Nothing is really taken.
    pub fn move_peer(&self, bytes: i64) {
        self.peer.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The live processes that hold something on the unit.
    #[must_use]
    pub fn tenants(&self, unit: Unit) -> Vec<Tenant> {
        let now = self.clock().now();
        let open = self.open_book();
        self.reap(open.book);
        let mut tenants = Vec::new();
        for slot in 0..LANES {
            let pid = open.book.processes[slot].identity.pid;
            let mut tenant = Tenant { pid, holding: Holding::default(), busy_ns: 0 };
            for part in self.parts(unit) {
                let holding = open.book.processes[slot].holdings[part.index()];
                tenant.holding.contexts += holding.contexts;
                tenant.holding.memory += holding.memory;
                let engine = &mut open.book.engines[part.index()];
                engine.advance(now, self.settings.turns);
                tenant.busy_ns += engine.lane(slot).progress();
            }
            if pid != 0 && tenant.holding.total() > 0 {
                tenants.push(tenant);
            }
        }
        tenants
    }

    /// Busy part of the last sample, in percent: the busiest slice counts for a whole device.
    #[must_use]
    pub fn utilisation(&self, unit: Unit) -> u64 {
        let now = self.clock().now();
        let open = self.open_book();
        let parts = self.parts(unit);
        parts
            .map(|part| {
                let engine = &mut open.book.engines[part.index()];
                engine.advance(now, self.settings.turns);
                engine.utilisation(now)
            })
            .max()
            .unwrap_or(0)
    }

    /// The latest complete samples of a unit: when each ended, and the busy part in percent.
    pub fn samples(&self, unit: Unit) -> Vec<(u64, u64)> {
        self.with_engine_of(unit, |engine, now| engine.samples(now).collect())
    }

    /// Who of the live processes had the unit's engine since `from`, and for how long.
    #[must_use]
    pub fn busy_since(&self, unit: Unit, from: u64) -> Vec<(u32, u64)> {
        let now = self.clock().now();
        let open = self.open_book();
        self.reap(open.book);
        let engine = &mut open.book.engines[unit.index()];
        engine.advance(now, self.settings.turns);
        let processes = open.book.processes.iter().map(|process| process.identity).enumerate();
        let busy = processes.map(|(lane, it)| (lane, it, engine.lane(lane).owned_since(from)));
        let busy = busy.filter(|&(_, it, busy)| it.pid != 0 && busy > 0);
        busy.map(|(lane, it, busy)| (process::number(&self.file, lane, it), busy)).collect()
    }

    /// Nanoseconds of work that the unit has done for all processes.
    #[must_use]
    pub fn busy_ns(&self, unit: Unit) -> u64 {
        let now = self.clock().now();
        let open = self.open_book();
        let busy = |part: Unit| {
            let engine = &mut open.book.engines[part.index()];
            engine.advance(now, self.settings.turns);
            engine.busy()
        };
        self.parts(unit).map(busy).sum()
    }

    fn with_engine_of<T>(&self, unit: Unit, f: impl FnOnce(&Engine, u64) -> T) -> T {
        let now = self.clock().now();
        let open = self.open_book();
        let engine = &mut open.book.engines[unit.index()];
        engine.advance(now, self.settings.turns);
        f(engine, now)
    }

    /// The unit's engine, decided up to now, with this process's lane and the time.
    pub fn with_engine<T>(&self, unit: Unit, f: impl FnOnce(&mut Engine, usize, u64) -> T) -> T {
        let slot = self.slot();
        let open = self.open_book();
        let now = self.clock().now();
        let engine = &mut open.book.engines[unit.index()];
        engine.advance(now, self.settings.turns);
        f(engine, slot, now)
    }

    /// Waits until this process's lane on the unit has reached `progress`; returns when that was.
    pub fn wait(&self, unit: Unit, progress: u64) -> u64 {
        loop {
            let (done, earliest) = self.with_engine(unit, |engine, lane, now| {
                let lane = engine.lane(lane);
                (lane.reached(progress), now + progress.saturating_sub(lane.progress()))
            });
            match done {
                Some(when) => return when,
                // Alone on the engine it is done then; beside others, later.
                None => self.clock().reach(earliest),
            }
        }
    }

    /// Slot of this process; the first use takes one.
    fn slot(&self) -> usize {
        *self.slot.get_or_init(|| {
            let open = self.open_book();
            self.reap(open.book);
            let free = open.book.processes.iter().position(|process| process.identity.pid == 0);
            let Some(slot) = free else {
                eprintln!("stub gpu: more than {LANES} processes on the card");
                std::process::abort()
            };
            process::hold_record(self.file.as_raw_fd(), slot);
            open.book.processes[slot].identity = Identity::own();
            open.book.processes[slot].lineage = *Lineage::own();
            slot
        })
    }

    /// Frees what dead processes held.
    fn reap(&self, book: &mut Book) {
        for slot in 0..LANES {
            let process = &book.processes[slot];
            let own = self.slot.get() == Some(&slot);
            if process.identity.pid == 0 || own || self.alive(slot, process.identity) {
                continue;
            }
            for unit in 0..MAX_UNITS {
                let holding = std::mem::take(&mut book.processes[slot].holdings[unit]);
                book.used[unit] -= holding.total();
                book.engines[unit].clear(slot);
            }
            book.processes[slot].identity = Identity::NONE;
        }
    }

    fn alive(&self, slot: usize, identity: Identity) -> bool {
        process::record_is_held(self.file.as_raw_fd(), slot) || identity.runs()
    }

    fn parts(&self, unit: Unit) -> impl Iterator<Item = Unit> {
        let slices = unit.slice.is_none().then(|| slices_of(self.settings, unit.device));
        std::iter::once(unit).chain(slices.into_iter().flatten())
    }

    fn open_book(&self) -> OpenBook<'_> {
        let held = self.shared.lock.hold();
        // SAFETY: the lock is held for as long as the reference lives: both are in the `OpenBook`.
        let book = unsafe { &mut *self.shared.book.get() };
        if held.holder_died {
            for unit in 0..MAX_UNITS {
                book.used[unit] = book.processes.iter().map(|p| p.holdings[unit].total()).sum();
            }
        }
        OpenBook { book, _held: held }
    }
}

impl Book {
    fn partition(&self, lineage: &Lineage, unit: Unit) -> Option<Partition> {
        let held = |it: &Process| (it.lineage, it.holdings[unit.index()].total());
        partition::of(&self.limits, lineage, unit, self.processes.iter().map(held))
    }
}
