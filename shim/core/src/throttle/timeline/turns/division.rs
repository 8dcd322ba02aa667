//! The time between two looks, divided among the peers and this process.

use super::{Turns, peers::Peer, scaled};
use crate::units::signed;

/// Of what a peer was entitled to and did not need, it is given this much, a turn, once its work has ended: its report says
/// late, or too early, for which part of the time that was in flight. Without it, `W4 4 streams x 50 us` at a fixed 70 %
/// is charged 3 points that kernels of 490 us had, of a container with 10 % that borrows, or 4 that 32 processes of a
/// fixed 10 % had (`attacks crowds`).
const UNUSED_NS: u64 = 2_000_000;

impl Turns {
    /// Divides the time since the latest look, in some of which this process is known to have been `there`. Returns how much
    /// of any of it was this process's, out of `passed`, in the mean and at least, and the same of its container; and of how
    /// much nothing was seen of it, and no sibling had it in the mean.
    pub(super) fn divide_time(&mut self, there: u64, passed: u64) -> ([u64; 4], u64) {
        if there == 0 {
            return self.divide_unseen(passed);
        }
        // First the time in which it had no work in flight, then the time in which it had.
        self.give(passed - there, passed, false);
        (self.give(there, passed, true).map(|rest| scaled(passed, rest, there)), 0)
    }

    /// The same if nothing of this process is known to have been there. Work that a call waits for and no event follows is
    /// known of once the call has returned, after the look: what is asked of this time had what would have been its part. If
    /// all of it counted as its own, `T3 4 of a budget, 8 x 10 us, waited for, 30, beside 70 of 1 ms kernels` would get 5 of
    /// 30 %.
    fn divide_unseen(&mut self, passed: u64) -> ([u64; 4], u64) {
        let peers = self.peers.clone();
        // What siblings had may count twice: the container's account evens that out. If it were taken to be theirs,
        // `T11 4 of around 3 ms and one with 10 us each 200 us, 90` would get 92.
        self.peers.retain(|peer| !peer.is_own);
        let own = self.give(passed, passed, true);
        self.peers = peers;
        let [rest, _, container, _] = self.give(passed, passed, false);
        (own, passed - (container - rest))
    }

    /// Gives the peers, and this process too if it was present, their parts of `ns` out of `passed`. Returns what is
    /// left, in the mean and at least, and the same of what is left to the container.
    fn give(&mut self, ns: u64, passed: u64, is_there: bool) -> [u64; 4] {
        let own = u64::from(is_there);
        let there = |peer: &Peer| scaled(peer.there_ns, ns, passed);
        let left = |ns: i64| u64::try_from(ns).unwrap_or(0);
        // Of each round of turns a process of another container has one. Without the siblings,
        // `T2 8 never seen, 20 ms, 50, beside 10 us, 50` gets 29 points more than its bound allows.
        let siblings = self.peers.iter().filter(|peer| peer.works_unmeasured()).count() as u64;
        let half = |peer: &Peer| there(peer) / (1 + own + if peer.is_own { 0 } else { siblings });
        // What is left now of one that has ended it had been given.
        let late_ns = |peer: &Peer| if peer.is_in_flight { 0 } else { peer.unused_ns };
        let wants = |peer: &Peer| {
            let [left_ns, _] = peer.left_ns;
            left(left_ns).min(half(peer) + late_ns(peer))
        };
        // Low priority pays for what is not known: beside it `W4 4 streams x 50 us`, 70, would lose 2.6 points to kernels
        // of 8 ms.
        let most_unused_ns = if self.limit.guaranteed().is_some() { UNUSED_NS } else { 0 };
        self.peers.sort_unstable_by_key(wants);
        let mut takers = self.peers.len() as u64 + own;
        let [mut rest, mut least, mut container, mut container_least] = [ns; 4];
        for peer in &mut self.peers {
            let given_ns = wants(peer).min(rest / takers.max(1));
            // It may have had more than in the mean. Without that, `W8 10 us, sync` misses its bound at 10 % beside
            // `W2 40 ms kernels` at 70 %.
            let [left_ns, left_most_ns] = peer.left_ns;
            let most_ns = left(left_most_ns).min(there(peer)).max(given_ns);
            peer.left_ns = [
                left_ns.saturating_sub(signed(given_ns)),
                left_most_ns.saturating_sub(signed(most_ns)),
            ];
            let unused_ns = half(peer).saturating_add(peer.unused_ns).saturating_sub(given_ns);
            peer.unused_ns = unused_ns.min(most_unused_ns);
            rest -= given_ns;
            least = least.saturating_sub(most_ns);
            if !peer.is_own {
                container -= given_ns;
                container_least = container_least.saturating_sub(most_ns);
            }
            takers -= 1;
        }
        [rest, least, container, container_least]
    }
}
