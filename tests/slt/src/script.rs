//! Runs one script and compares results.

use crate::database::{Mode, TestDatabase};
use crate::format;
use crate::skip;
use nacredb::{Error, QueryResult};
use sqllogictest::{
    Condition, Connection, Control, DefaultColumnType, ExpectedError, QueryExpect, Record,
    ResultMode, SortMode, StatementExpect,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// This engine's name in `onlyif` and `skipif`.
pub const ENGINE: &str = "nacre";
/// Names for this engine in the conditions of SQLite's corpus. MySQL-only records (`DIV`,
/// `CAST(… AS SIGNED)`) run here; so do records for all engines except MySQL (`/` of integers is an
/// integer).
pub const CORPUS_NAMES: [&str; 2] = [ENGINE, "mysql"];

/// How to run a script.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The interference before every statement.
    pub mode: Mode,
    /// Whether results list one value per line if the script does not say.
    pub value_wise: bool,
    /// Names of this engine, and of the mode, in `onlyif` and `skipif`.
    pub names: Vec<String>,
}

impl Settings {
    /// The settings for a kind of file: SQLite's corpus (`.test`) lists one value per line and has
    /// conditions for engines. Ours may name modes.
    pub fn of(path: &std::path::Path, mode: Mode) -> Settings {
        let value_wise = crate::is_value_wise(path);
        let names: &[&str] = if value_wise { &CORPUS_NAMES } else { &[ENGINE, mode.name()] };
        Settings { mode, value_wise, names: names.iter().map(ToString::to_string).collect() }
    }
}

/// A failed record.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Line of the record.
    pub line: u32,
    /// The statement.
    pub sql: String,
    /// The failure.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}\n  {}", self.line, self.what, self.sql.replace('\n', "\n  "))
    }
}

/// The results of a script.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of records with the expected result.
    pub passed: usize,
    /// Number of skipped records, by reason.
    pub skipped: BTreeMap<&'static str, usize>,
    /// Number of records for other engines only (`onlyif`, `skipif`), which do not count, as in
    /// SQLite's own runner.
    pub others: usize,
    /// Number of reads that met absent bytes, in [`Mode::Absent`], and of times that statements
    /// gave way, in [`Mode::Slices`].
    pub pauses: u64,
    /// The failed records.
    pub failures: Vec<Failure>,
}

impl Report {
    /// Counts skipped records.
    pub fn skip(&mut self, reason: &'static str, records: usize) {
        if records > 0 {
            *self.skipped.entry(reason).or_default() += records;
        }
    }
}

/// Runs a whole script on a database of its own, continuing after failures.
pub fn run_script(name: &str, text: &str, settings: &Settings) -> Report {
    let mut report = Report::default();
    let broken = |what: String| Failure { line: 0, sql: String::new(), what };
    let records = match sqllogictest::parse_with_name::<DefaultColumnType>(
        &prepared(text, &settings.names),
        name,
    ) {
        Ok(records) => records,
        Err(error) => {
            report.failures.push(broken(error.to_string()));
            return report;
        }
    };
    let database = match TestDatabase::new(settings.mode) {
        Ok(database) => database,
        Err(error) => {
            report.failures.push(broken(error.to_string()));
            return report;
        }
    };
    let mut runner = Runner {
        database,
        names: &settings.names,
        value_wise: settings.value_wise,
        sort: SortMode::NoSort,
        labels: HashMap::new(),
        twin: None,
        missing: skip::Missing::default(),
    };
    for record in records {
        match runner.record(record) {
            Step::Nothing => {}
            Step::Passed => report.passed += 1,
            Step::Other => report.others += 1,
            Step::Skipped(reason) => report.skip(reason, 1),
            Step::Failed(failure) => report.failures.push(failure),
            Step::Halt => break,
        }
    }
    report.pauses = runner.database.pauses();
    report
}

/// Rewrites constructs of SQLite's corpus that the parser does not support: remarks after
/// conditions, and conditions before `halt`. Preserves line numbers.
fn prepared(text: &str, names: &[String]) -> String {
    let mut out = String::with_capacity(text.len());
    // Conditions waiting for their record.
    let mut waiting: Vec<&str> = Vec::new();
    for line in text.lines() {
        let is_condition = line.starts_with("skipif ") || line.starts_with("onlyif ");
        let line =
            if is_condition { line.split('#').next().unwrap_or(line) } else { line }.trim_end();
        if is_condition {
            waiting.push(line);
            continue;
        }
        let halts = line == "halt";
        if halts && meant_for(waiting.iter().filter_map(|c| c.split_once(' ')), names) {
            break;
        }
        for condition in waiting.drain(..) {
            out.push_str(if halts { "" } else { condition });
            out.push('\n');
        }
        out.push_str(if halts { "" } else { line });
        out.push('\n');
    }
    out
}

/// Whether a record with these conditions applies to one of the names.
fn meant_for<'c>(
    conditions: impl Iterator<Item = (&'c str, &'c str)> + Clone,
    names: &[String],
) -> bool {
    names.iter().any(|name| {
        conditions.clone().all(|(word, label)| (word == "onlyif") == (label.trim() == name))
    })
}

