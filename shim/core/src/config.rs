//! Every variable gpucap reads, in one table: name, type, default and a line of help.
//!
//! From the table come [`Config`] and its parser, [`help`] for the terminal and [`manual`] for the
//! documentation; nothing else in the project names a variable it reads. [`Config::from_lookup`]
//! is a pure function of a lookup: only the shim and the hook hand in a real environment.
//!
//! A variable that is empty, or only white space, counts as not set, and white space around a value is dropped:
//! templates and shells leave such values. A value that is not UTF-8 is refused, a path too. Any other value that
//! cannot be used is an error, never a default; but for a variable that limits nothing and is no part of the ledger
//! ([`WithFile::Read`]) the default holds, and the caller gets a notice.

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

mod excerpt;
mod per_gpu;
mod policy;
mod profile;
#[cfg(test)]
mod tests;
mod value;

use core::fmt::{self, Write};

use crate::units::{Amount, Share};

pub use excerpt::Excerpt;
pub use per_gpu::{PerGpu, Selector};
pub use policy::{CorePolicy, CorePriority, Wish};
pub use profile::{Profile, Slices};
pub use value::{ContextPrice, LedgerPath, LogLevel, OwnLimits, Value, ValueError};

/// Where a variable comes from: its name to its bytes. The real one is `std::env::var_os`.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

/// What becomes of a variable once the hook has put a limits file into the container.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WithFile {
    /// It is a limit, and can only lower what the file says.
    Lowers,
    /// It is read as without a file. A value that cannot be used stops nothing: the default holds.
    Read,
    /// It is not even looked at: the node's administrator decides.
    Ignored,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// Name of the environment variable.
    pub name: &'static str,
    /// What a value may look like; said in every refusal.
    pub allowed: &'static str,
    /// What holds when it is not set.
    pub default: &'static str,
    /// One line.
    pub help: &'static str,
    /// What becomes of it next to a limits file.
    pub with_file: WithFile,
}

macro_rules! options {
    ($(
        $name:ident => $field:ident: $type:ty = $initial:expr;
        $with_file:ident, default $default:literal, allowed $allowed:literal, $help:literal;
    )*) => {
        /// What the environment asks for.
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub struct Config {$(
            #[doc = concat!("`", stringify!($name), "`: ", $help)]
            pub $field: $type,
        )*}

        $(
            #[doc = $help]
            pub const $name: OptionRow = OptionRow {
                name: stringify!($name),
                allowed: $allowed,
                default: $default,
                help: $help,
                with_file: WithFile::$with_file,
            };
        )*

        /// The table.
        pub const OPTIONS: &[OptionRow] = &[$($name),*];

        impl Default for Config {
            /// An environment in which nothing is set.
            fn default() -> Self {
                Self { $($field: $initial,)* }
            }
        }

        impl Config {
            /// Takes the value of the variable with this name; one that is refused leaves it as it was.
            pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), ValueError> {
                match name {
                    $(stringify!($name) => self.$field = Value::parse(text)?,)*
                    _ => {}
                }
                Ok(())
            }
        }
    };
}

