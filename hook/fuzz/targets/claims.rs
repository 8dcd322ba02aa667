//! Random bytes for the entry `claims`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::planner::claims(bytes));
