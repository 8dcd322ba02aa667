//! Containers that lie, collude, or have many processes, beside honest ones: what each gets, and what is allowed.
//!
//! A check that does not hold is a hole. What each container may have: at most its most and 2 points, at least its
//! guarantee less 2 points, in the mean of the time after the first second.

mod collusion;
mod covered;
mod crowds;
mod flapping;
mod held;
mod killed;
mod long;
mod owners;
mod switching;

use crate::report::Report;

type Attack = fn(u64, &mut Report);

/// Runs some that were holes once.
pub(super) fn cured(seconds: u64, report: &mut Report) {
    collusion::cured(seconds, report);
    crowds::cured(seconds, report);
    killed::cured(seconds, report);
    long::cured(seconds, report);
}

/// Runs those that are wanted.
pub(super) fn run(seconds: u64, report: &mut Report) {
    let all: [(&str, Attack); 9] = [
        ("held", held::run),
        ("collusion", collusion::run),
        ("covered", covered::run),
        ("crowds", crowds::run),
        ("flapping", flapping::run),
        ("killed", killed::run),
        ("long", long::run),
        ("owners", owners::run),
        ("switching", switching::run),
    ];
    for (name, attack) in all {
        if report.wants(name) {
            attack(seconds, report);
        }
    }
}
