//! A MIG-shaped slice on any card: `1g.5gb`, `3g.20gb+me`, `2g`.
//!
//! * Time: n/7, rounded down to a hundredth of a percent, so that seven times `1g` fits on a card.
//! * Memory: the named gigabytes, taken as GiB. A real `1g.5gb` shows 4864 MiB: the card keeps
//!   something back from each instance. 5 GiB is what the name says, and eight of them are the
//!   40 GiB of the card that the profile was named on.
//! * Memory when none is named: the eighths that MIG gives: 1, 2, 4, 4, 8 for 1g, 2g, 3g, 4g, 7g.
//! * `+me` (the media engines) is accepted and changes nothing: we do not meter those.

use core::fmt;

use super::value::{Value, ValueError};
use crate::units::{Amount, Bytes, Share};

/// A slice of time and memory under a MIG name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Profile {
    compute: Compute,
    gibibytes: Option<u16>,
}

/// The numbers of sevenths that MIG knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Compute {
    One,
    Two,
    Three,
    Four,
    Seven,
}

impl Profile {
    /// The memory it names: gibibytes, or eighths of the device.
    #[must_use]
    pub fn memory(self) -> Amount {
        match self.gibibytes {
            Some(number) => Amount::Bytes(Bytes(u64::from(number).saturating_mul(1 << 30))),
            None => Amount::OfDevice(self.compute.shares().1),
        }
    }

    /// The share of time.
    #[must_use]
    pub const fn core(self) -> Share {
        self.compute.shares().0
    }
}

impl Compute {
    const fn number(self) -> u8 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
            Self::Four => 4,
            Self::Seven => 7,
        }
    }

    /// Sevenths of the time, eighths of the memory.
    const fn shares(self) -> (Share, Share) {
        match self {
            Self::One => (Share::ONE_SEVENTH, Share::ONE_EIGHTH),
            Self::Two => (Share::TWO_SEVENTHS, Share::ONE_QUARTER),
            Self::Three => (Share::THREE_SEVENTHS, Share::ONE_HALF),
            Self::Four => (Share::FOUR_SEVENTHS, Share::ONE_HALF),
            Self::Seven => (Share::FULL, Share::FULL),
        }
    }
}

impl Value for Profile {
    fn parse(text: &str) -> Result<Self, ValueError> {
        let name = text.to_ascii_lowercase();
        let name = name.strip_suffix("+me").unwrap_or(&name);
        let (compute, memory) = match name.split_once('.') {
            Some((compute, memory)) => (compute, Some(memory)),
            None => (name, None),
        };
        let compute = match compute {
            "1g" => Compute::One,
            "2g" => Compute::Two,
            "3g" => Compute::Three,
            "4g" => Compute::Four,
            "7g" => Compute::Seven,
            _ => return Err(ValueError::NotAProfile),
        };
        Ok(Self { compute, gibibytes: memory.map(gibibytes).transpose()? })
    }
}

fn gibibytes(memory: &str) -> Result<u16, ValueError> {
    let number = memory.strip_suffix("gb").ok_or(ValueError::NotAProfile)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ValueError::NotAProfile);
    }
    number.parse().ok().filter(|&number| number > 0).ok_or(ValueError::NotAProfile)
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}g", self.compute.number())?;
        match self.gibibytes {
            Some(number) => write!(f, ".{number}gb"),
            None => Ok(()),
        }
    }
}
