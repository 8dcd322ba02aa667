//! Sizes and addresses, which the driver's first API has in 32 bits.

/// A size or an address in either width: 32 bits in the driver's first API, 64 in all later ones.
pub trait Word: Copy {
    /// The value in 64 bits.
    fn to_u64(self) -> u64;
    /// The value in this width; what does not fit becomes the largest that does.
    fn saturating_from(value: u64) -> Self;
}

impl Word for u32 {
    fn to_u64(self) -> u64 {
        self.into()
    }
    fn saturating_from(value: u64) -> Self {
        Self::try_from(value).unwrap_or(Self::MAX)
    }
}

impl Word for u64 {
    fn to_u64(self) -> u64 {
        self
    }
    fn saturating_from(value: u64) -> Self {
        value
    }
}

impl Word for usize {
    fn to_u64(self) -> u64 {
        self as u64
    }
    fn saturating_from(value: u64) -> Self {
        Self::try_from(value).unwrap_or(Self::MAX)
    }
}
