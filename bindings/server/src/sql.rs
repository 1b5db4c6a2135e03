//! `nacre sql`: statements in, the last result out.

use crate::args::{OutputFormat, SqlArgs};
use crate::database::{self, Missing};
use crate::failure::{Failure, Outcome};
use crate::output::table::{Layout, Table};
use crate::output::{Delimited, Json, JsonShape, write_rows};
use crate::{parameter, terminal};
use nacredb::{Database, Error, QueryResult, ResultKind, Value};
use std::io::{Read, Write};

/// Runs the command.
pub fn run(args: &SqlArgs, out: &mut dyn Write) -> Outcome {
    if args.format == OutputFormat::Arrow && terminal::stdout_is_terminal() {
        return Err(Failure::Usage("Arrow is binary: send it to a file or a program".into()));
    }
    let database = database::open(&args.url, Missing::Create)?;
    let outcome = run_all(&database, args, out);
    database::close(&database, outcome)
}

fn run_all(database: &Database, args: &SqlArgs, out: &mut dyn Write) -> Outcome {
    let mut session = database.session();
    let parameters: Vec<Value> = args.parameters.iter().map(|p| parameter::parse(p)).collect();
    let mut last = None;
    for (at, sql) in args.sql.iter().enumerate() {
        let text = match sql.as_str() {
            "-" => read_stdin()?,
            _ => sql.clone(),
        };
        let given: &[Value] = if at + 1 == args.sql.len() { &parameters } else { &[] };
        last = Some(database::execute(&mut session, &text, given)?);
    }
    match last {
        Some(result) => print(&result, args.format, out),
        None => Ok(()),
    }
}

fn read_stdin() -> Outcome<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).map_err(|_| Error::syntax("standard input is not UTF-8 text"))?)
}

fn print(result: &QueryResult, format: OutputFormat, out: &mut dyn Write) -> Outcome {
    let has_rows = !result.columns.is_empty();
    let mut rows = |format: &mut dyn crate::output::RowFormat| -> Outcome {
        Ok(write_rows(out, format, &result.columns, &result.batches)??)
    };
    match format {
        OutputFormat::Csv if has_rows => rows(&mut Delimited::csv()),
        OutputFormat::Json if has_rows => rows(&mut Json::new(JsonShape::Array)),
        OutputFormat::Arrow if has_rows => Ok(out.write_all(&result.to_arrow_ipc()?)?),
        OutputFormat::Table if has_rows => {
            let table = Table::of_result(&result.columns, &result.batches, usize::MAX);
            out.write_all(table.draw(Layout::of_stdout()).as_bytes())?;
            Ok(writeln!(out, "({})", terminal::rows(table.len() as u64))?)
        }
        OutputFormat::Table => Ok(writeln!(out, "{}", outcome_of(result))?),
        // Programs read rows; there are none.
        _ => Ok(()),
    }
}

/// What a statement without rows did.
pub fn outcome_of(result: &QueryResult) -> String {
    match result.rows_affected {
        0 if result.kind != ResultKind::Write => "ok".into(),
        count => format!("{} affected", terminal::rows(count)),
    }
}
