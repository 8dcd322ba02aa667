//! Handlers of the CUDA driver: what each row means for the slice. One file per CUDA noun.
//!
//! A handler is a safe function. It sees the call ([`Call`]), the original as `next`, and its
//! arguments wrapped; it cannot name the original, and it does not know codes of the driver.

mod allocation;
pub(crate) mod array;
pub(crate) mod code;
pub(crate) mod context;
pub(crate) mod context_limit;
mod context_price;
pub(crate) mod copy;
pub(crate) mod fence;
pub(crate) mod graph;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod launch;
mod measure;
pub(crate) mod memory;
pub(crate) mod pool;
pub(crate) mod report;
pub(crate) mod resolve;
pub(crate) mod synchronize;
pub(crate) mod vmm;

use crate::budget::device::Device;
use crate::call::Call;
use crate::driver;
use crate::session::Session;
use gpucap_abi::cuda::{
    CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA,
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, CUcontext, CUdevice, CUmemLocation, CuError,
};

/// The device of the calling thread's context, if it is limited. `None`: not ours to judge, the driver decides.
///
/// # Errors
/// The limits cannot be enforced, or the driver does not say which device that is.
#[inline]
fn current_device(call: &Call) -> Result<Option<(&'static Session, &'static Device)>, CuError> {
    let session = call.session()?;
    let Some(ordinal) = current_ordinal(call)? else { return Ok(None) };
    Ok(session.budget.device(call.driver, ordinal)?.map(|device| (session, device)))
}

/// The ordinal of that device, limited or not.
#[inline]
fn current_ordinal(call: &Call) -> Result<Option<CUdevice>, CuError> {
    needed(call, driver::cuda::needed::current_device(call.driver))
}

/// Takes an answer of the driver on which a charge may depend. Where no memory is limited, none does.
#[inline]
fn needed<T: Default>(call: &Call, answer: Result<T, CuError>) -> Result<T, CuError> {
    answer.or_else(|error| if call.limits_memory() { Err(error) } else { Ok(T::default()) })
}

/// The calling thread's context, as a record names it. Asked for before anything is made in it, of which the end could
/// not be seen otherwise.
///
/// # Errors
/// The driver does not say.
#[inline]
fn current_context(call: &Call) -> Result<u64, CuError> {
    driver::cuda::needed::current_context(call.driver).map(CUcontext::address)
}

/// The device whose memory a location means; `None` for host memory. A kind that this version does not know (CUDA 13 has
/// parts of a device) is taken to be on a [likely device](likely_device): charged to the wrong card is better than to none.
fn device_of(call: &Call, location: CUmemLocation) -> Option<CUdevice> {
    match location.kind {
        CU_MEM_LOCATION_TYPE_DEVICE => Some(location.id),
        CU_MEM_LOCATION_TYPE_HOST
        | CU_MEM_LOCATION_TYPE_HOST_NUMA
        | CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => None,
        _ => Some(likely_device(call)),
    }
}

/// The calling thread's device; the first one where no context is current.
fn likely_device(call: &Call) -> CUdevice {
    driver::cuda::current_device(call.driver).unwrap_or(0)
}
