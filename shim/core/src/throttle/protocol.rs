//! The protocol of a launch: what is asked of the meter around it, and which events are recorded, in this order. The shim
//! follows it with the driver, the simulator with its card.
//!
//! ```text
//! ask        the meter; held back: an event at the end of the stream, if it would show when its work ends,
//!            then what a process does while it waits; ask again at the time that the meter names
//! begin      an event, if the launch is to be measured
//!            the launch itself
//! end        an event
//! returned   the meter; now and then one event more, which shows the distance of two
//! ```
//!
//! The caller does what takes time: it sleeps, and it launches.

use super::{Launch, Permit, Verdict};

/// A stream of a limited device, and its meter.
pub trait Place {
    /// A recorded event.
    type Event;
    /// The first event of a pair, and what the second needs.
    type First;

    /// Asks [`Meter::before_launch`](super::Meter::before_launch). `None` if this thread may not ask.
    fn before_launch(&mut self, launch: Launch) -> Option<Verdict>;

    /// Does what a process does when a launch is held back: [`Upkeep::held_back`](super::Upkeep::held_back).
    fn held_back(&mut self);

    /// Records an event, and passes it to [`Meter::marked`](super::Meter::marked).
    fn mark(&mut self);

    /// Records the first event of a pair. `None` if there is none to be had.
    fn record_first(&mut self) -> Option<Self::First>;

    /// Records the second. `None` if the driver refuses it.
    fn record_second(&mut self, first: Self::First) -> Option<[Self::Event; 2]>;

    /// Asks [`Meter::launched`](super::Meter::launched).
    fn launched(&mut self, permit: Permit, pair: Option<[Self::Event; 2]>) -> bool;

    /// Records an event, and passes it to [`Meter::spaced`](super::Meter::spaced).
    fn space(&mut self);

    /// Asks [`Meter::fence`](super::Meter::fence).
    fn fence(&mut self) -> bool;
}

/// What became of a question.
#[derive(Debug)]
#[must_use]
pub enum Asked {
    /// The launch may begin.
    Admitted(Permit),
    /// It is to be asked for again at this time of the caller's clock.
    HeldBack {
        /// The time.
        until: u64,
    },
}

/// A launch that has begun.
#[derive(Debug)]
#[must_use]
pub struct Begun<F> {
    /// What is given back to [`Meter::refused`](super::Meter::refused) if the driver refuses the launch.
    pub permit: Permit,
    /// The event before it.
    pub first: Option<F>,
}

/// A launch that the driver took, and the events around it.
#[derive(Debug)]
#[must_use]
pub struct Ended<E> {
    permit: Permit,
    pair: Option<[E; 2]>,
}

/// Asks for a launch. `None` if this thread may not ask.
#[inline]
pub fn ask<P: Place>(place: &mut P, launch: Launch) -> Option<Asked> {
    match place.before_launch(launch)? {
        Verdict::Admit(permit) => Some(Asked::Admitted(permit)),
        Verdict::Wait { until, wants_mark } => {
            if wants_mark {
                place.mark();
            }
            place.held_back();
            Some(Asked::HeldBack { until })
        }
    }
}

/// Begins an admitted launch.
#[inline]
pub fn begin<P: Place>(place: &mut P, permit: Permit) -> Begun<P::First> {
    let first = if permit.wants_events() { place.record_first() } else { None };
    Begun { permit, first }
}

/// Ends a launch that the driver took.
#[inline]
pub fn end<P: Place>(place: &mut P, begun: Begun<P::First>) -> Ended<P::Event> {
    let Begun { permit, first } = begun;
    Ended { permit, pair: first.and_then(|first| place.record_second(first)) }
}

/// Passes a launch that has ended to the meter.
#[inline]
pub fn returned<P: Place>(place: &mut P, ended: Ended<P::Event>) {
    let Ended { permit, pair } = ended;
    if place.launched(permit, pair) {
        place.space();
    }
}

/// Something other than a launch is about to enter the stream.
#[inline]
pub fn fence<P: Place>(place: &mut P) {
    if place.fence() {
        place.mark();
    }
}
