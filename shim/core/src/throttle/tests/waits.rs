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

/// Returns what is due for work that was waited for from the one moment to the other, in ms.
fn due(turns: &Turns, from: u64, until: u64) -> u64 {
    let words = <[Word; WORDS]>::default();
    let [from, until] = [from, until].map(|ms| START + ms * MS);
    let certain = Some(Certain { from, until, part: Part::Rest });
    let done = Done { span: Span::From(from, until), work_ns: WORK_NS, certain };
    let account = TimeAccount::new(words.each_ref());
    Settlement::default().settle(done, turns, account, until).ns
}

/// A peer that was given 3 of 40 ms, by its report. It may have been given all the time that a short wait took.
#[test]
fn only_a_wait_longer_than_any_for_a_turn_is_certainly_for_work() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[(3, 0, Some(0))])]);
    assert_eq!(due(&turns, 30, 34), WORK_NS);
    assert!((5 * MS..6 * MS).contains(&due(&turns, 30, 36)));
    // One more that has turns, and waits are longer.
    looks(&mut turns, &[(42, busy, &[(3, 0, Some(0)), (50, 0, Some(41))])]);
    assert_eq!(due(&turns, 30, 36), WORK_NS);
}

/// A process that is stopped behind a launch has work in flight in its report for ever.
#[test]
fn beside_one_that_reports_nothing_new_all_waits_are_for_work() {
    let mut turns = Turns::new(START);
    let (busy, stopped) = ((1_000, 0, Some(0)), (3, 0, Some(0)));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[stopped]), (239, busy, &[stopped])]);
    assert_eq!(due(&turns, 230, 234), WORK_NS);
    looks(&mut turns, &[(240, busy, &[stopped])]);
    assert_eq!(due(&turns, 236, 240), 4 * MS);
    looks(&mut turns, &[(250, busy, &[(4, 0, Some(0))])]);
    assert_eq!(due(&turns, 246, 250), WORK_NS, "it goes on");
}
