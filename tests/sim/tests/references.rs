//! A short, fixed part of the simulation of rows that refer to each other. `npm run sim -- references` runs
//! longer ones.

use nacre_sim::{panics, references::run};
use std::collections::BTreeMap;

/// No seed fails, and together they do everything that the simulation is there for.
#[test]
fn no_row_refers_to_nothing() {
    panics::keep();
    let mut counts = BTreeMap::<&str, u64>::new();
    let failed = (1..=300).find_map(|seed| {
        let outcome = run(seed, false);
        outcome.counts.iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
        outcome.failure.map(|failure| (seed, failure))
    });
    // Print panics again from here on.
    drop(std::panic::take_hook());
    assert_eq!(failed, None, "again: npm run sim -- references --replay SEED");
    for what in ["writes", "violations", "conflicts", "commit", "rollback"] {
        assert!(counts.get(what).is_some_and(|n| *n > 50), "{what}: {counts:?}");
    }
}
