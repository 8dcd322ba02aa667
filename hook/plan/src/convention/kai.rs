//! KAI-Scheduler and Run:ai: `GPU_PORTION=0.25` beside `RUNAI_NUM_OF_GPUS`, and the annotations of KAI's fractions.
//!
//! Both variables are in every container with a fraction, by reference to a ConfigMap that the binder writes
//! (kai-scheduler/KAI-Scheduler, `pkg/binder/common/gpu_access.go` at 13db584); the name of the first is too common to be
//! read without the other. It is that part of the memory of each GPU, and of its time unless the node sets
//! `kai_portion` to `memory`. Of the annotations `nvidia.com/container.<name>.gpu-memory.limit` and `.request`
//! (`pkg/binder/plugins/nvfractions/nv_fractions.go` at 0caa3bd) the limit is a container's memory, without one the
//! request. `.gpu-compute.portion` is its part of the time, as `GPU_PORTION` is (proposed in pull request 2368, by which only
//! the binder may write it; kai-scheduler/gpu-fractioning reads it). A pod's author can write each annotation where nothing
//! of KAI forbids it: it lowers, and is no proof of a limit. All are for every GPU that the container sees.

use gpucap_core::units::{Amount, Bytes, UnitError};

use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

const PORTION: &str = "GPU_PORTION";
const COUNT: &str = "RUNAI_NUM_OF_GPUS";

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let mut grants = Vec::new();
    if let (Some(held), Some(_)) = (facts.env.get(PORTION), facts.env.get(COUNT)) {
        let source = format!("environment {PORTION}");
        let share = number::portion(&source, held)?;
        let core = facts.node.kai_portion_of_time.then_some(share);
        let limit = DeviceLimit { core, ..DeviceLimit::memory(Amount::OfDevice(share)) };
        grants.push(Grant::new(source, held, DeviceLimits::every(limit)));
    }
    for own in facts.identities {
        let held = |name| {
            let key = format!("nvidia.com/container.{}.{name}", own.container);
            facts.annotations.get_key_value(&key)
        };
        let memory = held("gpu-memory.limit").or_else(|| held("gpu-memory.request"));
        if let Some((key, held)) = memory {
            let source = format!("annotation {key}");
            let bytes: Result<Bytes, UnitError> = held.trim().parse();
            let bytes = bytes.map_err(|why| Reason::value(&*source, held, why))?;
            let limit = DeviceLimit::memory(Amount::Bytes(bytes));
            grants.push(Grant::new(source, held, DeviceLimits::every(limit)));
        }
        if let Some((key, held)) = held("gpu-compute.portion") {
            let source = format!("annotation {key}");
            let share = number::portion(&source, held.trim())?;
            if facts.node.kai_portion_of_time {
                let limit = DeviceLimit { core: Some(share), ..DeviceLimit::default() };
                grants.push(Grant::new(source, held, DeviceLimits::every(limit)));
            }
        }
    }
    Ok(grants)
}
