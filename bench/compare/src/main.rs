//! `npm run bench -- NAME [--option value]…`: one workload, interleaved with its peers, and as the
//! last line `NAME: figure=number …`. The only place of the project that may depend on other
//! engines.
//!
//! Medians of interleaved rounds are compared, never one absolute time. Nothing here is a test.

mod adaptive;
mod beside_duckdb;
mod bulk_insert;
mod cells;
mod commit;
mod counted;
mod disk_size;
mod duckdb;
mod io;
mod json_bench;
mod json_scan;
mod json_seek;
mod latency;
mod load_beside;
mod measure;
mod merge_on_read;
mod merge_on_write;
mod mixed;
mod options;
mod outgrow;
mod people;
mod pin;
mod point_select;
mod secondary_select;
mod ssb;
mod tier;
mod tier_open;
mod tpch;
mod tpch_data;
mod update_in_segment;
mod upsert;
mod wide;

use measure::Outcome;
use options::Options;
use std::process::ExitCode;

/// The allocator of the `nacre` command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A workload: its name and its function.
type Workload = (&'static str, fn(&Options) -> Outcome<()>);

const WORKLOADS: [Workload; 22] = [
    ("adaptive", adaptive::run),
    ("bulk-insert", bulk_insert::run),
    ("commit", commit::run),
    ("disk-size", disk_size::run),
    ("io", io::run),
    ("json-bench", json_bench::run),
    ("json-scan", json_scan::run),
    ("json-seek", json_seek::run),
    ("latency", latency::run),
    ("load-beside", load_beside::run),
    ("merge-on-write", merge_on_write::run),
    ("mixed", mixed::run),
    ("outgrow", outgrow::run),
    ("point-select", point_select::run),
    ("secondary-select", secondary_select::run),
    ("ssb", ssb::run),
    ("tier", tier::run),
    ("tier-open", tier_open::run),
    ("tpch", tpch::run),
    ("update-in-segment", update_in_segment::run),
    ("upsert", upsert::run),
    ("wide", wide::run),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let Some((_, run)) = WORKLOADS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = WORKLOADS.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: npm run bench -- {} [--option value]…", names.join(" | "));
        return ExitCode::from(2);
    };
    match Options::parse(arguments).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
