//! How a test ends: passed, skipped for lack of a means, or failed.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::env;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
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
    /// An amount of time is outside its bounds: the tested thing is wrong, or the machine stood still.
    Late(String),
}

/// How often a test is run before an amount of time outside its bounds counts: a machine that stands still spoils one
/// run or two, a defect each of them. Any other failure counts at once.
const RUNS: usize = 4;

impl Stop {
    /// The machine lacks what the test needs.
    pub fn skip(reason: impl Display) -> Self {
        Self::Skip(reason.to_string())
    }

    /// The test has failed.
    pub fn fail(reason: impl Display) -> Self {
        Self::Fail(reason.to_string())
    }

    /// An amount of time is outside its bounds.
    pub fn late(reason: impl Display) -> Self {
        Self::Late(reason.to_string())
    }

    /// The same stop with more said about a failure.
    #[must_use]
    pub fn explained(self, explain: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Fail(reason) => Self::Fail(explain(reason)),
            Self::Late(reason) => Self::Late(explain(reason)),
            skip @ Self::Skip(_) => skip,
        }
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Fail(error.to_string())
    }
}

/// A named test. The name says the rule.
pub fn trial(name: impl Into<String>, body: impl Fn() -> Result + Send + 'static) -> Trial {
    let name = name.into();
    Trial::ignorable_test(name.clone(), move || {
        let result = settled(&name, &body);
        record(&name, &result);
        match result {
            Ok(()) => Ok(Completion::Completed),
            Err(Stop::Skip(reason)) => Ok(Completion::ignored_with(reason)),
            Err(Stop::Fail(reason) | Stop::Late(reason)) => Err(Failed::from(reason)),
        }
    })
}

/// What a test says once its amounts of time are within their bounds, or have been outside in each of its runs.
fn settled(name: &str, body: impl Fn() -> Result) -> Result {
    for run in 1..RUNS {
        match body() {
            Err(Stop::Late(reason)) => eprintln!("{name}: run {run} of {RUNS}: {reason}"),
            result => return result,
        }
    }
    body()
}

/// Adds a line of JSON to `GPUCAP_TEST_RECORD`, if it is set: what was known when a run was cut short is kept.
fn record(name: &str, result: &Result) {
    let Some(path) = env::var_os("GPUCAP_TEST_RECORD") else { return };
    let (status, reason) = match result {
        Ok(()) => ("passed", ""),
        Err(Stop::Skip(reason)) => ("skipped", reason.as_str()),
        Err(Stop::Fail(reason) | Stop::Late(reason)) => ("failed", reason.as_str()),
    };
    let line = serde_json::json!({ "test": name, "status": status, "reason": reason });
    // One call, so that threads do not mix their lines. A reader sees that one is missing.
    drop(
        File::options()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())),
    );
}

/// The `main` of a test binary: runs the trials as cargo's own harness would, then removes what they compiled.
#[must_use]
pub fn main(trials: Vec<Trial>) -> ExitCode {
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    crate::scratch::remove_shared();
    conclusion.exit_code()
}
