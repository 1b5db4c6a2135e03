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
//! Killing a process does not lose what it has passed to the operating system. `nacre-crash power
//! --times N` simulates what does: power cuts of a store whose unsynced writes survive partially
//! and in any order (`power`).

mod drive;
mod many;
mod model;
mod power;
mod verify;
mod writer;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: nacre-crash writer DIR [THREADS [relaxed]]
       nacre-crash drive [--times N] [--kills-per-folder N] [--threads N] [--seed N] [--folder DIR] [--relaxed 1]
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
    let mut arguments = arguments.into_iter();
    match arguments.next().as_deref() {
        Some("writer") => {
            let folder = PathBuf::from(arguments.next().ok_or(USAGE)?);
            let threads = match arguments.next() {
                Some(n) => n.parse().map_err(|_| USAGE)?,
                None => drive::Settings::default().threads,
            };
            let relaxed = arguments.next().as_deref() == Some("relaxed");
            writer::write(&folder, threads, relaxed)
                .map(|()| true)
                .map_err(|error| format!("writer: {error}"))
        }
        Some(command @ ("drive" | "power")) => {
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
                    "--lie" => settings.lie = Some(value),
                    "--folder" => settings.folder = PathBuf::from(value),
                    _ => return Err(format!("unknown option {name}\n{USAGE}")),
                }
            }
            if command == "drive" { drive::drive(&settings) } else { power::power(&settings) }
        }
        _ => Err(USAGE.to_string()),
    }
}
