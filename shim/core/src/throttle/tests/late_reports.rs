//! Reports that say late when work was in flight.

use super::turns::{ABSENT, START, close, looks, own};
use crate::{
    throttle::timeline::turns::Turns,
    units::{ComputeLimit, Share},
};

#[test]
fn what_a_peer_was_entitled_to_and_did_not_need_it_is_given_shortly_after() {
    let mut turns = Turns::new(START);
    turns.set_limit(ComputeLimit::fixed(Share::FULL));
    let busy = (100, 0, Some(0));
    let looked = [
        (0, busy, &[ABSENT][..]),
        // Of 5 ms it needs 1, and 2 of the other 4 are kept.
        (10, busy, &[(1, 0, Some(0))]),
        // Half of the 2 ms for which it was present, and those 2.
        (18, busy, &[(5, 12, None)]),
        // Nothing is kept of them: half of 2 ms again.
        (28, busy, &[(15, 14, None)]),
    ];
    looks(&mut turns, &looked);
    close(own(&turns, 0, 10), 9.0);
    close(own(&turns, 10, 18), 5.0);
    close(own(&turns, 18, 28), 9.0);
    // Low priority pays for what is not known.
    let mut turns = Turns::new(START);
    turns.set_limit(ComputeLimit::low_priority(Share::FULL));
    looks(&mut turns, &looked);
    close(own(&turns, 10, 18), 7.0);
}
