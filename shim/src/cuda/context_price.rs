//! Corrects the assumed price of a context.
//!
//! When the first primary context of the device has been made, NVML says what this process holds, and if the ledger
//! says that it holds nothing else there, that is the price. NVML counts processes by the numbers of the host, so only a
//! process of the first pid namespace can find itself; in a container the assumption stands. Nothing is refused for
//! what turns out: what does not fit under the limit any more fills it.
//!
//! NVML is loaded for the question, which is why a configured price is not corrected.

use crate::budget::device::Device;
use crate::budget::record::Record;
use crate::container::ledger_file;
use crate::driver;
use crate::session::Session;
use crate::sys;
use crate::topology;
use gpucap_core::config::LogLevel;
use gpucap_core::ledger::Kind;
use gpucap_core::process::FIRST_PID_NAMESPACE;
use gpucap_core::units::Bytes;

/// Corrects an assumed price, and what was charged by it for a context that is there now. `charged` is that context's.
pub(crate) fn correct(session: &'static Session, device: &Device, charged: Record) -> Record {
    if !device.price.may_be_corrected() {
        return charged;
    }
    let _errno = sys::Errno::keep();
    let Some(real) = measured(session, device, charged.bytes) else { return charged };
    device.price.correct(real);
    session.budget.policy.log(
        LogLevel::Info,
        format_args!("memory: price of a context corrected price={}", Bytes(real)),
    );
    let mut record = charged;
    let less = charged.bytes.saturating_sub(real);
    session.budget.refund(Record { bytes: less, ..charged });
    record.bytes = record.bytes.saturating_sub(less);
    let charge = |bytes| session.budget.charge(device, Kind::Context, bytes);
    let more = charge(real.saturating_sub(charged.bytes))
        .or_else(|over| charge(over.limit.saturating_sub(over.used)));
    if let Ok(more) = more {
        record.bytes = record.bytes.saturating_add(more.commit().bytes);
    }
    record
}

/// What this process holds of a device, if that can only be the one context for which the ledger has `charged`.
fn measured(session: &Session, device: &Device, charged: u64) -> Option<u64> {
    if ledger_file::own_namespace() != Some(FIRST_PID_NAMESPACE) {
        return None;
    }
    let alone = || session.budget.holds(device) == charged;
    let bytes = alone()
        .then(|| driver::nvml::process::bytes(topology::nvml()?, device.uuid.0, sys::pid()))
        .flatten()?;
    alone().then_some(bytes)
}
