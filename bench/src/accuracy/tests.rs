//! The bounds bite, each part of the method is needed, and what goes wrong stays bounded.

use super::bounds::{self, Bound};
use super::cell::{self, Cell};
use crate::simulator::program::{Act, Kernel, repeat, rounds};
use crate::simulator::workloads::{self, ALL, Threads, Workload};
use crate::simulator::{Ablation, Setup};

fn workload(name: &str) -> &'static Workload {
    ALL.iter().find(|workload| workload.name == name).expect("a workload of the list")
}

/// A second without a limit is enough to know what a workload can use.
fn measure(workload: &Workload, percent: u16, seconds: u64, setup: &Setup) -> Cell {
    let whole = Setup { without: Ablation::Nothing, ..*setup };
    let solo = cell::run(workload, None, 1, &whole, None);
    cell::run(workload, Some(percent), seconds, setup, Some(&solo))
}

/// Within its bound as it is, and beyond it without a part of the method.
fn needs(part: Ablation, name: &str, percent: u16) {
    let bound = bounds::of(name, percent);
    let whole = measure(workload(name), percent, 2, &Setup::default());
    assert!(whole.is_within(&bound), "{}", whole.verdict(&bound));
    let setup = Setup { without: part, ..Setup::default() };
    let less = measure(workload(name), percent, 2, &setup);
    assert!(!less.is_within(&bound), "without {part:?}: {}", less.verdict(&bound));
}

#[test]
fn streams_side_by_side_need_one_view_of_them_all() {
    needs(Ablation::Union, "W4 4 streams x 50 us", 30);
}

#[test]
fn short_kernels_on_an_empty_stream_need_the_gap_rule() {
    needs(Ablation::GapRule, "W8 10 us, sync", 30);
}

#[test]
fn short_kernels_need_what_launches_taught() {
    needs(Ablation::Learning, "W1 10 us kernels", 30);
}

#[test]
fn long_kernels_need_their_own_measurement() {
    needs(Ablation::Measurement, "W2 40 ms kernels", 30);
}

#[test]
fn short_kernels_need_the_distance_of_two_events() {
    needs(Ablation::Spacing, "W14 short all-reduces", 70);
}

#[test]
fn graphs_have_to_be_charged() {
    needs(Ablation::Graphs, "W3 8 ms graph decode", 30);
}

#[test]
fn threads_that_wait_need_the_mark_before_the_wait() {
    needs(Ablation::Marks, "W12 4 threads x 20 us", 20);
}

#[test]
fn processes_of_a_container_need_one_bucket() {
    needs(Ablation::SharedBucket, "W13 4 processes x 10 us", 30);
}

/// Each card by itself: the one that comes first spins, pays for it, comes later, and the other one spins for longer.
#[test]
fn cards_that_meet_in_collectives_need_to_know_of_each_other() {
    needs(Ablation::Gang, "W14 all-reduce", 30);
    needs(Ablation::Gang, "W14 all-reduce, two processes", 30);
}

#[test]
fn graphs_with_collectives_in_them_need_to_be_known() {
    needs(Ablation::Contents, "W14 all-reduces in graphs", 30);
    needs(Ablation::Contents, "W14 answers, in graphs", 30);
}

/// If they went through a closed gate as collectives do, a program that launches nothing else would be held back by its
/// debt of ten seconds alone.
#[test]
fn graphs_with_collectives_in_them_have_to_be_held_back() {
    needs(Ablation::Remainder, "W14 all-reduces in graphs", 30);
}

/// The longest that any collective waits for its peer, and that any launch is held back.
#[test]
fn no_card_is_left_to_spin() {
    let every = ALL.iter().filter(|workload| workload.name.starts_with("W14"));
    for (workload, percent) in every.flat_map(|it| [10, 30, 70].map(|percent| (it, percent))) {
        let cell = measure(workload, percent, 3, &Setup::default());
        let name = workload.name;
        assert!(cell.spun_most < 100.0, "{name} at {percent}: {} ms spun", cell.spun_most);
        assert!(cell.wait_most < 1_000.0, "{name} at {percent}: {} ms held", cell.wait_most);
    }
}

#[test]
fn no_process_of_a_container_starves() {
    let cell = measure(workload("W13 4 processes x 10 us"), 80, 2, &Setup::default());
    assert!(cell.wait_most < 150.0, "{} ms", cell.wait_most);
}

#[test]
fn chance_does_not_decide() {
    for seed in 2..5 {
        for name in ["W5 training step", "W6 25 kernels mixed"] {
            let setup = Setup { seed, ..Setup::default() };
            let cell = measure(workload(name), 30, 2, &setup);
            assert!(cell.is_within(&Bound::RULE), "{seed}: {}", cell.verdict(&Bound::RULE));
        }
    }
}

#[test]
fn a_seed_gives_one_result() {
    let run = || measure(workload("W10 inference 4 ms"), 30, 3, &Setup::default());
    let (first, second) = (run(), run());
    assert!(
        first.share.to_bits() == second.share.to_bits()
            && first.worst.to_bits() == second.worst.to_bits()
    );
}

