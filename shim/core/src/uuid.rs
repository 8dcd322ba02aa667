//! The name of a device that means the same on the host, in a container and in every process.
//!
//! A [`Uuid`] is sixteen bytes, as `cuDeviceGetUuid_v2` gives them: nothing in them says whether
//! a whole card or a MIG instance is meant. A [`DeviceName`] is what people and files write: those
//! bytes behind `GPU-` or `MIG-`. Limits are matched by the bytes; the kind is for reading.
//!
//! Never accepted: a shortened UUID (what `CUDA_VISIBLE_DEVICES` allows), since a second card
//! could make it mean something else; and the form `MIG-GPU-.../1/0` of drivers before 470.

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

use core::fmt;
use core::str::FromStr;

/// Sixteen bytes that name a card or a MIG instance.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Uuid(pub [u8; 16]);

/// What a [`DeviceName`] names.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// A whole card: `GPU-`.
    Gpu,
    /// A MIG instance: `MIG-`.
    Mig,
}

/// A device as it is written: `GPU-` or `MIG-` and the UUID.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeviceName {
    /// Card or MIG instance.
    pub kind: Kind,
    /// The bytes by which it is matched.
    pub uuid: Uuid,
}

/// The text is not `GPU-` or `MIG-` and a complete UUID.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NotADeviceName;

impl fmt::Display for NotADeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a device is named GPU-<uuid> or MIG-<uuid>, as nvidia-smi -L prints it")
    }
}

impl core::error::Error for NotADeviceName {}

impl Uuid {
    /// These bytes as the name of a whole card.
    #[must_use]
    pub const fn gpu(self) -> DeviceName {
        DeviceName { kind: Kind::Gpu, uuid: self }
    }

    /// These bytes as the name of a MIG instance.
    #[must_use]
    pub const fn mig(self) -> DeviceName {
        DeviceName { kind: Kind::Mig, uuid: self }
    }

    /// Of two words, as [`halves`](Self::halves) has them.
    pub(crate) fn of_halves([high, low]: [u64; 2]) -> Self {
        Self((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
    }

    /// As two words, for memory that processes share.
    pub(crate) fn halves(self) -> [u64; 2] {
        let all = u128::from_be_bytes(self.0);
        #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
        let low = all as u64;
        [u64::try_from(all >> 64).unwrap_or(u64::MAX), low]
    }
}

/// `00112233-4455-6677-8899-aabbccddeeff`, without a kind.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for Uuid {
    type Err = NotADeviceName;

    fn from_str(text: &str) -> Result<Self, NotADeviceName> {
        let mut digits = text.bytes().enumerate().filter_map(|(at, byte)| match at {
            8 | 13 | 18 | 23 if byte == b'-' => None,
            _ => Some(char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())),
        });
        let mut bytes = [0_u8; 16];
        for byte in &mut bytes {
            let high = digits.next().flatten().ok_or(NotADeviceName)?;
            let low = digits.next().flatten().ok_or(NotADeviceName)?;
            *byte = (high << 4) | low;
        }
        // 32 digits in 36 characters: every one of the four other places held a dash.
        if text.len() == 36 && digits.next().is_none() {
            Ok(Self(bytes))
        } else {
            Err(NotADeviceName)
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Gpu => "GPU",
            Kind::Mig => "MIG",
        };
        write!(f, "{kind}-{}", self.uuid)
    }
}

impl FromStr for DeviceName {
    type Err = NotADeviceName;

    fn from_str(text: &str) -> Result<Self, NotADeviceName> {
        let (prefix, uuid) = text.split_at_checked(4).ok_or(NotADeviceName)?;
        let kind = if prefix.eq_ignore_ascii_case("GPU-") {
            Kind::Gpu
        } else if prefix.eq_ignore_ascii_case("MIG-") {
            Kind::Mig
        } else {
            return Err(NotADeviceName);
        };
        Ok(Self { kind, uuid: uuid.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES: [u8; 16] = [0, 0x11, 0x22, 0x33, 4, 5, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0xd, 0xe, 0xff];
    const TEXT: &str = "00112233-0405-0607-0809-0a0b0c0d0eff";

    #[test]
    fn both_kinds_are_read_and_printed() {
        for (prefix, name) in [("GPU", Uuid(BYTES).gpu()), ("MIG", Uuid(BYTES).mig())] {
            assert_eq!(format!("{prefix}-{TEXT}").parse(), Ok(name));
            assert_eq!(name.to_string(), format!("{prefix}-{TEXT}"));
            let lower = prefix.to_lowercase();
            assert_eq!(format!("{lower}-{}", TEXT.to_uppercase()).parse(), Ok(name));
        }
    }

    #[test]
    fn only_a_complete_name_is_a_name() {
        for text in [
            "",
            "GPU",
            "GPU-",
            TEXT,
            "GPU-00112233",
            "GPU-00112233-0405-0607-0809-0a0b0c0d0ef",
            "GPU-00112233-0405-0607-0809-0a0b0c0d0eff0",
            "GPU-0011223304050607-0809-0a0b0c0d0eff--",
            "GPU-001122330405060708090a0b0c0d0eff",
            "GPU-001122330405060708090a0b0c0d0eff0000",
            "GPU-00112233-0405-0607-0809-0a0b0c0d0efg",
            "GPU-00112233-0405-0607-0809-0a0b0c0d0e+f",
            "CPU-00112233-0405-0607-0809-0a0b0c0d0eff",
            "GPU-00112233-0405-0607-0809-0a0b0c0d\u{e9}ff",
            "\u{20ac}PU-00112233",
            "MIG-GPU-00112233-0405-0607-0809-0a0b0c0d0eff/1/0",
        ] {
            assert_eq!(text.parse::<DeviceName>(), Err(NotADeviceName), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".*", hex in "(GPU-)?[0-9a-f-]{30,40}") {
            let _ = (text.parse::<DeviceName>(), hex.parse::<DeviceName>());
        }

        #[test]
        fn printed_names_parse_to_themselves(bytes: [u8; 16]) {
            prop_assert_eq!(Uuid(bytes).to_string().parse(), Ok(Uuid(bytes)));
            prop_assert_eq!(Uuid(bytes).mig().to_string().parse(), Ok(Uuid(bytes).mig()));
        }

        #[test]
        fn a_text_that_parses_is_the_one_printed(
            text in "[0-9a-f]{8}[-0][0-9a-f]{4}[-0][0-9a-f]{4}[-0][0-9a-f]{4}[-0][0-9a-f]{12}"
        ) {
            if let Ok(uuid) = text.parse::<Uuid>() {
                prop_assert_eq!(uuid.to_string(), text);
            }
        }
    }
}
