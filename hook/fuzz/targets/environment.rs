//! Random bytes for the entry `environment`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::planner::environment(bytes));
