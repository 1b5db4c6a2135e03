//! A short, fixed part of the simulation of tiers. `npm run sim -- tiers` runs longer ones.

use nacre_sim::panics;
use nacre_sim::tiers::run::run;
use std::collections::BTreeMap;

/// No seed fails, and together they do everything that the simulation is there for.
#[test]
fn seeds_of_tiers_are_clean() {
    panics::keep();
    let mut counts = BTreeMap::<&str, u64>::new();
    let failed = (1..=200).find_map(|seed| {
        let outcome = run(seed, false);
        outcome.counts.iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
        outcome.failure.map(|failure| (seed, failure))
    });
    // Print panics again from here on.
    drop(std::panic::take_hook());
    assert_eq!(failed, None, "again: npm run sim -- tiers --replay SEED");
    for what in [
        "writes",
        "uploads",
        "reads",
        "crashes",
        "lost disks",
        "takeovers",
        "fenced",
        "readers",
        "refreshes",
        "leases",
        "late looks with a lease",
        "lost leases",
        "opened as of",
        "restored",
        "branches",
        "branches that go on",
    ] {
        assert!(counts.get(what).is_some_and(|n| *n > 20), "{what}: {counts:?}");
    }
    assert!(counts["faults"] > 500, "{counts:?}");
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in [3, 14, 15] {
        let first = run(seed, true).story;
        assert_eq!(first, run(seed, true).story);
        assert!(first.len() > 10, "{first:?}");
    }
}
