//! Code that stores bytes asserts what it relies on: `invariant!` and `debug_assert!` are counted.

use nacre_tidy::measure;
use std::fmt::Write as _;

/// Assertions a function over the crates of storage, in hundredths: only rises.
const FLOOR: usize = 55;

#[test]
fn code_that_stores_bytes_asserts_what_it_relies_on() {
    let mut counts = String::new();
    for name in measure::STORAGE {
        let (assertions, functions) = measure::assertions(&[name]);
        let _ = writeln!(counts, "{name}: {assertions} assertions, {functions} functions");
    }
    let (assertions, functions) = measure::assertions(&measure::STORAGE);
    assert!(functions > 1000, "{functions} functions were found");
    let hundredths = 100 * assertions / functions;
    assert!(hundredths >= FLOOR, "0.{hundredths:02}, at least 0.{FLOOR:02}\n{counts}");
}
