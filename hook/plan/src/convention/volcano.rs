//! Volcano's vGPU: its scheduler's annotations, in HAMi's encoding.
//!
//! Its device plugin sets HAMi's variables, so those are read in `hami`.

use super::device_list;
use crate::facts::Facts;
use crate::grant::Grant;
use crate::reason::Reason;

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let mut grants = device_list::read(facts, "volcano.sh/vgpu-ids-new", true)?;
    grants.extend(device_list::read(facts, "volcano.sh/devices-to-allocate", false)?);
    Ok(grants)
}
