//! Waits for work beside other processes, which may be waits for a turn.

use super::turns::{ABSENT, START, looks};
use crate::{
    sync::Word,
    throttle::{
        charging::{
            settlement::Settlement,
            time_account::{TimeAccount, WORDS},
        },
        timeline::{
            done::{Certain, Done, Part, Span},
            turns::Turns,
        },
    },
};

const MS: u64 = 1_000_000;
/// What is expected of the work that is waited for.
const WORK_NS: u64 = 10_000;

/// Returns what is due, in ns, for work that was waited for from the one millisecond to the other.
fn due(turns: &Turns, from: u64, until: u64) -> u64 {
    let words = <[Word; WORDS]>::default();
    let [from, until] = [from, until].map(|ms| START + ms * MS);
    let certain = Some(Certain { from, until, part: Part::Rest });
    let done = Done { span: Span::From(from, until), work_ns: WORK_NS, certain };
    let account = TimeAccount::new(words.each_ref());
    Settlement::default().settle(done, turns, account, until).ns
}

fn close(found_ns: u64, expected_ms: f64) {
    let found_ms = found_ns as f64 / MS as f64;
    assert!((found_ms - expected_ms).abs() < 0.02, "{found_ms}, not {expected_ms}");
}

/// Peers may have had twice what they report, in a wait that may have been for their turns.
#[test]
fn of_a_short_wait_less_is_certain_than_of_a_long_one() {
    // By its report it had 3 of 40 ms, or 20 of them.
    for (had_ms, short_ms, long_ms) in [(3, 3.4, 5.55), (20, 0.01, 3.0)] {
        let mut turns = Turns::new(START);
        let (busy, peer) = ((100, 0, Some(0)), (had_ms, 0, Some(0)));
        looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[peer])]);
        close(due(&turns, 30, 34), short_ms);
        close(due(&turns, 30, 36), long_ms);
    }
}

/// A process that is stopped behind a launch has work in flight in its report for ever.
#[test]
fn beside_one_that_reports_nothing_new_all_waits_are_for_work() {
    let mut turns = Turns::new(START);
    let (busy, stopped) = ((1_000, 0, Some(0)), (3, 0, Some(0)));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[stopped])]);
    close(due(&turns, 36, 40), 3.4);
    looks(&mut turns, &[(239, busy, &[stopped])]);
    assert!(turns.has_others());
    looks(&mut turns, &[(240, busy, &[stopped])]);
    assert!(!turns.has_others());
    close(due(&turns, 236, 240), 4.0);
    looks(&mut turns, &[(250, busy, &[(4, 0, Some(0))])]);
    assert!(turns.has_others(), "it goes on");
}
