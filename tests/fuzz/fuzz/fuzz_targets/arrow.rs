//! See `nacre_fuzz::arrow`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nacre_fuzz::arrow::run(input));
