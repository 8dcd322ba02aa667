//! Work that takes longer than all that is in flight was expected to: what it takes is reserved before its end.
//!
//! The end of a launch shows what it took, and until then others go as if it took what launches of its function usually do.
//! Without this, `T2 8 processes with functions never seen, 5000 ms, 10` gets all of the device in its richest 10 s, and
//! `T16 8 with 1 in 20 1500 ms, 10` 95 % of it for 300 s.
//!
//! What is at the front of a stream has been at it, as far as peers' reports are certain, for so long; what was due in that
//! time was for other work. As far as that is more than all that is reserved, more is reserved. Launches out of allowances
//! have no event: whether the device has done them [is asked](Events::is_idle).

use super::{
    Timeline,
    done::{Certain, Done, Part, Span},
    stream::{Late, Stream, StreamId},
};
use crate::throttle::event::Events;

/// What is in flight is looked at this often, or more.
pub(crate) const WATCH_NS: u64 = 10_000_000;
/// Reports of others are late, and estimates are off. With a quarter of this, `W5 training step` at 30 % gets 24 beside a
/// sampled process, if events are reached at once; with 10 ms, eight processes of T16 queue twice as much.
const TOLERANCE_NS: u64 = 4_000_000;
/// The same on a device that meets others: they go no further while this one is in debt. With 4 ms, two devices at 30 %
/// with an all-reduce each ten kernels of 50 us, of which one in 50 takes 100 ms, get 28 each and 23 in their poorest 10 s.
const TOLERANCE_MEETING_NS: u64 = 200_000_000;
/// More than this is charged at the end: others may be waiting to be what it waits for.
const MOST_NS: u64 = 2_000_000_000;

/// Launches that came before this time are in the driver, also if the thread lost its processor in between.
const SOON_NS: u64 = 5_000_000;
/// After this time of such launches, one after the other, the next one has an event.
const RESTLESS_NS: u64 = 20_000_000;

/// What the device does with launches of which no event shows the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmarked {
    /// There are none.
    None,
    /// There are some: it is too soon to ask, or there is no answer.
    Some,
    /// The same for long: it was never quiet enough to ask.
    Restless,
    /// It is at them.
    Running,
    /// It has done them, and was at them from the one moment to the other, if that is later.
    Over { from: u64, until: u64 },
}

impl<E> Timeline<E> {
    /// Looks at the launches of a stream that came out of allowances. `due_ns` is all that was due so far. Without it,
    /// `T17 1 with 1 in 20 150 ms, without a call, 10` gets 23 % in 300 s, and with 5,000 ms 86.
    pub(crate) fn look_at_unmarked(
        &mut self,
        id: StreamId,
        due_ns: u64,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) -> Unmarked {
        let Some(stream) = self.streams.get_mut(usize::from(id.0)) else { return Unmarked::None };
        match stream.quiet_ns(now) {
            None => return Unmarked::None,
            Some((quiet_ns, since_ns)) if quiet_ns < SOON_NS => {
                let is_restless = since_ns >= RESTLESS_NS;
                return if is_restless { Unmarked::Restless } else { Unmarked::Some };
            }
            Some(_) => {}
        }
        match events.is_idle(id) {
            None => Unmarked::Some,
            // The driver is being called for some, and may not have taken them.
            Some(true) if !stream.has_returned() => Unmarked::Some,
            Some(true) => {
                let seen = stream.unmarked.seen.map(|(late, until)| (late.since, until));
                let (from, until) = seen.unwrap_or((now, now));
                Unmarked::Over { from, until }
            }
            Some(false) => {
                let first = Late { since: now, due_ns, ns: 0 };
                let (late, _) = stream.unmarked.seen.unwrap_or((first, now));
                stream.unmarked.seen = Some((late, now));
                Unmarked::Running
            }
        }
    }

    /// Returns whether there are launches of which no event shows the end.
    pub(crate) fn has_unmarked(&self) -> bool {
        self.streams.iter().any(Stream::has_unmarked)
    }

    /// Returns since when the device has been at launches of which no event shows the end, as far as it was looked at.
    pub(crate) fn unmarked_since(&self) -> Option<u64> {
        self.streams
            .iter()
            .filter_map(|stream| stream.unmarked.seen)
            .map(|(late, _)| late.since)
            .min()
    }

    /// Returns what is due for launches of a stream of which no event will show the end, if the device was seen at them.
    pub(crate) fn seen_unmarked(&self, id: StreamId) -> Option<Done> {
        let (late, until) = self.stream(id)?.unmarked.seen?;
        let work_ns = self.turns.of(late.since, until);
        let certain = Certain { from: late.since, until, part: Part::Turns };
        Some(Done { span: Span::Operation(late.since, until), work_ns, certain: Some(certain) })
    }

    /// Forgets what was reserved in addition for the launches of a stream of which no event shows the end. Returns whether
    /// the device was seen at them.
    pub(crate) fn unmarked_over(&mut self, id: StreamId) -> bool {
        let seen = self.streams.get_mut(usize::from(id.0)).and_then(|it| it.unmarked.seen.take());
        self.late_over_ns = self.late_over_ns.saturating_add(seen.map_or(0, |(late, _)| late.ns));
        seen.is_some()
    }

    /// Returns what is to be reserved in addition to `reserved_ns`, for work in flight that takes longer. `due_ns` is all
    /// that was due so far; the device `meets` others, or not.
    pub(crate) fn late(&mut self, reserved_ns: u64, due_ns: u64, meets: bool, now: u64) -> u64 {
        // A default stream waits for others, and they for it.
        let may_wait = self.streams.iter().any(Stream::is_fenced);
        let Self { streams, turns, .. } = self;
        let mut latest: Option<(u64, &mut Late)> = None;
        for stream in streams {
            let since = stream.at_front_since();
            let (late, until) = match (since, stream.pending.front_mut(), &mut stream.unmarked.seen)
            {
                (Some(since), Some(front), _) if front.mark.is_none() || !may_wait => {
                    // Other work that has ended since is in `due_ns` already: no more counts than two looks are late.
                    let since = since.max(now.saturating_sub(2 * WATCH_NS));
                    (front.late.get_or_insert(Late { since, due_ns, ns: 0 }), now)
                }
                (_, None, Some((late, seen_at))) if !may_wait => (late, *seen_at),
                _ => continue,
            };
            if until.saturating_sub(late.since) <= reserved_ns {
                continue; // whatever of it was its own
            }
            let other_ns = due_ns.saturating_sub(late.due_ns);
            let taken_ns = turns.at_least(late.since, until).saturating_sub(other_ns);
            if latest.as_ref().is_none_or(|(most_ns, _)| taken_ns > *most_ns) {
                latest = Some((taken_ns, late));
            }
        }
        let Some((taken_ns, late)) = latest else { return 0 };
        let more_ns = taken_ns.min(MOST_NS).saturating_sub(reserved_ns);
        let tolerance_ns = if meets { TOLERANCE_MEETING_NS } else { TOLERANCE_NS };
        if more_ns < tolerance_ns && late.ns == 0 {
            return 0;
        }
        late.ns = late.ns.saturating_add(more_ns);
        more_ns
    }

    /// Returns what was reserved in addition for work that is over now.
    pub(crate) fn take_late_over(&mut self) -> u64 {
        core::mem::take(&mut self.late_over_ns)
    }
}
