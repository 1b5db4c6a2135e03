//! See `nacre_fuzz::csv`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nacre_fuzz::csv::run(input));
