//! Fuzz targets: functions that take any bytes and panic if something is wrong.
//! `npm run fuzz -- TARGET` lets libFuzzer search for such bytes (`fuzz/` beside this folder's
//! `src` has the glue code); `tests/fixed.rs` runs a short, fixed part of each target without it.
//!
//! Raw bytes rarely get past a checksum, so most inputs are interpreted as decisions: create this
//! valid file, change these bytes of it, and repair the checksums. See [`input::Input`].

pub mod arrow;
pub mod csv;
pub mod differential;
pub mod edit;
pub mod functions;
pub mod input;
pub mod json;
pub mod log;
pub mod query;
pub mod segment;
pub mod snapshot;
pub mod sql;
pub mod subject;
pub mod tlp;
pub mod transcript;
pub mod watch;

/// A target: its name, its function, and the maximum length of its inputs.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Panics if something is wrong.
    pub run: fn(&[u8]),
    /// Maximum length of an input in bytes.
    pub max_bytes: usize,
}

/// All targets.
pub const TARGETS: [Target; 10] = [
    Target { name: "sql", run: sql::run, max_bytes: 600 },
    Target { name: "segment", run: segment::run, max_bytes: 2_000 },
    Target { name: "log", run: log::run, max_bytes: 1_000 },
    Target { name: "snapshot", run: snapshot::run, max_bytes: 1_000 },
    Target { name: "arrow", run: arrow::run, max_bytes: 1_500 },
    Target { name: "csv", run: csv::run, max_bytes: 800 },
    Target { name: "json", run: json::run, max_bytes: 600 },
    Target { name: "differential", run: differential::run, max_bytes: 500 },
    Target { name: "functions", run: functions::run, max_bytes: 600 },
    Target { name: "tlp", run: tlp::run, max_bytes: 500 },
];

/// Looks up a target by name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Bytes derived from a seed, for runs without libFuzzer. Small bytes are more likely, because they
/// are the common decisions.
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
