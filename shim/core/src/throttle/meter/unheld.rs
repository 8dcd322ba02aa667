//! Launches that could not be held back: those of a tool that the driver called back while the caller held a lock. They
//! are on the device already when the meter hears of them.

use super::{Meter, PENDING, Permit};
use crate::{
    throttle::{Events, Launch, StreamId},
    units::Share,
};

/// The guess for an unmeasured launch doubles with each other one in flight, at most this often: the caller waits for
/// what is reserved, so a queue of unknown work grows slowly, whatever the length of each.
const MOST_DOUBLINGS: u64 = 12;

impl<E> Meter<'_, E> {
    /// Records a launch that the driver took before it was admitted, and the events around it. `returned` is when the
    /// driver's call returned.
    pub fn launched_unheld(
        &mut self,
        stream: StreamId,
        launch: Launch,
        returned: u64,
        pair: [E; 2],
        events: &mut impl Events<Event = E>,
    ) {
        let others = self.unmeasured.min(MOST_DOUBLINGS);
        let mut reserved = self.reservation(launch);
        if reserved.unmeasured {
            reserved.ns = launch.first_ns << others;
        }
        if self.pending == 0 && self.under_way == 0 {
            self.in_flight_since = returned;
        }
        self.totals.launches += 1;
        self.under_way += 1;
        self.reserve(reserved.ns, returned);
        let permit = Permit { stream, reserved, batch_ns: 0, waited: false, events: true };
        if self.pending < PENDING {
            self.launched(permit, returned, Some(pair), events);
        } else {
            pair.into_iter().for_each(|event| events.give_back(event));
            self.launched(permit, returned, None, events);
        }
    }

    /// Returns when no more is charged than has flowed in, provided that nothing changes; `now` if that is so.
    #[must_use]
    pub fn level_at(&mut self, now: u64) -> u64 {
        self.shares.follow(now);
        let is_full = self.shares.share() == Share::FULL;
        if is_full { now } else { self.shares.holds_at(0, now).max(now) }
    }
}
