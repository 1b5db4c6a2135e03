//! The only list of reasons to skip a record.
//!
//! A record is skipped for a feature only if its statement begins with the feature's keywords *and*
//! the engine rejects it. Whatever works is run and compared, so the list shrinks automatically as
//! features are added.

use nacredb::{Error, QueryResult};

/// Leading keywords of a statement, and the feature it needs.
const FEATURES: &[(&[&str], &str)] = &[
    (&["reindex"], "REINDEX is SQLite's own"),
    (&["create trigger", "drop trigger"], "triggers are not supported"),
];

/// SQLite stores text of any length in a `VARCHAR(n)`; we do not.
const LENGTH: &str = "text longer than its VARCHAR(n) is an error, unlike in SQLite";

/// SQLite compares values of any types; here, comparing a number with non-numeric text or a binary
/// value is an error.
const TYPES: &str =
    "text that is no number, or binary, compared with a number is an error, unlike in SQLite";

/// SQLite returns null, as MySQL does; we follow the standard.
const ZERO: &str = "division by zero is an error, unlike in SQLite";

/// `COALESCE(30, avg(x)) / 35` divides integers in SQLite, which types each value dynamically; here
/// the first operand can have a fraction. MySQL agrees with us, so the corpus has the query twice,
/// for MySQL with `DIV`.
pub const TWIN: &str =
    "an integer by value, not by type, is divided; the query's form for MySQL (DIV) is compared";

/// SQLite truncates a fraction that we round. The query was compared with `TRUNC` inside its casts.
pub const CUT: &str =
    "a fraction cast to an integer is rounded, unlike in SQLite; right with TRUNC";

/// MySQL-only records whose table the corpus also creates in another form for other engines.
const PREFIX: &str = "a key over the first characters of a column is MySQL's own";

/// What a script of DuckDB's `require`s and we do not have.
pub const EXTENSION: &str = "DuckDB: the script requires an extension or a build of DuckDB";

/// What a script leaves out itself, or runs for another database.
pub const SCRIPT: &str = "DuckDB: the script skips it";

/// Loops whose turns run beside each other.
pub const THREADS: &str = "DuckDB: loops on several threads";

/// The rows of a result are right, but come in another order.
pub const NULLS_FIRST: &str = "DuckDB: nulls come last in its order, and first in ours";

/// Whether a script that `require`s this is about a part of DuckDB that is not SQL.
pub fn needs_extension(what: &str) -> bool {
    const HARMLESS: &[&str] = &[
        "json",
        "vector_size",
        "no_alternative_verify",
        "skip_reload",
        "noforcestorage",
        "notwindows",
        "noalternativeverify",
        "core_functions",
    ];
    !HARMLESS.contains(&what)
}

/// The reason to skip a record of DuckDB's tests that has failed; `None` if it counts.
pub fn of_duckdb(sql: &str, outcome: &Result<QueryResult, Error>) -> Option<&'static str> {
    const INTERNALS: &[(&[&str], &str)] = &[
        (&["pragma", "set", "reset", "call", "checkpoint", "force"], "DuckDB: settings"),
        (&["attach", "detach", "export", "import", "install", "load", "copy"], "DuckDB: files"),
        (&["explain"], "DuckDB: its plans"),
    ];
    const NAMES: &[(&str, &str)] = &[
        ("duckdb_", "DuckDB: its catalog"),
        ("pragma_", "DuckDB: its catalog"),
        ("read_csv", "DuckDB: files"),
        ("read_parquet", "DuckDB: files"),
        ("read_json", "DuckDB: files"),
        (".parquet'", "DuckDB: files"),
        (".csv", "DuckDB: files"),
        ("{data_dir}", "DuckDB: files"),
        ("{test_dir}", "DuckDB: files"),
        ("test_all_types", "DuckDB: functions of its tests"),
        ("test_vector_types", "DuckDB: functions of its tests"),
        ("typeof(", "DuckDB: names of its types"),
        ("stats(", "DuckDB: its statistics"),
    ];
    let text = sql.to_ascii_lowercase();
    let first = text.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| !word.is_empty())?;
    let starts = INTERNALS.iter().find(|(words, _)| words.contains(&first));
    if let Some((_, reason)) = starts.filter(|_| outcome.is_err() || first == "explain") {
        return Some(reason);
    }
    // A wrong answer counts, but for answers that are DuckDB's own words.
    let is_own = |name: &str| ["typeof(", "stats("].contains(&name);
    let found = |(name, _): &&(&str, _)| text.contains(name) && (outcome.is_err() || is_own(name));
    NAMES.iter().find(found).map(|(_, reason)| *reason)
}

