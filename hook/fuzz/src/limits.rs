//! What the bytes of a limits file can reach: in a container's processes, and in root's `explain`, which reads the one that
//! it finds in a process's root.
//!
//! No other bytes than a hook's have the right checksum by chance, so each input is read as it is and with its own.

use gpucap_core::limits::LimitsFile;

/// A limits file, with and without a checksum.
pub fn limits(bytes: &[u8]) {
    read(bytes);
    let line = format!("crc32={:08x}\n", checksum(bytes));
    read(&[bytes, line.as_bytes()].concat());
}

fn read(bytes: &[u8]) {
    match LimitsFile::parse(bytes) {
        Ok(file) => {
            assert_eq!(LimitsFile::parse(file.write().as_bytes()), Ok(file), "not read back");
        }
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains(char::is_control), "more than a line: {line:?}");
        }
    }
}

/// CRC-32 as in zip.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 0 { crc >> 1 } else { (crc >> 1) ^ 0xedb8_8320 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
