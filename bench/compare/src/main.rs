//! `npm run bench -- NAME`: one workload, interleaved with its peer, and as the last line
//! `NAME: figure=number …`. The only place of the project that may depend on another engine.
//!
//! Medians of interleaved rounds are compared, never one absolute time. Nothing here is a test.

mod commit;
mod measure;
mod point_select;
mod update_in_segment;

use measure::Outcome;
use std::process::ExitCode;

/// A workload: its name and what runs it.
type Workload = (&'static str, fn() -> Outcome<()>);

const WORKLOADS: [Workload; 3] =
    [("commit", commit::run), ("point-select", point_select::run), ("update-in-segment", update_in_segment::run)];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some((_, run)) = WORKLOADS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = WORKLOADS.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: npm run bench -- {}", names.join(" | "));
        return ExitCode::from(2);
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
