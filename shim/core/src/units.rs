//! The quantities of a limit: [`Bytes`], [`Share`] and [`Amount`], parsed and printed exactly, and [`ComputeLimit`], which
//! is made of shares.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod compute_limit;
mod quantity;
#[cfg(test)]
mod tests;

pub use compute_limit::ComputeLimit;
pub use quantity::{Amount, Bytes, Doubt, Share, UnitError};

/// A length of time or a number of bytes, for differences. What does not fit is longer than any uptime.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
