//! Whether limits are enforced in this process: off, enforcing or broken. The only global besides the session.
//!
//! Decided once, when the driver is first seen, from the environment and the limits file. Nothing set: off, for ever.
//! Something set that cannot be used: broken, and broken stays broken; a limit that silently is none is worse than an
//! error. What turns out later (limits that cannot be resolved, a driver that cannot be redirected) breaks as well. A ledger
//! that cannot be had is no state: each call that needs it is refused, until one can have it.

use crate::{log, sys};
use core::fmt;
use gpucap_core::config::LogLevel;
use gpucap_core::limits::file::{MAX_BYTES, PATH};
use gpucap_core::limits::{Broken, FileProblem, Limits};
use once_cell::race::{OnceBox, OnceRef};
use std::ffi::CString;

/// What holds for this process.
#[expect(clippy::large_enum_variant, reason = "there is one, and it is boxed already")]
pub(crate) enum State {
    /// Nothing is set, and nothing is intercepted.
    Off,
    /// Limits are set and can be used.
    Enforcing(Policy),
    /// Limits are set and cannot be used.
    Broken(Problem),
}

/// What is to be enforced.
pub(crate) struct Policy {
    /// The limits; `None` only in a process that is broken.
    pub(crate) limits: Option<Limits>,
}

static STATE: OnceBox<State> = OnceBox::new();
static BROKEN_LATER: OnceBox<Problem> = OnceBox::new();
/// What is to be enforced, if anything is, so that hooks need not take the state apart.
static ENFORCED: OnceRef<'static, Policy> = OnceRef::new();

/// Decides, the first time. Reads the environment and the limits file.
pub(crate) fn load() -> &'static State {
    let state = STATE.get_or_init(|| Box::new(decide()));
    if let State::Enforcing(policy) = state {
        let _ = ENFORCED.set(policy); // or another thread has done it
    }
    state
}

/// What holds at this moment.
pub(crate) enum Now {
    /// Nothing is to be enforced.
    Off,
    /// These limits are to be enforced.
    Enforcing(&'static Policy),
    /// Nothing is allowed.
    Broken(&'static Problem),
}

/// What holds at this moment. Nothing decided yet is off: a hook cannot be reached before a decision.
pub(crate) fn now() -> Now {
    if let Some(problem) = BROKEN_LATER.get() {
        return Now::Broken(problem);
    }
    match STATE.get() {
        Some(State::Enforcing(policy)) => Now::Enforcing(policy),
        Some(State::Broken(problem)) => Now::Broken(problem),
        Some(State::Off) | None => Now::Off,
    }
}

/// What is to be enforced, as nearly every hook finds it; `None` where [`now`] has more to say.
#[inline]
pub(crate) fn enforced() -> Option<&'static Policy> {
    if BROKEN_LATER.get().is_some() { None } else { ENFORCED.get() }
}

/// The process cannot go on enforcing its limits. The first reason stands.
pub(crate) fn break_with(text: String) -> &'static Problem {
    BROKEN_LATER.get_or_init(|| Box::new(Problem::new(text)))
}

/// Something that the limits need is not available now: a descriptor, memory, a slot. The request is refused, and the
/// next call tries again. The first reason is the one that is reported.
pub(crate) fn lacking(text: String) -> &'static Problem {
    static LACKING: OnceBox<Problem> = OnceBox::new();
    LACKING.get_or_init(|| Box::new(Problem::new(text)))
}

/// The driver's symbol table cannot be written. Look-ups are then answered by name, which a program can get around
/// without meaning to. Good enough for limits that a person has set by hand; with a limits file the process is broken.
pub(crate) fn unwritable() {
    let State::Enforcing(policy) = load() else { return };
    if policy.limits.as_ref().is_some_and(Limits::has_file) {
        break_with(
            "driver: its symbol table cannot be written, so no limit can be enforced".into(),
        );
    } else {
        let text = "driver: its symbol table cannot be written; look-ups are answered by name";
        policy.log(LogLevel::Warn, format_args!("{text}"));
    }
}

/// Why nothing is allowed, in one line.
pub(crate) struct Problem {
    text: String,
    logged: log::Once,
}

impl Problem {
    const fn new(text: String) -> Self {
        Self { text, logged: log::Once::new() }
    }

    /// Says so once per process.
    #[cold]
    #[inline(never)]
    pub(crate) fn report(&self) {
        if self.logged.first() {
            log::line(
                LogLevel::Error,
                LogLevel::Error,
                format_args!("{self}; no GPU work is allowed"),
            );
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Policy {
    /// The policy of a broken process, for handlers that only pass look-ups on.
    pub(crate) fn none() -> &'static Self {
        static NONE: OnceBox<Policy> = OnceBox::new();
        NONE.get_or_init(|| Box::new(Self { limits: None }))
    }

    /// Writes a line if the configured level asks for it.
    pub(crate) fn log(&self, level: LogLevel, text: fmt::Arguments<'_>) {
        let configured = self.limits.as_ref().map_or(LogLevel::Error, |limits| limits.config().log);
        log::line(configured, level, text);
    }
}

fn decide() -> State {
    let file = limits_file();
    let file = file.as_ref().map(|read| read.as_deref().map_err(Clone::clone));
    let limits = match Limits::load(&sys::env, file) {
        Ok(None) => return State::Off,
        Ok(Some(limits)) => limits,
        Err(problem) => return broken(&problem),
    };
    let policy = Policy { limits: Some(limits) };
    for ignored in policy.limits.iter().flat_map(Limits::ignored) {
        policy.log(LogLevel::Warn, format_args!("limits: {ignored}; it is ignored"));
    }
    State::Enforcing(policy)
}

fn broken(problem: &Broken) -> State {
    State::Broken(Problem::new(format!("limits: {problem}")))
}

/// The content of the limits file; `None` if there is none.
fn limits_file() -> Option<Result<Vec<u8>, FileProblem>> {
    let path = CString::new(PATH).ok()?;
    match sys::read_file(&path, MAX_BYTES) {
        Err(libc::ENOENT | libc::ENOTDIR) => None,
        Err(libc::EFBIG) => Some(Err(FileProblem::TooLong)),
        Err(libc::ELOOP | libc::EISDIR | libc::EINVAL) => Some(Err(FileProblem::NotAFile)),
        Err(error) => Some(Err(FileProblem::Unreadable(error))),
        Ok(_) if !sys::on_read_only_mount(&path) => Some(Err(FileProblem::Writable)),
        Ok(content) => Some(Ok(content)),
    }
}
