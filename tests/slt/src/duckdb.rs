//! Scripts of DuckDB's public tests (`--dialect duckdb`): their loops, their layout of results and
//! their way of comparing values. What concerns DuckDB alone is skipped with a reason from the list
//! in `skip.rs`, and only if the statement fails here.

use crate::database::{Mode, TestDatabase};
use crate::format;
use crate::script::{Failure, Report};
use crate::skip;
use nacredb::{Error, ErrorKind, QueryResult, Value};

/// A line of a script with its number, after the variables of loops were replaced.
type Line = (u32, String);

/// Most lines of a script once its loops are unrolled.
const MAX_LINES: usize = 200_000;

/// Runs a whole script on a database of its own, continuing after failures.
pub fn run_script(text: &str, mode: Mode) -> Report {
    let mut report = Report::default();
    let lines: Vec<Line> =
        text.lines().zip(1..).map(|(l, at)| (at, l.trim_end().to_string())).collect();
    let mut unrolled = Vec::new();
    let left_out = unroll(&lines, &mut unrolled);
    report.skip(skip::THREADS, left_out);
    match TestDatabase::new(mode) {
        Ok(database) => Runner { database, report: &mut report }.run(&unrolled),
        Err(error) => {
            let what = error.to_string();
            report.failures.push(Failure { line: 0, sql: String::new(), what });
        }
    }
    report
}

/// Writes out loops. A loop whose values are not in the script is left out. Returns the number of records of these.
fn unroll(lines: &[Line], out: &mut Vec<Line>) -> usize {
    let (mut at, mut left_out) = (0, 0);
    while at < lines.len() && out.len() < MAX_LINES {
        let words: Vec<&str> = lines[at].1.split_whitespace().collect();
        let Some(values) = loop_values(&words) else {
            out.push(lines[at].clone());
            at += 1;
            continue;
        };
        let end = end_of_loop(lines, at);
        let body = &lines[at + 1..end.min(lines.len())];
        let name = words.get(1).copied().unwrap_or_default();
        let names = [format!("${{{name}}}"), format!("{{{name}}}")];
        if values.is_empty() {
            left_out += records(body);
        }
        for value in values {
            let line = |(number, text): &Line| {
                (*number, text.replace(&names[0], &value).replace(&names[1], &value))
            };
            let body: Vec<Line> = body.iter().map(line).collect();
            left_out += unroll(&body, out);
        }
        at = end + 1;
    }
    left_out
}

/// The number of records in some lines.
fn records(lines: &[Line]) -> usize {
    lines.iter().filter(|(_, line)| is_record(line)).count()
}

