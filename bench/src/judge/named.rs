//! Cells that once showed a defect, by name: programs of attackers and users.

mod by_data;
mod never_seen;
mod then_long;
mod waits;

use super::job::{End, Job, Length, Names, length};
use super::scene::{Container, Extra, Member, Scene, scene};
use crate::simulator::{Page, Says};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Every one.
#[must_use]
pub fn all() -> Vec<Scene> {
    let mut all = Vec::new();
    for add in [
        waits::cells,
        waits::beside,
        newcomers,
        mixed_shares,
        held_streams,
        contexts_that_end,
        never_seen::alone,
        never_seen::beside,
        then_long::cells,
        by_data::alone,
        by_data::waited_for,
        by_data::beside_sibling,
        by_data::of_siblings,
        by_data::beside_unreported,
        by_data::beside_sampled,
        by_data::of_around,
        far_longer,
        around,
        collectives,
        false_reports,
        rare_launches,
        long_and_short,
        on_and_off,
        that_fill_the_card,
        beside_short,
    ] {
        add(&mut all);
    }
    all
}

/// Processes that are new to each other.
fn newcomers(all: &mut Vec<Scene>) {
    let (jobs, seconds) = (vec![Job::waited_for(20 * MS); 20], 20);
    let name = "T4 20 processes begin together, 20 ms, 10".to_owned();
    // 400 ms of the card at a tenth of it.
    let extra = Extra::Second(4_500.0);
    all.push(Scene { extra, seconds, ..scene(name, vec![Container::of(10, jobs)]) });
    for batch in [1, 10] {
        for count in [1, 2, 4, 8] {
            let end = End::Process(2 * MS);
            let job = Job { batch, end, ..Job::waited_for(20 * MS) };
            let name = format!("T4 {count} short processes at a time, {batch} x 20 ms, 30");
            all.push(Scene {
                seconds: 20,
                ..scene(name, vec![Container::of(30, vec![job; count])])
            });
        }
    }
}

/// Processes of one container, each with a share of its own.
fn mixed_shares(all: &mut Vec<Scene>) {
    for (high, low) in [(90, 5), (50, 10)] {
        for (kind, job) in [
            ("1 ms, waited for", Job::waited_for(MS)),
            ("100 us", Job::of(100 * US)),
            ("5 ms", Job::of(5 * MS)),
        ] {
            for first in [high, low] {
                let member = |percent| {
                    let from_ns = if percent == first { 0 } else { 500 * MS };
                    Member { jobs: vec![Job { from_ns, ..job.clone() }], percent: Some(percent) }
                };
                let members = vec![member(high), member(low)];
                let name = format!("T5 {high} beside {low}, {kind}, {first} first");
                all.push(scene(name, vec![Container { percent: Some(high), members }]));
            }
        }
    }
}

/// A stream that the host releases when all launches are queued.
fn held_streams(all: &mut Vec<Scene>) {
    for (name, batch, ns, names, most_ms) in [
        ("500 known x 100 us", 500, 100 * US, Names::Of(1), 50.0),
        ("500 known x 10 us", 500, 10 * US, Names::Of(1), 5.0),
        ("20 unknown x 1 ms", 20, MS, Names::Fresh, 20.0),
        ("20 unknown x 100 us", 20, 100 * US, Names::Fresh, 20.0),
    ] {
        let known = matches!(names, Names::Of(_));
        let held = Job { batch, names, holds: true, ..Job::waited_for(ns) };
        // Known functions were launched before.
        let held = Job { from_ns: if known { 1_000 * MS } else { 0 }, stream: 0, ..held };
        let learns = Job { until_ns: 1_000 * MS, ..Job::waited_for(ns) };
        let jobs = if known { vec![held, learns] } else { vec![held] };
        let container =
            Container { percent: Some(30), members: vec![Member { jobs, percent: None }] };
        // At the share's rate, and a while to see that nothing moves.
        let extra = Extra::Held(most_ms / 0.3 + 2_500.0);
        let name = format!("T6 a held stream, {name}, 30");
        all.push(Scene { extra, seconds: 20, is_honest: false, ..scene(name, vec![container]) });
    }
}

