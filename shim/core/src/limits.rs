//! The limits of this process, from the environment and the limits file, resolved for one device.
//!
//! Each source is resolved for the device first: a profile becomes memory and time, a percentage
//! becomes bytes of that device. Then the minimum holds, for each quantity on its own. So adding a
//! source never raises a limit: next to a file, the environment can only lower. Only the node can raise, while a
//! container runs ([`live`]), and then the variables that the container was started with are no obstacle.
//!
//! Time that others leave unused is lent by the node alone: next to a file, a policy of the environment takes lending
//! away and never adds it. Without a file, the variables mean what they say (`lending`).
//!
//! Which entries concern a device: those for every GPU, those with its UUID, and for a MIG instance
//! also those with the UUID or the index of its parent; they then hold for each instance, and a
//! percentage is one of the instance. Where several match, the lowest. A GPU that the file does not
//! list is refused; a GPU that the environment does not list is not limited by it.
//!
//! What cannot be used is [`Broken`], and the caller fails closed. Pure: the caller reads the
//! environment and the file.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod ask;
mod broken;
mod crc32;
mod device;
pub mod file;
mod lending;
pub mod live;
pub mod run;
mod said;
mod source;
#[cfg(test)]
mod tests;

use crate::config::{Config, ConfigError, Lookup, OPTIONS, WithFile};
use crate::uuid::Uuid;

pub use broken::{Broken, FileProblem};
pub use device::{DeviceFacts, Resolved};
pub use file::LimitsFile;

use ask::Ask;
use live::LiveEntries;
use source::Source;

/// What was asked for, by at least one source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    config: Config,
    file: Option<LimitsFile>,
    /// The file is of a run, not of a container: its user lends, not the node.
    is_run: bool,
    ignored: Vec<ConfigError>,
}

impl Limits {
    /// Reads the limits. `None`: nothing is set, and nothing is to be redirected.
    ///
    /// `file` is what the caller found at the place of the limits file: nothing, its bytes, or why
    /// it may not be believed.
    ///
    /// # Errors
    /// A limit is set and cannot be used. A bad variable that limits nothing is ignored. Where the
    /// administrator of the node chose to be open, any bad variable is ignored instead (see [`ignored`](Self::ignored)) while the file still holds:
    /// otherwise a slip in the environment would lift a limit that it can only lower.
    pub fn load(
        lookup: Lookup<'_>,
        file: Option<Result<&[u8], FileProblem>>,
    ) -> Result<Option<Self>, Broken> {
        let file = match file {
            None => None,
            Some(Ok(bytes)) => Some(LimitsFile::parse(bytes).map_err(FileProblem::Content)?),
            Some(Err(problem)) => return Err(problem.into()),
        };
        let mut limits =
            Self { file, config: Config::default(), is_run: false, ignored: Vec::new() };
        limits.read(lookup, WithFile::Lowers)?;
        if limits.file.is_none() && !limits.config.limits() {
            return Ok(None);
        }
        // Only now: where nothing is limited, no other variable can disturb.
        limits.read(lookup, WithFile::Read)?;
        if limits.file.is_none() {
            limits.read(lookup, WithFile::Ignored)?;
        }
        Ok(Some(limits))
    }

