//! Busy time: random durations against a model that keeps every duration, then the rules.

use proptest::{collection::vec, prelude::*};

use super::{Ledger, ProcessView, account, claim, ready};
use crate::ledger::BusyWindow;

/// A window, 134 ms.
const WINDOW: u64 = 1 << 27;
/// A moment in the middle of a window long after the clock's start.
const NOW: u64 = 1_000_000 * WINDOW + WINDOW / 2;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// In any order, as long as each was reported while its end was at most a second old.
    #[test]
    fn each_settled_window_has_what_overlaps_it(
        lengths in vec((0..8 * WINDOW, 0..12 * WINDOW), 1..20),
    ) {
        let (ledger, device, slot) = ready();
        let works: Vec<(u64, u64)> =
            lengths.iter().map(|&(ago, length)| (NOW - ago, length)).collect();
        for &(end, length) in &works {
            ledger.worked(slot, device, end, length);
        }
        let first = (NOW / WINDOW - 7) * WINDOW;
        let expected: Vec<BusyWindow> = (1..=6)
            .map(|number| {
                let (from, until_ns) = (first + (number - 1) * WINDOW, first + number * WINDOW);
                let overlap = |&(end, length): &(u64, u64)| {
                    end.min(until_ns).saturating_sub((end - length).max(from))
                };
                let busy_ns = works.iter().map(overlap).sum::<u64>().min(WINDOW);
                BusyWindow { until_ns, busy_ns }
            })
            .collect();
        prop_assert_eq!(ledger.busy_windows(device, NOW).collect::<Vec<_>>(), &expected[..]);
        let process = process(&ledger);
        prop_assert_eq!(process.busy_windows(device, NOW).collect::<Vec<_>>(), &expected[..]);
        let busy: u64 = expected.iter().map(|window| window.busy_ns).sum();
        let share = u64::from(ledger.busy_share(device, NOW));
        prop_assert!((share * 6 * WINDOW).abs_diff(busy * 1000) <= 3 * WINDOW);
        let reported: u64 = works.iter().map(|&(_, length)| length).sum();
        prop_assert_eq!(account(&ledger, 0).busy_ns, reported);
        prop_assert_eq!(ledger.devices().next().unwrap().busy_ns, reported);
    }
}

#[test]
fn a_steady_share_is_read_at_any_moment() {
    let (ledger, device, slot) = ready();
    // 3 of 10 ms, reported 100 ms late.
    for slice in 0..400 {
        let now = NOW + slice * 10_000_000;
        ledger.worked(slot, device, now - 100_000_000, 3_000_000);
        if slice > 120 {
            let share = ledger.busy_share(device, now);
            assert!((295..=305).contains(&share), "{share}");
        }
    }
}

#[test]
fn what_was_long_ago_is_not_lately() {
    let (ledger, device, slot) = ready();
    ledger.worked(slot, device, NOW, 20 * WINDOW);
    assert_eq!(ledger.busy_share(device, NOW), 1000);
    assert_eq!(ledger.busy_share(device, NOW + 3 * WINDOW), 750); // four and a half of six
    assert_eq!(ledger.busy_share(device, NOW + 8 * WINDOW), 0);
    // The ring's places are those of other windows now.
    assert_eq!(ledger.busy_share(device, NOW + 16 * WINDOW), 0);
}

#[test]
fn the_end_of_the_latest_work_is_known_to_a_window_however_long_ago_it_was() {
    let (ledger, device, slot) = ready();
    assert_eq!(ledger.last_worked(device, NOW), None);
    ledger.worked(slot, device, NOW, 3 * WINDOW);
    ledger.worked(slot, device, NOW - 2 * WINDOW, 1);
    assert_eq!(ledger.last_worked(device, NOW), Some(NOW));
    let ended = NOW + WINDOW / 2;
    assert_eq!(ledger.last_worked(device, NOW + WINDOW), Some(ended));
    assert_eq!(ledger.last_worked(device, 2 * NOW), Some(ended));
    // The ring is of an earlier boot, or a process reports work of the future.
    assert_eq!(ledger.last_worked(device, NOW - WINDOW), None);
}

#[test]
fn late_news_of_an_old_window_spoils_no_newer_one() {
    let (ledger, device, slot) = ready();
    ledger.worked(slot, device, NOW, 20 * WINDOW);
    ledger.worked(slot, device, NOW - 30 * WINDOW, 8 * WINDOW);
    assert_eq!(ledger.busy_share(device, NOW), 1000);
}

#[test]
fn a_ring_of_an_earlier_boot_is_written_over() {
    let (ledger, device, slot) = ready();
    ledger.worked(slot, device, 1000 * NOW, 20 * WINDOW);
    ledger.worked(slot, device, NOW, 20 * WINDOW);
    assert_eq!(ledger.busy_share(device, NOW), 1000);
}

#[test]
fn each_process_has_its_own_time_and_the_device_their_sum() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    ledger.worked(ada, device, NOW, 20 * WINDOW);
    ledger.worked(bea, device, NOW - 4 * WINDOW, 3 * WINDOW);
    let shares: Vec<u32> = ledger.processes().map(|it| it.busy_share(device, NOW)).collect();
    assert_eq!(shares, [1000, 500]);
    // More than all of a window is all of it.
    assert_eq!(ledger.busy_share(device, NOW), 1000);
}

#[test]
fn a_process_without_work_has_no_share_and_no_page_is_read_for_it() {
    let (ledger, device, _) = ready();
    assert_eq!(process(&ledger).busy_share(device, NOW), 0);
    assert_eq!(process(&ledger).busy_windows(device, NOW).count(), 0);
    assert!(ledger.busy_windows(device, NOW).all(|window| window.permille() == 0));
}

#[test]
fn the_next_owner_of_a_slot_has_done_nothing() {
    let (ledger, device, slot) = ready();
    ledger.worked(slot, device, NOW, 20 * WINDOW);
    ledger.launched(slot, device, 5);
    super::vacate(&ledger, slot);
    let next = claim(&ledger, 2);
    assert_eq!(next.index(), slot.index());
    let found = account(&ledger, 0);
    assert_eq!(
        (found.busy_ns, found.launches, process(&ledger).busy_share(device, NOW)),
        (0, 0, 0)
    );
    // The device remembers.
    assert_eq!(ledger.busy_share(device, NOW), 1000);
}

#[test]
fn launches_and_waiting_add_up() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    ledger.launched(ada, device, 5);
    ledger.launched(bea, device, 2);
    ledger.launched(ada, device, 1);
    ledger.waited(device, 7);
    ledger.waited(device, 8);
    let seen = ledger.devices().next().unwrap();
    assert_eq!((seen.launches, seen.waited_ns), (8, 15));
    assert_eq!([account(&ledger, 0).launches, account(&ledger, 1).launches], [6, 2]);
}

#[test]
fn the_first_and_the_last_moment_of_the_clock_are_moments() {
    let (ledger, device, slot) = ready();
    for moment in [0, 1, WINDOW, 7 * WINDOW, 8 * WINDOW, u64::MAX] {
        ledger.worked(slot, device, moment, u64::MAX);
        assert!(ledger.busy_share(device, moment) <= 1000);
    }
}

fn process(ledger: &Ledger) -> ProcessView<'_> {
    ledger.processes().next().unwrap()
}
