//! See `nacre_fuzz::tlp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nacre_fuzz::tlp::run(input));
