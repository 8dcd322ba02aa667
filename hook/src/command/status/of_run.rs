//! The compute limit of a `gpucap run`, which no file of the host says: by the environment of its processes.
//!
//! Processes can only lower the limits that they were started with, so the highest is that of the run. A ledger is its
//! user's to write, and may name any process: only the environment of one that has this ledger counts.

use super::view::LedgerView;
use crate::container::effective_limit::{EffectiveLimit, Limit};
use crate::container::ledgers::{Name, maker_has_ended};
use crate::node::proc::Process;
use crate::sys;
use gpucap_core::limits::file::{Key, MemoryLimit};
use gpucap_core::limits::{DeviceFacts, Limits};
use gpucap_core::uuid::Uuid;
use gpucap_plan::Card;
use std::os::unix::ffi::OsStrExt;

/// How many processes of a run are asked.
const MOST_ASKED: usize = 4;

impl LedgerView {
    /// The same with the compute limit, if it is a run.
    pub(super) fn with_limit_of_run(mut self, cards: &[Card]) -> Self {
        if !matches!(Name::of(&self.path), Some(Name::Run { .. })) {
            return self;
        }
        let maker = self.maker();
        let rows = self.devices.iter().flat_map(|device| &device.processes);
        let processes = rows.filter_map(|row| row.here).filter(|it| Some(it.0) != maker);
        let processes = maker.map(Process).into_iter().chain(processes).take(MOST_ASKED);
        let asked: Vec<Limits> = processes.filter_map(|it| self.asked_by(it)).collect();
        for device in &mut self.devices {
            let limits = asked.iter().filter_map(|limits| limit(limits, device.uuid, cards));
            device.effective =
                limits.max_by_key(|it| it.now.core.map(|core| (core.guaranteed(), core.most())));
        }
        self
    }

    /// The process that `gpucap run` became, if it runs in this pid namespace.
    pub(super) fn maker(&self) -> Option<u32> {
        let name = Name::of(&self.path)?;
        let Name::Run { pid, pid_namespace, .. } = name else { return None };
        let is_here = Process::own().namespace("pid") == Some(pid_namespace);
        (is_here && !maker_has_ended(name, sys::uid())).then_some(pid)
    }

    /// What a process asks for, if it has this ledger.
    fn asked_by(&self, process: Process) -> Option<Limits> {
        let environment = process.environment().ok()?;
        let lookup = |name: &str| environment.get(name).map(|value| value.as_bytes().to_vec());
        let limits = Limits::load(&lookup, None).ok()??;
        let ledger = limits.config().ledger.as_ref()?;
        (self.path.as_os_str() == ledger.as_str()).then_some(limits)
    }
}

/// What they give of a GPU's time. Of a percentage of memory, the number of bytes is not known here. `None` where what they
/// say depends on what is not known of a GPU that the driver does not list, as a MIG instance.
fn limit(limits: &Limits, uuid: Uuid, cards: &[Card]) -> Option<EffectiveLimit> {
    let index = cards.iter().position(|card| card.name.uuid == uuid);
    if index.is_none() && (limits.needs_slices() || limits.needs_parent(uuid)) {
        return None;
    }
    let card = index.and_then(|index| cards.get(index));
    let facts = DeviceFacts {
        uuid,
        parent: None,
        index: index.and_then(|index| u32::try_from(index).ok()),
        total_bytes: u64::MAX,
        slices: card.map(|card| card.slices).unwrap_or_default(),
    };
    let core = limits.resolve(&facts).ok()?.core?;
    let now = Limit { memory: MemoryLimit::NONE, core: Some(core) };
    Some(EffectiveLimit { gpu: Key::Name(uuid.gpu()), now, at_start: now })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A MIG instance is no card: limits for all GPUs are its own, those of one card may be.
    #[test]
    fn of_a_gpu_that_the_driver_does_not_list_only_what_is_certain_is_shown() {
        let uuid = |digit: &str| -> Uuid {
            let digits = digit.repeat(12);
            format!("00000000-0000-0000-0000-{digits}").parse().expect("a UUID")
        };
        let shown = |variables: &[(&str, String)]| {
            let lookup = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.clone().into_bytes())
            };
            let limits = Limits::load(&lookup, None).expect("usable").expect("limits");
            let core = limit(&limits, uuid("1"), &[])?.now.core;
            core.map(|core| core.share().percent())
        };
        let of_all = ("GPU_CORE_PCT", "30".to_owned());
        assert_eq!(shown(std::slice::from_ref(&of_all)), Some(30));
        let of_another = ("GPU_CORE_PCT", format!("{}=20", uuid("2").gpu()));
        assert_eq!(shown(&[of_another]), None);
        assert_eq!(shown(&[("GPU_CORE_PCT", "0=20".to_owned())]), None);
        let most_of_another = ("GPU_CORE_MAX_PCT", format!("{}=20", uuid("2").gpu()));
        assert_eq!(shown(&[of_all, most_of_another]), None, "it may be the card of the instance");
        assert_eq!(shown(&[("GPU_PROFILE", "1g.10gb".to_owned())]), None);
    }
}
