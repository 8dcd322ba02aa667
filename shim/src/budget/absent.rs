//! Limits that name GPUs, of which the program has none: as a rule a mistake in the name.
//!
//! A GPU that no variable names is not limited, and that is the request where another one is named. Where none of the
//! named GPUs is present, nothing at all is limited, so a notice is printed once, when the program first uses a GPU
//! without a limit. With a limits file no GPU is without one: those that it does not list are refused.

use crate::driver::{self, DriverCopy};
use crate::log;
use crate::state::Policy;
use crate::topology::{self, DriverVariables};
use core::fmt;
use gpucap_core::config::{
    GPU_CORE_MAX_PCT, GPU_CORE_PCT, GPU_MEM_LIMIT, GPU_PROFILE, LogLevel, OptionRow,
};
use gpucap_core::limits::{DeviceFacts, Limits};
use gpucap_core::uuid::Uuid;

/// Says so once per process, if no GPU that the program can use has a limit.
pub(crate) fn warn(
    policy: &Policy,
    limits: &'static Limits,
    driver: &DriverCopy,
    variables: DriverVariables,
) {
    static LOGGED: log::Once = log::Once::new();
    if !LOGGED.first() {
        return;
    }
    let Some(count) = driver::cuda::device_count(driver) else { return };
    let is_limited = |ordinal| {
        let uuid = Uuid(driver::cuda::uuid(driver, ordinal)?);
        let total_bytes = driver::cuda::total_bytes(driver, ordinal)?;
        let position =
            |facts: &DeviceFacts| topology::position(driver, ordinal, variables, facts.uuid);
        let slices = || driver::cuda::slices(driver, ordinal);
        let (live, _) = topology::resolve(limits, uuid, total_bytes, slices, position).ok()?;
        let resolved = live.now();
        Some(resolved.memory.is_some() || resolved.core.is_some())
    };
    // For a device that does not report its name or limits this is unknown.
    if (0..count)
        .filter_map(|it| driver::cuda::device(driver, it))
        .all(|it| is_limited(it) == Some(false))
    {
        policy.log(
            LogLevel::Warn,
            format_args!(
                "limits: nothing is limited: {} none of the {count} GPUs here",
                Named(limits)
            ),
        );
    }
}

/// The variables, as they name GPUs.
struct Named<'a>(&'a Limits);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = self.0.config();
        let mut said = |row: &OptionRow, value: Option<&dyn fmt::Display>| match value {
            Some(value) => write!(f, "{}={value} ", row.name),
            None => Ok(()),
        };
        said(&GPU_MEM_LIMIT, config.memory.as_ref().map(|it| it as _))?;
        said(&GPU_CORE_PCT, config.core.as_ref().map(|it| it as _))?;
        said(&GPU_CORE_MAX_PCT, config.core_max.as_ref().map(|it| it as _))?;
        said(&GPU_PROFILE, config.profile.as_ref().map(|it| it as _))?;
        f.write_str("names")
    }
}
