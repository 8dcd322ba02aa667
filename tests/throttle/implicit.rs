//! Streams that wait for one another without an event: what one of them waits for is none of the launches in another.
//!
//! A copy of 400 ms is in the one, short kernels are in the other behind it.

use crate::{MS, about, lasts, under, within};
use gpucap_tests::{Result, trial};
use libtest_mimic::Trial;

/// What is tried, and where the copy, the kernels, and a kernel in between are.
const PLACES: [(&str, &[&str]); 8] = [
    ("a stream, for kernels in the default stream", &["one", "default"]),
    ("the default stream, for kernels in a stream", &["default", "one"]),
    ("a stream, for kernels in another, through the default stream", &["one", "two", "default"]),
    ("the stream of a thread, for kernels in the default stream", &["own", "default"]),
    ("the default stream, for kernels in that of a thread", &["default", "own"]),
    ("the default stream, for kernels in that of another thread", &["default", "other"]),
    ("a stream, for kernels in that of another thread", &["one", "other", "default"]),
    ("the default stream, for kernels in it", &["default", "default"]),
];
/// As the program has them.
const KERNEL_NS: u64 = MS / 10;
const ROUNDS: u64 = 4;
const KERNELS: u64 = 10;
const KNOWN: u64 = 20;

pub(crate) fn trials() -> Vec<Trial> {
    let each = |(what, places): (&str, &'static [&'static str])| {
        trial(format!("a copy is not charged that is in {what}"), move || is_free(places))
    };
    PLACES.map(each).into()
}

fn is_free(places: &[&str]) -> Result {
    let run = under("50", "implicit")?.env("STUB_GPU_COPY_BYTES_PER_US", "1");
    let run = places.iter().fold(run, |run, place| run.arg(place));
    run.output()?.success()?;
    let between = if places.len() > 2 { KNOWN + ROUNDS } else { 0 };
    let launches = KNOWN + ROUNDS * KERNELS + between;
    within("launches", run.launches()?, launches..=launches)?;
    lasts("charged", run.busy_ns()?, about(launches * KERNEL_NS))
}
