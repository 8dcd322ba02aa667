//! Random bytes for the entry `nri`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::nri::nri(bytes));
