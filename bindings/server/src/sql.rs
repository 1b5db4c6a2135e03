//! `nacre sql`: runs statements and streams the result of the last one.

use crate::args::{OutputFormat, SqlArgs};
use crate::database::{self, Missing, Stream};
use crate::failure::{Failure, Outcome};
use crate::output::table::Layout;
use crate::output::{Delimited, Drawing, Json, JsonShape, RowFormat, Shape, write_rows};
use crate::{parameter, terminal};
use arrow_ipc::writer::StreamWriter;
use nacredb::{Database, Error, ResultKind, Rows, Value};
use std::io::{Read, Write};

/// Approximate number of rows per Arrow batch. Small, as a reader waits for a whole batch.
const ARROW_ROWS: usize = 8 << 10;

/// Runs the command.
pub fn run(args: &SqlArgs, out: &mut dyn Write) -> Outcome {
    if args.format == OutputFormat::Arrow && terminal::stdout_is_terminal() {
        return Err(Failure::Usage(
            "Arrow output is binary; redirect it to a file or a program".into(),
        ));
    }
    let options = database::options_of(&args.url, &args.options)?;
    let database = database::open_to(&args.url, Missing::Create, args.read_only, options)?;
    let outcome = run_all(&database, args, out);
    database::close(&database, outcome)
}

fn run_all(database: &Database, args: &SqlArgs, out: &mut dyn Write) -> Outcome {
    let mut session = database.session();
    let parameters: Vec<Value> = args.parameters.iter().map(|p| parameter::parse(p)).collect();
    let Some((last, before)) = args.sql.split_last() else { return Ok(()) };
    for sql in before {
        database::execute(&mut session, &text_of(sql)?, &[])?;
    }
    print(&mut Stream::open(&mut session, &text_of(last)?, &parameters)?, args.format, out)
}

fn text_of(sql: &str) -> Outcome<String> {
    if sql == "-" { read_stdin() } else { Ok(sql.to_owned()) }
}

fn read_stdin() -> Outcome<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).map_err(|_| Error::syntax("standard input is not UTF-8 text"))?)
}

/// Prints rows as they arrive. On an error, the rows before it have been printed.
fn print(stream: &mut Stream, format: OutputFormat, out: &mut dyn Write) -> Outcome {
    let columns = stream.rows().columns().to_vec();
    if columns.is_empty() {
        return match format {
            OutputFormat::Table | OutputFormat::Line => {
                Ok(writeln!(out, "{}", outcome_of(stream.rows()))?)
            }
            // The other formats are read by programs, which expect nothing but rows.
            _ => Ok(()),
        };
    }
    let mut rows = |format: &mut dyn RowFormat| {
        write_rows(out, format, &columns, &mut || stream.next()).map(|_| ())
    };
    match format {
        OutputFormat::Csv => rows(&mut Delimited::csv()),
        OutputFormat::Tsv => rows(&mut Delimited::tsv()),
        OutputFormat::Json => rows(&mut Json::new(JsonShape::Array)),
        OutputFormat::Ndjson => rows(&mut Json::new(JsonShape::Lines)),
        OutputFormat::Arrow => print_arrow(stream, out),
        OutputFormat::Table => draw(stream, Shape::Table, out),
        OutputFormat::Line => draw(stream, Shape::Blocks, out),
    }
}

fn draw(stream: &mut Stream, shape: Shape, out: &mut dyn Write) -> Outcome {
    let mut drawing = Drawing::new(stream.rows().columns(), shape, Layout::of_stdout());
    let outcome = loop {
        match stream.next() {
            Ok(Some(batch)) => drawing.add(&batch, usize::MAX, out)?,
            Ok(None) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    if outcome.is_ok() || drawing.rows() > 0 {
        drawing.finish(out)?;
    }
    outcome?;
    Ok(writeln!(out, "({})", terminal::rows(drawing.rows()))?)
}

fn print_arrow(stream: &mut Stream, out: &mut dyn Write) -> Outcome {
    let failed = |e: arrow_schema::ArrowError| match e {
        arrow_schema::ArrowError::IoError(_, error) => Failure::from(error),
        other => Error::io(format!("writing Arrow: {other}")).into(),
    };
    let mut writer = StreamWriter::try_new(out, &stream.rows().arrow_schema()).map_err(failed)?;
    while let Some(batch) = stream.next_record_batch(ARROW_ROWS)? {
        writer.write(&batch).map_err(failed)?;
        writer.flush().map_err(failed)?;
    }
    writer.finish().map_err(failed)
}

/// Describes the effect of a statement that returns no rows.
pub fn outcome_of(rows: &Rows) -> String {
    match rows.rows_affected() {
        0 if rows.kind() != ResultKind::Write => "ok".into(),
        count => format!("{} affected", terminal::rows(count)),
    }
}
