//! The text of a limits file, written as `include/gpucap.h` describes it.

/// A limits file with these lines about GPUs, framed by the version and the checksum.
#[must_use]
pub fn limits_text(lines: &str) -> String {
    sealed(&format!("gpucap-limits=1\nsource=test\ncontainer=test\n{lines}"))
}

/// The text with its checksum, whatever it says.
#[must_use]
pub fn sealed(body: &str) -> String {
    let crc = crc32(body.as_bytes());
    format!("{body}crc32={crc:08x}\n")
}

/// The checksum of zip and Ethernet (ISO 3309), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}
