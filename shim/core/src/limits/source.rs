//! One source of limits, resolved for one device.

use core::fmt::Display;

use super::ask::Ask;
use super::broken::{Broken, FileProblem};
use super::device::DeviceFacts;
use super::file::document::{LimitsFile, PATH};
use crate::config::{
    Config, ConfigError, CorePolicy, CorePriority, Excerpt, GPU_CORE_MAX_PCT, GPU_CORE_PCT,
    GPU_CORE_POLICY, GPU_CORE_PRIORITY, GPU_MEM_LIMIT, GPU_PROFILE, OptionRow, PerGpu, Profile,
    ValueError,
};
use crate::units::{Amount, ComputeLimit, Share};
use crate::uuid::Uuid;

/// Where limits come from.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Source<'a> {
    File(&'a LimitsFile),
    Memory(&'a PerGpu<Amount>),
    Core(&'a PerGpu<Share>),
    Profile(&'a PerGpu<Profile>),
    CorePolicy(CorePolicy),
    CoreMax(&'a PerGpu<Share>),
    CorePriority(CorePriority),
}

/// The variables that limit something, or say how.
pub(super) fn variables(config: &Config) -> impl Iterator<Item = Source<'_>> {
    let Config { memory, core, profile, core_policy, core_max, core_priority, .. } = config;
    [
        memory.as_ref().map(Source::Memory),
        core.as_ref().map(Source::Core),
        profile.as_ref().map(Source::Profile),
        core_policy.map(Source::CorePolicy),
        core_max.as_ref().map(Source::CoreMax),
        core_priority.map(Source::CorePriority),
    ]
    .into_iter()
    .flatten()
}

impl Source<'_> {
    /// What this source asks for on `device`. A policy and a priority say how the others count.
    pub(super) fn ask(self, device: &DeviceFacts) -> Result<Ask, Broken> {
        let asked = match self {
            Self::File(file) => Ok(file.ask(device)),
            Self::Memory(list) => lowest(list, device, |&memory| memory_of(memory, device)),
            Self::Core(list) => lowest(list, device, |&core| fixed(core)),
            Self::Profile(list) => lowest(list, device, |it| {
                let memory = memory_of(it.memory(device.slices), device);
                memory.lower(fixed(it.core(device.slices)))
            }),
            Self::CoreMax(list) => {
                lowest(list, device, |&most| Ask { core_max: Some(most), ..Ask::default() })
            }
            Self::CorePolicy(_) | Self::CorePriority(_) => Ok(Ask::default()),
        };
        // Zero bytes can only come of a percentage; as a limit it would look like a full card.
        let usable = match asked {
            Ok(Ask { memory: Some(0), .. }) => Err(ValueError::LessThanAByte),
            other => other,
        };
        usable.map_err(|why| self.broken(why))
    }

    pub(super) fn is_file(self) -> bool {
        matches!(self, Self::File(_))
    }

    pub(super) fn names_other(self, uuid: Uuid) -> bool {
        match self {
            Self::File(file) => file.names_other(uuid),
            Self::Memory(list) => list.names_other(uuid),
            Self::Core(list) | Self::CoreMax(list) => list.names_other(uuid),
            Self::Profile(list) => list.names_other(uuid),
            Self::CorePolicy(_) | Self::CorePriority(_) => false,
        }
    }

    pub(super) fn names_card(self, uuid: Uuid) -> bool {
        match self {
            Self::File(file) => file.names_card(uuid),
            Self::Memory(list) => list.names_card(uuid),
            Self::Core(list) | Self::CoreMax(list) => list.names_card(uuid),
            Self::Profile(list) => list.names_card(uuid),
            Self::CorePolicy(_) | Self::CorePriority(_) => false,
        }
    }

    pub(super) fn has_index(self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Memory(list) => list.has_index(),
            Self::Core(list) | Self::CoreMax(list) => list.has_index(),
            Self::Profile(list) => list.has_index(),
            Self::CorePolicy(_) | Self::CorePriority(_) => false,
        }
    }

    /// The variable, or the path of the file.
    pub(super) fn name(self) -> &'static str {
        self.row().map_or(PATH, |row| row.name)
    }

    fn row(self) -> Option<OptionRow> {
        match self {
            Self::File(_) => None,
            Self::Memory(_) => Some(GPU_MEM_LIMIT),
            Self::Core(_) => Some(GPU_CORE_PCT),
            Self::Profile(_) => Some(GPU_PROFILE),
            Self::CorePolicy(_) => Some(GPU_CORE_POLICY),
            Self::CoreMax(_) => Some(GPU_CORE_MAX_PCT),
            Self::CorePriority(_) => Some(GPU_CORE_PRIORITY),
        }
    }

    /// What it says, in the form in which it is understood.
    pub(super) fn said(self) -> String {
        match self {
            Self::File(file) => file.source.to_string(),
            Self::Memory(list) => list.to_string(),
            Self::Core(list) | Self::CoreMax(list) => list.to_string(),
            Self::Profile(list) => list.to_string(),
            Self::CorePolicy(policy) => policy.to_string(),
            Self::CorePriority(priority) => priority.to_string(),
        }
    }

    fn broken(self, why: ValueError) -> Broken {
        let Some(OptionRow { name, allowed, .. }) = self.row() else {
            return FileProblem::LessThanAByte.into();
        };
        let held = Excerpt::new(self.said().as_bytes());
        ConfigError { variable: name, held, why, allowed }.into()
    }
}

fn memory_of(memory: Amount, device: &DeviceFacts) -> Ask {
    Ask { memory: Some(memory.of(device.total_bytes)), ..Ask::default() }
}

fn fixed(core: Share) -> Ask {
    Ask { compute: Some(ComputeLimit::fixed(core)), ..Ask::default() }
}

/// The lowest of the entries that mean this device.
fn lowest<T: Display>(
    list: &PerGpu<T>,
    device: &DeviceFacts,
    asked: impl Fn(&T) -> Ask,
) -> Result<Ask, ValueError> {
    let mut ask = Ask::default();
    match list {
        PerGpu::Every(value) => ask = asked(value),
        PerGpu::Listed(entries) => {
            for (selector, value) in entries {
                if device.matches(*selector).ok_or(ValueError::IndexUnknown)? {
                    ask = ask.lower(asked(value));
                }
            }
        }
    }
    Ok(ask)
}
