//! Prepaid room of one stream, from which launches take without a lock, a clock, an event or a shared word.
//!
//! ```text
//! word   room in ns:56   launches left:8
//! ```
//!
//! One word, so that a launch takes its cost and its place by one exchange, or neither. Zero is a closed batch: nothing
//! fits. Only the meter opens and closes it. What was taken is the sum of the solo costs of the batch's launches.

use crate::sync::Word;

/// The batch that launches on a stream share until the meter closes it.
#[derive(Debug, Default)]
pub struct Batch(Word);

const LAUNCHES_BITS: u32 = 8;
const LAUNCHES: u64 = (1 << LAUNCHES_BITS) - 1;

impl Batch {
    /// Takes the cost of one launch; false if it does not fit: then the launch is the meter's.
    #[inline]
    #[must_use]
    pub fn spend(&self, cost_ns: u32) -> bool {
        let mut word = self.0.load();
        loop {
            if word & LAUNCHES == 0 || word >> LAUNCHES_BITS < u64::from(cost_ns) {
                return false;
            }
            let rest = word - (u64::from(cost_ns) << LAUNCHES_BITS | 1);
            match self.0.replace(word, rest) {
                Ok(()) => return true,
                Err(found) => word = found,
            }
        }
    }

    /// Puts back what a launch took that the driver refused. Too late for a batch that is full or closed: then it
    /// stays charged.
    pub fn put_back(&self, cost_ns: u32) {
        let mut word = self.0.load();
        while word & LAUNCHES != 0 {
            let more = word.saturating_add(u64::from(cost_ns) << LAUNCHES_BITS);
            match self.0.replace(word, more) {
                Ok(()) => return,
                Err(found) => word = found,
            }
        }
    }

    /// Room for so many launches. The batch is closed: nobody else changes the word.
    pub(super) fn open(&self, room_ns: u64, launches: u8) {
        self.0.store(room_ns << LAUNCHES_BITS | u64::from(launches));
    }

    /// The room that is left.
    pub(super) fn room(&self) -> u64 {
        self.0.load() >> LAUNCHES_BITS
    }

    /// Lets nothing more in; the room and the launches that were left.
    pub(super) fn close(&self) -> (u64, u64) {
        let mut word = self.0.load();
        while let Err(found) = self.0.replace(word, 0) {
            word = found;
        }
        (word >> LAUNCHES_BITS, word & LAUNCHES)
    }
}
