//! Random bytes for the entry `usage`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::usage::usage(bytes));
