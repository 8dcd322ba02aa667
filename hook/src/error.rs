//! Why a command could not do what it was asked: one line each, what, where and why.

use crate::exit::Exit;
use gpucap_core::config::{ConfigError, Excerpt, ValueError};
use gpucap_plan::Reason;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Error {
    /// No limit was given.
    NoLimit,
    /// The value of an option cannot be used.
    Option { option: &'static str, held: Excerpt, why: ValueError, allowed: &'static str },
    /// `--gpu` beside a value that names its GPUs itself.
    GpuTwice { option: &'static str, held: Excerpt },
    /// A limit names GPUs, and this machine, which has `cards`, has none of them.
    NoSuchGpu { limit: String, cards: usize },
    /// A variable that is set already cannot be used.
    Inherited(ConfigError),
    /// The value that is set already and the requested one cannot be compared.
    Incomparable { variable: &'static str, set: String, asked: String },
    /// `libgpucap.so` was not found in these places.
    NoLibrary(Vec<PathBuf>),
    /// `LD_PRELOAD` cannot name a path with this sign in it.
    Unloadable { library: PathBuf, sign: char },
    /// The ledger of a run cannot be made.
    Ledger { path: PathBuf, why: io::Error },
    /// A program cannot be started.
    Start { program: String, why: io::Error },
    /// There is no such process, or it cannot be looked at.
    Process { pid: u32, why: io::Error },
    /// There is no runtime to become.
    NoRuntime(Vec<String>),
    /// CDI allows no device of this name.
    DeviceName(Excerpt),
    /// A GPU of a CDI device cannot be named by its UUID.
    CdiGpu(String),
    /// A file that was named cannot be read.
    File { path: PathBuf, why: io::Error },
    /// A container's documents cannot be read.
    Container(Reason),
    /// This version knows no such stage of a container's start.
    Stage(String),
    /// The limits of a container cannot be changed.
    Limit { container: String, why: String },
    /// What is to be explained cannot be found, or may be several.
    Explain { name: String, why: String },
    /// Nothing that `status` shows goes by this word.
    NotShown(String),
    /// A container that asked for a slice cannot be held to it: the whole line.
    Refused(String),
    /// The address for metrics cannot be used.
    Listen { address: String, why: io::Error },
    /// The plugin cannot serve a runtime.
    Nri(String),
    /// An image cannot be looked at.
    Check(String),
    /// The cards cannot be measured, or the result not be kept.
    Calibrate(String),
    /// An engine's configuration cannot be changed as asked.
    Configure(String),
    /// The demo found something that is not as it should be, or could not go on.
    Demo(String),
    /// Standard output was closed, or its disk is full.
    Output(io::Error),
}

/// The outcome of a command.
pub(crate) type Result<T = ()> = std::result::Result<T, Error>;

impl Error {
    /// The exit code for this failure.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::NoLimit
            | Self::Option { .. }
            | Self::GpuTwice { .. }
            | Self::NoSuchGpu { .. }
            | Self::Inherited(_)
            | Self::Incomparable { .. }
            | Self::NoLibrary(_)
            | Self::Unloadable { .. }
            | Self::Ledger { .. } => Exit::NOT_RUN,
            Self::Start { why, .. } if why.kind() == io::ErrorKind::NotFound => Exit::NOT_FOUND,
            Self::Start { .. } => Exit::NOT_EXECUTABLE,
            Self::Stage(_) => Exit::UNKNOWN_STAGE,
            Self::Refused(_) => Exit::REFUSED,
            Self::Process { .. }
            | Self::File { .. }
            | Self::Container(_)
            | Self::Limit { .. }
            | Self::Explain { .. }
            | Self::NotShown(_)
            | Self::NoRuntime(_)
            | Self::Listen { .. }
            | Self::Nri(_)
            | Self::Check(_)
            | Self::Calibrate(_)
            | Self::Configure(_)
            | Self::DeviceName(_)
            | Self::CdiGpu(_)
            | Self::Demo(_)
            | Self::Output(_) => Exit::FAILED,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLimit => f.write_str("no limit: give --mem, --cores or --profile"),
            Self::Option { option, held, why, allowed } => {
                write!(f, "{option} {held}: {why}; allowed: {allowed}")
            }
            Self::GpuTwice { option, held } => {
                write!(f, "{option} {held}: names its GPUs itself, so --gpu cannot be given")
            }
            Self::NoSuchGpu { limit, cards } => write!(
                f,
                "run: {limit} names no GPU of this machine, so nothing would be limited; it has {cards}, counted from 0"
            ),
            Self::Inherited(error) => write!(f, "run: already set: {error}"),
            Self::Incomparable { variable, set, asked } => write!(
                f,
                "run: {variable}={set} is set already and can only be lowered; whether {asked} is less \
                 cannot be determined, so ask in the same form"
            ),
            Self::NoLibrary(places) => {
                f.write_str("run: libgpucap.so not found in")?;
                places.iter().try_for_each(|place| write!(f, " {}", place.display()))
            }
            Self::Unloadable { library, sign } => write!(
                f,
                "run: {}: LD_PRELOAD cannot name a path with {sign:?} in it; put gpucap elsewhere",
                library.display()
            ),
            Self::Ledger { path, why } => {
                write!(f, "run: ledger {} cannot be made: {}", path.display(), reason(why))
            }
            Self::Start { program, why } => write!(f, "{program}: {}", reason(why)),
            Self::Process { pid, why } if why.kind() == io::ErrorKind::NotFound => {
                write!(f, "explain: there is no process {pid}")
            }
            Self::Process { pid, why } => {
                write!(f, "process {pid} cannot be looked at: {}", reason(why))
            }
            Self::File { path, why } => write!(f, "{}: {}", path.display(), reason(why)),
            Self::Container(why) => why.fmt(f),
            Self::DeviceName(held) => write!(
                f,
                "cdi: {held}: the name of a device consists of letters, digits and _ - . :, and begins and ends with a letter or digit"
            ),
            Self::CdiGpu(why) => write!(f, "cdi: {why}"),
            Self::Limit { container, why } => write!(f, "limit: container {container}: {why}"),
            Self::Explain { name, why } => write!(f, "explain: {name:?}: {why}"),
            Self::NotShown(word) => write!(
                f,
                "status: no container under a limit, process or GPU in use goes by {word:?}; \
                 `gpucap status` shows those that do"
            ),
            Self::NoRuntime(names) => {
                write!(
                    f,
                    "runtime: no next runtime found (other than gpucap itself) in {}",
                    names.join(" ")
                )
            }
            Self::Stage(stage) => write!(
                f,
                "hook: stage {stage:?} is not known to this version, and no container may start \
                 without limits; take the hook out of the engine's configuration"
            ),
            Self::Refused(line) => f.write_str(line),
            Self::Listen { address, why } => write!(f, "metrics: {address}: {}", reason(why)),
            Self::Nri(what) => write!(f, "nri: {what}"),
            Self::Check(what) => write!(f, "check: {what}"),
            Self::Calibrate(what) => write!(f, "calibrate: {what}"),
            Self::Configure(what) => write!(f, "configure: {what}"),
            Self::Demo(what) => write!(f, "demo: {what}"),
            Self::Output(why) => write!(f, "standard output: {}", reason(why)),
        }
    }
}

/// What the system says, in the form of our own lines.
pub(crate) fn reason(why: &io::Error) -> String {
    let text = why.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut signs = text.chars();
    let first = signs.next().map(|sign| sign.to_lowercase().to_string()).unwrap_or_default();
    first + signs.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_speaks_as_we_do() {
        let why = io::Error::from_raw_os_error(libc::EACCES);
        let error = Error::Start { program: "/etc/passwd".into(), why };
        assert_eq!(error.to_string(), "/etc/passwd: permission denied");
        assert_eq!(error.exit(), Exit::NOT_EXECUTABLE);
    }
}
