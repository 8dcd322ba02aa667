//! Random bytes for the entry `nri`.

#![no_main]

#[path = "../src/nri.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::nri(bytes));
