//! The name of a device that means the same on the host, in a container and in every process.
//!
//! A [`Uuid`] is sixteen bytes, as `cuDeviceGetUuid_v2` gives them: bytes alone, nothing says whether a
//! whole card or a MIG instance is meant. A [`DeviceName`] is what people and files write: those
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
