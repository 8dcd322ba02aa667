//! What a container may have of a device's time: what is guaranteed to it, and the most that it may have where others
//! leave their time unused.

use core::fmt;

use super::quantity::Share;

/// A compute limit.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ComputeLimit {
    guaranteed: Option<Share>,
    most: Share,
}

impl ComputeLimit {
    /// The share, whatever others leave unused.
    #[must_use]
    pub const fn fixed(share: Share) -> Self {
        Self { guaranteed: Some(share), most: share }
    }

    /// The share, and up to `most` of what others leave unused; at least the share.
    #[must_use]
    pub fn burst(share: Share, most: Share) -> Self {
        Self { guaranteed: Some(share), most: most.max(share) }
    }

    /// Nothing of its own, and up to `most` of what others leave unused.
    #[must_use]
    pub const fn low_priority(most: Share) -> Self {
        Self { guaranteed: None, most }
    }

    /// What it has at any time; `None` for low priority.
    #[must_use]
    pub const fn guaranteed(self) -> Option<Share> {
        self.guaranteed
    }

    /// The share that it is held to where nothing is lent to it: low priority too has the least one.
    #[must_use]
    pub fn share(self) -> Share {
        self.guaranteed.unwrap_or(Share::LEAST)
    }

    /// The most that it may have.
    #[must_use]
    pub const fn most(self) -> Share {
        self.most
    }

    /// Returns whether it may have more than is guaranteed to it.
    #[must_use]
    pub fn borrows(self) -> bool {
        self.guaranteed.is_none_or(|guaranteed| guaranteed < self.most)
    }

    /// Returns what both allow: of two sources, neither raises what the other says.
    #[must_use]
    pub fn lower(self, other: Self) -> Self {
        let guaranteed = self.guaranteed.zip(other.guaranteed).map(|(one, two)| one.min(two));
        Self { guaranteed, most: self.most.min(other.most) }
    }
}

/// `30%`, `30% (to 100%)`, `low (to 100%)`.
impl fmt::Display for ComputeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.guaranteed {
            Some(share) if !self.borrows() => share.fmt(f),
            Some(share) => write!(f, "{share} (to {})", self.most),
            None => write!(f, "low (to {})", self.most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(percent: u16) -> Share {
        Share::from_percent(percent).expect("a share")
    }

    #[test]
    fn of_two_limits_neither_raises_the_other() {
        let burst = ComputeLimit::burst(percent(30), percent(80));
        let fixed = ComputeLimit::fixed(percent(50));
        assert_eq!(burst.lower(fixed), ComputeLimit::burst(percent(30), percent(50)));
        assert_eq!(fixed.lower(ComputeLimit::fixed(percent(20))), ComputeLimit::fixed(percent(20)));
        let low = ComputeLimit::low_priority(Share::FULL);
        assert_eq!(low.lower(burst), ComputeLimit::low_priority(percent(80)));
    }

    #[test]
    fn a_limit_is_printed_with_its_most() {
        for (limit, text) in [
            (ComputeLimit::fixed(percent(30)), "30%"),
            (ComputeLimit::burst(percent(30), Share::FULL), "30% (to 100%)"),
            (ComputeLimit::low_priority(percent(50)), "low (to 50%)"),
        ] {
            assert_eq!(limit.to_string(), text);
        }
    }

    #[test]
    fn only_what_is_beyond_the_guarantee_is_borrowed() {
        assert!(!ComputeLimit::fixed(percent(30)).borrows());
        assert!(!ComputeLimit::burst(percent(30), percent(10)).borrows());
        assert!(ComputeLimit::burst(percent(30), percent(31)).borrows());
        assert!(ComputeLimit::low_priority(percent(30)).borrows());
    }
}
