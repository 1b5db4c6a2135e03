//! `nacre inspect` reports what a database stores; `nacre check` verifies it.

use crate::args::{CheckArgs, InspectArgs};
use crate::database::{self, Missing};
use crate::failure::{Failure, Outcome};
use crate::output::table::{Layout, Table};
use crate::terminal::{bytes, counted, duration, grouped, rows};
use nacredb::{Database, Error, TableReport};
use std::fmt::Display;
use std::io::Write;
use std::time::Instant;

/// Runs `inspect`.
pub fn run(args: &InspectArgs, out: &mut dyn Write) -> Outcome {
    let options = database::options_of(&args.url, &args.options)?;
    let database = database::open_to(&args.url, Missing::Refuse, args.read_only, options)?;
    let outcome = show(&database, args.table.as_deref(), out);
    database::close(&database, outcome)
}

fn show(database: &Database, only: Option<&str>, out: &mut dyn Write) -> Outcome {
    let mut reports = database.inspect()?;
    reports.sort_by(|a, b| a.name.cmp(&b.name));
    match only {
        None => {
            out.write_all(overview(&reports).as_bytes())?;
            writeln!(out, "log position {}\n", grouped(database.log_position()))?;
            out.write_all(memory(database).as_bytes())?;
        }
        Some(name) => {
            let report =
                reports.iter().find(|r| r.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
                    let names: Vec<&str> = reports.iter().map(|r| r.name.as_str()).collect();
                    let error = Error::not_found(format!("no table {name}"));
                    if names.is_empty() {
                        error
                    } else {
                        error.with_hint(format!("the tables are {}", names.join(", ")))
                    }
                })?;
            out.write_all(details(report).as_bytes())?;
        }
    }
    Ok(())
}

fn raw_bytes(report: &TableReport) -> u64 {
    report.columns.iter().map(|c| c.raw_bytes).sum()
}

fn segment_bytes(report: &TableReport) -> u64 {
    report.segments.iter().map(|s| s.bytes).sum()
}

fn deleted(report: &TableReport) -> u64 {
    report.segments.iter().map(|s| s.deleted).sum()
}

/// Formats a compression ratio, as in `2.5×`; empty if nothing is stored.
fn ratio(raw: u64, stored: u64) -> String {
    if stored == 0 { String::new() } else { format!("{:.1}×", raw as f64 / stored as f64) }
}

fn overview(reports: &[TableReport]) -> String {
    let mut table = Table::new(&[
        ("table", false),
        ("rows", true),
        ("in memory", true),
        ("segments", true),
        ("runs", true),
        ("deleted", true),
        ("bytes", true),
        ("uncompressed", true),
        ("ratio", true),
    ]);
    for report in reports {
        table.push([
            report.name.clone(),
            grouped(report.rows),
            grouped(report.rowstore_rows),
            grouped(report.segments.len() as u64),
            grouped(report.runs),
            grouped(deleted(report)),
            bytes(segment_bytes(report)),
            bytes(raw_bytes(report)),
            ratio(raw_bytes(report), segment_bytes(report)),
        ]);
    }
    table.draw(Layout::of_stdout())
}

fn memory(database: &Database) -> String {
    let mut table = Table::new(&[("memory", false), ("bytes", true), ("limit", true)]);
    for part in database.memory() {
        let limit = part.limit_bytes.map_or(String::new(), bytes);
        table.push([part.part.to_string(), bytes(part.bytes), limit]);
    }
    table.draw(Layout::of_stdout())
}

fn key_of(report: &TableReport) -> String {
    match report.primary_key.as_slice() {
        [] => "no primary key".into(),
        columns => format!("primary key ({})", columns.join(", ")),
    }
}

/// Encodings with the number of segments that use each, unless it is one.
fn encodings(encodings: &[(String, usize)]) -> String {
    let one = |(name, count): &(String, usize)| match count {
        1 => name.clone(),
        _ => format!("{name} ({count})"),
    };
    encodings.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn details(report: &TableReport) -> String {
    let mut out = format!(
        "table {}, {}: {}, {} in memory ({}), {} deleted in segments\n",
        report.name,
        key_of(report),
        rows(report.rows),
        grouped(report.rowstore_rows),
        bytes(report.rowstore_bytes),
        grouped(deleted(report))
    );
    let mut columns = Table::new(&[
        ("column", false),
        ("type", false),
        ("bytes", true),
        ("uncompressed", true),
        ("ratio", true),
        ("encodings", false),
    ]);
    for column in &report.columns {
        columns.push([
            column.name.clone(),
            column.data_type.to_string(),
            bytes(column.bytes),
            bytes(column.raw_bytes),
            ratio(column.raw_bytes, column.bytes),
            encodings(&column.encodings),
        ]);
        // What the documents of a column are taken apart into.
        for path in &column.paths {
            columns.push([
                format!("  {}{}", column.name, path.path),
                path.kind.clone(),
                bytes(path.bytes),
                String::new(),
                String::new(),
                encodings(&path.encodings),
            ]);
        }
    }
    out.push('\n');
    out.push_str(&columns.draw(Layout::of_stdout()));
    if !report.segments.is_empty() {
        let mut segments = Table::new(&[
            ("segment", false),
            ("run", true),
            ("level", true),
            ("rows", true),
            ("deleted", true),
            ("bytes", true),
            ("min key", false),
            ("max key", false),
        ]);
        for segment in &report.segments {
            segments.push([
                segment.name.clone(),
                segment.run.to_string(),
                segment.level.to_string(),
                grouped(segment.rows),
                grouped(segment.deleted),
                bytes(segment.bytes),
                segment.min_key.clone(),
                segment.max_key.clone(),
            ]);
        }
        out.push('\n');
        out.push_str(&segments.draw(Layout::of_stdout()));
    }
    out
}

/// Runs `check`.
pub fn check(args: &CheckArgs, out: &mut dyn Write) -> Outcome {
    let started = Instant::now();
    let options = database::options_of(&args.url, &args.options)?;
    let database = database::open_to(&args.url, Missing::Refuse, args.read_only, options)?;
    let outcome = verify(&database, started, out);
    database::close(&database, outcome)
}

fn verify(database: &Database, started: Instant, out: &mut dyn Write) -> Outcome {
    let problems = database.check()?;
    if problems.is_empty() {
        let reports = database.inspect()?;
        let segments: u64 = reports.iter().map(|r| r.segments.len() as u64).sum();
        writeln!(
            out,
            "ok: {}, {}, {}, {} read and verified in {}",
            counted(reports.len() as u64, "table"),
            rows(reports.iter().map(|r| r.rows).sum()),
            counted(segments, "segment"),
            bytes(reports.iter().map(segment_bytes).sum()),
            duration(started.elapsed())
        )?;
        return Ok(());
    }
    Err(unsound(&problems, out))
}

/// Prints the problems found. Ignores write errors: the check has failed even if its output is not
/// read.
fn unsound<P: Display>(problems: &[P], out: &mut dyn Write) -> Failure {
    for problem in problems {
        let _ = writeln!(out, "{problem}");
    }
    let _ = writeln!(out, "{} found", counted(problems.len() as u64, "problem"));
    Failure::Unsound
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn check_fails_even_if_its_output_is_closed() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert!(matches!(unsound(&["seg-0: block 1"], &mut Closed), Failure::Unsound));
        let mut out = Vec::new();
        unsound(&["seg-0: block 1", "seg-0: block 2"], &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "seg-0: block 1\nseg-0: block 2\n2 problems found\n"
        );
    }
}
