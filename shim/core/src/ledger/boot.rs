//! Of which clocks the times in a ledger are: in which life of the machine, and in which time namespace.
//!
//! The clocks begin anew with each boot, and a ledger on a disk outlives one: a bucket in debt would then be in debt
//! for as long as the machine had been up. So the header names the boot, and the first process after another boot
//! clears the times. Two processes that start at once may both do so, and the later one clears what the earlier one
//! has charged since: a turn at most, once in a boot.
//!
//! In a time namespace of its own (`time_namespaces(7)`) a process reads other times at the same moment: what it does would
//! seem long past, or to come, to others. The first process of a boot decides whose times count.

use super::layout::Ledger;

impl Ledger {
    /// A digest of the text by which the system identifies its boots; never zero.
    #[must_use]
    pub fn boot_of(text: &[u8]) -> u64 {
        // Fowler, Noll and Vo's hash.
        let mixed = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        mixed | 1
    }

    /// Forgets the times of another boot than this one.
    pub fn live_in(&self, boot: u64) {
        let found = self.header.boot.load();
        if found == boot {
            return;
        }
        for device in &self.devices {
            device.bucket.store(0);
            device.collectives.store(0);
            device.covered.store(0);
            for word in device.covered_too.iter().chain(&device.covered_besides) {
                word.store(0);
            }
            device.surplus.store(0);
            device.unknown.store(0);
        }
        for (index, _) in self.claimed() {
            for device in self.touched(index) {
                if let Some(account) = self.account(index, device) {
                    account.unfinished.store(0);
                    account.alive.store(0);
                }
            }
        }
        self.header.clocks.store(0);
        // Last: a process that dies before it has done nothing that is not repeated. Where it fails, another process
        // has done it.
        let _ = self.header.boot.replace(found, boot);
    }

    /// Returns whether the times in the ledger are of this time namespace (by its inode). They are if they were of none.
    #[must_use]
    pub fn keeps_times_of(&self, namespace: u64) -> bool {
        match self.header.clocks.replace(0, namespace) {
            Ok(()) => true,
            Err(found) => found == namespace,
        }
    }
}
