//! The quantities of a limit: [`Bytes`], [`Share`] and [`Amount`], parsed and printed exactly.
//!
//! Integers only, no floats: `1.5Gi` is 1610612736 bytes or it is refused. Zero, negative numbers,
//! exponents and anything above 64 bits are refused: a limit that cannot be used is never guessed.
//! What is printed parses back to the same value.
//!
//! Suffixes are case-insensitive (`4gi`, `4GIB`), with one exception: a lone lower-case `m` is
//! refused, since it means milli in Kubernetes and MiB in HAMi.

use core::fmt;
use core::str::FromStr;

/// A number of bytes. Parsed from text it is never zero.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Bytes(pub u64);

/// A part of a card, in steps of one hundredth of a percent, from 1 % to 100 %.
///
/// Fine enough for the sevenths and eighths of MIG; integer, so that no two places round apart.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Share(u16);

/// An amount of memory as a person asks for it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Amount {
    /// A number of bytes, whatever the GPU.
    Bytes(Bytes),
    /// A part of the memory of the device.
    OfDevice(Share),
}

/// That a person may have meant more than so few bytes: not even a context fits. What was said holds all the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Doubt(Bytes);

impl Bytes {
    /// The notice for an unusually small request.
    #[must_use]
    pub const fn doubt(self) -> Option<Doubt> {
        if self.0 < 1 << 20 { Some(Doubt(self)) } else { None }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Bytes(number)) = *self;
        // 4 is likely to be gibibytes, 4096 mebibytes.
        let suffix = if number < 1024 { "Gi" } else { "Mi" };
        write!(f, "nothing fits into {number} bytes; is {number}{suffix} meant?")
    }
}

impl Amount {
    /// The same of an amount in bytes.
    #[must_use]
    pub const fn doubt(self) -> Option<Doubt> {
        match self {
            Self::Bytes(bytes) => bytes.doubt(),
            Self::OfDevice(_) => None,
        }
    }
}

/// Why a quantity is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UnitError {
    /// Does not begin with decimal digits.
    NotANumber,
    /// The number is followed by something that is no suffix.
    UnknownSuffix,
    /// A lone lower-case `m`.
    Milli,
    /// A fraction that leaves a part of a byte.
    PartOfAByte,
    /// More than 64 bits of bytes.
    TooLarge,
    /// Nought.
    Zero,
    /// Below nought.
    Negative,
    /// A share that is not from 1 to 100 percent.
    NotAPercentage,
    /// A share with more than two decimals.
    TooPrecise,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "not a decimal number",
            Self::UnknownSuffix => {
                "unknown suffix (known: Ki Mi Gi Ti, K M G T, with or without B)"
            }
            Self::Milli => {
                "suffix 'm' is ambiguous (milli in Kubernetes, MiB in HAMi): write Mi or M"
            }
            Self::PartOfAByte => "not a whole number of bytes",
            Self::TooLarge => "too large",
            Self::Zero => "must be more than 0",
            Self::Negative => "must not be negative",
            Self::NotAPercentage => "a percentage is from 1 to 100",
            Self::TooPrecise => "a percentage has at most two decimals",
        })
    }
}

impl core::error::Error for UnitError {}

impl Share {
    /// The whole card.
    pub const FULL: Self = Self(Self::DENOMINATOR);
    /// The smallest.
    pub const LEAST: Self = Self(Self::DENOMINATOR / 100);
    pub(crate) const ONE_EIGHTH: Self = Self(Self::DENOMINATOR / 8);
    pub(crate) const ONE_QUARTER: Self = Self(Self::DENOMINATOR / 4);
    pub(crate) const ONE_HALF: Self = Self(Self::DENOMINATOR / 2);
    pub(crate) const THREE_QUARTERS: Self = Self(30_000 / 4);
    // Rounded down: seven times one seventh must fit on a card.
    pub(crate) const ONE_SEVENTH: Self = Self(Self::DENOMINATOR / 7);
    pub(crate) const TWO_SEVENTHS: Self = Self(20_000 / 7);
    pub(crate) const THREE_SEVENTHS: Self = Self(30_000 / 7);
    pub(crate) const FOUR_SEVENTHS: Self = Self(40_000 / 7);
    /// [`parts`](Self::parts) are counted in this many to a whole.
    pub const DENOMINATOR: u16 = 10_000;

    /// From parts in [`DENOMINATOR`](Self::DENOMINATOR); none unless from 1 % to 100 %.
    #[must_use]
    pub const fn from_parts(parts: u16) -> Option<Self> {
        if parts >= 100 && parts <= Self::DENOMINATOR { Some(Self(parts)) } else { None }
    }

    /// From whole percent; none unless from 1 to 100.
    #[must_use]
    pub const fn from_percent(percent: u16) -> Option<Self> {
        match percent.checked_mul(100) {
            Some(parts) => Self::from_parts(parts),
            None => None,
        }
    }

    /// Parts in [`DENOMINATOR`](Self::DENOMINATOR): 100 to 10,000.
    #[must_use]
    pub const fn parts(self) -> u16 {
        self.0
    }

