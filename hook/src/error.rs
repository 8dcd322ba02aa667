//! Why a command could not do what it was asked: one line each, what, where and why.

use crate::exit::Exit;
use gpucap_core::config::{ConfigError, Excerpt, ValueError};
use gpucap_plan::Reason;
use std::io;
use std::path::PathBuf;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No limit was given.
    #[error("no limit: give --mem, --cores, --profile, --core-max or --core-priority low")]
    NoLimit,
    /// The value of an option cannot be used.
    #[error("{option} {held}: {why}; allowed: {allowed}")]
    Option { option: &'static str, held: Excerpt, why: ValueError, allowed: &'static str },
    /// `--gpu` beside a value that names its GPUs itself.
    #[error("{option} {held}: names its GPUs itself, so --gpu cannot be given")]
    GpuTwice { option: &'static str, held: Excerpt },
    /// `--gpu` beside a value that is for every GPU.
    #[error("{option} is for every GPU: give it without --gpu")]
    EveryGpu { option: &'static str },
    /// A maximum beside a share of which nothing more is lent.
    #[error("--core-policy fixed lends nothing beyond the share, so it has no --core-max")]
    FixedMaximum,
    /// A limit names GPUs, and this machine, which has `cards`, has none of them.
    #[error(
        "run: {limit} names no GPU of this machine, so nothing would be limited; it has {cards}, counted from 0"
    )]
    NoSuchGpu { limit: String, cards: usize },
    /// A variable that is set already cannot be used.
    #[error("run: already set: {0}")]
    Inherited(ConfigError),
    /// The value that is set already and the requested one cannot be compared.
    #[error(
        "run: {variable}={set} is set already and can only be lowered; whether {asked} is less cannot be determined, \
         so ask in the same form"
    )]
    Incomparable { variable: &'static str, set: String, asked: String },
    /// `libgpucap.so` was not found in these places.
    #[error(
        "run: libgpucap.so not found in {}; install a release, or build it: cargo build --release", paths(.0)
    )]
    NoLibrary(Vec<PathBuf>),
    /// `LD_PRELOAD` cannot name a path with this sign in it.
    #[error(
        "run: {}: LD_PRELOAD cannot name a path with {sign:?} in it; put gpucap elsewhere", library.display()
    )]
    Unloadable { library: PathBuf, sign: char },
    /// The ledger of a run cannot be made.
    #[error("run: ledger {} cannot be made: {}", path.display(), reason(why))]
    Ledger { path: PathBuf, why: io::Error },
    /// A program cannot be started.
    #[error("{program}: {}", reason(why))]
    Start { program: String, why: io::Error },
    /// There is no such process, or it cannot be looked at.
    #[error("{}", no_process(*pid, why))]
    Process { pid: u32, why: io::Error },
    /// There is no runtime to become.
    #[error(
        "runtime: no next runtime found (other than gpucap itself) in {}", .0.join(" ")
    )]
    NoRuntime(Vec<String>),
    /// CDI allows no device of this name.
    #[error(
        "cdi: {0}: the name of a device consists of at most 200 letters, digits and _ - . :, and begins and ends with a \
         letter or digit"
    )]
    DeviceName(Excerpt),
    /// A CDI device cannot be described as asked.
    #[error("cdi: {0}")]
    Cdi(String),
    /// `/proc` does not show this process: it is not mounted, or that of another pid namespace.
    #[error("run: /proc does not show this process, {pid}: {}", reason(why))]
    Unseen { pid: u32, why: io::Error },
    /// A file that was named cannot be read.
    #[error("{}: {}", path.display(), reason(why))]
    File { path: PathBuf, why: io::Error },
    /// A container's documents cannot be read.
    #[error(transparent)]
    Container(Reason),
    /// This version knows no such stage of a container's start.
    #[error(
        "hook: stage {0:?} is not known to this version, and no container may start without limits; take the hook out \
         of the engine's configuration"
    )]
    Stage(String),
    /// The limits of a container or run cannot be changed.
    #[error("limit: {name:?}: {why}")]
    Limit { name: String, why: String },
    /// What is to be explained cannot be found, or may be several.
    #[error("explain: {name:?}: {why}")]
    Explain { name: String, why: String },
    /// Nothing that `status` shows goes by this word.
    #[error(
        "{command}: no container under a limit, process or GPU in use goes by {name:?}; `gpucap status` shows those that \
         do"
    )]
    NotShown { command: &'static str, name: String },
    /// There is no terminal to show a live view on.
    #[error("top: standard input and output are not a terminal; --once prints one sample")]
    NoTerminal,
    /// The terminal cannot be used.
    #[error("top: terminal: {}", reason(.0))]
    Terminal(io::Error),
    /// A container that asked for a slice cannot be held to it: the whole line.
    #[error("{0}")]
    Refused(String),
    /// The address for metrics cannot be used.
    #[error("metrics: {address}: {}", reason(why))]
    Listen { address: String, why: io::Error },
    /// The plugin cannot serve a runtime.
    #[error("nri: {0}")]
    Nri(String),
    /// An image cannot be looked at.
    #[error("check: {0}")]
    Check(String),
    /// The cards cannot be measured, or the result not be kept.
    #[error("calibrate: {0}")]
    Calibrate(String),
    /// An engine's configuration cannot be changed as asked.
    #[error("configure: {0}")]
    Configure(String),
    /// The demo found something that is not as it should be, or could not go on.
    #[error("demo: {0}")]
    Demo(String),
    /// Standard output was closed, or its disk is full.
    #[error("standard output: {}", reason(.0))]
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
            | Self::EveryGpu { .. }
            | Self::FixedMaximum
            | Self::NoSuchGpu { .. }
            | Self::Inherited(_)
            | Self::Incomparable { .. }
            | Self::NoLibrary(_)
            | Self::Unloadable { .. }
            | Self::Ledger { .. }
            | Self::Unseen { .. } => Exit::NOT_RUN,
            Self::Start { why, .. } if why.kind() == io::ErrorKind::NotFound => Exit::NOT_FOUND,
            Self::Start { .. } => Exit::NOT_EXECUTABLE,
            Self::Stage(_) => Exit::UNKNOWN_STAGE,
            Self::Refused(_) => Exit::REFUSED,
            Self::Process { .. }
            | Self::File { .. }
            | Self::Container(_)
            | Self::Limit { .. }
            | Self::Explain { .. }
            | Self::NotShown { .. }
            | Self::NoTerminal
            | Self::Terminal(_)
            | Self::NoRuntime(_)
            | Self::Listen { .. }
            | Self::Nri(_)
            | Self::Check(_)
            | Self::Calibrate(_)
            | Self::Configure(_)
            | Self::DeviceName(_)
            | Self::Cdi(_)
            | Self::Demo(_)
            | Self::Output(_) => Exit::FAILED,
        }
    }
}

fn paths(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(" ")
}

fn no_process(pid: u32, why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::NotFound => format!("explain: there is no process {pid}"),
        _ => format!("process {pid} cannot be looked at: {}", reason(why)),
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
    use gpucap_core::errno::Errno;

    #[test]
    fn the_system_speaks_as_we_do() {
        let why = io::Error::from_raw_os_error(libc::EACCES);
        let error = Error::Start { program: "/etc/passwd".into(), why };
        assert_eq!(error.to_string(), "/etc/passwd: permission denied");
        assert_eq!(error.exit(), Exit::NOT_EXECUTABLE);
    }

    #[test]
    fn the_library_has_the_words_of_the_system() {
        for number in 0..4096 {
            let words = Errno(number).to_string();
            let system = io::Error::from_raw_os_error(number);
            let expected = format!("{} (errno {number})", reason(&system));
            assert!(words == expected || words == format!("errno {number}"), "{words}: {system}");
        }
    }
}
