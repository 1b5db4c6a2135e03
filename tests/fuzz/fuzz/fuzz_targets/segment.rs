//! See `nacre_fuzz::segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nacre_fuzz::segment::run(input));
