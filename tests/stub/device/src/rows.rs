//! Comparisons that the compiler makes: both libraries hold the shim's rows against their own.

/// Whether two names are the same.
#[must_use]
pub const fn same_text(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    one.len() == other.len()
}

/// Whether two argument lists have the same sizes.
#[must_use]
pub const fn same_sizes(one: &[usize], other: &[usize]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    one.len() == other.len()
}
