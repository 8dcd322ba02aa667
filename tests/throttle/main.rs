//! The limit of time, on the stub: whose functions it needs, what each launch pays, and what is left alone.
//!
//! [`redirect`] is about who is met at all.

mod redirect;

use gpucap_tests::main as harness;
use std::process::ExitCode;

fn main() -> ExitCode {
    let suites = [redirect::trials];
    harness(suites.into_iter().flat_map(|trials| trials()).collect())
}
