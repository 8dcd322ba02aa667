//! Functions that took 10 us until then, and take seconds now: by their data, for no name tells.

use crate::judge::job::{End, Job, Length, length};
use crate::judge::scene::{Container, Scene, scene};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// One in twenty does, or each one from a time on; in one process and in eight.
pub(super) fn cells(all: &mut Vec<Scene>) {
    silent(all);
    for long_ns in [150 * MS, 1_500 * MS, 5_000 * MS] {
        let rarely = Length::Rarely { usual_ns: 10 * US, long_ns, one_in: 20 };
        let turns = Length::Turns { at_ns: 2_000 * MS, before_ns: 10 * US, after_ns: long_ns };
        let long = length(long_ns);
        for count in [1, 8] {
            for (kind, job) in [
                (format!("10 us, then {long}"), Job { length: turns, ..Job::of(0) }),
                (format!("1 in 20 {long}"), Job { length: rarely, ..Job::of(0) }),
                (
                    format!("1 in 20 {long}, waited for"),
                    Job { length: rarely, ..Job::waited_for(0) },
                ),
            ] {
                let name = format!("T16 {count} with {kind}, 10");
                let containers = vec![Container::of(10, vec![job; count])];
                all.push(Scene { seconds: 300, is_honest: false, ..scene(name, containers) });
            }
        }
    }
}

/// One in twenty does, and the process makes no call until it has ended; or ends then.
fn silent(all: &mut Vec<Scene>) {
    for long_ns in [150 * MS, 1_500 * MS, 5_000 * MS] {
        let length_of = Length::Rarely { usual_ns: 10 * US, long_ns, one_in: 20 };
        let job = Job { length: length_of, is_silent: true, ..Job::of(0) };
        let ends = Job { batch: 20, end: End::Process(MS), ..job.clone() };
        let long = length(long_ns);
        for count in [1, 8] {
            for (kind, job) in [
                (format!("1 in 20 {long}, without a call"), job.clone()),
                (format!("20 of which one {long}, then an end"), ends.clone()),
            ] {
                let name = format!("T17 {count} with {kind}, 10");
                let containers = vec![Container::of(10, vec![job; count])];
                all.push(Scene { seconds: 300, is_honest: false, ..scene(name, containers) });
            }
        }
    }
}
