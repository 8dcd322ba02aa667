//! Untrusted usage pages and `stat` files of processes that reach peers and root's commands.

use gpucap_core::page::{Header, PLACES, UsagePage, read_seats};
use gpucap_core::process::Stat;
use gpucap_core::uuid::Uuid;

/// A file of any length and content, read as a peer reads it.
pub fn page(bytes: &[u8]) {
    // The name of a program is its own choice, and a process's `stat` has it.
    let _ = Stat::parse(bytes);
    let Some(header) = bytes.get(..Header::SIZE.min(bytes.len())).and_then(Header::read) else {
        return;
    };
    let first = bytes.get(64..80).and_then(|words| words.try_into().ok()).map_or([0; 16], swap);
    for uuid in [Uuid(first), Uuid([0; 16]), Uuid([255; 16])] {
        let Some((at, length)) = header.seats(uuid) else { continue };
        let end = at as u64 + length as u64;
        assert!(end <= UsagePage::SIZE, "seats beyond the page: {at}+{length}");
        let seats = bytes.get(at..).unwrap_or_default();
        let seats = seats.get(..length).unwrap_or(seats);
        assert!(read_seats(seats).all(|(slot, _)| slot < PLACES), "a seat beyond the last");
    }
}

/// The two words of the first GPU, as the bytes of a UUID.
fn swap(words: [u8; 16]) -> [u8; 16] {
    let mut bytes = words;
    for word in bytes.chunks_exact_mut(8) {
        word.reverse();
    }
    bytes
}
