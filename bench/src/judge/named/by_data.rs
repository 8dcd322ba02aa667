//! Launches of one function that differ by their data: most are short, and no argument shows which are not.

use crate::judge::job::{Job, Length, length as text};
use crate::judge::scene::{Container, Scene, scene};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// How long a launch takes depends on its data.
pub(super) fn alone(all: &mut Vec<Scene>) {
    for (long_ns, waits) in [(1_280 * US, false), (15 * MS, false), (15 * MS, true)] {
        for percent in [5, 10, 30, 50] {
            let length_of = Length::Rarely { usual_ns: 10 * US, long_ns, one_in: 100 };
            let job = Job { length: length_of, waits, ..Job::of(0) };
            let how = if waits { ", waited for" } else { "" };
            let name = format!("T10 1 in 100 takes {}{how}, {percent}", text(long_ns));
            let mine = Container::one(percent, job);
            let alone = scene(name.clone(), vec![mine.clone()]);
            all.push(Scene { seconds: 20, ..alone });
            let other = Container::one(40, Job::of(MS));
            let beside = scene(format!("{name}, beside 40"), vec![mine, other]);
            all.push(Scene { seconds: 20, ..beside });
        }
    }
}

/// Some launches are longer than the others, and a few are waited for.
pub(super) fn waited_for(all: &mut Vec<Scene>) {
    const MANY: &[(u64, u16)] = &[(1, 10), (1, 30), (5, 30), (20, 30), (50, 30)];
    // The last ones: so rarely or shortly that no doubt arises.
    for (one_in, long_ns, ways) in [
        (100, 1_280 * US, MANY),
        (20, 130 * US, MANY),
        (200, 5_000 * US, &[(1, 30), (20, 60)]),
        (100, 9 * MS, &[(1, 30), (5, 30), (20, 30)]),
        (430, 1_280 * US, &[(1, 60), (20, 60)]),
        (40, 130 * US, &[(1, 30), (5, 30)]),
        (33, 100 * US, &[(1, 60), (20, 60)]),
    ] {
        for &(batch, percent) in ways {
            let length = Length::Rarely { usual_ns: 10 * US, long_ns, one_in };
            let job = Job { length, batch, ..Job::waited_for(0) };
            let long = text(long_ns);
            let name = format!("T10 1 in {one_in} takes {long}, {batch} waited for, {percent}");
            let mine = Container::one(percent, job);
            all.push(Scene { seconds: 20, ..scene(name.clone(), vec![mine.clone()]) });
            let other = Container::one(40, Job::of(MS));
            let beside = scene(format!("{name}, beside 40"), vec![mine, other]);
            all.push(Scene { seconds: 20, ..beside });
        }
    }
}

/// The same beside a sibling that does little: what is not certain of a wait is not a way past the limit.
pub(super) fn beside_sibling(all: &mut Vec<Scene>) {
    let length = Length::Rarely { usual_ns: 10 * US, long_ns: 4_500 * US, one_in: 35 };
    let mine = Job { length, ..Job::waited_for(0) };
    let copies = Job { copy_ns: 5 * MS, ..Job::of(10 * US) };
    let pauses = Job { pause_ns: MS, ..Job::waited_for(10 * US) };
    for (sibling, how) in [(copies, "10 us and a copy of 5 ms"), (pauses, "10 us each ms")] {
        let name = format!("T10 1 in 35 takes 4500 us, 1 waited for, and one with {how}, 30");
        let containers = vec![Container::of(30, vec![mine.clone(), sibling])];
        all.push(Scene { seconds: 20, ..scene(name, containers) });
    }
}

/// The same by several processes of a container: what one may be given is not a way past the limit for another.
pub(super) fn of_siblings(all: &mut Vec<Scene>) {
    for (one_in, long_ns, batch) in
        [(35, 4_500 * US, 8), (35, 4_500 * US, 1), (100, 9 * MS, 8), (300, 23 * MS, 1)]
    {
        for count in [2, 4] {
            let length = Length::Rarely { usual_ns: 10 * US, long_ns, one_in };
            let job = Job { length, batch, ..Job::waited_for(0) };
            let long = text(long_ns);
            let name = format!("T10 {count} of 1 in {one_in} takes {long}, {batch} waited for, 30");
            let mine = Container::of(30, vec![job; count]);
            all.push(Scene { seconds: 20, ..scene(name.clone(), vec![mine.clone()]) });
            let other = Container::one(40, Job::of(MS));
            let beside = scene(format!("{name}, beside 40"), vec![mine, other]);
            all.push(Scene { seconds: 20, ..beside });
        }
    }
}

/// The same beside a process without gpucap that does nothing, and of which no report says so.
pub(super) fn beside_unreported(all: &mut Vec<Scene>) {
    let lengths = [(100, 1_280 * US), (100, 15 * MS)];
    for (one_in, long_ns) in lengths {
        for (how, batch, waits) in [("", 1, false), (", 1 waited for", 1, true)] {
            let length = Length::Rarely { usual_ns: 10 * US, long_ns, one_in };
            let mine = Container::one(30, Job { length, batch, waits, ..Job::of(0) });
            let idle = Job { from_ns: 100_000 * MS, ..Job::of(MS) };
            let other = Container { percent: None, ..Container::one(100, idle) };
            let long = text(long_ns);
            let name = format!("T10 1 in {one_in} takes {long}{how}, 30, beside an idle one");
            all.push(Scene { seconds: 20, ..scene(name, vec![mine, other]) });
        }
    }
}

/// The same beside a process without gpucap that keeps the device busy, and of which the node publishes samples.
pub(super) fn beside_sampled(all: &mut Vec<Scene>) {
    for (one_in, long_ns, batch) in
        [(100, 1_280 * US, 20), (100, 1_280 * US, 50), (35, 4_500 * US, 8)]
    {
        let length = Length::Rarely { usual_ns: 10 * US, long_ns, one_in };
        let mine = Container::one(30, Job { length, batch, ..Job::waited_for(0) });
        let busy = Job { batch: 4, ..Job::waited_for(5 * MS) };
        let other = Container { percent: None, ..Container::one(100, busy) };
        let name = format!(
            "T10 1 in {one_in} takes {}, {batch} waited for, 30, beside a sampled one",
            text(long_ns)
        );
        let scene = scene(name, vec![mine, other]);
        all.push(Scene { seconds: 20, is_sampled: true, ..scene });
    }
}

/// Very short kernels that vary, in batches that two processes wait for: their estimates may be far too low, and what a wait
/// took longer was no turn of others.
pub(super) fn of_around(all: &mut Vec<Scene>) {
    let short = |ns, batch| Container::one(10, Job { batch, ..Job::waited_for(ns) });
    let waits = |ns| Container::one(50, Job::waited_for(ns));
    let full = |percent| Container::one(percent, Job::of(MS));
    for (batch, others, beside) in [
        (50, vec![full(40)], "40"),
        (50, vec![waits(100 * US), full(10)], "50 of 100 us, waited for, and 10"),
        (20, vec![waits(30 * US), short(115 * US, 5)], "50 of 30 us, waited for, and 10"),
    ] {
        let job = Job { length: Length::Around(4 * US), batch, ..Job::waited_for(0) };
        let name = format!("T10 2 of around 4 us, {batch} waited for, 30, beside {beside}");
        let mine = Container::of(30, vec![job; 2]);
        all.push(scene(name, [vec![mine], others].concat()));
    }
}
