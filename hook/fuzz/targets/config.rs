//! Random bytes for the entry `config`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::planner::config(bytes));
