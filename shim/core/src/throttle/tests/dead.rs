//! What dead processes owe.

use crate::throttle::Unfinished;

const S: u64 = 1_000_000_000;
const NOW: u64 = 1_000_000 * S;

/// Of work that was paid for up to `paid` seconds ago, by a process that lived `alive` seconds ago.
fn owed(paid: u64, alive: Option<u64>) -> u64 {
    let alive_at = alive.map(|ago| NOW - ago * S);
    Unfinished { paid_until: NOW - paid * S, alive_at }.owed(NOW) / S
}

#[test]
fn the_time_up_to_its_last_word_is_owed() {
    assert_eq!(owed(25, Some(20)), 5);
    assert_eq!(owed(5, Some(0)), 5);
    assert_eq!(owed(5, Some(7)), 0, "its launch came after its last word");
    assert_eq!(owed(5, None), 5, "it may have died just now");
}

/// Killed 9 ms after each note, kernels of 19 ms cost 10.
#[test]
fn the_time_until_its_next_word_is_owed() {
    let left = Unfinished { paid_until: NOW - S, alive_at: Some(NOW - S) };
    assert_eq!(left.owed(NOW), 10_000_000);
    assert_eq!(left.owed(NOW - S + 3_000_000), 3_000_000, "it died before now");
}

#[test]
fn no_more_is_owed_than_a_minute() {
    assert_eq!([owed(300, Some(0)), owed(300, None), owed(300, Some(290))], [60, 60, 10]);
}

/// A container writes its ledger.
#[test]
fn what_lies_in_the_future_is_not_owed() {
    let left = Unfinished { paid_until: NOW - S, alive_at: Some(u64::MAX) };
    assert_eq!(left.owed(NOW), S);
    assert_eq!(Unfinished { paid_until: u64::MAX, alive_at: Some(NOW) }.owed(NOW), 0);
}