fn end_of_loop(lines: &[Line], start: usize) -> usize {
    let mut depth = 0;
    for (at, (_, line)) in lines.iter().enumerate().skip(start) {
        match line.split_whitespace().next() {
            Some("loop" | "foreach" | "concurrentloop" | "concurrentforeach") => depth += 1,
            Some("endloop") => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    lines.len()
}

/// The values of a loop's variable; `None` if the line begins no loop. Loops on several threads
/// have none.
fn loop_values(words: &[&str]) -> Option<Vec<String>> {
    const INTEGERS: [&str; 8] = [
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "utinyint",
        "usmallint",
        "uinteger",
        "ubigint",
    ];
    match words {
        ["concurrentloop" | "concurrentforeach", ..] => Some(Vec::new()),
        ["loop", _, from, to, ..] => {
            let (from, to) = (from.parse::<i64>().ok()?, to.parse::<i64>().ok()?);
            Some((from..to).map(|n| n.to_string()).collect())
        }
        ["foreach", _, values @ ..] => {
            let mut out: Vec<String> = Vec::new();
            for value in values {
                match *value {
                    "<integral>" | "<signed>" => out.extend(INTEGERS.map(str::to_string)),
                    "<numeric>" => {
                        out.extend(INTEGERS.iter().chain(&["float", "double"]).map(|t| (*t).into()))
                    }
                    "<unsigned>" => out.extend(INTEGERS[4..].iter().map(|t| (*t).into())),
                    "<alltypes>" => out.extend(
                        INTEGERS
                            .iter()
                            .chain(&["bool", "float", "double", "varchar"])
                            .map(|t| (*t).into()),
                    ),
                    text => match text.strip_prefix('!') {
                        Some(without) => out.retain(|v| v != without),
                        None => out.push(text.into()),
                    },
                }
            }
            Some(out)
        }
        _ => None,
    }
}

struct Runner<'r> {
    database: TestDatabase,
    report: &'r mut Report,
}

impl Runner<'_> {
    fn run(&mut self, lines: &[Line]) {
        let mut skips = false;
        let mut only = false;
        let mut at = 0;
        while at < lines.len() {
            let (number, line) = &lines[at];
            let words: Vec<&str> = line.split_whitespace().collect();
            at += 1;
            match words.as_slice() {
                ["halt", ..] => return self.report.skip(skip::SCRIPT, records(&lines[at..])),
                ["mode", "skip", ..] => skips = true,
                ["mode", "unskip", ..] => skips = false,
                ["onlyif", ..] => only = true,
                ["require", what, ..] if skip::needs_extension(what) => {
                    return self.report.skip(skip::EXTENSION, records(&lines[at..]));
                }
                ["statement", expected, rest @ ..] => {
                    let (sql, _) = parts(lines, &mut at);
                    if std::mem::take(&mut only) || skips {
                        self.report.skip(skip::SCRIPT, 1);
                        continue;
                    }
                    let session = rest.first().copied().unwrap_or_default();
                    self.statement(*number, expected, session, sql);
                }
                ["query", types, rest @ ..] => {
                    let (sql, expected) = parts(lines, &mut at);
                    if std::mem::take(&mut only) || skips {
                        self.report.skip(skip::SCRIPT, 1);
                        continue;
                    }
                    self.query(*number, types, rest, sql, &expected);
                }
                _ => {}
            }
        }
    }

    fn statement(&mut self, line: u32, expected: &str, session: &str, sql: String) {
        let outcome = self.database.run(session, &sql);
        let checked = match (expected, &outcome) {
            ("error", Ok(_)) => Err("succeeded, an error was expected".to_string()),
            // A feature that is missing is not the error that the script expects.
            ("error", Err(e)) if e.kind() == ErrorKind::Unsupported => Err(e.to_string()),
            ("error" | "maybe", _) => Ok(()),
            _ => outcome.as_ref().map(|_| ()).map_err(ToString::to_string),
        };
        self.count(line, sql, &outcome, checked);
    }

    fn query(&mut self, line: u32, types: &str, rest: &[&str], sql: String, expected: &[String]) {
        let session = rest.iter().find(|word| word.starts_with("con")).copied().unwrap_or_default();
        let outcome = self.database.run(session, &sql);
        let checked = outcome
            .as_ref()
            .map_err(ToString::to_string)
            .and_then(|result| compare(result, types.len(), rest, expected));
        self.count(line, sql, &outcome, checked);
    }

    fn count(
        &mut self,
        line: u32,
        sql: String,
        outcome: &Result<QueryResult, Error>,
        checked: Result<(), String>,
    ) {
        match checked {
            Ok(()) => self.report.passed += 1,
            Err(what) if what == skip::NULLS_FIRST => self.report.skip(skip::NULLS_FIRST, 1),
            Err(what) => match skip::of_duckdb(&sql, outcome) {
                Some(reason) => self.report.skip(reason, 1),
                None => self.report.failures.push(Failure { line, sql, what }),
            },
        }
    }
}

fn is_record(line: &str) -> bool {
    line.starts_with("statement ") || line.starts_with("query ")
}

/// The statement that follows, and the lines after `----`, up to an empty line.
fn parts(lines: &[Line], at: &mut usize) -> (String, Vec<String>) {
    let (mut sql, mut expected, mut after) = (Vec::new(), Vec::new(), false);
    while let Some((_, line)) = lines.get(*at).filter(|(_, line)| !line.is_empty()) {
        *at += 1;
        match (line == "----", after) {
            (true, _) => after = true,
            (false, true) => expected.push(line.clone()),
            (false, false) => sql.push(line.as_str()),
        }
    }
    (sql.join("\n"), expected)
}