options! {
    GPU_MEM_LIMIT => memory: Option<PerGpu<Amount>> = None;
    Lowers, default "no limit",
    allowed "4Gi, 4096Mi, 4G, bytes, 25%, or per GPU: 0=4Gi,GPU-<uuid>=8Gi",
    "Memory limit of each GPU";

    GPU_CORE_PCT => core: Option<PerGpu<Share>> = None;
    Lowers, default "no limit",
    allowed "1 to 100 with at most two decimals: 30, 12.5, 30%, or per GPU: 0=30,GPU-<uuid>=50",
    "Share of each GPU's time, in percent";

    GPU_PROFILE => profile: Option<PerGpu<Profile>> = None;
    Lowers, default "none",
    allowed "1g.5gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb (any gb), 1g, 2g, 3g, 4g, 7g, \
             or per GPU: 0=1g.5gb,GPU-<uuid>=2g",
    "Time and memory as a MIG profile has them: n/7 of the time (n/4, n/2 where MIG makes fewer instances) and the named memory";

    GPU_CORE_POLICY => core_policy: Option<CorePolicy> = None;
    Lowers, default "fixed",
    allowed "fixed, burst",
    "Whether to borrow GPU time that others leave unused, beyond GPU_CORE_PCT: burst, if the node lends";

    GPU_CORE_MAX_PCT => core_max: Option<PerGpu<Share>> = None;
    Lowers, default "100",
    allowed "1 to 100 with at most two decimals: 30, 12.5, 30%, or per GPU: 0=80,GPU-<uuid>=50",
    "Most of each GPU's time, in percent, borrowed time included; without GPU_CORE_PCT also the share";

    GPU_CORE_PRIORITY => core_priority: Option<CorePriority> = None;
    Lowers, default "normal",
    allowed "normal, low",
    "low: no guaranteed GPU time, only what others leave unused, up to GPU_CORE_MAX_PCT";

    GPUCAP_LEDGER => ledger: Option<LedgerPath> = None;
    Ignored, default "a file in /dev/shm of this user and container",
    allowed "an absolute path",
    "File in which processes that share a budget keep their ledger";

    GPUCAP_OWN_LIMITS => own_limits: OwnLimits = OwnLimits::default();
    Read, default "none",
    allowed "names of the variables above, as in GPU_MEM_LIMIT,GPU_CORE_PCT",
    "Names of the limit variables that an inner `gpucap run` has set: raising the outer limit later does not raise these";

    GPUCAP_CONTEXT_MEM => context_mem: Option<ContextPrice> = None;
    Ignored, default "256Mi; outside of containers what NVML says",
    allowed "0, or a size: 300Mi",
    "Memory charged for each context of a process";

    GPUCAP_LOG => log: LogLevel = LogLevel::Warn;
    Read, default "warn",
    allowed "off, error, warn, info, debug",
    "Log level on stderr";
}

/// A variable holds something that cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigError {
    /// The variable.
    pub variable: &'static str,
    /// What it held, made fit for one line.
    pub held: Excerpt,
    /// The fault.
    pub why: ValueError,
    /// What would have been right.
    pub allowed: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variable, held, why, allowed } = self;
        write!(f, "{variable}={held}: {why}; allowed: {allowed}")
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Whether a variable is set that limits something. A policy alone does not.
    #[must_use]
    pub fn limits(&self) -> bool {
        self.memory.is_some() || self.profile.is_some() || self.limits_time()
    }

    /// Whether a variable is set that limits time by itself, other than a profile.
    #[must_use]
    pub fn limits_time(&self) -> bool {
        let low = self.core_priority == Some(CorePriority::Low);
        self.core.is_some() || self.core_max.is_some() || low
    }

    /// What an environment without a limits file asks for.
    ///
    /// # Errors
    /// The first variable, in the order of the table, whose value cannot be used and may not be passed over.
    pub fn from_lookup(lookup: Lookup<'_>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for row in OPTIONS {
            match config.read(row, lookup) {
                Err(_) if row.with_file == WithFile::Read => {}
                read => read?,
            }
        }
        Ok(config)
    }

    /// Reads the variable of one row; a row whose value is refused stays as it was.
    pub(crate) fn read(&mut self, row: &OptionRow, lookup: Lookup<'_>) -> Result<(), ConfigError> {
        let Some(bytes) = lookup(row.name) else { return Ok(()) };
        let read = match core::str::from_utf8(&bytes).map(str::trim) {
            Ok("") => Ok(()),
            Ok(text) => self.set(row.name, text),
            Err(_) => Err(ValueError::NotUtf8),
        };
        read.map_err(|why| ConfigError {
            variable: row.name,
            held: Excerpt::new(&bytes),
            why,
            allowed: row.allowed,
        })
    }
}

/// The table for a terminal.
#[must_use]
pub fn help() -> String {
    let mut text = String::new();
    for OptionRow { name, allowed, default, help, .. } in OPTIONS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}\n    {help}.\n    {allowed} (default: {default})");
    }
    text
}

/// The table in Markdown, for the manual.
#[must_use]
pub fn manual() -> String {
    let mut text = String::from(
        "| variable | meaning | allowed | default | with a limits file |\n|---|---|---|---|---|\n",
    );
    for OptionRow { name, allowed, default, help, with_file } in OPTIONS {
        let with_file = match with_file {
            WithFile::Lowers => "can only lower",
            WithFile::Read => "read",
            WithFile::Ignored => "ignored",
        };
        let allowed = allowed.replace('<', "\\<");
        let _ = writeln!(text, "| `{name}` | {help} | {allowed} | {default} | {with_file} |");
    }
    text
}
