//! The types of the variables: how each is read, and why a text may be refused.

use core::fmt;

use crate::units::{Amount, Bytes, Share, UnitError};

/// Read from the text of a variable, which is trimmed and not empty.
pub trait Value: Sized {
    /// # Errors
    /// The text does not say a value of this type.
    fn parse(text: &str) -> Result<Self, ValueError>;
}

/// Why the value of a variable cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ValueError {
    /// The quantity is wrong.
    Unit(UnitError),
    /// Bytes that are not text.
    NotUtf8,
    /// In a list, an entry without `GPU=`.
    EntryWithoutGpu,
    /// What stands before `=` is neither an index nor a UUID.
    NotAGpu,
    /// Two entries for one GPU.
    GpuTwice,
    /// More entries than any machine has GPUs.
    TooManyGpus,
    /// No MIG name.
    NotAProfile,
    /// Not one of the policies of time.
    NotAPolicy,
    /// Not one of the priorities.
    NotAPriority,
    /// Not one of the levels.
    NotALevel,
    /// Not the name of a variable that limits something.
    NotALimit,
    /// Not an absolute path.
    NotAPath,
    /// A percentage of this device is less than one byte.
    LessThanAByte,
    /// An entry names its GPU by index, and the index of this GPU could not be found out.
    IndexUnknown,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unit(unit) => return unit.fmt(f),
            Self::NotUtf8 => "not UTF-8 text",
            Self::EntryWithoutGpu => "in a list each entry names its GPU: <GPU>=<value>",
            Self::NotAGpu => "a GPU is named by its index, GPU-<uuid> or MIG-<uuid>",
            Self::GpuTwice => "the same GPU is named twice",
            Self::TooManyGpus => "more GPUs are named than any machine has",
            Self::NotAProfile => "not a profile",
            Self::NotAPolicy => "not a policy",
            Self::NotAPriority => "not a priority",
            Self::NotALevel => "not a level",
            Self::NotALimit => "not the name of a limit",
            Self::NotAPath => "not an absolute path",
            Self::LessThanAByte => "less than one byte of this GPU",
            Self::IndexUnknown => "names a GPU by index, and the index of this GPU is not known",
        })
    }
}

impl core::error::Error for ValueError {}

impl From<UnitError> for ValueError {
    fn from(error: UnitError) -> Self {
        Self::Unit(error)
    }
}

/// Names of variables that limit something, which a program has set for itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OwnLimits(Vec<String>);

impl OwnLimits {
    /// Whether this variable is among them.
    #[must_use]
    pub fn contains(&self, variable: &str) -> bool {
        self.0.iter().any(|own| own == variable)
    }

    /// The same with these.
    #[must_use]
    pub fn with(mut self, variables: impl IntoIterator<Item = &'static str>) -> Self {
        self.0.extend(variables.into_iter().map(str::to_owned));
        self.0.sort_unstable();
        self.0.dedup();
        self
    }
}

impl fmt::Display for OwnLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl Value for OwnLimits {
    fn parse(text: &str) -> Result<Self, ValueError> {
        let is_name = |name: &str| {
            let mut signs = name.bytes();
            name.starts_with("GPU_") && signs.all(|sign| sign == b'_' || sign.is_ascii_uppercase())
        };
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().all(|name| is_name(name)) {
            Ok(Self(names))
        } else {
            Err(ValueError::NotALimit)
        }
    }
}

/// The path of a ledger file: absolute, since processes that share it differ in their directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LedgerPath(String);

impl LedgerPath {
    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Bytes charged for a context; zero is a price, unlike a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ContextPrice(pub u64);

/// How much is said.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// A limit is not enforced.
    Error,
    /// Degraded, or refused for the first time.
    Warn,
    /// What was found at start.
    Info,
    /// Every decision off the launch path.
    Debug,
}

impl<T: Value> Value for Option<T> {
    fn parse(text: &str) -> Result<Self, ValueError> {
        T::parse(text).map(Some)
    }
}

impl Value for Amount {
    fn parse(text: &str) -> Result<Self, ValueError> {
        Ok(text.parse()?)
    }
}

impl Value for Share {
    fn parse(text: &str) -> Result<Self, ValueError> {
        Ok(text.parse()?)
    }
}

impl Value for LedgerPath {
    fn parse(text: &str) -> Result<Self, ValueError> {
        if text.starts_with('/') && !text.contains('\0') {
            Ok(Self(text.to_owned()))
        } else {
            Err(ValueError::NotAPath)
        }
    }
}

impl Value for ContextPrice {
    fn parse(text: &str) -> Result<Self, ValueError> {
        match text.parse::<Bytes>() {
            Ok(bytes) => Ok(Self(bytes.0)),
            Err(UnitError::Zero) => Ok(Self(0)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Value for LogLevel {
    fn parse(text: &str) -> Result<Self, ValueError> {
        const LEVELS: [(&str, LogLevel); 5] = [
            ("off", LogLevel::Off),
            ("error", LogLevel::Error),
            ("warn", LogLevel::Warn),
            ("info", LogLevel::Info),
            ("debug", LogLevel::Debug),
        ];
        LEVELS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|&(_, level)| level)
            .ok_or(ValueError::NotALevel)
    }
}
