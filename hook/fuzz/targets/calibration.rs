//! Random bytes for the entry `calibration`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::planner::calibration(bytes));
