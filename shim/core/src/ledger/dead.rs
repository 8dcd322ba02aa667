//! Whether any process has died: a refusal must not count what the dead hold, and checking each process takes long.
//!
//! The system can count the living processes that use the ledger ([`attend`] is how they agree on what it counts them by). If
//! they are as many as there are slots, none has died and none is checked. This is consistent at one moment because a
//! process is counted by the system only after its slot is there and `changes` has been raised, and a slot is removed
//! only between two raises of it. So with `changes` the same before and after, the slots were those that were
//! counted, each of them is counted once at most, and a dead one makes the numbers differ.
//!
//! Wherever they differ, or the system gives no count, each process is checked.
//!
//! [`attend`]: Ledger::attend

use super::charge::OverQuota;
use super::layout::Ledger;
use super::slot::Identity;
use crate::sync::Word;

/// How many slots there were when they were last counted, and what `changes` was: bits 16.. and 0..16. Of one process.
#[derive(Debug, Default)]
pub struct Count(Word);

/// How often a process tries to come to what the others are counted by, while they come and go.
const ATTEMPTS: u32 = 4;

impl Count {
    const BITS: u32 = 16;

    /// The next question has them counted anew.
    pub fn forget(&self) {
        self.0.store(0);
    }
}

impl Ledger {
    /// Makes a `charge`, and before it is refused takes back what the dead hold and makes it again.
    ///
    /// `all_live` returns whether it is certain that none has died; otherwise `alive` is asked about each. Both may take
    /// long, so that a lock which the charge needs is for `charge` to take and release.
    ///
    /// # Errors
    /// It does not fit with the living alone.
    #[inline]
    pub fn or_reap(
        &self,
        charge: impl Fn() -> Result<(), OverQuota>,
        all_live: &dyn Fn() -> bool,
        alive: &dyn Fn(&Identity) -> bool,
    ) -> Result<(), OverQuota> {
        let changes = self.header.changes.load();
        let Err(refusal) = charge() else { return Ok(()) };
        self.reap_for(&charge, (changes, refusal), all_live, alive)
    }

    #[cold]
    fn reap_for(
        &self,
        charge: &dyn Fn() -> Result<(), OverQuota>,
        (mut changes, mut refusal): (u64, OverQuota),
        all_live: &dyn Fn() -> bool,
        alive: &dyn Fn(&Identity) -> bool,
    ) -> Result<(), OverQuota> {
        loop {
            if refusal.requested > refusal.limit {
                return Err(refusal);
            }
            // Repeated as long as a process died. If no dead process was found and none was removed in the mean time,
            // all that stood in the way was held by the living.
            let no_dead = all_live() || self.reap(alive) == 0;
            if no_dead && self.header.changes.load() == changes {
                return Err(refusal);
            }
            changes = self.header.changes.load();
            match charge() {
                Ok(()) => return Ok(()),
                Err(again) => refusal = again,
            }
        }
    }

    /// Whether it is certain that every owner of a slot lives. `present` says how many of those that have come to
    /// [`attend`](Self::attend), each after its claim, are still there; `None` if that cannot be known.
    pub fn all_live(&self, count: &Count, present: &dyn Fn() -> Option<u64>) -> bool {
        let changes = self.header.changes.load();
        let slots = self.count(count, changes);
        present() == Some(slots) && self.header.changes.load() == changes
    }

    /// Comes to what the system counts the processes by, all of them by the same: `join` comes to the one of a name, if it
    /// is still there, and `begin` makes a new one, which stays if the function that it is given says so of its name. The
    /// caller has its slot already. `None`: no process will know that it is there.
    pub fn attend<T>(
        &self,
        join: impl Fn(u64) -> Option<T>,
        begin: impl Fn(&dyn Fn(u64) -> bool) -> Option<T>,
    ) -> Option<T> {
        let word = &self.header.attendance;
        for _ in 0..ATTEMPTS {
            let found = word.load();
            if found != 0
                && let Some(joined) = join(found)
            {
                return Some(joined);
            }
            // The first, or the first after all others have gone.
            if let Some(begun) = begin(&|name| word.replace(found, name).is_ok()) {
                return Some(begun);
            }
        }
        None
    }

    /// The name of what the processes are counted by. Zero: by nothing yet.
    #[must_use]
    pub fn attendance(&self) -> u64 {
        self.header.attendance.load()
    }

    /// True once in `period_ns`, of all processes together: each is to be looked at, whatever the system counts.
    #[must_use]
    pub fn is_time_to_look(&self, now_ns: u64, period_ns: u64) -> bool {
        let word = &self.header.looked;
        let last = word.load();
        // A time that is a little ahead is that of a process that read the clock later, a time further ahead is that of
        // another boot, or nonsense.
        let is_recent = now_ns.abs_diff(last) < period_ns;
        !is_recent && word.replace(last, now_ns).is_ok()
    }

    fn count(&self, known: &Count, changes: u64) -> u64 {
        let tag = changes << Count::BITS;
        let last = known.0.load();
        if last != 0 && last >> Count::BITS << Count::BITS == tag {
            return last ^ tag;
        }
        let slots = self.live().count() as u64;
        known.0.store(tag | slots);
        slots
    }
}
