//! Random bytes for the entry `checkpoint`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::planner::checkpoint(bytes));
