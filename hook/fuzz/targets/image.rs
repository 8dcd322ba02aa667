//! Random bytes for the entry `image`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::image::image(bytes));
