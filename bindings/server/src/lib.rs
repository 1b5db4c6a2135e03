//! The `nacre` command: shell, statements, import, export, benchmark data, inspection and checks
//! over the engine's public façade. Holds no storage or SQL logic of its own.
//!
//! Exit codes: 0 done, 1 the statement or check failed, 2 wrong usage.

#[doc(hidden)]
pub mod args;
mod convert;
mod database;
mod export;
mod failure;
mod import;
mod infer;
mod inspect;
mod interrupt;
mod output;
mod parameter;
mod scan;
mod scratch;
mod shell;
#[doc(hidden)]
pub mod source;
mod sql;
mod terminal;
mod tpch;

use args::{Cli, Command};
use failure::Outcome;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

/// Does what the command line says.
pub fn main() -> ExitCode {
    // Prints usage errors and ends with 2, help and version with 0.
    let cli = Cli::from_arguments(std::env::args_os()).unwrap_or_else(|error| error.exit());
    raise_file_limit();
    match run(&cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// A database may have more files open than a process usually may. Where the limit stays, opening says so.
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let _ = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
}

fn run(command: &Command) -> Outcome {
    let mut out = BufWriter::new(std::io::stdout());
    let outcome = match command {
        Command::Shell(args) => shell::run(args, &mut out),
        Command::Sql(args) => sql::run(args, &mut out),
        Command::Import(args) => import::run(args, &mut out),
        Command::Export(args) => export::run(args, &mut out),
        Command::Tpch(args) => tpch::run(args, &mut out),
        Command::Inspect(args) => inspect::run(args, &mut out),
        Command::Check(args) => inspect::check(args, &mut out),
    };
    // What was printed before a failure belongs before its report.
    let flushed = out.flush();
    outcome?;
    Ok(flushed?)
}
