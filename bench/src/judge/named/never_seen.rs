//! Launches of functions that were never seen: each may take any time.

use crate::judge::job::{Job, Names, length};
use crate::judge::scene::{Container, Scene, scene};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Long kernels of functions that were never seen, not waited for.
pub(super) fn alone(all: &mut Vec<Scene>) {
    for ns in [1_500 * MS, 2_500 * MS, 5_000 * MS] {
        for percent in [10, 50] {
            let job = Job { names: Names::Fresh, ..Job::of(ns) };
            let name = format!("T2 functions never seen, {}, {percent}", length(ns));
            let containers = vec![Container::one(percent, job)];
            all.push(Scene { seconds: 300, is_honest: false, ..scene(name, containers) });
        }
    }
    // Processes that begin together, and some that begin while the work of others is in flight.
    for (ns, apart_ns) in [(1_500 * MS, 0), (1_500 * MS, 50 * MS), (5_000 * MS, 0)] {
        let from = |place| Job { from_ns: place * apart_ns, names: Names::Fresh, ..Job::of(ns) };
        let apart = if apart_ns > 0 {
            format!(" and begin {} apart", length(apart_ns))
        } else {
            String::new()
        };
        let name = format!("T2 8 processes with functions never seen, {}{apart}, 10", length(ns));
        let containers = vec![Container::of(10, (0..8).map(from).collect())];
        all.push(Scene { seconds: 300, is_honest: false, ..scene(name, containers) });
    }
    // Siblings that are in flight together end together: what the bucket then owes is all of it.
    let job = Job { names: Names::Fresh, ..Job::waited_for(57 * MS) };
    let name = "T2 16 processes with functions never seen, 57 ms, waited for, 30".into();
    all.push(Scene { seconds: 40, ..scene(name, vec![Container::of(30, vec![job; 16])]) });
}

/// Beside another container, which is charged for its turns.
pub(super) fn beside(all: &mut Vec<Scene>) {
    let unknown = |ns| Job { names: Names::Fresh, ..Job::waited_for(ns) };
    for (count, ns, percent) in [
        (1, 100 * MS, 50),
        (2, 20 * MS, 50),
        (8, 20 * MS, 50),
        (2, 100 * MS, 50),
        (4, 57 * MS, 30),
        (16, 57 * MS, 30),
    ] {
        let (jobs, other) = (vec![unknown(ns); count], 100 - percent);
        let name =
            format!("T2 {count} never seen, {}, {percent}, beside 10 us, {other}", length(ns));
        let containers =
            vec![Container::of(percent, jobs), Container::one(other, Job::of(10 * US))];
        all.push(Scene { seconds: 20, ..scene(name, containers) });
    }
}
