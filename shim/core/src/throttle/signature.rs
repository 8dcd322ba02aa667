//! Signatures: launches with the same signature are expected to cost the same.
//!
//! A signature is a hash: the function (or executable graph) mixed with the power-of-two class of the launch's
//! threads. Two functions with one signature share an estimate, which then is a mean; the final charge is measured.

use crate::table::MULTIPLIER;

/// Launches of one signature are expected to cost about the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature(pub(super) u64);

impl Signature {
    /// Of a kernel: its function's handle, and the threads of the whole grid.
    #[inline]
    #[must_use]
    pub const fn kernel(function: u64, threads: u64) -> Self {
        Self::mixed(function, (threads | 1).ilog2())
    }

    /// Of an executable graph, by its handle.
    #[inline]
    #[must_use]
    pub const fn graph(executable: u64) -> Self {
        Self::mixed(executable, 100)
    }

    /// Of a fill or a copy within the device: any number that identifies the function, and the number of bytes.
    #[inline]
    #[must_use]
    pub const fn transfer(function: u64, bytes: u64) -> Self {
        Self::mixed(function, 200 + (u64::BITS - bytes.leading_zeros()))
    }

    /// One multiplication, whose halves are folded: every bit of the result depends on every bit of the input.
    #[inline]
    const fn mixed(handle: u64, class: u32) -> Self {
        // Handles are addresses, whose highest bits are equal.
        let bits = handle ^ (class as u64) << 56;
        let wide = (bits as u128).wrapping_mul(MULTIPLIER as u128);
        // Both halves are used.
        #[allow(clippy::cast_possible_truncation)]
        Self(wide as u64 ^ (wide >> 64) as u64)
    }
}

/// A launch that did not fit its stream's batch, as the meter sees it.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    pub(super) signature: Signature,
    /// The least to reserve while nothing of this signature has been measured.
    pub(super) first_ns: u64,
    pub(super) meeting: Meeting,
}

/// The part of a launch that spins on its device until its peers have arrived on others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// Nothing.
    None,
    /// A part: the rest is ordinary work.
    Part,
    /// All of it. It has been requested since this time.
    Since(u64),
}

impl Launch {
    /// The cost of an unknown function is unknown: this much is reserved for its first launch.
    pub(super) const FIRST_NS: u64 = 1_000_000;
    const NODE_NS: u64 = 5_000;

    /// A kernel, a fill or a copy.
    #[must_use]
    pub const fn kernel(signature: Signature) -> Self {
        Self { signature, first_ns: Self::FIRST_NS, meeting: Meeting::None }
    }

    /// An executable graph of `nodes` nodes.
    #[must_use]
    pub const fn graph(signature: Signature, nodes: u64) -> Self {
        let guess = nodes.saturating_mul(Self::NODE_NS);
        let first_ns = if guess > Self::FIRST_NS { guess } else { Self::FIRST_NS };
        Self { signature, first_ns, meeting: Meeting::None }
    }

    /// The same launch as a collective, whose peers spin until it comes: it is charged, but held back only for a
    /// large debt and for a short while. `since`: when it was first requested.
    #[must_use]
    pub const fn collective(self, since: u64) -> Self {
        Self { meeting: Meeting::Since(since), ..self }
    }

    /// The same graph with collectives in it: its device meets others, but it is held back like any work unless one
    /// of them waits for it.
    #[must_use]
    pub const fn with_collectives(self) -> Self {
        Self { meeting: Meeting::Part, ..self }
    }
}