/// A context, one kernel that is not waited for, the end of the context.
fn contexts_that_end(all: &mut Vec<Scene>) {
    for ns in [5 * MS, 20 * MS, 50 * MS, 300 * MS] {
        for percent in [5, 10, 90] {
            let job = Job { end: End::Context, ..Job::of(ns) };
            let name = format!("T1 a context for each kernel, {}, {percent}", length(ns));
            let containers = vec![Container::one(percent, job)];
            all.push(Scene { seconds: 40, is_honest: false, ..scene(name, containers) });
        }
    }
}

/// A launch is far longer than the others, which are long enough to be measured each time.
fn far_longer(all: &mut Vec<Scene>) {
    let length = Length::Rarely { usual_ns: 300 * US, long_ns: 50 * MS, one_in: 50 };
    let mine = Container::one(30, Job { length, ..Job::of(0) });
    let other = Container::one(40, Job::of(MS));
    let beside = scene(FAR_LONGER.to_owned(), vec![mine, other]);
    all.push(Scene { seconds: 20, ..beside });
}

/// The cell of [`far_longer`].
pub(super) const FAR_LONGER: &str = "T10 1 in 50 takes 50 ms, others 300 us, 30, beside 40";

/// Launches of one function that vary, a few at a time.
fn around(all: &mut Vec<Scene>) {
    for pause_ns in [0, 24 * US] {
        for percent in [5, 10, 30, 35, 50] {
            let length = Length::Around(5 * US);
            let job = Job { length, batch: 5, pause_ns, ..Job::waited_for(0) };
            let host = if pause_ns > 0 { " and 24 us of the host" } else { "" };
            let name = format!("T10 5 of around 5 us, then a wait{host}, {percent}");
            let mine = Container::one(percent, job);
            all.push(scene(name.clone(), vec![mine.clone()]));
            let other = Container::one(40, Job::of(MS));
            all.push(scene(format!("{name}, beside 40"), vec![mine, other]));
        }
    }
}

/// Kernels named as collectives, of one process on one device.
fn collectives(all: &mut Vec<Scene>) {
    for ns in [MS, 300 * MS, 2_000 * MS] {
        for percent in [5, 10] {
            let job = Job { is_collective: true, ..Job::of(ns) };
            let name = format!("T9 named as collectives, {}, {percent}", length(ns));
            let containers = vec![Container::one(percent, job)];
            all.push(Scene { seconds: 60, is_honest: false, ..scene(name, containers) });
        }
    }
}

/// Pages with false reports.
fn false_reports(all: &mut Vec<Scene>) {
    let page = Page::of_one_percent;
    for (kind, pages) in [
        ("64 places at 4 x the clock", vec![page(64, Says::Busy(400))]),
        ("1 place at 4 x the clock", vec![page(1, Says::Busy(400))]),
        ("64 places at the clock", vec![page(64, Says::Busy(100))]),
        ("1 place at the clock", vec![page(1, Says::Busy(100))]),
        ("1 place at half the clock", vec![page(1, Says::Busy(50))]),
        ("64 places, never out", vec![page(64, Says::Unseen(400))]),
        ("64 places, now and then", vec![page(64, Says::Now(5 * MS))]),
        ("4 idle pages", vec![page(64, Says::Nothing); 4]),
        ("up and down by an hour", vec![page(8, Says::Swings)]),
        ("the largest number", vec![page(8, Says::Most)]),
    ] {
        for job in [Job::of(5 * MS), Job::of(20 * MS), Job::waited_for(MS), Job::of(100 * US)] {
            let ns = length(job.length.most());
            for shares in [&[5][..], &[30], &[30, 70]] {
                let containers = shares.iter().map(|share| Container::one(*share, job.clone()));
                let containers = containers.collect();
                let pages = pages.clone();
                let shares = shares.iter().map(u16::to_string).collect::<Vec<_>>().join("/");
                let name = format!("C1 false reports: {kind}; {ns}, {shares}");
                all.push(Scene { pages, ..scene(name, containers) });
            }
        }
    }
}

