//! What the node has said since a container started, joined over the entries for a device.

use super::ask::Ask;
use super::device::DeviceFacts;
use super::file::LimitsFile;
use super::live::{LiveEntries, LiveEntry};

/// What the node says now of the quantities of which it has said anything since the container started: of several
/// entries the lowest, each as it is now.
pub(super) fn said(file: &LimitsFile, device: &DeviceFacts, live: LiveEntries<'_>) -> Ask {
    let mut has_said = Ask::default();
    let now = file.matching(device).fold(Ask::default(), |ask, entry| {
        let (memory, compute) = (entry.memory.of(device.total_bytes), entry.compute());
        let said = live.of(entry.key);
        let bytes = said.and_then(LiveEntry::memory).filter(|_| memory.is_some());
        let time = entry.core.zip(compute).zip(said);
        let time = time.and_then(|((share, started), said)| said.compute(share, started));
        has_said = has_said.lower(Ask { memory: bytes, compute: time, core_max: None });
        let (memory, compute) = (bytes.or(memory), time.or(compute));
        ask.lower(Ask { memory, compute, core_max: None })
    });
    let memory = now.memory.filter(|_| has_said.memory.is_some());
    let compute = now.compute.filter(|_| has_said.compute.is_some());
    Ask { memory, compute, core_max: None }
}
