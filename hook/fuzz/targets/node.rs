//! Random bytes for the entry `node`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::planner::node(bytes));
