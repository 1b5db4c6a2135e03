//! See `nacre_fuzz::log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nacre_fuzz::log::run(input));
