//! Random bytes for the entry `ledger`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::ledger::ledger(bytes));
