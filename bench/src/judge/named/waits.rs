//! Programs that wait for what they launch.

use crate::judge::job::{Job, length};
use crate::judge::scene::{Container, Scene, scene};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Each kernel is waited for, by several processes of a container or by two containers.
pub(super) fn cells(all: &mut Vec<Scene>) {
    for ns in [10 * US, 100 * US, 300 * US, MS, 5 * MS] {
        for count in [1, 2, 3, 4, 6] {
            let name = format!("T3 {count} of a budget, {}, waited for, 30", length(ns));
            let jobs = vec![Job::waited_for(ns); count];
            all.push(scene(name, vec![Container::of(30, jobs)]));
        }
        for (one, other) in [(30, 30), (50, 50), (30, 70), (20, 20)] {
            let name = format!("T3 two containers, {}, waited for, {one}/{other}", length(ns));
            let container = |percent| Container::one(percent, Job::waited_for(ns));
            all.push(scene(name, vec![container(one), container(other)]));
        }
    }
    // One that waits for nothing takes what the waits of the others look like.
    for (ns, count, percent) in [(20 * US, 3, 20), (60 * US, 2, 20)] {
        for (queued_ns, queued_percent) in [(300 * US, 40), (10 * US, 40)] {
            let name = format!(
                "T3 {count} containers, {}, waited for, {percent} each, beside {queued_percent} of {}",
                length(ns),
                length(queued_ns)
            );
            let mut containers = vec![Container::one(percent, Job::waited_for(ns)); count];
            containers.push(Container::one(queued_percent, Job::of(queued_ns)));
            all.push(scene(name, containers));
        }
    }
}

/// The same beside a container that uses all that is left, or nearly.
pub(super) fn beside(all: &mut Vec<Scene>) {
    let others = [
        (Job::of(MS), "1 ms kernels"),
        (Job::of(20 * MS), "20 ms kernels"),
        (Job::waited_for(300 * US), "300 us, waited for"),
    ];
    for (batch, ns, count) in [
        (1, 10 * US, 4),
        (8, 10 * US, 1),
        (8, 10 * US, 4),
        (1, 100 * US, 1),
        (1, 100 * US, 2),
        (1, 100 * US, 4),
        (1, MS, 1),
        (1, MS, 4),
    ] {
        for (other, how) in &others {
            let many = if batch > 1 { format!("{batch} x ") } else { String::new() };
            let name = format!(
                "T3 {count} of a budget, {many}{}, waited for, 30, beside 70 of {how}",
                length(ns)
            );
            let mine = Container::of(30, vec![Job { batch, ..Job::waited_for(ns) }; count]);
            all.push(scene(name, vec![mine, Container::one(70, other.clone())]));
        }
    }
}
