//! Handlers of the CUDA driver: what each row means for the slice. One file per CUDA noun.
//!
//! A handler is a safe function. It sees the call ([`Call`]), the original as `next`, and its
//! arguments wrapped; it cannot name the original, and it does not know codes of the driver.

pub(crate) mod array;
pub(crate) mod context;
pub(crate) mod context_limit;
pub(crate) mod init;
pub(crate) mod memory;
pub(crate) mod pool;
pub(crate) mod report;
pub(crate) mod resolve;
pub(crate) mod vmm;

use crate::call::{Call, Refusal};
use crate::device::Device;
use crate::driver;
use crate::session::Session;

/// The device of the calling thread's context, if it is capped. `None`: not ours to judge, the driver decides.
///
/// # Errors
/// The limits cannot be enforced.
fn current_device(call: &Call) -> Result<Option<(&'static Session, &'static Device)>, Refusal> {
    let session = call.session()?;
    let Some(ordinal) = driver::cuda::current_device(call.driver) else { return Ok(None) };
    Ok(session.device(call.driver, ordinal)?.map(|device| (session, device)))
}

/// The calling thread's context, as a record names it.
fn current_context(call: &Call) -> u64 {
    driver::cuda::current_context(call.driver).map_or(0, |context| context.address())
}
