//! Random bytes for the entry `page`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::page::page(bytes));
