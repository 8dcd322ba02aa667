//! How a test ends: passed, skipped for want of a means, or failed.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::fmt::Display;
use std::process::ExitCode;

/// The result of a test, or of a step of one.
pub type Result<T = ()> = std::result::Result<T, Stop>;

/// Why a test ended before its end.
#[derive(Debug, Clone)]
pub enum Stop {
    /// The machine lacks something that the test needs; it counts as ignored, and the reason is printed.
    Skip(String),
    /// The tested thing is wrong, or the test is.
    Fail(String),
}

impl Stop {
    /// The machine lacks what the test needs.
    pub fn skip(reason: impl Display) -> Self {
        Self::Skip(reason.to_string())
    }

    /// The test has failed.
    pub fn fail(reason: impl Display) -> Self {
        Self::Fail(reason.to_string())
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Fail(error.to_string())
    }
}

/// A named test. The name says the rule.
pub fn trial(name: impl Into<String>, body: impl FnOnce() -> Result + Send + 'static) -> Trial {
    Trial::ignorable_test(name, || match body() {
        Ok(()) => Ok(Completion::Completed),
        Err(Stop::Skip(reason)) => Ok(Completion::ignored_with(reason)),
        Err(Stop::Fail(reason)) => Err(Failed::from(reason)),
    })
}

/// The `main` of a test binary: runs the trials as cargo's own harness would, then removes what they compiled.
#[must_use]
pub fn main(trials: Vec<Trial>) -> ExitCode {
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    crate::scratch::remove_shared();
    conclusion.exit_code()
}
