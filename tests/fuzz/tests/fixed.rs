//! A short, fixed part of the fuzzing: the inputs in `corpus/`, which once revealed a bug, and
//! generated ones. `npm run fuzz` searches for more.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_fuzz::{TARGETS, Target, generated, target};
use std::path::Path;

/// Generated cases per target: the first 150, or the range in `NACRE_FUZZ_CASES=FROM..TO`.
fn cases() -> std::ops::Range<u64> {
    let wish = std::env::var("NACRE_FUZZ_CASES").unwrap_or_default();
    let (from, to) = wish.split_once("..").unwrap_or(("0", "150"));
    from.parse().unwrap()..to.parse().unwrap()
}

fn run(name: &str) {
    let target: &Target = target(name).expect("there is such a target");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.sort();
    for path in files {
        println!("{}", path.display());
        (target.run)(&std::fs::read(&path).unwrap());
    }
    for seed in cases() {
        println!("generated case {seed}");
        (target.run)(&generated(seed, target.max_bytes));
    }
}

#[test]
fn sql() {
    run("sql");
}

#[test]
fn segment() {
    run("segment");
}

#[test]
fn log() {
    run("log");
}

#[test]
fn snapshot() {
    run("snapshot");
}

#[test]
fn arrow() {
    run("arrow");
}

#[test]
fn csv() {
    run("csv");
}

#[test]
fn json() {
    run("json");
}

#[test]
fn differential() {
    run("differential");
}

#[test]
fn functions() {
    run("functions");
}

#[test]
fn tlp() {
    run("tlp");
}

#[test]
fn every_target_is_run_here_and_by_libfuzzer() {
    let here = include_str!("fixed.rs");
    let there = include_str!("../fuzz/Cargo.toml");
    for Target { name, .. } in TARGETS {
        assert!(here.contains(&format!("run(\"{name}\");")), "{name}");
        assert!(there.contains(&format!("name = \"{name}\"")), "{name}");
    }
}
