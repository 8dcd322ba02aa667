//! One device as this process may use it: its line in the ledger, its limit, the price of a context on it.

use crate::budget::absent;
use crate::budget::growth::Growth;
use crate::budget::price::Price;
use crate::budget::record::Record;
use crate::container::held_page::Held;
use crate::container::ledger_file;
use crate::container::live_limits::Live;
use crate::container::mapped_page::Unresolved;
use crate::container::usage_page;
use crate::driver::{self, DriverCopy};
use crate::state::Policy;
use crate::sys::{self, Directory, Short};
use crate::throttle::{Gate, Peers};
use crate::topology::{self, DriverVariables};
use core::sync::atomic::AtomicU64;
use gpucap_abi::cuda::CUdevice;
use gpucap_core::config::LogLevel;
use gpucap_core::ledger::{DeviceIndex, Ledger, Line, Slot};
use gpucap_core::limits::DeviceFacts;
use gpucap_core::pitch::PitchStep;
use gpucap_core::units::Bytes;
use gpucap_core::uuid::Uuid;
use parking_lot::Mutex;

/// A device under a limit.
pub(crate) struct Device {
    /// Its row in the ledger.
    pub(crate) index: DeviceIndex,
    /// This process's line for it in the ledger. One thread at a time makes an operation on it: the ledger's protocol is
    /// between processes, and a process speaks with one voice.
    pub(crate) line: Short<Line<'static>>,
    /// Its name.
    pub(crate) uuid: Uuid,
    /// Bytes that the container may hold on it as long as the live page says nothing; at most what it has.
    limit_at_start: u64,
    live: Live,
    /// What is charged for a context.
    pub(crate) price: Price,
    /// The pool that `cuMemAllocAsync` takes from, as a number; 0 until it is asked for.
    pub(crate) current_pool: AtomicU64,
    /// How it pads rows.
    pub(crate) pitch: PitchStep,
    /// The calls under way that are charged by what they take.
    pub(crate) growth: Growth,
    /// Held while the primary context is made or ended, across the driver's call: two threads that make it at the same
    /// moment make one context and must be charged for one.
    pub(crate) primary: Mutex<Primary>,
}

/// A device as the limits see it.
#[derive(Default)]
pub(crate) struct Standing {
    /// Its memory is limited; otherwise every call for memory goes straight to the driver.
    pub(crate) memory: Option<Device>,
    /// Its time is shared; otherwise every launch goes straight to the driver.
    pub(crate) time: Option<Gate>,
}

/// The state of a device's primary context.
#[derive(Default)]
pub(crate) struct Primary {
    /// Its handle while it is charged for; 0 otherwise.
    pub(crate) context: u64,
    /// What is charged for it.
    pub(crate) record: Option<Record>,
    /// It may be over, and the driver has not said whether it is.
    pub(crate) is_in_doubt: bool,
}

/// Whether processes run side by side on a device, as clients of MPS, without time slices. Where the driver does not
/// report it, they do if MPS may be present.
fn is_under_mps(driver: &DriverCopy, ordinal: CUdevice, variables: DriverVariables) -> bool {
    let may_be = || variables.name_mps || Directory::open(c"/tmp/nvidia-mps").is_ok();
    driver::cuda::is_under_mps(driver, ordinal).unwrap_or_else(may_be)
}

impl Device {
    /// Bytes that the container may hold on it now; at most what it has.
    pub(crate) fn memory_limit(&self) -> u64 {
        let now = self.live.changed().and_then(|resolved| resolved.memory);
        now.unwrap_or(self.limit_at_start)
    }

    /// Resolves the limits of the device with this ordinal. `None`: the driver knows no such device (yet).
    ///
    /// # Errors
    /// The limits cannot be enforced.
    pub(crate) fn resolve(
        policy: &'static Policy,
        ledger: &'static Ledger,
        slot: Slot,
        driver: &DriverCopy,
        ordinal: CUdevice,
        variables: DriverVariables,
    ) -> Result<Option<Standing>, Unresolved> {
        let _errno = sys::Errno::keep();
        let (Some(uuid), Some(total_bytes)) =
            (driver::cuda::uuid(driver, ordinal), driver::cuda::total_bytes(driver, ordinal))
        else {
            return match driver::cuda::device(driver, ordinal) {
                None => Ok(None),
                Some(_) => {
                    Err(format!("driver: device {ordinal} does not report its UUID and memory")
                        .into())
                }
            };
        };
        let uuid = Uuid(uuid);
        let Some(limits) = &policy.limits else { return Ok(Some(Standing::default())) };
        let position =
            |facts: &DeviceFacts| topology::position(driver, ordinal, variables, facts.uuid);
        let slices = || driver::cuda::slices(driver, ordinal);
        let (live, facts) = topology::resolve(limits, uuid, total_bytes, slices, position)?;
        let resolved = live.now();
        if resolved.memory.is_none() && resolved.core.is_none() {
            absent::warn(policy, limits, driver, variables);
            return Ok(Some(Standing::default()));
        }
        let index = ledger.device(uuid.0).map_err(|_full| "ledger: no place for another device")?;
        if !ledger_file::has_room(ledger, slot, index) {
            return Err(Unresolved::ForNow(format!(
                "ledger: no memory left to note device {uuid}"
            )));
        }
        let time = match resolved.core {
            Some(limit) => {
                let join = |own| Peers::join(own, index, uuid, slot);
                let takes_turns = !is_under_mps(driver, ordinal, variables);
                let own = if takes_turns { usage_page::own(policy) } else { None };
                let peers = own.map(join);
                let held = if limits.has_file() { Held::of(uuid)? } else { None };
                Gate::new(ledger, slot, index, live, limit, peers, held)
            }
            None => None,
        };
        if let Some(limit) = resolved.core {
            policy.log(LogLevel::Info, format_args!("time: shared device={uuid} core={limit}"));
        }
        let Some(limit) = resolved.memory else { return Ok(Some(Standing { memory: None, time })) };
        if resolved.clamped {
            policy.log(
                LogLevel::Info,
                format_args!(
                    "limits: above what the GPU has, clamped device={uuid} limit={}",
                    Bytes(limit)
                ),
            );
        }
        policy.log(
            LogLevel::Info,
            format_args!("memory: limited device={uuid} limit={}", Bytes(limit)),
        );
        let configured = limits.config().context_mem.as_ref().map(|price| price.0);
        let price = Price::new(limits.context_price(&facts).or(configured));
        let line = ledger.line(slot, index).ok_or("ledger: no line for another device")?;
        let memory = Some(Self {
            index,
            line: Short::new(line),
            uuid,
            // Limited at the start, or it would not be now.
            limit_at_start: live.at_start.memory.unwrap_or(0),
            live,
            price,
            current_pool: AtomicU64::new(0),
            pitch: PitchStep::default(),
            growth: Growth::default(),
            primary: Mutex::default(),
        });
        Ok(Some(Standing { memory, time }))
    }
}