    /// Whole percent, rounded down: at least 1.
    #[must_use]
    pub const fn percent(self) -> u16 {
        self.0 / 100
    }

    /// This part of `whole`, rounded down.
    #[must_use]
    pub fn of(self, whole: u64) -> u64 {
        let parts = u128::from(whole).saturating_mul(u128::from(self.0));
        let part = parts.checked_div(u128::from(Self::DENOMINATOR));
        // A share is at most the whole, so it always fits.
        part.and_then(|part| u64::try_from(part).ok()).unwrap_or(whole)
    }
}

impl Amount {
    /// Bytes of a device with `total` bytes; a percentage is rounded down.
    #[must_use]
    pub fn of(self, total: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.0,
            Self::OfDevice(share) => share.of(total),
        }
    }
}

/// Suffix without its `B`, and what it multiplies by. Printing tries them in this order.
const SCALES: [(&str, u64); 8] = [
    ("Ti", 1 << 40),
    ("T", 1_000_000_000_000),
    ("Gi", 1 << 30),
    ("G", 1_000_000_000),
    ("Mi", 1 << 20),
    ("M", 1_000_000),
    ("Ki", 1 << 10),
    ("K", 1_000),
];

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, suffix) = Decimal::split(text)?;
        let bytes = number.times(scale(suffix)?)?;
        if bytes == 0 { Err(UnitError::Zero) } else { Ok(Self(bytes)) }
    }
}

/// The largest unit that leaves a whole number: `4GiB`, `4864MiB`, `4GB`, else bytes.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (suffix, scale) in SCALES {
            if self.0 >= scale && self.0.is_multiple_of(scale) {
                // `scale` is never nought: the division always happens.
                return write!(f, "{}{suffix}B", self.0.checked_div(scale).unwrap_or(0));
            }
        }
        write!(f, "{}", self.0)
    }
}

/// `30`, `12.5`, with or without `%`.
impl FromStr for Share {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, suffix) = Decimal::split(text)?;
        if !matches!(suffix, "" | "%") {
            return Err(UnitError::NotAPercentage);
        }
        let parts = number.times(100).map_err(|error| match error {
            UnitError::PartOfAByte => UnitError::TooPrecise,
            _ => UnitError::NotAPercentage,
        })?;
        u16::try_from(parts).ok().and_then(Self::from_parts).ok_or(UnitError::NotAPercentage)
    }
}

/// `30%`, `14.28%`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 100, self.0 % 100);
        match rest {
            0 => write!(f, "{whole}%"),
            tenths if tenths % 10 == 0 => write!(f, "{whole}.{}%", tenths / 10),
            _ => write!(f, "{whole}.{rest:02}%"),
        }
    }
}

impl FromStr for Amount {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.ends_with('%') {
            text.parse().map(Self::OfDevice)
        } else {
            text.parse().map(Self::Bytes)
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::OfDevice(share) => share.fmt(f),
        }
    }
}

fn scale(suffix: &str) -> Result<u64, UnitError> {
    if suffix.is_empty() {
        return Ok(1);
    }
    if suffix == "m" {
        return Err(UnitError::Milli);
    }
    let name = suffix.strip_suffix(['b', 'B']).unwrap_or(suffix);
    SCALES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|&(_, scale)| scale)
        .ok_or(UnitError::UnknownSuffix)
}

/// A decimal number as written: the digits before and after the point.
struct Decimal<'a> {
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Decimal<'a> {
    /// The number at the start of `text`, and what follows it.
    fn split(text: &'a str) -> Result<(Self, &'a str), UnitError> {
        if text.starts_with('-') {
            return Err(UnitError::Negative);
        }
        let (whole, rest) = digits(text);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest),
            None => ("", rest),
        };
        let point_without_digits = rest.starts_with('.') && fraction.is_empty();
        if whole.is_empty() || point_without_digits {
            return Err(UnitError::NotANumber);
        }
        Ok((Self { whole, fraction }, suffix))
    }

    /// The exact product, by the multiplication one does on paper; a rest is refused.
    fn times(&self, scale: u64) -> Result<u64, UnitError> {
        let mut carry = 0_u64;
        for digit in self.fraction.bytes().rev().map(value) {
            let product =
                u128::from(digit).saturating_mul(scale.into()).saturating_add(carry.into());
            if !product.is_multiple_of(10) {
                return Err(UnitError::PartOfAByte);
            }
            carry = u64::try_from(product / 10).map_err(|_| UnitError::TooLarge)?;
        }
        let mut whole = 0_u64;
        for digit in self.whole.bytes().map(value) {
            whole = whole
                .checked_mul(10)
                .and_then(|tens| tens.checked_add(digit))
                .ok_or(UnitError::TooLarge)?;
        }
        whole
            .checked_mul(scale)
            .and_then(|bytes| bytes.checked_add(carry))
            .ok_or(UnitError::TooLarge)
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn value(digit: u8) -> u64 {
    u64::from(digit.saturating_sub(b'0'))
}
