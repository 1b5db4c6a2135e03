//! See `nacre_fuzz::json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nacre_fuzz::json::run(input));
