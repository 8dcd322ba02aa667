//! One call of an intercepted function: whether limits are enforced in it, and the driver codes for our answers.
//!
//! The only place where a decision of the shim becomes a code of the driver. The application only ever sees codes
//! that the driver documents for the called function.

use crate::budget::charge::Charge;
use crate::budget::device::Device;
use crate::driver::DriverCopy;
use crate::redirect;
use crate::session::Session;
use crate::session::context_end;
use crate::state::{self, Now, Policy, Problem};
use core::ffi::c_void;
use gpucap_abi::cuda::CuError;
use gpucap_abi::nvml::NvmlError;
use gpucap_core::ledger::{Kind, OverQuota};
use gpucap_core::limits::Limits;

/// What a row does to a limit; the spelling is that of the tables.
#[expect(non_camel_case_types, reason = "the words of the row tables")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Starts the driver: refused if the limits cannot be used.
    init,
    /// Looks up a function: answered with its hook.
    resolve,
    /// Gets memory: charged, or refused.
    alloc,
    /// Gives memory back: refunded.
    free,
    /// Maps, imports or exports memory that is charged already.
    map,
    /// Makes or ends a context, which has a price.
    context,
    /// Makes, changes or ends a graph.
    graph,
    /// Loads or unloads code, which takes memory.
    code,
    /// Reports memory or devices: answered as if the slice were the device.
    report,
    /// Gives work to the device: takes time from the bucket.
    launch,
    /// Says where work begins or ends, for the measurement of time.
    order,
    /// Waits for work: what has finished is settled.
    sync,
}

impl Class {
    /// Whether look-ups of such functions return hooks in this process. Functions that only a compute limit needs are
    /// left to the driver where there is none; where the limits are unknown, nothing is launched.
    pub(crate) fn is_wanted(self) -> bool {
        let limits_time = |policy: &Policy| policy.limits.as_ref().is_some_and(Limits::has_compute);
        match (self, state::now()) {
            (Self::launch, Now::Broken(_)) => true,
            (Self::launch | Self::order, Now::Enforcing(policy)) => limits_time(policy),
            (Self::sync, Now::Enforcing(_)) => true,
            (Self::launch | Self::order | Self::sync, _) => false,
            _ => true,
        }
    }
}

/// How a hook goes on.
pub(crate) enum Entry {
    /// Call the original and nothing else.
    Pass,
    /// The limits cannot be used: answer this, the original is not called.
    Refuse(Refusal),
    /// Let the handler decide, under these limits.
    Enforce(&'static Policy),
}

/// Why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The limits cannot be used, and this is `cuInit`.
    NotReady,
    /// The limits cannot be used, so nothing that would be charged is allowed.
    NotInitialized,
    /// It does not fit under the limit.
    OverQuota,
}

impl From<&'static Problem> for Refusal {
    /// The limits of a device cannot be enforced: nothing is allowed on it.
    fn from(_: &'static Problem) -> Self {
        Self::NotInitialized
    }
}

impl From<&'static Problem> for CuError {
    fn from(problem: &'static Problem) -> Self {
        Refusal::from(problem).into()
    }
}

impl From<Refusal> for CuError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotReady => Self::SYSTEM_NOT_READY,
            Refusal::NotInitialized => Self::NOT_INITIALIZED,
            Refusal::OverQuota => Self::OUT_OF_MEMORY,
        }
    }
}

impl From<Refusal> for NvmlError {
    fn from(_: Refusal) -> Self {
        Self::UNKNOWN // no NVML row is of a class that is refused
    }
}

/// The context of a handler, besides its arguments.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// The driver's own functions.
    pub(crate) driver: &'static DriverCopy,
    /// The limits.
    pub(crate) policy: &'static Policy,
    /// The form in which a null stream means the thread's own default stream.
    pub(crate) per_thread: bool,
}

impl Call {
    /// Looks what holds for a call of this class.
    #[inline]
    pub(crate) fn enter(class: Class) -> Entry {
        state::enforced().map_or_else(|| Self::enter_otherwise(class), Entry::Enforce)
    }

    #[cold]
    #[inline(never)]
    fn enter_otherwise(class: Class) -> Entry {
        match state::now() {
            Now::Enforcing(policy) => Entry::Enforce(policy),
            Now::Broken(problem) => match class {
                Class::init => {
                    problem.report();
                    Entry::Refuse(Refusal::NotReady)
                }
                Class::alloc | Class::context | Class::graph | Class::code | Class::launch => {
                    problem.report();
                    Entry::Refuse(Refusal::NotInitialized)
                }
                Class::resolve => Entry::Enforce(Policy::none()),
                Class::free | Class::map | Class::report | Class::order | Class::sync => {
                    Entry::Pass
                }
            },
            Now::Off => Entry::Pass,
        }
    }

    /// The hook of a function of the driver, if it is intercepted.
    pub(crate) fn hook_of(&self, address: *mut c_void) -> Option<*mut c_void> {
        redirect::hook_of(address)
    }

    /// This process's part of the container's ledger; it begins with the first call that needs it.
    ///
    /// # Errors
    /// The ledger cannot be opened or is full: the process fails closed.
    #[inline]
    pub(crate) fn session(&self) -> Result<&'static Session, Refusal> {
        Session::current(self.policy).map_err(|problem| {
            problem.report();
            Refusal::NotInitialized
        })
    }

    /// Takes bytes from a device's memory limit; before that is refused, pools and graphs give back what they
    /// only keep.
    ///
    /// # Errors
    /// It does not fit.
    #[inline]
    pub(crate) fn charge(
        &self,
        session: &'static Session,
        device: &Device,
        kind: Kind,
        bytes: u64,
    ) -> Result<Charge, Refusal> {
        self.make_room_for(session, device, || session.budget.charge(device, kind, bytes))
    }

    /// Tries to charge; before that is refused, pools and graphs give back what they only keep.
    ///
    /// # Errors
    /// It does not fit.
    #[inline]
    pub(crate) fn make_room_for(
        &self,
        session: &'static Session,
        device: &Device,
        attempt: impl Fn() -> Result<Charge, OverQuota>,
    ) -> Result<Charge, Refusal> {
        let again = |over: OverQuota| {
            // Another thread or process may have given something back since.
            let has_room = self.make_room(session) || session.budget.used(device) < over.used;
            if has_room { attempt() } else { Err(over) }
        };
        attempt().or_else(again).map_err(|over| {
            session.budget.refused(device, &over);
            Refusal::OverQuota
        })
    }

    /// Has pools, files, contexts that are over and graphs give back what they only keep. False if there was nothing.
    pub(crate) fn make_room(&self, session: &'static Session) -> bool {
        let pools = session.pools.give_back(self.driver, &session.budget);
        let closed = session.collect_closed();
        let ended = context_end::settle_all(self.driver, session);
        session.graphs.give_back(self.driver, &session.budget, &session.pools)
            || pools
            || closed
            || ended
    }

    /// Whether memory is limited, on whichever device.
    pub(crate) fn limits_memory(&self) -> bool {
        self.policy.limits.as_ref().is_some_and(Limits::has_memory)
    }

    /// Whether time is limited, on whichever device.
    pub(crate) fn limits_time(&self) -> bool {
        self.policy.limits.as_ref().is_some_and(Limits::has_compute)
    }
}
