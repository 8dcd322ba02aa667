//! Random bytes for the entry `annotations`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::planner::annotations(bytes));
