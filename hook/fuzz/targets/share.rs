//! Random bytes for the entry `share`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::share::share(bytes));
