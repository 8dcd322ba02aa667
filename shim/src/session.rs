//! What a process keeps: its part of the budget, and the tables that record what was charged for what.
//!
//! Begins with the first call that needs it (`cuInit`, as a rule) and ends with the process. It is found by the
//! [page](fork_page) that a child made by `fork` sees empty: the child begins a session of its own.

pub(crate) mod context_end;

use crate::budget::Budget;
use crate::budget::record::Record;
use crate::driver::call_guard::lock;
use crate::fork_page::{self, ForkPage, begin_epoch};
use crate::holdings::allocations::{Allocations, ByAddress};
use crate::holdings::code::Code;
use crate::holdings::contexts::Contexts;
use crate::holdings::graphs::Graphs;
use crate::holdings::handles::Handles;
use crate::holdings::pools::Pools;
use crate::state::{self, Policy, Problem};
use crate::sys;
use crate::throttle::{Captures, Collectives, Contents, StreamTable, ToolLaunches};
use core::sync::atomic::{AtomicBool, Ordering};
use gpucap_core::physical::{Physical, Shareable};
use parking_lot::Mutex;

/// What a process keeps.
pub(crate) struct Session {
    /// What it may use, and uses.
    pub(crate) budget: Budget,
    /// Memory at an address: linear, pitched, stream-ordered, managed.
    pub(crate) memory: Allocations,
    /// Arrays.
    pub(crate) arrays: Allocations,
    /// What contexts were made to hold beyond what they start with; the key is context and limit.
    pub(crate) heaps: Allocations,
    /// Held while one of those limits is set.
    pub(crate) limits_of_contexts: Handles,
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

impl Session {
    /// The session of this process, begun if need be.
    ///
    /// # Errors
    /// It cannot begin. What stands in the way may pass (no descriptor, no memory, no free slot): the next call tries
    /// again.
    #[inline]
    pub(crate) fn current(policy: &'static Policy) -> Result<&'static Self, &'static Problem> {
        if let Some(session) = Self::begun() {
            return Ok(session);
        }
        Self::begin(policy)
    }

    #[cold]
    fn begin(policy: &'static Policy) -> Result<&'static Self, &'static Problem> {
        let _errno = sys::Errno::keep();
        start(policy).map_err(state::lacking)
    }

    /// The session, if one has begun.
    #[inline]
    pub(crate) fn begun() -> Option<&'static Self> {
        published_in(fork_page::found()?)
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
            gone.into_iter().for_each(|record| self.budget.refund(record));
        }
    }
}

/// The file behind a descriptor of the program, as the table of physical memory knows it; `None` if it is closed.
pub(crate) fn shareable(descriptor: i32) -> Option<Shareable> {
    Some(Shareable { descriptor, file: sys::file_behind(descriptor)? })
}

/// The session in the page; in a child made by `fork` there is none.
fn published_in(page: &ForkPage) -> Option<&'static Session> {
    let session = page.session.load(Ordering::Acquire).cast::<Session>();
    // SAFETY: `start_alone` alone writes it, and leaks the session that it publishes.
    unsafe { session.as_ref() }
}

/// Lets one thread at a time try to start the session; the others wait for it, at most ten seconds.
fn start(policy: &'static Policy) -> Result<&'static Session, String> {
    let page = fork_page::made()
        .ok_or("session: the kernel gives no page that fork wipes (Linux 4.14)")?;
    for _ in 0..10_000 {
        if let Some(session) = published_in(page) {
            return Ok(session);
        }
        if page.starting.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return start_alone(page, policy);
        }
        sys::nap();
    }
    Err("session: another thread could not start it".into())
}

fn start_alone(page: &ForkPage, policy: &'static Policy) -> Result<&'static Session, String> {
    // It may have come between the caller's look and its turn.
    let there = published_in(page);
    let begun = there.map_or_else(|| begin(policy), Ok);
    if let (None, Ok(session)) = (there, begun.as_ref()) {
        begin_epoch();
        let session = core::ptr::from_ref(*session).cast_mut();
        page.session.store(session.cast(), Ordering::Release);
    }
    page.starting.store(0, Ordering::Release);
    begun
}

fn begin(policy: &'static Policy) -> Result<&'static Session, String> {
    Ok(Box::leak(Box::new(Session {
        budget: Budget::begin(policy)?,
        memory: Allocations::new(),
        arrays: Allocations::new(),
        heaps: Allocations::new(),
        limits_of_contexts: Handles::default(),
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