/// A launch now and then, under a share that is not used up.
fn rare_launches(all: &mut Vec<Scene>) {
    for count in [0, 4, 64] {
        let job = Job { pause_ns: 50 * MS, ..Job::waited_for(5 * MS) };
        let page = Page::of_one_percent(1, Says::Nothing);
        let name = format!("T8 a launch each 50 ms, {count} idle pages, 50");
        let (pages, extra) = (vec![page; count], Extra::Waits(0.05, 1.0));
        let containers = vec![Container::one(50, job)];
        all.push(Scene { pages, extra, seconds: 20, ..scene(name, containers) });
    }
}

/// Processes of a container with launches of different lengths, some beside one that launches a little now and then.
fn long_and_short(all: &mut Vec<Scene>) {
    let rarely = Length::Rarely { usual_ns: 10 * US, long_ns: 100 * MS, one_in: 20 };
    let around = |ns| Job { length: Length::Around(ns), ..Job::waited_for(0) };
    for (count, kind, job) in [
        (1, "around 3 ms", around(3 * MS)),
        (4, "around 3 ms", around(3 * MS)),
        (4, "10 ms", Job::waited_for(10 * MS)),
        (4, "50 ms", Job::waited_for(50 * MS)),
        (4, "1 in 20 100 ms", Job { length: rarely, ..Job::waited_for(0) }),
        (4, "unknown 20 ms", Job { names: Names::Fresh, ..Job::waited_for(20 * MS) }),
    ] {
        for percent in [30, 90] {
            for has_short in [false, true] {
                let mut jobs = vec![job.clone(); count];
                let short = Job { pause_ns: 200 * US, ..Job::waited_for(10 * US) };
                jobs.extend(has_short.then_some(short));
                let and = if has_short { " and one with 10 us each 200 us" } else { "" };
                let name = format!("T11 {count} of {kind}{and}, {percent}");
                all.push(Scene { seconds: 15, ..scene(name, vec![Container::of(percent, jobs)]) });
            }
        }
    }
    // The one that launches a little does not wait for it: what it reports as its time is mostly that in which it did nothing.
    let queued = Job { pause_ns: 200 * US, ..Job::of(10 * US) };
    let copied = Job { pause_ns: 50 * MS, copy_ns: 10 * US, ..Job::of(10 * US) };
    let often = Job { pause_ns: 20 * US, ..Job::of(10 * US) };
    let all_the_time = Job::of(10 * US);
    for (kind, short) in [
        ("queues 10 us each 200 us", queued),
        ("queues 10 us each 20 us", often),
        ("queues 10 us", all_the_time),
        ("copies behind 10 us each 50 ms", copied),
    ] {
        for (count, long, ns) in [
            (1, "20 ms", 20 * MS),
            (1, "400 ms", 400 * MS),
            (4, "50 ms", 50 * MS),
            (2, "100 us", 100 * US),
        ] {
            for percent in [10, 30] {
                let mut jobs = vec![Job::waited_for(ns); count];
                jobs.push(short.clone());
                let name = format!("T11 {count} of {long} and one that {kind}, {percent}");
                all.push(Scene { seconds: 15, ..scene(name, vec![Container::of(percent, jobs)]) });
            }
        }
    }
}

