//! A short, fixed part of the simulation and of the isolation histories. `npm run sim` and `npm run
//! isolation` run longer ones.

use nacre_sim::isolation;
use nacre_sim::plan::plan;
use nacre_sim::run::run;

#[test]
fn two_hundred_seeds() {
    let (mut crashes, mut steps) = (0, 0);
    for seed in 1..=200 {
        let outcome = run(&plan(seed), false);
        assert_eq!(outcome.failure, None, "again: npm run sim -- --replay {seed}");
        crashes += outcome.crashes;
        steps += outcome.steps;
    }
    assert!(crashes > 200 && steps > 10_000, "{crashes} crashes, {steps} steps");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let mut traces = std::collections::BTreeSet::new();
    for seed in 1..=20 {
        let first = run(&plan(seed), false);
        // Recording the story must not change anything.
        let second = run(&plan(seed), true);
        assert_eq!(
            (first.trace, first.steps, first.crashes),
            (second.trace, second.steps, second.crashes)
        );
        traces.insert(first.trace);
    }
    assert_eq!(traces.len(), 20, "different seeds, different traces");
}

#[test]
fn histories_of_both_kinds_are_clean() {
    let found = isolation::run::run(1, 64).unwrap();
    assert_eq!(found.histories, 64);
    assert!(found.anomalies.is_empty(), "{:#?}", found.told);
}
