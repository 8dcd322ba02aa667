//! What the protocol's 64-bit words say, and nothing else: packing and unpacking.
//!
//! ```text
//! Total   bytes:42             slot:10  sequence:12    one per device
//! Op      sequence:62                   kind:1 open:1  one per account
//! Owner   generation:40        pid:22          state:2 one per slot
//! Fact    value:48             generation:16           three per slot
//! ```
//!
//! Zero is the first state of each: nothing used, nothing open, a free slot.

const SLOT_BITS: u32 = 10;
const SEQUENCE_BITS: u32 = 12;
const SEQUENCE_MASK: u64 = mask(SEQUENCE_BITS);

/// The most bytes that the total of a device can say: 4 TiB - 1.
pub(super) const MAX_TOTAL: u64 = mask(u64::BITS - SLOT_BITS - SEQUENCE_BITS);

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// What a device's processes use together, and which operation made it so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Total(pub(super) u64);

impl Total {
    /// The total after `op` of the slot at `index`; `bytes` is at most [`MAX_TOTAL`].
    pub(super) fn new(bytes: u64, index: usize, op: Op) -> Self {
        let slot = index as u64 & mask(SLOT_BITS);
        Self(bytes << (SLOT_BITS + SEQUENCE_BITS) | slot << SEQUENCE_BITS | op.sequence_low())
    }

    pub(super) fn bytes(self) -> u64 {
        self.0 >> (SLOT_BITS + SEQUENCE_BITS)
    }

    /// The slot whose operation came last.
    pub(super) fn index(self) -> usize {
        // Ten bits fit any usize.
        #[allow(clippy::cast_possible_truncation)]
        {
            (self.0 >> SEQUENCE_BITS & mask(SLOT_BITS)) as usize
        }
    }

    /// Whether `op`, found in the account of the slot at `index`, is the operation that came last.
    pub(super) fn names(self, index: usize, op: Op) -> bool {
        self.index() == index && self.0 & SEQUENCE_MASK == op.sequence_low()
    }
}

/// The latest operation on an account. Two bits of state:
///
/// * open: announced; the device's total shows whether it took effect;
/// * emptying: sets the account to zero; without it, to the amount noted beside the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Op(pub(super) u64);

impl Op {
    const OPEN: u64 = 1;
    const EMPTYING: u64 = 2;

    /// The next operation, open.
    pub(super) fn next(self) -> Self {
        Self(((self.0 >> 2).wrapping_add(1) << 2) | Self::OPEN)
    }

    /// This operation, open, but with zero as its outcome.
    pub(super) fn emptying(self) -> Self {
        Self(self.0 | Self::OPEN | Self::EMPTYING)
    }

    /// This operation, closed: it took effect, and the account says so by itself.
    pub(super) fn closed(self) -> Self {
        Self(self.0 & !Self::OPEN)
    }

    /// This operation, closed, its outcome read from beside the word.
    pub(super) fn plain(self) -> Self {
        Self(self.0 & !(Self::OPEN | Self::EMPTYING))
    }

    pub(super) fn is_open(self) -> bool {
        self.0 & Self::OPEN != 0
    }

    pub(super) fn is_emptying(self) -> bool {
        self.0 & Self::EMPTYING != 0
    }

    /// Which of an account's two amounts is the outcome; the other one is what was before.
    pub(super) fn is_odd(self) -> bool {
        self.0 >> 2 & 1 != 0
    }

    fn sequence_low(self) -> u64 {
        self.0 >> 2 & SEQUENCE_MASK
    }
}

/// The owner of a slot. Each claim raises the generation, so no two claims share a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner(pub(super) u64);

impl Owner {
    const PID_BITS: u32 = 22;
    const STATE: u64 = 3;
    const CLAIMING: u64 = 1;
    const LIVE: u64 = 2;

    /// The word of the next claim, by `pid`, which Linux keeps below 2^22.
    pub(super) fn claimed(self, pid: u32) -> Self {
        let generation = self.generation().wrapping_add(1);
        let pid = u64::from(pid) & mask(Self::PID_BITS);
        Self(generation << (Self::PID_BITS + 2) | pid << 2 | Self::CLAIMING)
    }

    pub(super) fn live(self) -> Self {
        Self(self.0 & !Self::STATE | Self::LIVE)
    }

    pub(super) fn free(self) -> Self {
        Self(self.0 & !Self::STATE)
    }

    pub(super) fn is_free(self) -> bool {
        self.0 & Self::STATE == 0
    }

    pub(super) fn is_claiming(self) -> bool {
        self.0 & Self::STATE == Self::CLAIMING
    }

    pub(super) fn is_live(self) -> bool {
        self.0 & Self::STATE == Self::LIVE
    }

    pub(super) fn pid(self) -> u32 {
        // 22 bits fit.
        #[allow(clippy::cast_possible_truncation)]
        {
            (self.0 >> 2 & mask(Self::PID_BITS)) as u32
        }
    }

    fn generation(self) -> u64 {
        self.0 >> (Self::PID_BITS + 2)
    }
}

/// One fact about an owner, and the claim that it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Fact(pub(super) u64);

impl Fact {
    const GENERATION_BITS: u32 = 16;

    pub(super) fn new(value: u64, owner: Owner) -> Self {
        let generation = owner.generation() & mask(Self::GENERATION_BITS);
        Self(Self::kept(value) << Self::GENERATION_BITS | generation)
    }

    /// What is kept of a value.
    pub(super) fn kept(value: u64) -> u64 {
        value & mask(u64::BITS - Self::GENERATION_BITS)
    }

    /// The value, whichever claim it belongs to.
    pub(super) fn value(self) -> u64 {
        self.0 >> Self::GENERATION_BITS
    }

    /// Returns whether both belong to the same claim.
    pub(super) fn is_of_one_with(self, other: Self) -> bool {
        (self.0 ^ other.0) & mask(Self::GENERATION_BITS) == 0
    }

    /// The value, if it belongs to this claim.
    pub(super) fn of(self, owner: Owner) -> Option<u64> {
        let value = self.value();
        (Self::new(value, owner).0 == self.0).then_some(value)
    }
}
