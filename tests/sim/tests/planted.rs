//! Verifies that the simulation and the isolation histories find every planted bug within a fixed
//! number of seeds. Requires the feature `plant`; `npm test` has a separate step for it.

#![cfg(feature = "plant")]

use nacre_sim::isolation::check::{Level, check};
use nacre_sim::isolation::{simulated, work::Kind};
use nacre_sim::{panics, plan::plan, plant, references, run::run, tiers};

/// Seeds within which each bug must be found, as many as `--plant` tries.
const SEEDS: u64 = 1_000;

/// The same for the bugs that the simulation of tiers finds.
const TIERS_SEEDS: u64 = 2_000;

/// A single test, because a planted bug affects the whole process.
#[test]
fn every_planted_bug_is_found() {
    panics::keep();
    let mut missed = Vec::new();
    for bug in [
        "lost-sync",
        "torn-log",
        "stale-bitmap",
        "merge-remap",
        "dirty-read",
        "unique-skip",
        "index-late",
        "index-entry",
        "name-reuse",
        "view-places",
        "stream-now",
        "prepared-stale",
        "reach-early",
        "flush-slice",
        "run-overlap",
        "load-phase-two",
        "half-huge-update",
        "follow-deletes",
        "kept-rows",
        "lost-open",
        "lost-residency",
        "lost-step",
        "load-slice",
        "lost-work",
        "ddl-half",
        "ddl-move",
        "ddl-unverified",
        "computed-keys",
    ] {
        plant(bug).unwrap();
        let found = (1..=SEEDS).find(|seed| run(&plan(*seed), false).failure.is_some());
        println!("{bug}: seed {found:?}");
        missed.extend(found.is_none().then_some(bug));
    }
    for bug in [
        "upload-order",
        "evict-unuploaded",
        "ahead-shift",
        "warm-short",
        "kept-unverified",
        "sweep-early",
        "join-unfenced",
        "stale-manifest",
        "fence-late",
        "follow-gap",
        "acknowledge-early",
        "gc-race",
        "history-gap",
    ] {
        plant(bug).unwrap();
        let found = (1..=TIERS_SEEDS).find(|seed| tiers::run::run(*seed, false).failure.is_some());
        println!("{bug}: seed {found:?}");
        missed.extend(found.is_none().then_some(bug));
    }
    plant("fk-race").unwrap();
    let found = (1..=SEEDS).find(|seed| references::run(*seed, false).failure.is_some());
    println!("fk-race: seed {found:?}");
    missed.extend(found.is_none().then_some("fk-race"));
    for (bug, kind, level, names) in [
        (
            "lost-update",
            Kind::Plain,
            Level::Snapshot,
            &["lost update", "G-SIa", "G-SIb", "G1c", "G0"][..],
        ),
        ("write-skew-allowed", Kind::Locked, Level::Serialisable, &["G2"]),
    ] {
        plant(bug).unwrap();
        let anomalies = (1..=SEEDS).find_map(|seed| {
            let history = simulated::run(seed, kind).unwrap();
            let found = check(&history, level);
            found.iter().map(|a| a.name).find(|name| names.contains(name)).map(|name| (seed, name))
        });
        println!("{bug}: {anomalies:?}");
        missed.extend(anomalies.is_none().then_some(bug));
    }
    // Print panics again from here on.
    drop(std::panic::take_hook());
    assert!(missed.is_empty(), "not found: {missed:?}");
}
