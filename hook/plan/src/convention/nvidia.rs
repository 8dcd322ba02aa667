//! The variables of NVIDIA's container toolkit: `NVIDIA_GPU_MEMORY_LIMIT` in MiB, for each GPU of the container.
//!
//! The toolkit's hook `apply-cuda-memory-limits` hands both variables to the driver, from version 615 on
//! (NVIDIA/nvidia-container-toolkit, `cmd/nvidia-cdi-hook/apply-cuda-memory-limits` at 064024a): here they are limits with
//! every driver. `NVIDIA_GPU_MEMORY_REQUEST` reserves memory and limits nothing; one above the limit is refused, as the
//! toolkit does. KAI's fractions set both.

use gpucap_core::units::Amount;

use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

const LIMIT: &str = "NVIDIA_GPU_MEMORY_LIMIT";
const REQUEST: &str = "NVIDIA_GPU_MEMORY_REQUEST";

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let Some(held) = facts.env.get(LIMIT) else { return Ok(vec![]) };
    let source = format!("environment {LIMIT}");
    let limit = number::units(&source, held, 1 << 20)?;
    if let Some(request) = facts.env.get(REQUEST) {
        let name = format!("environment {REQUEST}");
        if number::whole(&name, request)? > limit.0 >> 20 {
            return Err(Reason::value(name, request, format!("more than {LIMIT}={held}")));
        }
    }
    let memory = DeviceLimit::memory(Amount::Bytes(limit));
    Ok(vec![Grant::new(source, held, DeviceLimits::every(memory))])
}
