//! See `nacre_fuzz::snapshot`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nacre_fuzz::snapshot::run(input));
