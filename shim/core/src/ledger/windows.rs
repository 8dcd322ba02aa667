//! How long a device was busy lately: a ring of the latest eight windows of 2^27 ns (134 ms), one word each.
//!
//! ```text
//! Word   window:32 (time >> 27)   busy ns:32      at place window % 8
//! ```
//!
//! Work is reported after it ended, so a duration is spread backwards over the windows that it was in; a window that
//! has left the ring is no longer needed. Words are only exchanged atomically, so any number of threads may report,
//! and one that dies in the middle of a duration has reported a part of it. Readers leave out the current window and
//! the one before it, for which time is still being settled, and so read six windows, 0.8 s.
//!
//! Times are those of CLOCK_MONOTONIC.

use crate::sync::Word;

/// A window lasts 2^27 ns.
const WINDOW_BITS: u32 = 27;
const WINDOW_NS: u64 = 1 << WINDOW_BITS;
const RING: usize = 8;
/// How long ago the ring's oldest window is, in windows.
const OLDEST: u64 = RING as u64 - 1;
/// The current window and the one before it: not all of their time is reported yet.
const UNSETTLED: u64 = 2;
/// A ring that is further ahead than this of a process's work was written in an earlier boot of the machine, whose
/// clock has started over since.
const BELIEVABLE_WINDOWS: u32 = 512;

/// The latest windows of a device or of an account.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(super) struct Windows([Word; RING]);

/// How long a device was busy in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyWindow {
    /// When the window ended.
    pub until_ns: u64,
    /// Nanoseconds in which the device was busy, at most as many as the window has.
    pub busy_ns: u64,
}

impl BusyWindow {
    /// How long each window is.
    pub const LENGTH_NS: u64 = WINDOW_NS;

    /// Thousandths of the window.
    #[must_use]
    pub fn permille(self) -> u32 {
        Self::permille_of([self].into_iter())
    }

    /// Thousandths of several windows; 0 of none.
    pub fn permille_of(windows: impl Iterator<Item = Self>) -> u32 {
        let (busy_ns, all_ns) =
            windows.fold((0, 0), |(busy, all), window| (busy + window.busy_ns, all + WINDOW_NS));
        let rounded = (busy_ns * 1000 + all_ns / 2).checked_div(all_ns).unwrap_or(0);
        u32::try_from(rounded).unwrap_or(u32::MAX)
    }
}

impl Windows {
    /// Forgets what was, for a new owner.
    pub(super) fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0));
    }

    /// Adds `busy_ns` up to `end_ns`, each part to its window; what is before the ring is left out.
    pub(super) fn spread(&self, end_ns: u64, busy_ns: u64) {
        let begin_ns = end_ns.saturating_sub(busy_ns);
        let last = end_ns >> WINDOW_BITS;
        let first = (begin_ns >> WINDOW_BITS).max(last.saturating_sub(OLDEST));
        for window in first..=last {
            let from = window << WINDOW_BITS;
            let until = from.saturating_add(WINDOW_NS);
            let part_ns = end_ns.min(until).saturating_sub(begin_ns.max(from));
            if part_ns > 0 {
                self.add(window, part_ns);
            }
        }
    }

    fn add(&self, window: u64, busy_ns: u64) {
        let Some(word) = self.place(window) else { return };
        let mut seen = Window(word.load());
        // Repeats only if another process has reported work in the mean time.
        while let Some(next) = seen.with(window, busy_ns) {
            match word.replace(seen.0, next.0) {
                Ok(()) => return,
                Err(now) => seen = Window(now),
            }
        }
    }

    pub(super) fn settled(&self, now_ns: u64) -> impl Iterator<Item = BusyWindow> + '_ {
        let now = now_ns >> WINDOW_BITS;
        let windows = now.saturating_sub(OLDEST)..=now.saturating_sub(UNSETTLED);
        // Before the clock's first windows are over there is nothing to see.
        windows.filter(move |_| now >= OLDEST).map(|window| BusyWindow {
            until_ns: (window + 1) << WINDOW_BITS,
            busy_ns: self.place(window).map_or(0, |word| Window(word.load()).busy_ns(window)),
        })
    }

    /// Returns when the latest work ended, to the window; `None` if there was none, or if the ring is ahead of `now_ns`:
    /// then it was written in an earlier boot, or by a process that reports what has not happened.
    pub(super) fn latest(&self, now_ns: u64) -> Option<u64> {
        let words = self.0.iter().map(|word| Window(word.load()));
        let latest = words.filter(|word| low(word.0) > 0).map(Window::number).max()?;
        let begin_ns = u64::from(latest) << WINDOW_BITS;
        (begin_ns <= now_ns).then(|| begin_ns.saturating_add(WINDOW_NS).min(now_ns))
    }

    fn place(&self, window: u64) -> Option<&Word> {
        self.0.get(usize::try_from(window).ok()? % RING)
    }
}

/// A word of a ring.
#[derive(Clone, Copy)]
struct Window(u64);

impl Window {
    fn number(self) -> u32 {
        low(self.0 >> 32)
    }

    /// Returns how long the device was busy in this window, if the word is of it.
    fn busy_ns(self, window: u64) -> u64 {
        let known = self.number() == low(window);
        if known { u64::from(low(self.0)).min(WINDOW_NS) } else { 0 }
    }

    /// Returns the word with `busy_ns` more for `window`. `None` if it is of a later window.
    fn with(self, window: u64, busy_ns: u64) -> Option<Self> {
        let ahead = self.number().wrapping_sub(low(window));
        let before = match ahead {
            0 => low(self.0),
            1..=BELIEVABLE_WINDOWS => return None,
            _ => 0,
        };
        let busy = before.saturating_add(u32::try_from(busy_ns).unwrap_or(u32::MAX));
        Some(Self(u64::from(low(window)) << 32 | u64::from(busy)))
    }
}

/// The low half, on purpose.
#[allow(clippy::cast_possible_truncation)]
fn low(word: u64) -> u32 {
    word as u32
}
