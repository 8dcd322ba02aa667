//! Whose ledger a process of no container has: that of a `gpucap run`, or one that a user's processes share.
//!
//! What a ledger names is its user's word, who may write there anything. So a process counts as one of a ledger only if it is
//! of the same user, and only for the series of that ledger: what is charged to whom does not depend on it. How many
//! processes are looked at is bounded, and how often.

use crate::container::ledgers::{self, Look, Name};
use crate::node::proc::{Snapshot, Whereabouts};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// How many processes of all ledgers are looked at.
const MOST: usize = 4096;

/// The ledgers of processes, by their numbers and when they started.
#[derive(Debug, Default)]
pub(super) struct Runs {
    known: BTreeMap<(u32, u64), String>,
    /// Not read again before, in ns.
    next_at: u64,
}

impl Runs {
    /// Returns the path of the ledger that a process has. If it is of none that is known, they are read again, unless
    /// that was done within the last `again_ns`.
    pub(super) fn ledger(&mut self, process: (u32, u64), now: u64, again_ns: u64) -> Option<&str> {
        if !self.known.contains_key(&process) && now >= self.next_at {
            self.next_at = now.saturating_add(again_ns);
            self.known = read();
        }
        self.known.get(&process).map(String::as_str)
    }

    /// Forgets the processes that have ended.
    pub(super) fn retain(&mut self, runs: impl Fn((u32, u64)) -> bool) {
        self.known.retain(|process, _| runs(*process));
    }

    /// The paths of all that are known.
    pub(super) fn ledgers(&self) -> impl Iterator<Item = &String> {
        self.known.values()
    }
}

fn read() -> BTreeMap<(u32, u64), String> {
    let (snapshot, mut known, mut left) = (Snapshot::default(), BTreeMap::new(), MOST);
    for path in ledgers::all(None).0 {
        let Some(name) = Name::of(&path) else { continue };
        let Look::Ledger(map) = ledgers::read(&path) else { continue };
        for process in map.get().processes() {
            let Some(rest) = left.checked_sub(1) else { return known };
            left = rest;
            let Whereabouts::Runs(process) = snapshot.find(&process.identity) else { continue };
            let is_users = fs::metadata(process.path("")).is_ok_and(|it| it.uid() == name.uid());
            if let (true, Some(stat)) = (is_users, process.stat().ok().flatten()) {
                known
                    .entry((process.0, stat.start_time))
                    .or_insert_with(|| path.display().to_string());
            }
        }
    }
    known
}