enum Step {
    Nothing,
    Other,
    Passed,
    Skipped(&'static str),
    Failed(Failure),
    Halt,
}

struct Runner<'a> {
    database: TestDatabase,
    /// Names of this engine; see [`Settings::names`].
    names: &'a [String],
    value_wise: bool,
    sort: SortMode,
    /// Results of labelled queries, which must be equal.
    labels: HashMap<String, String>,
    /// The label of the previous query, if it was MySQL-only and passed.
    twin: Option<String>,
    missing: skip::Missing,
}

/// Whether the corpus has the query in another form for other engines.
fn is_for_mysql(conditions: &[Condition]) -> bool {
    matches!(conditions, [Condition::OnlyIf { label }] if label == "mysql")
}

/// The expected result of a query.
struct Expected<'a> {
    types: &'a [DefaultColumnType],
    sort: SortMode,
    label: Option<String>,
    lines: &'a [String],
}

impl Runner<'_> {
    fn record(&mut self, record: Record<DefaultColumnType>) -> Step {
        match record {
            Record::Statement { loc, conditions, connection, sql, expected, .. } => {
                if self.skips(&conditions) {
                    return Step::Other;
                }
                let outcome = self.database.run(session(&connection), &sql);
                if let Some(reason) = self.missing.reason(&sql, &outcome) {
                    return Step::Skipped(reason);
                }
                step(loc.line(), sql, statement(outcome, &expected))
            }
            Record::Query { loc, conditions, connection, sql, expected, .. } => {
                if self.skips(&conditions) {
                    return Step::Other;
                }
                let outcome = self.database.run(session(&connection), &sql);
                if let Some(reason) = self.missing.reason(&sql, &outcome) {
                    return Step::Skipped(reason);
                }
                let twin = self.twin.take();
                let mut reason = None;
                let checked = match &expected {
                    QueryExpect::Error(error) => expect_error(outcome, error),
                    QueryExpect::Results { types, sort_mode, label, results, .. } => {
                        let sort = sort_mode.unwrap_or(self.sort);
                        let expected =
                            Expected { types, sort, label: label.clone(), lines: results };
                        let checked = outcome
                            .map_err(|e| e.to_string())
                            .and_then(|result| self.query(&result, &expected));
                        if checked.is_err() {
                            reason = self.rows_differ(
                                &conditions,
                                twin,
                                session(&connection),
                                &sql,
                                &expected,
                            );
                        } else if is_for_mysql(&conditions) {
                            self.twin = label.clone();
                        }
                        checked
                    }
                };
                match reason {
                    Some(reason) => Step::Skipped(reason),
                    None => step(loc.line(), sql, checked),
                }
            }
            Record::Control(Control::SortMode(sort)) => {
                self.sort = sort;
                Step::Nothing
            }
            Record::Control(Control::ResultMode(mode)) => {
                self.value_wise = mode == ResultMode::ValueWise;
                Step::Nothing
            }
            Record::Halt { .. } => Step::Halt,
            // Hashed results are recognised by their form.
            Record::HashThreshold { .. } => Step::Nothing,
            Record::Include { loc, .. } | Record::System { loc, .. } | Record::Let { loc, .. } => {
                step(
                    loc.line(),
                    String::new(),
                    Err("this kind of record is not known to the runner".into()),
                )
            }
            _ => Step::Nothing,
        }
    }

    /// The reason to skip a query of SQLite's corpus that returned other rows than expected.
    fn rows_differ(
        &mut self,
        conditions: &[Condition],
        twin: Option<String>,
        session: &str,
        sql: &str,
        expected: &Expected<'_>,
    ) -> Option<&'static str> {
        if let Some(reason) = self.missing.reason_for_rows() {
            return Some(reason);
        }
        let not_for_mysql = matches!(conditions, [Condition::SkipIf { label }] if label == "mysql");
        if not_for_mysql && sql.contains(" / ") && twin.is_some() && twin == expected.label {
            return Some(skip::TWIN);
        }
        let cut = skip::with_trunc(sql).filter(|_| self.value_wise)?;
        let result = self.database.run(session, &cut).ok()?;
        self.query(&result, expected).is_ok().then_some(skip::CUT)
    }

    fn skips(&self, conditions: &[Condition]) -> bool {
        let pairs = conditions.iter().map(|condition| match condition {
            Condition::OnlyIf { label } => ("onlyif", label.as_str()),
            Condition::SkipIf { label } => ("skipif", label.as_str()),
        });
        !meant_for(pairs, self.names)
    }

    fn query(&mut self, result: &QueryResult, expected: &Expected<'_>) -> Result<(), String> {
        if !expected.types.is_empty() && expected.types.len() != result.columns.len() {
            return Err(format!(
                "{} columns, expected {}",
                result.columns.len(),
                expected.types.len()
            ));
        }
        let letters: Vec<char> =
            expected.types.iter().map(sqllogictest::ColumnType::to_char).collect();
        let mut rows = format::rows(result, &letters, self.value_wise);
        match expected.sort {
            SortMode::NoSort => {}
            SortMode::RowSort => rows.sort(),
            SortMode::ValueSort => {
                let mut values: Vec<String> = rows.into_iter().flatten().collect();
                values.sort();
                rows = values.into_iter().map(|value| vec![value]).collect();
            }
        }
        let hash = format::hash(&rows);
        let earlier = expected.label.as_ref().and_then(|label| self.labels.get(label));
        if earlier.is_some_and(|earlier| *earlier != hash) {
            let label = expected.label.as_deref().unwrap_or_default();
            return Err(format!("not the result of the earlier query labelled {label}"));
        }
        expected_lines(rows, &hash, expected.lines, self.value_wise)?;
        if let Some(label) = &expected.label {
            self.labels.insert(label.clone(), hash);
        }
        Ok(())
    }
}

