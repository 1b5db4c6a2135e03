//! See `nacre_fuzz::functions`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nacre_fuzz::functions::run(input));
