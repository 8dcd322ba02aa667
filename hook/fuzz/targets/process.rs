//! Random bytes for the entry `process`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::process::process(bytes));
