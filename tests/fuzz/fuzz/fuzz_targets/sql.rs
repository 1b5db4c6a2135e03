//! See `nacre_fuzz::sql`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nacre_fuzz::sql::run(input));