/// Compares rows with the expected values or their hash.
fn expected_lines(
    rows: Vec<Vec<String>>,
    hash: &str,
    lines: &[String],
    value_wise: bool,
) -> Result<(), String> {
    if format::is_hash(lines) {
        return match lines[0] == hash {
            true => Ok(()),
            false => Err(format!("{hash}, expected {}", lines[0])),
        };
    }
    let actual: Vec<String> = match value_wise {
        true => rows.into_iter().flatten().collect(),
        false => rows.into_iter().map(|row| row.join(" ")).collect(),
    };
    if actual == lines {
        return Ok(());
    }
    Err(difference(&actual, lines))
}

fn session(connection: &Connection) -> &str {
    match connection {
        Connection::Default => "",
        Connection::Named(name) => name,
    }
}

fn step(line: u32, sql: String, outcome: Result<(), String>) -> Step {
    match outcome {
        Ok(()) => Step::Passed,
        Err(what) => Step::Failed(Failure { line, sql, what }),
    }
}

fn statement(
    outcome: Result<QueryResult, Error>,
    expected: &StatementExpect,
) -> Result<(), String> {
    match expected {
        StatementExpect::Ok => outcome.map(|_| ()).map_err(|e| e.to_string()),
        StatementExpect::Count(count) => match outcome {
            Ok(result) if result.rows_affected == *count => Ok(()),
            Ok(result) => Err(format!("{} rows affected, expected {count}", result.rows_affected)),
            Err(error) => Err(error.to_string()),
        },
        StatementExpect::Error(error) => expect_error(outcome, error),
    }
}

fn expect_error(
    outcome: Result<QueryResult, Error>,
    expected: &ExpectedError,
) -> Result<(), String> {
    match outcome {
        Ok(_) => Err("succeeded, an error was expected".into()),
        Err(error) => match expected.is_match(&error.to_string(), Some(error.sqlstate())) {
            true => Ok(()),
            false => Err(format!("another error was expected; got ({}) {error}", error.sqlstate())),
        },
    }
}

/// Describes where two results differ, in a few lines.
fn difference(actual: &[String], expected: &[String]) -> String {
    const SHOWN: usize = 8;
    let from = actual.iter().zip(expected).take_while(|(a, e)| a == e).count();
    let part = |lines: &[String]| {
        let rest = lines.get(from..).unwrap_or_default();
        let more = if rest.len() > SHOWN { "\n    …" } else { "" };
        let shown: Vec<&str> = rest.iter().take(SHOWN).map(String::as_str).collect();
        if shown.is_empty() { "(end)".to_owned() } else { shown.join("\n    ") + more }
    };
    format!(
        "result differs from line {} on ({} lines, expected {})\n  got\n    {}\n  expected\n    {}",
        from + 1,
        actual.len(),
        expected.len(),
        part(actual),
        part(expected)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_and_conditional_halts_go() {
        let names = CORPUS_NAMES.map(str::to_owned);
        assert_eq!(
            prepared("skipif mysql # why\nselect '#'\n", &names),
            "skipif mysql\nselect '#'\n"
        );
        assert_eq!(prepared("onlyif mssql\nhalt\nx\n", &names), "\n\nx\n");
        assert_eq!(prepared("a\nskipif sqlite\nhalt\nx\n", &names), "a\n");
    }

    #[test]
    fn records_for_either_name_are_run() {
        let names = CORPUS_NAMES.map(str::to_owned);
        let meant = |list: &[(&'static str, &'static str)]| meant_for(list.iter().copied(), &names);
        assert!(meant(&[]) && meant(&[("onlyif", "mysql")]) && meant(&[("skipif", "mysql")]));
        assert!(meant(&[("skipif", "mysql"), ("skipif", "oracle")]));
        assert!(
            !meant(&[("onlyif", "sqlite")]) && !meant(&[("onlyif", "mysql"), ("onlyif", "mssql")])
        );
    }

    #[test]
    fn differences_are_short() {
        let lines = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        let text = difference(&lines(3), &lines(4));
        assert!(text.contains("line 4") && text.contains("(end)"), "{text}");
    }
}
