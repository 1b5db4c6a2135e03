//! Fuzz targets: functions that take any bytes and panic where something is wrong. `npm run fuzz -- TARGET` lets libFuzzer
//! look for such bytes (`fuzz/` beside this folder's `src` has the few lines that it needs); `tests/fixed.rs` runs a
//! short, fixed part of each without it.
//!
//! Bytes are never taken for what they are only. Behind a checksum nothing would ever be found, so most inputs are read
//! as decisions: make this valid file, change these bytes of it, and mend the checksums. See [`input::Input`].

pub mod arrow;
pub mod csv;
pub mod differential;
pub mod edit;
pub mod input;
pub mod log;
pub mod query;
pub mod segment;
pub mod snapshot;
pub mod sql;
pub mod subject;
pub mod tlp;
pub mod watch;

/// A target: what it is called, what it does, how long its inputs get.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Panics if something is wrong.
    pub run: fn(&[u8]),
    /// Bytes of an input at most.
    pub max_bytes: usize,
}

/// All targets.
pub const TARGETS: [Target; 8] = [
    Target { name: "sql", run: sql::run, max_bytes: 600 },
    Target { name: "segment", run: segment::run, max_bytes: 2_000 },
    Target { name: "log", run: log::run, max_bytes: 1_000 },
    Target { name: "snapshot", run: snapshot::run, max_bytes: 1_000 },
    Target { name: "arrow", run: arrow::run, max_bytes: 1_500 },
    Target { name: "csv", run: csv::run, max_bytes: 800 },
    Target { name: "differential", run: differential::run, max_bytes: 500 },
    Target { name: "tlp", run: tlp::run, max_bytes: 500 },
];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Bytes that a number decides, for cases without libFuzzer. Small bytes are likelier: they are the usual decisions.
pub fn generated(seed: u64, max_bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let length = 1 + next() as usize % max_bytes;
    (0..length).map(|_| next() as u8).collect()
}
