//! The time between two looks, divided among the peers and this process.

use super::{Turns, peers::Peer, scaled};
use crate::units::signed;

/// Of what a peer was entitled to and did not need, it is given this much, a turn, once its work has ended: its report says
/// late, or too early, for which part of the time that was in flight. Without it, `W4 4 streams x 50 us` at a fixed 70 %
/// is charged 3 points that kernels of 490 us had, of a container with 10 % that borrows, or 4 that 32 processes of a
/// fixed 10 % had (`attacks crowds`).
const UNUSED_NS: u64 = 2_000_000;

impl Turns {
    /// Gives the peers, and this process too if it was present, their parts of `ns` out of `passed`. Returns what is
    /// left, in the mean and at least, and what of it is the container's in the mean.
    pub(super) fn give(&mut self, ns: u64, passed: u64, is_there: bool) -> [u64; 3] {
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
        let [mut rest, mut least, mut container] = [ns; 3];
        for peer in &mut self.peers {
            let given_ns = wants(peer).min(rest / takers.max(1));
            let [left_ns, left_most_ns] = peer.left_ns;
            let most_ns = left(left_most_ns).min(there(peer)).max(given_ns);
            peer.left_ns = [
                left_ns.saturating_sub(signed(given_ns)),
                left_most_ns.saturating_sub(signed(most_ns)),
            ];
            let unused_ns = half(peer).saturating_add(peer.unused_ns).saturating_sub(given_ns);
            peer.unused_ns = unused_ns.min(most_unused_ns);
            rest -= given_ns;
            container -= if peer.is_own { 0 } else { given_ns };
            least = least.saturating_sub(most_ns);
            takers -= 1;
        }
        [rest, least, container]
    }
}
