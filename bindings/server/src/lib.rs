//! The `nacre` command: shell, statements, import, export, benchmark data, inspection and checks
//! on top of the public API of the engine. Contains no storage or SQL logic of its own.
//!
//! Exit codes: 0 for success, 1 if a statement or check failed, 2 for wrong usage.

#[doc(hidden)]
pub mod args;
mod blob_args;
mod branch;
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
mod recover;
mod restore;
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

/// Runs the command line and returns the exit code.
pub fn main() -> ExitCode {
    // On wrong usage prints the error and exits with 2; for help and version exits with 0.
    let cli = Cli::from_arguments(std::env::args_os()).unwrap_or_else(|error| error.exit());
    raise_file_limit();
    match run(&cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Raises the soft limit of open files to the hard limit: a database may exceed the default.
/// Ignores failure, as opening a file reports an exceeded limit.
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
        Command::Recover(args) => recover::run(args, &mut out),
        Command::Branch(args) => branch::run(args, &mut out),
        Command::Restore(args) => restore::run(args, &mut out),
    };
    // Flush before the failure is reported, so that the output precedes the report.
    let flushed = out.flush();
    outcome?;
    Ok(flushed?)
}
