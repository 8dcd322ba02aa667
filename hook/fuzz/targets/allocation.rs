//! Random bytes for the entry `allocation`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::planner::allocation(bytes));