/// Compares a result with the expected lines: rows with tabs between values, or one value per line.
fn compare(
    result: &QueryResult,
    width: usize,
    words: &[&str],
    expected: &[String],
) -> Result<(), String> {
    // DuckDB returns the number of changed rows as a row.
    if result.columns.is_empty() && expected == [result.rows_affected.to_string()] {
        return Ok(());
    }
    if result.columns.len() != width {
        return Err(format!("{} columns, expected {width}", result.columns.len()));
    }
    if expected.is_empty() && result.rows() == 0 {
        return Ok(());
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for batch in &result.batches {
        for row in 0..batch.rows {
            rows.push(batch.columns.iter().map(|column| shown(&column.value(row))).collect());
        }
    }
    let line = |line: &String| -> Vec<String> {
        let parts: Vec<&str> = line.split('\t').collect();
        let filled = parts.iter().filter(|part| !part.is_empty());
        // Some scripts have a tab too many.
        match filled.clone().count() == width {
            true => filled.map(|part| part.trim().to_string()).collect(),
            false => parts.into_iter().map(str::to_string).collect(),
        }
    };
    let by_row = expected.iter().all(|text| line(text).len() == width);
    let values = expected.iter().flat_map(line);
    let mut wanted: Vec<Vec<String>> = match by_row {
        true => expected.iter().map(line).collect(),
        false => values.collect::<Vec<_>>().chunks(width).map(<[String]>::to_vec).collect(),
    };
    let single = |rows: Vec<Vec<String>>| -> Vec<Vec<String>> {
        rows.into_iter().flatten().map(|value| vec![value]).collect()
    };
    if words.contains(&"valuesort") {
        (rows, wanted) = (single(rows), single(wanted));
    }
    if words.contains(&"rowsort") || words.contains(&"valuesort") {
        rows.sort();
        wanted.sort();
    }
    if format::is_hash(expected) {
        let hash = format::hash(&rows);
        return if hash == expected[0] { Ok(()) } else { Err(format!("{hash}, not {expected:?}")) };
    }
    let equal = |rows: &[Vec<String>], wanted: &[Vec<String>]| {
        let pairs = rows.iter().flatten().zip(wanted.iter().flatten());
        rows.len() == wanted.len() && pairs.into_iter().all(|(a, b)| same(a, b))
    };
    if equal(&rows, &wanted) {
        return Ok(());
    }
    let message = format!("{} rows {rows:.300?}, expected {expected:.300?}", rows.len());
    rows.sort();
    wanted.sort();
    let nulls = rows.iter().flatten().any(|value| value == "NULL");
    Err(if nulls && equal(&rows, &wanted) { skip::NULLS_FIRST.into() } else { message })
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        value => match value.to_string() {
            text if text.is_empty() => "(empty)".into(),
            text => text.replace('\0', "\\0"),
        },
    }
}

/// Whether two values print the same, are the same truth value, or nearly the same number.
fn same(actual: &str, expected: &str) -> bool {
    if actual == expected {
        return true;
    }
    let lower = expected.to_ascii_lowercase();
    match (actual, lower.as_str()) {
        ("true", "1" | "true") | ("false", "0" | "false") | ("NaN", "nan") => return true,
        ("Infinity", "inf" | "infinity") | ("-Infinity", "-inf" | "-infinity") => return true,
        _ => {}
    }
    // DuckDB prints a fraction of a second without the zeros at its end.
    if actual.contains(':') && actual.contains('.') && actual.trim_end_matches('0') == expected {
        return true;
    }
    let is_exact = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    if is_exact(actual) && is_exact(expected) {
        return false;
    }
    match (actual.parse::<f64>(), expected.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= 1e-4 * b.abs().max(1e-4),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_written_out() {
        let script = "foreach t <signed> !bigint\nloop i 0 2\nstatement ok\nselect ${i}::{t}\n\n\
                      endloop\nendloop\n";
        let report = run_script(script, Mode::Plain);
        assert_eq!((report.passed, report.failures.len()), (14, 0), "{:?}", report.failures);
    }

    #[test]
    fn results_are_compared() {
        let script = "query IT\nselect 1, true\n----\n1\t1\n\nquery II\nselect 1, 2\n----\n1\n2\n\n\
                      query R\nselect 0.1\n----\n0.100000\n\nquery I\nselect 1\n----\n2\n\n\
                      statement error\nselect nosuch\n----\nBinder Error\n\n\
                      statement error\ncreate sequence s\n\nstatement error\nselect 1\n";
        let report = run_script(script, Mode::Plain);
        let failed: Vec<u32> = report.failures.iter().map(|f| f.line).collect();
        assert_eq!((report.passed, failed), (4, vec![17, 27, 30]));
    }

    #[test]
    fn internals_are_skipped() {
        let script =
            "statement ok\npragma enable_verification\n\nrequire icu\n\nstatement ok\nselect 1\n";
        let report = run_script(script, Mode::Plain);
        assert_eq!((report.passed, report.failures.len()), (0, 0));
        assert_eq!(report.skipped.values().sum::<usize>(), 2);
    }
}