/// State that skipped records leave for later ones.
#[derive(Default)]
pub struct Missing {
    /// The previous record was a row that was too long; the next query looks for that row.
    row: bool,
}

impl Missing {
    /// Like [`reason`], and records rows that were too long.
    pub fn reason(
        &mut self,
        sql: &str,
        outcome: &Result<QueryResult, Error>,
    ) -> Option<&'static str> {
        let after = std::mem::take(&mut self.row);
        if let Some(known) = reason(sql, outcome) {
            return Some(known);
        }
        if outcome.is_ok() {
            self.row = after
                && sql.trim_start().get(..6).is_some_and(|w| w.eq_ignore_ascii_case("select"));
            return None;
        }
        let error = outcome.as_ref().err()?;
        self.row = error.sqlstate() == "22001";
        if self.row {
            return Some(LENGTH);
        }
        if error.sqlstate() == "22012" {
            return Some(ZERO);
        }
        let mixes = match error.sqlstate() {
            "22P02" => true,
            "42883" => error.message().starts_with("no operator = for BLOB and"),
            _ => false,
        };
        if mixes && sql.to_ascii_lowercase().contains(" in ") {
            return Some(TYPES);
        }
        let prefix =
            error.sqlstate() == "42P07" && sql.to_ascii_lowercase().contains("unique (a(1))");
        prefix.then_some(PREFIX)
    }

    /// The reason to skip a query that returned other rows than expected.
    pub fn reason_for_rows(&mut self) -> Option<&'static str> {
        std::mem::take(&mut self.row).then_some(LENGTH)
    }
}

/// The query with `TRUNC` inside its casts to integers; `None` if it has no such cast.
pub fn with_trunc(sql: &str) -> Option<String> {
    let mut out = String::with_capacity(sql.len() + 32);
    // For each open parenthesis, the offset in `out` where a `CAST (` began.
    let mut open: Vec<Option<usize>> = Vec::new();
    let mut any = false;
    for (at, c) in sql.char_indices() {
        match c {
            '(' => {
                out.push(c);
                let cast = sql[..at].trim_end().to_ascii_lowercase().ends_with("cast");
                open.push(cast.then_some(out.len()));
            }
            ')' => {
                if let Some(from) = open.pop().flatten() {
                    let inner = out.split_off(from);
                    let is_integer = |end: &str| {
                        end.eq_ignore_ascii_case("integer") || end.eq_ignore_ascii_case("signed")
                    };
                    match inner.to_ascii_lowercase().rfind(" as ") {
                        Some(end) if is_integer(inner[end + 4..].trim()) => {
                            out.push_str(&format!("trunc({}){}", &inner[..end], &inner[end..]));
                            any = true;
                        }
                        _ => out.push_str(&inner),
                    }
                }
                out.push(c);
            }
            c => out.push(c),
        }
    }
    any.then_some(out)
}

/// The reason to skip a record; `None` if its result counts.
fn reason(sql: &str, outcome: &Result<QueryResult, Error>) -> Option<&'static str> {
    outcome.as_ref().err()?;
    let words: Vec<String> = sql.split_whitespace().take(3).map(str::to_ascii_lowercase).collect();
    let start = words.join(" ");
    let begins = |with: &&str| start == *with || start.starts_with(&format!("{with} "));
    FEATURES.iter().find(|(starts, _)| starts.iter().any(&begins)).map(|(_, feature)| *feature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_are_cut() {
        assert_eq!(
            with_trunc("SELECT CAST ( - CAST( a AS SIGNED ) + ( 1 ) AS INTEGER ), CAST(b AS REAL)")
                .as_deref(),
            Some(
                "SELECT CAST (trunc( - CAST(trunc( a) AS SIGNED ) + ( 1 )) AS INTEGER ), CAST(b AS REAL)"
            )
        );
        assert_eq!(with_trunc("SELECT CAST(b AS REAL), (1)"), None);
    }

    #[test]
    fn only_what_fails_is_skipped() {
        let failed = || Err(Error::unsupported("x"));
        assert!(reason("CREATE\n TRIGGER i on t", &failed()).is_some());
        assert!(reason("create table trigger1 (a int)", &failed()).is_none());
        assert!(reason("select 1", &failed()).is_none());
    }
}
