//! Work that takes longer than all that is in flight was expected to: what it takes is reserved before its end.
//!
//! The end of a launch shows what it took, and until then others go as if it took what launches of its function usually do.
//! Without this, `T2 8 processes with functions never seen, 5000 ms, 10` gets all of the device in its richest 10 s, and
//! `T16 8 with 1 in 20 1500 ms, 10` 95 % of it for 300 s.
//!
//! What is at the front of a stream has been at it, as far as peers' reports are certain, for so long; what was due in that
//! time was for other work. As far as that is more than all that is reserved, more is reserved.

use super::{
    Timeline,
    stream::{Late, Stream},
};

/// Reports of others are late, and estimates are off. With a quarter of this, `W5 training step` at 30 % gets 24 beside a
/// sampled process, if events are reached at once; with 10 ms, eight processes of T16 queue twice as much.
const TOLERANCE_NS: u64 = 4_000_000;
/// More than this is charged at the end: others may be waiting to be what it waits for.
const MOST_NS: u64 = 2_000_000_000;

impl<E> Timeline<E> {
    /// Returns what is to be reserved in addition to `reserved_ns`, for work in flight that takes longer. `due_ns` is all
    /// that was due so far.
    pub(crate) fn late(&mut self, reserved_ns: u64, due_ns: u64, now: u64) -> u64 {
        // A default stream waits for others, and they for it.
        let may_wait = self.streams.iter().any(Stream::is_fenced);
        let Self { streams, turns, .. } = self;
        let mut latest: Option<(u64, &mut Late)> = None;
        for stream in streams {
            let Some(since) = stream.at_front_since() else { continue };
            let Some(front) = stream.pending.front_mut() else { continue };
            if front.mark.is_some() && may_wait {
                continue;
            }
            let late =
                front.late.get_or_insert_with(|| Late { since: now.max(since), due_ns, ns: 0 });
            if now.saturating_sub(late.since) <= reserved_ns {
                continue; // whatever of it was its own
            }
            let other_ns = due_ns.saturating_sub(late.due_ns);
            let taken_ns = turns.at_least(late.since, now).saturating_sub(other_ns);
            if latest.as_ref().is_none_or(|(most_ns, _)| taken_ns > *most_ns) {
                latest = Some((taken_ns, late));
            }
        }
        let Some((taken_ns, late)) = latest else { return 0 };
        let more_ns = taken_ns.min(MOST_NS).saturating_sub(reserved_ns);
        if more_ns < TOLERANCE_NS && late.ns == 0 {
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
