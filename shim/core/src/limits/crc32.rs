//! CRC-32 as in zip and Ethernet (IEEE 802.3, reflected, 0xEDB88320).
//!
//! Guards the limits file against a write that was cut short or a bit that fell over, not against
//! malice: that is what the read-only mount is for. Bit by bit, since the file has a few lines.

/// The checksum of `bytes`.
pub(super) fn of(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            let shifted = crc >> 1;
            if crc & 1 == 0 { shifted } else { shifted ^ 0xEDB8_8320 }
        })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_standard_comes_out() {
        assert_eq!(super::of(b"123456789"), 0xCBF4_3926);
        assert_eq!(super::of(b""), 0);
    }
}
