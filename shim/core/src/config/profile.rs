//! A MIG-shaped slice on any card: `1g.5gb`, `3g.20gb+me`, `2g`.
//!
//! * Time: n of the slices into which MIG divides the card ([`Slices`]): sevenths, on some models quarters or halves,
//!   rounded down to a hundredth of a percent, so that seven times `1g` fits on a card.
//! * Memory: the named gigabytes, taken as GiB. A real `1g.5gb` shows 4864 MiB: the card keeps
//!   something back from each instance. 5 GiB is what the name says, and eight of them are the
//!   40 GiB of the card that the profile was named on.
//! * Memory when none is named: what MIG gives. Of sevenths the eighths 1, 2, 4, 4, 8 for 1g, 2g, 3g, 4g, 7g; else the
//!   same part as of the time.
//! * `+me`, `+me.all`, `-me` (the media engines) and `+gfx` (graphics) are accepted and change nothing: we do not meter
//!   those.

use core::fmt;

use super::value::{Value, ValueError};
use crate::units::{Amount, Bytes, Share};

/// A slice of time and memory under a MIG name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Profile {
    compute: Compute,
    gibibytes: Option<u16>,
}

/// Into how many slices MIG divides the computing units of a card, by its model.
///
/// NVIDIA, MIG User Guide, "Supported MIG Profiles" and "Supported GPUs": the most instances of a card are its slices.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Slices {
    /// Of most cards, and of what is not known.
    #[default]
    Seven,
    /// A30, RTX PRO 6000 and 5000 Blackwell.
    Four,
    /// RTX PRO 4500 Blackwell.
    Two,
}

/// The numbers of slices that MIG knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Compute {
    One,
    Two,
    Three,
    Four,
    Seven,
}

impl Profile {
    /// The memory it names: gibibytes, or a part of a device of this kind.
    #[must_use]
    pub fn memory(self, slices: Slices) -> Amount {
        match self.gibibytes {
            Some(number) => Amount::Bytes(Bytes(u64::from(number).saturating_mul(1 << 30))),
            None => Amount::OfDevice(self.compute.shares(slices).1),
        }
    }

    /// The share of the time of a device of this kind.
    #[must_use]
    pub const fn core(self, slices: Slices) -> Share {
        self.compute.shares(slices).0
    }
}

impl Slices {
    /// Those of a card whose model has this name, as CUDA, NVML and `/proc` print it. An instance is a device of its own,
    /// whose slices are not known.
    #[must_use]
    pub fn of_model(name: &str) -> Self {
        let has = |wanted: &str| name.split(' ').any(|word| word == wanted);
        if has("MIG") {
            Self::Seven
        } else if has("A30") || has("A30X") {
            Self::Four
        } else if has("RTX") && has("PRO") && has("Blackwell") {
            if has("4500") { Self::Two } else { Self::Four }
        } else {
            Self::Seven
        }
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

    /// Parts of the time and of the memory.
    const fn shares(self, slices: Slices) -> (Share, Share) {
        let both = match (slices, self) {
            (Slices::Seven, _) => return self.sevenths(),
            (Slices::Four, Self::One) => Share::ONE_QUARTER,
            (Slices::Four, Self::Two) | (Slices::Two, Self::One) => Share::ONE_HALF,
            (Slices::Four, Self::Three) => Share::THREE_QUARTERS,
            (Slices::Four, Self::Four | Self::Seven) | (Slices::Two, _) => Share::FULL,
        };
        (both, both)
    }

    /// Sevenths of the time, eighths of the memory.
    const fn sevenths(self) -> (Share, Share) {
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
        // The longest first: each begins as another one.
        let suffixes = ["+me.all", "+me", "-me", "+gfx"];
        let name = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(&name);
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