/// A container that works in every other period, beside one that works all of the time.
fn on_and_off(all: &mut Vec<Scene>) {
    for (period, period_ns) in [("1 s", 1_000 * MS), ("100 ms", 100 * MS), ("20 ms", 20 * MS)] {
        for (kind, job) in [
            ("10 us", Job::of(10 * US)),
            ("100 us, waited for", Job { batch: 10, ..Job::waited_for(100 * US) }),
            ("5 ms", Job::of(5 * MS)),
        ] {
            for (percent, beside) in [(30, 70), (50, 50)] {
                let containers = vec![
                    Container::one(percent, Job { period_ns, ..job.clone() }),
                    Container::one(beside, Job::of(10 * US)),
                ];
                let name =
                    format!("T12 {kind}, {percent} in every other {period}, beside {beside}");
                all.push(Scene { seconds: 15, ..scene(name, containers) });
            }
        }
    }
}

/// Two containers that fill the card together, each in a queue without a pause.
fn that_fill_the_card(all: &mut Vec<Scene>) {
    let kinds = [
        (10 * US, 10 * US),
        (10 * US, 40 * MS),
        (40 * MS, 10 * US),
        (300 * US, 300 * US),
        (MS, MS),
    ];
    for (one, two) in kinds {
        let name = format!("T13 {}, 30, beside {}, 70", length(one), length(two));
        let containers =
            [(30, one), (70, two)].map(|(percent, ns)| Container::one(percent, Job::of(ns)));
        all.push(scene(name, containers.to_vec()));
    }
}

/// Kernels about as long as a time slice, beside short ones.
fn beside_short(all: &mut Vec<Scene>) {
    for ns in [300 * US, 700 * US, 990 * US, 1_500 * US, 3 * MS, 10 * MS] {
        for (how, job) in [("", Job::of(ns)), (", waited for", Job::waited_for(ns))] {
            let name = format!("T14 {}{how}, 30, beside 10 us, 70", length(ns));
            let containers = vec![Container::one(30, job), Container::one(70, Job::of(10 * US))];
            all.push(scene(name, containers));
        }
    }
    // The same function, of two lengths: no more is paid for at the shorter one.
    for (usual_ns, other_ns) in [(1_900 * US, 500 * US), (3_900 * US, MS), (6 * MS, 300 * US)] {
        let length_of = Length::Rarely { usual_ns, long_ns: other_ns, one_in: 3 };
        for (how, batch) in
            [("", None), (", waited for", Some(1)), (", each 4 waited for", Some(4))]
        {
            for beside_ns in [10 * US, 300 * US] {
                let job = match batch {
                    None => Job { length: length_of, ..Job::of(0) },
                    Some(batch) => Job { length: length_of, batch, ..Job::waited_for(0) },
                };
                let [usual, other, beside] = [usual_ns, other_ns, beside_ns].map(length);
                for percent in [10, 60] {
                    let name = format!(
                        "T15 1 in 3 takes {other}, others {usual}{how}, 30, beside {beside}, {percent}"
                    );
                    let peer = Container::one(percent, Job::of(beside_ns));
                    all.push(scene(name, vec![Container::one(30, job.clone()), peer]));
                }
            }
        }
    }
    // In several processes, of which each leaves the others little for certain; and with a length that is short.
    for (count, usual_ns, other_ns, one_in, percent, beside_ns, beside_percent) in [
        (3, 700 * US, 3_500 * US, 3, 50, MS, 30),
        (4, 700 * US, 1_400 * US, 3, 50, MS, 30),
        (1, 2_000 * US, 190 * US, 2, 20, MS, 70),
        (1, 2_000 * US, 190 * US, 2, 10, 10 * US, 80),
    ] {
        let length_of = Length::Rarely { usual_ns, long_ns: other_ns, one_in };
        let jobs = vec![Job { length: length_of, ..Job::of(0) }; count];
        let [usual, other, beside] = [usual_ns, other_ns, beside_ns].map(length);
        let name = format!(
            "T15 {count} of 1 in {one_in} takes {other}, others {usual}, {percent}, beside {beside}, {beside_percent}"
        );
        let peer = Container::one(beside_percent, Job::of(beside_ns));
        all.push(scene(name, vec![Container::of(percent, jobs), peer]));
    }
}
