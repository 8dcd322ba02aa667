//! Functions that no driver has: what a test asks the judge.
//!
//! They work without `cuInit`, on physical devices in PCI order, and never take part in what they
//! report.

use gpucap_stub_device::call::{self, Tool};
use gpucap_stub_device::catalog::Unit;
use gpucap_stub_device::{card, settings};

/// A device that exists.
fn device(index: u32) -> Option<Unit> {
    let index = usize::try_from(index).ok()?;
    (index < settings().memory.len()).then_some(Unit::whole(index))
}

/// Moves a virtual clock by this many nanoseconds, for all processes; on a real one the call takes as
/// long.
#[unsafe(no_mangle)]
extern "C" fn stubAdvance(ns: u64) {
    card().clock().advance(ns);
}

/// Nanoseconds on the card's clock.
#[unsafe(no_mangle)]
extern "C" fn stubNow() -> u64 {
    card().clock().now()
}

/// Bytes in use on a device by all processes, contexts included; 0 for one that does not exist.
#[unsafe(no_mangle)]
extern "C" fn stubUsed(index: u32) -> u64 {
    device(index).map_or(0, |unit| card().used(unit))
}

/// Bytes that this process holds on a device, contexts included; 0 for one that does not exist.
#[unsafe(no_mangle)]
extern "C" fn stubHeld(index: u32) -> u64 {
    crate::driver::end_unused();
    device(index).map_or(0, |unit| card().held(unit))
}

/// The most bytes that were ever in use on a device at one moment, between calls or within one; 0 for one that does not
/// exist.
#[unsafe(no_mangle)]
extern "C" fn stubPeak(index: u32) -> u64 {
    device(index).map_or(0, |unit| card().peak(unit))
}

/// Nanoseconds of work that a device has done for all processes since its card file was made.
#[unsafe(no_mangle)]
extern "C" fn stubBusy(index: u32) -> u64 {
    device(index).map_or(0, |unit| card().busy_ns(unit))
}

/// Nanoseconds of work that a device has done for a process that holds something on it; 0 for
/// others.
#[unsafe(no_mangle)]
extern "C" fn stubBusyOf(index: u32, pid: u32) -> u64 {
    let tenants = device(index).map(|unit| card().tenants(unit)).unwrap_or_default();
    tenants.iter().find(|tenant| tenant.pid == pid).map_or(0, |tenant| tenant.busy_ns)
}

/// The default pool of a device, as a way that no shim knows would give it out; 0 without one.
#[unsafe(no_mangle)]
extern "C" fn stubDefaultPool(index: u32) -> u64 {
    let state = crate::driver::state();
    device(index).and_then(|unit| Some(state.ok()?.pools.of(unit).1)).unwrap_or(0)
}

/// Gives a tool that is called back in each call that `STUB_GPU_TOOL` names; null: none any more.
#[unsafe(no_mangle)]
extern "C" fn stubTool(tool: Option<Tool>) {
    call::attach(tool);
}
