//! A process of a container that lets time in which it did nothing look like its own, beside another one with long kernels:
//! what the processes of a container cover together they are charged once.

use crate::lending::scene::{Actor, MS, US, launch, shares};
use crate::lending::side::fixed;
use crate::report::Report;
use crate::simulator::program::{Act, repeat, rounds};

pub(super) fn run(seconds: u64, report: &mut Report) {
    for percent in [10, 30] {
        for ns in [20 * MS, 100 * MS, 400 * MS, 1_000 * MS] {
            for part in [50, 90, 95] {
                for count in [1, 4] {
                    let worker = || (vec![repeat(vec![launch(1, ns), Act::Sync(Some(0))])], 1);
                    // Behind its second launch something that is no launch: its event shows the time since the first one.
                    let idler = || {
                        let program = rounds(move |now, _| {
                            vec![
                                launch(2, 10 * US),
                                Act::Until(now + ns / 100 * part),
                                launch(2, 10 * US),
                                Act::Copy { stream: 0, ns: US },
                            ]
                        });
                        (vec![program], 1)
                    };
                    let mut processes = vec![worker()];
                    processes.extend((0..count).map(|_| idler()));
                    let got = shares(
                        vec![Actor { processes, limit: fixed(percent) }],
                        &[],
                        seconds.max(20),
                    )[0];
                    let most = f64::from(percent) + 2.0 + ns as f64 / 20e7;
                    let text = format!(
                        "covered: fixed {percent}, kernels of {} ms beside {count} processes with 10 us at both ends of \
                         {part} % of that: {got:.1} % (at most {most:.1})",
                        ns / MS
                    );
                    report.check(&text, got <= most);
                }
            }
        }
    }
}
