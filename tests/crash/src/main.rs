//! Repeatedly kills a writing process and checks that no acknowledged commit is lost.
//!
//! `nacre-crash writer DIR` opens a database and writes to it from several threads until it is
//! killed. The writes of each thread are a function of its number and of how many transactions it
//! has committed (`model`). It prints each commit only after it has returned. `nacre-crash drive
//! --times N` starts such writers, kills them with signal 9, opens the folder, and compares every
//! row with the expected result of the acknowledged commits, plus at most one commit per thread
//! that was in flight. Whatever a recovery has shown must still exist after the next one.
//!
//! With `--relaxed 1` commits are acknowledged before they are durable, and with `--lie PREFIX`
//! syncs of some files do nothing. Both must be reported as lost commits, which shows that the
//! check works.
//!
//! `nacre-crash disk --times N` removes the folder after each kill: the database is opened from its blobs.
//! What the writer had called uploaded must be there; with `--held 1` everything that was acknowledged. It counts as
//! late what was acknowledged longer than the lag before, and went all the same.
//!
//! Killing a process does not lose what it has passed to the operating system. `nacre-crash power
//! --times N` simulates what does: power cuts of a store whose unsynced writes survive partially
//! and in any order (`power`).

mod disk;
mod drive;
mod many;
mod model;
mod power;
mod verify;
mod writer;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use writer::{Acknowledges, Uploading};

const USAGE: &str = "usage: nacre-crash writer DIR THREADS local|early|uploaded [BLOBS LAG_MS]
       nacre-crash [drive] [--times N] [--kills-per-folder N] [--threads N] [--seed N] [--folder DIR] [--relaxed 1]
       nacre-crash disk [--times N] [--kills-per-folder N] [--threads N] [--seed N] [--folder DIR] [--held 1] [--lag MS]
       nacre-crash power [--times N] [--kills-per-folder N] [--threads N] [--seed N] [--lie PREFIX]";

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("nacre-crash: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Vec<String>) -> Result<bool, String> {
    // Options alone are those of `drive`.
    let first = arguments.first().filter(|word| !word.starts_with("--")).cloned();
    let mut arguments = arguments.into_iter().skip(usize::from(first.is_some()));
    match Some(first.as_deref().unwrap_or("drive")) {
        Some("writer") => {
            let folder = PathBuf::from(arguments.next().ok_or(USAGE)?);
            let threads = arguments.next().and_then(|n| n.parse().ok()).ok_or(USAGE)?;
            let acknowledges = arguments.next().and_then(|word| Acknowledges::of(&word));
            let blobs = arguments.next().map(PathBuf::from);
            let lag_ms = arguments.next().and_then(|n| n.parse().ok()).unwrap_or_default();
            let lag = Duration::from_millis(lag_ms);
            let uploading = blobs.as_deref().map(|folder| Uploading { folder, lag });
            writer::write(&folder, threads, acknowledges.ok_or(USAGE)?, uploading.as_ref())
                .map(|()| true)
                .map_err(|error| format!("writer: {error}"))
        }
        Some(command @ ("disk" | "drive" | "power")) => {
            let mut settings = drive::Settings::default();
            while let Some(name) = arguments.next() {
                let value = arguments.next().ok_or(USAGE)?;
                let number = || {
                    value.parse::<u64>().map_err(|_| format!("{name} wants a number, not {value}"))
                };
                match name.as_str() {
                    "--times" => settings.times = number()?,
                    "--kills-per-folder" => settings.kills_per_folder = number()?.max(1),
                    "--threads" => settings.threads = number()?.max(1),
                    "--seed" => settings.seed = number()?,
                    "--relaxed" => settings.relaxed = number()? != 0,
                    "--held" => settings.held = number()? != 0,
                    "--lag" => settings.lag = Duration::from_millis(number()?),
                    "--lie" => settings.lie = Some(value),
                    "--folder" => settings.folder = PathBuf::from(value),
                    _ => return Err(format!("unknown option {name}\n{USAGE}")),
                }
            }
            match command {
                "disk" => disk::disk(&settings),
                "drive" => drive::drive(&settings),
                _ => power::power(&settings),
            }
        }
        _ => Err(USAGE.to_string()),
    }
}
