//! How a container's compute limit may be exceeded: what is asked for beside the share itself.
//!
//! A container has its share of a device's time whatever others do, and with the policy `burst` it may borrow what they
//! leave unused, up to its most. With low priority it has nothing of its own. [`Wish::limit`] is the one place where the
//! share, the most, the policy and the priority become a [`ComputeLimit`]: for variables alone in the shim, for all
//! sources of a container in the planner. They are wishes: where a node decides, it lends or does not.

use core::fmt;

use super::value::{Value, ValueError};
use crate::units::{ComputeLimit, Share};

/// Whether more than the guarantee may be used. Of two the lower one holds.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum CorePolicy {
    /// Never.
    Fixed,
    /// What others leave unused.
    Burst,
}

/// Whether there is a guarantee at all. Of two the lower one holds.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum CorePriority {
    /// None: it has only what others leave unused.
    Low,
    /// The share.
    Normal,
}

/// What is asked of one device's time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wish {
    /// The share.
    pub share: Option<Share>,
    /// The most, of which the share is a part.
    pub most: Option<Share>,
    /// Whether more than the share may be used. Low priority does so unless this says otherwise.
    pub policy: Option<CorePolicy>,
    /// Whether the share is guaranteed.
    pub priority: Option<CorePriority>,
}

impl Wish {
    /// Whether it is for low priority.
    #[must_use]
    pub fn is_low(self) -> bool {
        self.priority == Some(CorePriority::Low)
    }

    /// Whether it is for more than a share.
    #[must_use]
    pub fn bursts(self) -> bool {
        self.policy.map_or_else(|| self.is_low(), |policy| policy == CorePolicy::Burst)
    }

    /// The lower of both, each part on its own.
    #[must_use]
    pub fn lower(self, other: Self) -> Self {
        Self {
            share: lower(self.share, other.share),
            most: lower(self.most, other.most),
            policy: lower(self.policy, other.policy),
            priority: lower(self.priority, other.priority),
        }
    }

    /// The limit that it comes to where it is granted; `None` if it limits nothing.
    ///
    /// A most without a share is the share. Neither is above the other's bound: the share is at most the most, and
    /// without `burst` the most is the share.
    #[must_use]
    pub fn limit(self) -> Option<ComputeLimit> {
        let most = self.most.unwrap_or(Share::FULL);
        let share = self.share.or(self.most).map(|share| share.min(most));
        match (share, self.bursts()) {
            (share, bursts) if self.is_low() => {
                let most = if bursts { most } else { share.unwrap_or(most) };
                Some(ComputeLimit::low_priority(most))
            }
            // Without a share of its own, the most is one: there is nothing to borrow beyond it.
            (Some(share), true) => Some(ComputeLimit::burst(share, most)),
            (share, _) => share.map(ComputeLimit::fixed),
        }
    }
}

fn lower<T: Ord>(one: Option<T>, two: Option<T>) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

impl Value for CorePolicy {
    fn parse(text: &str) -> Result<Self, ValueError> {
        let known = [Self::Fixed, Self::Burst];
        named(known, text).ok_or(ValueError::NotAPolicy)
    }
}

impl Value for CorePriority {
    fn parse(text: &str) -> Result<Self, ValueError> {
        named([Self::Normal, Self::Low], text).ok_or(ValueError::NotAPriority)
    }
}

/// The one with this name, in any case.
fn named<T: fmt::Display>(known: [T; 2], text: &str) -> Option<T> {
    known.into_iter().find(|known| known.to_string().eq_ignore_ascii_case(text))
}

impl fmt::Display for CorePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed => "fixed",
            Self::Burst => "burst",
        })
    }
}

impl fmt::Display for CorePriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Low => "low",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn percent(percent: u16) -> Share {
        Share::from_percent(percent).expect("a share")
    }

    fn wish(share: u16, most: u16, policy: &str, priority: &str) -> Option<ComputeLimit> {
        let wish = Wish {
            share: Share::from_percent(share),
            most: Share::from_percent(most),
            policy: CorePolicy::parse(policy).ok(),
            priority: CorePriority::parse(priority).ok(),
        };
        wish.limit()
    }

    #[test]
    fn a_wish_comes_to_one_limit() {
        let [fixed, burst] = [
            |it| ComputeLimit::fixed(percent(it)),
            |it| ComputeLimit::burst(percent(it), Share::FULL),
        ];
        for (wish, limit) in [
            (wish(0, 0, "", ""), None),
            (wish(0, 0, "burst", "normal"), None),
            (wish(30, 0, "", ""), Some(fixed(30))),
            (wish(30, 0, "fixed", ""), Some(fixed(30))),
            (wish(30, 80, "", ""), Some(fixed(30))),
            (wish(30, 0, "burst", ""), Some(burst(30))),
            (wish(30, 0, "BURST", "Normal"), Some(burst(30))),
            (wish(30, 80, "burst", ""), Some(ComputeLimit::burst(percent(30), percent(80)))),
            (wish(30, 20, "burst", ""), Some(fixed(20))),
            (wish(30, 20, "", ""), Some(fixed(20))),
            (wish(0, 20, "burst", ""), Some(fixed(20))),
            (wish(0, 20, "", ""), Some(fixed(20))),
            (wish(0, 0, "", "low"), Some(ComputeLimit::low_priority(Share::FULL))),
            (wish(30, 0, "", "low"), Some(ComputeLimit::low_priority(Share::FULL))),
            (wish(30, 80, "", "low"), Some(ComputeLimit::low_priority(percent(80)))),
            (wish(30, 80, "fixed", "low"), Some(ComputeLimit::low_priority(percent(30)))),
        ] {
            assert_eq!(wish, limit);
        }
    }

    fn wishes() -> impl Strategy<Value = Wish> {
        let share = || prop::option::of((1_u16..=100).prop_map(percent));
        let policy =
            prop::option::of(prop::sample::select(vec![CorePolicy::Fixed, CorePolicy::Burst]));
        let low =
            prop::option::of(prop::sample::select(vec![CorePriority::Low, CorePriority::Normal]));
        (share(), share(), policy, low).prop_map(|(share, most, policy, priority)| Wish {
            share,
            most,
            policy,
            priority,
        })
    }

    proptest! {
        #[test]
        fn no_wish_is_above_its_share_and_its_most(wish in wishes()) {
            let Some(limit) = wish.limit() else { return Ok(()) };
            prop_assert!(limit.guaranteed().is_none_or(|guaranteed| guaranteed <= limit.most()));
            prop_assert!(wish.most.is_none_or(|most| limit.most() <= most));
            if let Some(share) = wish.share {
                prop_assert!(limit.guaranteed().is_none_or(|guaranteed| guaranteed <= share));
                prop_assert!(wish.bursts() || limit.most() <= share);
            }
        }
    }
}
