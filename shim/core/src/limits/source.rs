//! One source of limits, resolved for one device.

use core::fmt::Display;

use super::ask::{Ask, lower};
use super::broken::{Broken, FileProblem};
use super::device::DeviceFacts;
use super::file::document::{LimitsFile, PATH};
use crate::config::{
    Config, ConfigError, Excerpt, GPU_CORE_PCT, GPU_MEM_LIMIT, GPU_PROFILE, OptionRow, PerGpu,
    Profile, ValueError,
};
use crate::units::{Amount, Share};
use crate::uuid::Uuid;

/// Where limits come from.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Source<'a> {
    File(&'a LimitsFile),
    Memory(&'a PerGpu<Amount>),
    Core(&'a PerGpu<Share>),
    Profile(&'a PerGpu<Profile>),
}

/// The variables that limit something.
pub(super) fn variables(config: &Config) -> impl Iterator<Item = Source<'_>> {
    let Config { memory, core, profile, .. } = config;
    let memory = memory.as_ref().map(Source::Memory);
    let core = core.as_ref().map(Source::Core);
    let profile = profile.as_ref().map(Source::Profile);
    [memory, core, profile].into_iter().flatten()
}

impl Source<'_> {
    /// What this source asks for on `device`.
    pub(super) fn ask(self, device: &DeviceFacts) -> Result<Ask, Broken> {
        let asked = match self {
            Self::File(file) => Ok(file.ask(device)),
            Self::Memory(list) => lowest(list, device, |&memory| (Some(memory), None)),
            Self::Core(list) => lowest(list, device, |&core| (None, Some(core))),
            Self::Profile(list) => {
                let slices = device.slices;
                let parts = |it: &Profile| (Some(it.memory(slices)), Some(it.core(slices)));
                lowest(list, device, parts)
            }
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
            Self::Core(list) => list.names_other(uuid),
            Self::Profile(list) => list.names_other(uuid),
        }
    }

    pub(super) fn names_card(self, uuid: Uuid) -> bool {
        match self {
            Self::File(file) => file.names_card(uuid),
            Self::Memory(list) => list.names_card(uuid),
            Self::Core(list) => list.names_card(uuid),
            Self::Profile(list) => list.names_card(uuid),
        }
    }

    pub(super) fn has_index(self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Memory(list) => list.has_index(),
            Self::Core(list) => list.has_index(),
            Self::Profile(list) => list.has_index(),
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
        }
    }

    /// What it says, in the form in which it is understood.
    pub(super) fn said(self) -> String {
        match self {
            Self::File(file) => file.source.to_string(),
            Self::Memory(list) => list.to_string(),
            Self::Core(list) => list.to_string(),
            Self::Profile(list) => list.to_string(),
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

/// The lowest of the entries that mean this device.
fn lowest<T: Display>(
    list: &PerGpu<T>,
    device: &DeviceFacts,
    parts: impl Fn(&T) -> (Option<Amount>, Option<Share>),
) -> Result<Ask, ValueError> {
    let mut ask = Ask::default();
    let mut take = |value: &T| {
        let (memory, core) = parts(value);
        let memory = memory.map(|memory| memory.of(device.total_bytes));
        ask = Ask { memory: lower(ask.memory, memory), core: lower(ask.core, core) };
    };
    match list {
        PerGpu::Every(value) => take(value),
        PerGpu::Listed(entries) => {
            for (selector, value) in entries {
                if device.matches(*selector).ok_or(ValueError::IndexUnknown)? {
                    take(value);
                }
            }
        }
    }
    Ok(ask)
}
