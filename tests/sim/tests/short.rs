//! A short, fixed part of the simulation and of the isolation histories. `npm run sim` and `npm run
//! isolation` run longer ones.

use nacre_sim::coverage::Coverage;
use nacre_sim::isolation;
use nacre_sim::plan::plan;
use nacre_sim::run::run;
use std::sync::atomic::{AtomicU64, Ordering};

/// No seed fails, and together they walk every path that the simulation is there for.
#[test]
fn a_thousand_seeds_walk_every_path() {
    let next = AtomicU64::new(1);
    let work = || {
        let (mut crashes, mut steps, mut coverage) = (0, 0, Coverage::default());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > 1_000 {
                return (crashes, steps, coverage);
            }
            let outcome = run(&plan(seed), false);
            assert_eq!(outcome.failure, None, "again: npm run sim -- --replay {seed}");
            crashes += outcome.crashes;
            steps += outcome.steps;
            coverage.extend(&outcome.coverage);
        }
    };
    let (mut crashes, mut steps, mut coverage) = (0, 0, Coverage::default());
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (own_crashes, own_steps, own) = worker.join().unwrap();
            crashes += own_crashes;
            steps += own_steps;
            coverage.extend(&own);
        }
    });
    assert!(crashes > 1_000 && steps > 50_000, "{crashes} crashes, {steps} steps");
    assert_eq!(coverage.missing(), Vec::<String>::new(), "{coverage}");
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