#[test]
fn a_late_wake_up_loses_nothing() {
    let setup = Setup { wake_ns: (1_000_000, 1_000_000), ..Setup::default() };
    let cell = measure(workload("W1 10 us kernels"), 30, 2, &setup);
    assert!(cell.is_within(&Bound::RULE), "{}", cell.verdict(&Bound::RULE));
}

#[test]
fn a_clock_that_is_a_tenth_fast_costs_at_most_a_tenth() {
    let setup = Setup { drift_ppm: 100_000, ..Setup::default() };
    for name in ["W1 10 us kernels", "W3 8 ms graph decode"] {
        let cell = measure(workload(name), 30, 3, &setup);
        assert!((26.5..=30.5).contains(&cell.share), "{name}: {}", cell.share);
    }
}

#[test]
fn dear_events_cost_no_share_of_a_short_kernel() {
    let setup = Setup { record_ns: 3_000, event_ns: 900, ..Setup::default() };
    let cell = measure(workload("W1 10 us kernels"), 30, 2, &setup);
    assert!((29.0..=30.5).contains(&cell.share), "{}", cell.share);
}

const fn alone(name: &'static str, processes: fn() -> Vec<Threads>) -> Workload {
    workloads::alone(name, 5, processes)
}

/// A function whose launches cost a hundred times as much from one moment on: what was queued by then runs, a second at
/// most on a stream of a thousand places, and is paid off.
#[test]
fn an_estimate_that_is_wrong_a_hundredfold_is_paid_off() {
    let turned = alone("10 us, then 1 ms", || {
        let program = rounds(|now, _| {
            let ns = if now < 2_500_000_000 { 10_000 } else { 1_000_000 };
            vec![Act::Launch { stream: 0, kernel: Kernel::new(1, ns) }]
        });
        vec![(vec![program], 1)]
    });
    let cell = measure(&turned, 30, 20, &Setup::default());
    let bound = Bound {
        mean: 1.0,
        below: 1.0,
        window: 71.0,
        throughput: 0.0,
        charged: 1.01,
        ..Bound::RULE
    };
    assert!((cell.charged - 1.0).abs() < 0.02, "{}", cell.charged);
    assert!(cell.error().abs() < 1.0 && cell.worst < 71.0, "{}", cell.verdict(&bound));
}

#[test]
fn thousands_of_signatures_are_held_as_one() {
    let many = alone("4096 signatures", || {
        let launch = |function: u64| Act::Launch {
            stream: 0,
            kernel: Kernel::new(function * 256, 5_000 + function % 64 * 1_000),
        };
        vec![(vec![repeat((0..4096).map(launch).collect())], 1)]
    });
    let cell = measure(&many, 30, 2, &Setup::default());
    assert!(cell.is_within(&Bound::RULE), "{}", cell.verdict(&Bound::RULE));
}

/// One of four processes is killed with its queue full. The others notice within a tenth of a second, and as it is unknown
/// when it died they pay for that time, once.
#[test]
fn a_death_costs_the_others_a_tenth_of_a_second_at_most() {
    let mortal = alone("one of four dies", || {
        let kernel = |stream| Act::Launch { stream, kernel: Kernel::new(1, 50_000) };
        let lives = (0..3).map(|_| (vec![repeat(vec![kernel(0)])], 1));
        let dies =
            rounds(move |now, _| vec![if now < 3_000_000_000 { kernel(0) } else { Act::Die }]);
        lives.chain([(vec![dies], 1)]).collect()
    });
    let cell = measure(&mortal, 30, 3, &Setup::default());
    // A tenth of one second is a thirtieth of the three.
    let bound = Bound { below: 3.4, window: 10.0, throughput: 0.88, ..Bound::RULE };
    assert!(cell.is_within(&bound), "{}", cell.verdict(&bound));
}

/// No container gets more than asked for, whatever the others do.
#[test]
fn a_peer_costs_share_and_never_gives_any() {
    for name in ["W17 10 us, neighbour", "W17 mixed, neighbour"] {
        let cell = measure(workload(name), 30, 2, &Setup::default());
        assert!(cell.error() < 0.5, "{name}: {}", cell.share);
    }
}

/// While the card gives less than the share nothing piles up that would run all at once later.
#[test]
fn a_peer_that_leaves_leaves_no_backlog() {
    let beside = Workload {
        beside: || {
            let leaves = rounds(|now, _| {
                vec![match now {
                    0..5_000_000_000 => Act::Launch { stream: 0, kernel: Kernel::new(1, 100_000) },
                    _ => Act::Die,
                }]
            });
            vec![(vec![leaves], 1)]
        },
        ..alone("100 us kernels", || {
            let kernel = Kernel::new(1, 100_000);
            vec![(vec![repeat(vec![Act::Launch { stream: 0, kernel }])], 1)]
        })
    };
    let cell = measure(&beside, 70, 8, &Setup::default());
    // What the bucket saved in that time, and as much that was in flight: 28 ms each.
    let beyond = cell.most - 70.0;
    assert!(beyond < 5.7, "{beyond} points more than its share");
}
