//! `nacre recover` opens a database whose log lacks its end, on request without what is missing.

use crate::args::RecoverArgs;
use crate::database::{self, Missing};
use crate::failure::{Failure, Outcome};
use crate::terminal::{counted, grouped};
use nacredb::{Database, ErrorKind, Options};
use std::io::Write;

/// Runs `recover`.
pub fn run(args: &RecoverArgs, out: &mut dyn Write) -> Outcome {
    let options = Options {
        accept_loss: args.accept_loss,
        ..database::options_of(&args.url, &args.options)?
    };
    let opened = database::open(&args.url, Missing::Refuse, options);
    let database = opened.map_err(|failure| match failure {
        Failure::Error { error, sql }
            if error.kind() == ErrorKind::Corrupt && !args.accept_loss =>
        {
            let hint = "`nacre recover --accept-loss` opens it without what is missing at the end \
                        of its log";
            Failure::Error { error: error.with_hint(hint), sql }
        }
        failure => failure,
    })?;
    let outcome = report(&database, out);
    database::close(&database, outcome)
}

fn report(database: &Database, out: &mut dyn Write) -> Outcome {
    let losses = database.losses();
    for loss in &losses {
        writeln!(out, "given up: {loss}")?;
    }
    if losses.is_empty() {
        writeln!(out, "nothing is missing")?;
    }
    let tables = counted(database.inspect()?.len() as u64, "table");
    writeln!(out, "{tables} up to log position {}", grouped(database.log_position()))?;
    Ok(())
}
