//! Processes of a container whose only work waits for the host: what another process of the same container gains.

use crate::lending::scene::{Actor, MS, US, actor, launch, shares};
use crate::lending::side::fixed;
use crate::report::Report;
use crate::simulator::program::{Act, Program};
use crate::simulator::workloads::{Threads, workload};

pub(super) fn run(seconds: u64, report: &mut Report) {
    for work in ["W19 10 us, some 10 ms", "W2 40 ms kernels", "W4 4 streams x 50 us"] {
        for ns in [10 * US, 10 * MS] {
            for known in [0, 20] {
                for count in [0, 4, 16] {
                    let held = || -> Program {
                        let mut acts = Vec::new();
                        for _ in 0..known {
                            acts.extend([launch(3, ns), Act::Sync(Some(0))]);
                        }
                        acts.extend([Act::Hold(0), launch(3, ns), Act::Until(3_600_000 * MS)]);
                        let mut acts = acts.into_iter();
                        Box::new(move |now, _| {
                            acts.next().unwrap_or(Act::Until(now + 3_600_000 * MS))
                        })
                    };
                    let mut processes: Vec<Threads> = (workload(work).processes)();
                    processes.extend((0..count).map(|_| (vec![held()], 1)));
                    let first = Actor { processes, limit: fixed(30) };
                    let got =
                        shares(vec![first, actor("W4 4 streams x 50 us", fixed(70))], &[], seconds);
                    report.check(
                        &format!(
                            "held: {work}, fixed 30, beside {count} of its processes with {ns} ns held, {known} launches before: \
                             {:.1} % (at most 32), another one at a fixed 70 {:.1} (at least 60)",
                            got[0], got[1]
                        ),
                        got[0] <= 32.0 && got[1] > 60.0,
                    );
                }
            }
        }
    }
}
