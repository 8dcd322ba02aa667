//! Random bytes for the entry `elf`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gpucap_fuzz::elf::elf(bytes));
