//! What one source says of the GPUs.
//!
//! A [`Grant`] answers for every device there could be: a limit for those it names, and for all others either a limit or
//! that they may not be used. So grants can be joined without knowing the devices (`merge`).

use gpucap_core::config::{CorePolicy, CorePriority, Excerpt, Profile, Slices, Wish};
use gpucap_core::limits::file::MemoryLimit;
use gpucap_core::units::Share;
use gpucap_core::uuid::DeviceName;

use crate::document::card::Card;
use crate::reason::Reason;

/// More GPUs than any machine has. What names more is refused, for each of them is compared with each.
pub(crate) const MOST_GPUS: usize = 256;

/// What one source says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Grant {
    /// The convention it follows: a name that the node's configuration knows.
    pub convention: &'static str,
    /// Where it was found: `environment GPU_MEM_LIMIT`.
    pub source: String,
    /// What it held.
    pub said: Excerpt,
    /// What that means.
    pub by_device: DeviceLimits,
}

/// What holds for each device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeviceLimits {
    /// For these. A name that comes twice has the lower of both.
    pub named: Vec<(DeviceName, DeviceLimit)>,
    /// For all others; none: they may not be used.
    pub others: Option<DeviceLimit>,
}

/// What holds for one device. Its default is no limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DeviceLimit {
    /// Limit on its memory.
    pub memory: MemoryLimit,
    /// Share of its time.
    pub core: Option<Share>,
    /// The most of its time.
    pub core_max: Option<Share>,
    /// Whether more than the share may be used.
    pub core_policy: Option<CorePolicy>,
    /// Whether the share is guaranteed.
    pub core_priority: Option<CorePriority>,
}

/// Values that go by a number: what each says of the GPU with this number.
pub(crate) type Numbered = Vec<(u32, DeviceLimit)>;

impl Grant {
    /// What `source` says with `said`.
    pub(crate) fn new(source: impl Into<String>, said: &str, by_device: DeviceLimits) -> Self {
        let said = Excerpt::new(said.as_bytes());
        Self { convention: "", source: source.into(), said, by_device }
    }

    /// # Errors
    /// It names more GPUs than any machine has.
    pub(crate) fn bounded(&self) -> Result<(), Reason> {
        if self.by_device.named.len() <= MOST_GPUS {
            return Ok(());
        }
        let why = format!("names more than {MOST_GPUS} GPUs");
        Err(Reason::Value { source: self.source.clone(), held: self.said.clone(), why })
    }

    /// The notice for a memory limit that is unusually small.
    pub(crate) fn doubt(&self) -> Option<String> {
        let limits =
            self.by_device.named.iter().map(|(_, limit)| limit).chain(&self.by_device.others);
        let doubt = limits.filter_map(|limit| limit.memory.bytes?.doubt()).next()?;
        Some(format!("{}={}: {doubt}", self.source, self.said))
    }

    /// Whether it limits anything: a list of GPUs without limits does, for it forbids the others.
    pub(crate) fn limits(&self) -> bool {
        self.by_device.others.is_none_or(DeviceLimit::limits)
            || self.by_device.named.iter().any(|(_, limit)| limit.limits())
    }
}

impl DeviceLimits {
    /// The same for every GPU.
    pub(crate) const fn every(limit: DeviceLimit) -> Self {
        Self { named: Vec::new(), others: Some(limit) }
    }

    /// A limit that depends on the kind of device, for every GPU: by name for the node's cards of another kind than most.
    pub(crate) fn by_slices(cards: &[Card], limit: impl Fn(Slices) -> DeviceLimit) -> Self {
        let others = limit(Slices::default());
        let named = cards.iter().map(|card| (card.name, limit(card.slices)));
        Self { named: named.filter(|(_, own)| *own != others).collect(), others: Some(others) }
    }

    /// Limits by number, where `name` knows which GPU a number means. If it does not know all of them, the lowest limit
    /// holds for every GPU: too little for one of them, but too much for none. For GPUs without a number, `others`.
    pub(crate) fn numbered(
        numbered: &[(u32, DeviceLimit)],
        name: impl Fn(u32) -> Option<DeviceName>,
        others: Option<DeviceLimit>,
    ) -> Self {
        let named = |&(number, limit): &(u32, DeviceLimit)| Some((name(number)?, limit));
        match numbered.iter().map(named).collect::<Option<Vec<_>>>() {
            Some(named) => Self { named, others },
            None => Self::every(lowest(numbered)),
        }
    }

    /// What holds for a device of this name.
    pub(crate) fn of(&self, name: DeviceName) -> Option<DeviceLimit> {
        let same = self.named.iter().filter(|(own, _)| own.uuid == name.uuid);
        same.map(|&(_, limit)| limit).reduce(DeviceLimit::lower).or(self.others)
    }
}

/// The lowest of all, for memory and time apart.
pub(crate) fn lowest(numbered: &[(u32, DeviceLimit)]) -> DeviceLimit {
    numbered.iter().map(|&(_, limit)| limit).fold(DeviceLimit::default(), DeviceLimit::lower)
}

impl DeviceLimit {
    /// A limit on memory alone.
    pub(crate) fn memory(memory: impl Into<MemoryLimit>) -> Self {
        Self { memory: memory.into(), ..Self::default() }
    }

    /// A share of time alone.
    pub(crate) fn core(core: Share) -> Self {
        Self { core: Some(core), ..Self::default() }
    }

    /// What a MIG-shaped slice comes to on a device of this kind.
    pub(crate) fn profile(profile: Profile, slices: Slices) -> Self {
        Self { core: Some(profile.core(slices)), ..Self::memory(profile.memory(slices)) }
    }

    /// A most of time alone.
    pub(crate) fn core_max(most: Share) -> Self {
        Self { core_max: Some(most), ..Self::default() }
    }

    /// A policy of time alone.
    pub(crate) fn policy(policy: CorePolicy) -> Self {
        Self { core_policy: Some(policy), ..Self::default() }
    }

    /// A priority alone.
    pub(crate) fn priority(priority: CorePriority) -> Self {
        Self { core_priority: Some(priority), ..Self::default() }
    }

    /// What it says of time.
    pub(crate) fn wish(self) -> Wish {
        let Self { core, core_max, core_policy, core_priority, .. } = self;
        Wish { share: core, most: core_max, policy: core_policy, priority: core_priority }
    }

    /// Whether it limits anything. A policy alone does not.
    pub(crate) fn limits(self) -> bool {
        self.memory != MemoryLimit::NONE || self.wish().limit().is_some()
    }

    /// The lower of both, for memory and time apart.
    #[must_use]
    pub fn lower(self, other: Self) -> Self {
        let Wish { share, most, policy, priority } = self.wish().lower(other.wish());
        Self {
            memory: self.memory.lower(other.memory),
            core: share,
            core_max: most,
            core_policy: policy,
            core_priority: priority,
        }
    }
}
