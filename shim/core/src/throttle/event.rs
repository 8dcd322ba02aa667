//! What the meter asks of the driver: timing events, by which work on the device is measured, and whether streams are empty.

use super::timeline::stream::StreamId;

/// Timing events of the driver and its streams, as far as the meter needs them. The caller records the events.
pub trait Events {
    /// One recorded event.
    type Event;

    /// Returns whether the device has reached the event. Called with the meter's lock held, at most a few dozen times
    /// in a row.
    fn reached(&mut self, event: &Self::Event) -> Reached;

    /// Takes back an event that the meter no longer needs.
    fn give_back(&mut self, event: Self::Event);

    /// Returns whether the device has done everything that a stream had. `None` if that cannot be asked.
    fn is_idle(&mut self, _stream: StreamId) -> Option<bool> {
        None
    }
}

/// The state of a timing event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The device has not reached it yet.
    Pending,
    /// The device reached it at this time, by the clock that launches are timed with.
    At(u64),
    /// Its context ended at this time, and all work in it with it.
    Ended(u64),
    /// It will never be known: the driver refuses to answer.
    Lost,
}