    fn read(&mut self, lookup: Lookup<'_>, rows: WithFile) -> Result<(), ConfigError> {
        for row in OPTIONS.iter().filter(|row| row.with_file == rows) {
            match self.config.read(row, lookup) {
                Ok(()) => {}
                Err(error) if self.open() || rows == WithFile::Read => self.ignored.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The limits of one device.
    ///
    /// # Errors
    /// An entry goes by index and the index of this device is not known; or a percentage of it is
    /// less than one byte. Where the administrator chose to be open, such a variable is left out.
    pub fn resolve(&self, device: &DeviceFacts) -> Result<Resolved, Broken> {
        self.resolve_with(device, LiveEntries::default())
    }

    /// As [`resolve`](Self::resolve), with what the node has said since the container started: it stands in for the
    /// limits file, and for the variables that the file was made of. A process's own variables lower that, too.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve).
    pub fn resolve_with(
        &self,
        device: &DeviceFacts,
        live: LiveEntries<'_>,
    ) -> Result<Resolved, Broken> {
        let node = self.node(device, live);
        let [mut file, mut inherited, mut own] = [Ask::default(); 3];
        for source in self.sources() {
            let is_known = self.was_known(source);
            let ask = match source.ask(device) {
                Ok(ask) if is_known => ask.less(node),
                Ok(ask) => ask,
                Err(_) if self.open() && !source.is_file() => continue,
                Err(broken) => return Err(broken),
            };
            let place = match (source.is_file(), is_known) {
                (true, _) => &mut file,
                (false, true) => &mut inherited,
                (false, false) => &mut own,
            };
            *place = place.lower(ask);
        }
        let given = node.lower(file);
        let memory = given.lower(inherited).lower(own).memory;
        let core = self.time(device, given.compute, inherited, own);
        let resolved = Resolved { memory, core, ..Resolved::default() };
        Ok(resolved.on(device, self.file.as_ref().is_some_and(|file| !file.lists(device))))
    }

    /// Whether [`resolve`](Self::resolve) must know the indices of the devices.
    #[must_use]
    pub fn needs_index(&self) -> bool {
        self.sources().any(|source| source.has_index())
    }

    /// Whether [`resolve`](Self::resolve) must know into how many slices MIG divides a device.
    #[must_use]
    pub const fn needs_slices(&self) -> bool {
        self.config.profile.is_some()
    }

    /// Whether [`resolve`](Self::resolve) must know the card of this device, if it is a MIG instance: a source names other
    /// devices, of which one may be that card, and none names this one as a card itself.
    #[must_use]
    pub fn needs_parent(&self, uuid: Uuid) -> bool {
        self.sources().any(|source| source.names_other(uuid))
            && !self.sources().any(|source| source.names_card(uuid))
    }

    /// Whether the time of any device is limited. A limits file that speaks of time counts even at
    /// 100 %, so that it can be lowered while the container runs.
    #[must_use]
    pub fn has_compute(&self) -> bool {
        self.config.limits_time()
            || self.config.profile.is_some()
            || self.file.as_ref().is_some_and(LimitsFile::has_compute)
    }

    /// Whether the memory of any device is limited.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.config.memory.is_some()
            || self.config.profile.is_some()
            || self.file.as_ref().is_some_and(LimitsFile::has_memory)
    }

    /// Whether there is a limits file.
    #[must_use]
    pub const fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// All variables that count: next to a limits file, those that the file overrules are as if not
    /// set.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The limits file.
    #[must_use]
    pub const fn file(&self) -> Option<&LimitsFile> {
        self.file.as_ref()
    }

    /// Whether a variable that cannot be used is a warning: the administrator of the node chose that. The limits file
    /// applies all the same.
    #[must_use]
    pub fn open(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.open)
    }

    /// What the limits file says a context costs on this device, in bytes.
    #[must_use]
    pub fn context_price(&self, device: &DeviceFacts) -> Option<u64> {
        self.file.as_ref()?.context_price(device)
    }

    /// Variables that were left out: because the administrator chose to be open, or because they limit nothing. Worth a
    /// warning.
    #[must_use]
    pub fn ignored(&self) -> &[ConfigError] {
        &self.ignored
    }

    /// What the node says now of what it limited when the container started. A limit that was not there then was not
    /// prepared for: it cannot come later.
    fn node(&self, device: &DeviceFacts, live: LiveEntries<'_>) -> Ask {
        let file = self.file.as_ref().filter(|_| !live.are_silent());
        file.map(|file| said::said(file, device, live)).unwrap_or_default()
    }

    /// Whether the node knew of this source when it made the limits file: it is the file, or a variable that the process
    /// inherited from the container as it was.
    fn was_known(&self, source: Source<'_>) -> bool {
        let Some(file) = &self.file else { return false };
        let is_asked = || source::variables(&file.asked).any(|asked| asked == source);
        source.is_file() || !self.config.own_limits.contains(source.name()) && is_asked()
    }

    fn sources(&self) -> impl Iterator<Item = Source<'_>> {
        let file = self.file.as_ref().map(Source::File);
        file.into_iter().chain(source::variables(&self.config))
    }
}
