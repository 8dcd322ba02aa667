//! Random bytes for the entry `limits`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::limits::limits(bytes));
