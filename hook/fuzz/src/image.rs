//! What the bytes of a code image can reach in the process that loads it.
//!
//! Each word that the reader asks for is of the image, wherever it points: what lies around it in memory reads as zero.

use gpucap_core::image::{UNKNOWN, most_bytes};
use std::cell::Cell;

/// Where the image lies.
const AT: u64 = 0x7f00_0000_0000;
/// A cubin's table has at most 65535 sections, of which five words are read, and eight of its header.
const MOST_WORDS: u64 = 65_535 * 5 + 16;

/// A code image.
pub fn image(bytes: &[u8]) {
    let read = Cell::new(0);
    let word = |at: u64| {
        read.set(read.get() + 1);
        let place = usize::try_from(at.wrapping_sub(AT)).unwrap_or(usize::MAX);
        let place = bytes.get(place..).and_then(|rest| rest.first_chunk());
        place.copied().map_or(0, u32::from_le_bytes)
    };
    let most = most_bytes(AT, &word);
    assert!(read.get() <= MOST_WORDS, "{} words", read.get());
    assert!(most >= UNKNOWN / 2, "too little to be true: {most}");
}
