//! The one list of reasons for which a record is not decided. Nothing else is ever skipped.
//!
//! A record is skipped for a feature only when its statement begins with the feature's words *and* the engine
//! refuses it: what works is run and compared, and the list shrinks by itself as features come.

use nacredb::{Error, QueryResult};

/// First words of a statement, and the feature it needs.
const FEATURES: &[(&[&str], &str)] = &[
    (&["reindex"], "REINDEX is SQLite's own"),
    (&["create trigger", "drop trigger"], "triggers are not supported"),
];

/// SQLite stores text of any length in a `VARCHAR(n)`; we do not.
const LENGTH: &str = "text longer than its VARCHAR(n) is an error, unlike in SQLite";

/// SQLite compares values of any types; for us a text or a binary value beside a number is a mistake in the statement.
const TYPES: &str =
    "text that is no number, or binary, compared with a number is an error, unlike in SQLite";

/// SQLite answers null, as MySQL does; we follow the standard.
const ZERO: &str = "division by zero is an error, unlike in SQLite";

/// `COALESCE(30, avg(x)) / 35` divides integers in SQLite, which types each value as it comes; for us the first operand
/// can have a fraction. MySQL sees it as we do, so the corpus has the query twice, for MySQL with `DIV`.
pub const TWIN: &str =
    "an integer by value, not by type, is divided; the query's form for MySQL (DIV) is compared";

/// SQLite cuts a fraction off where we round. The query was compared with `TRUNC` inside its casts.
pub const CUT: &str =
    "a fraction cast to an integer is rounded, unlike in SQLite; right with TRUNC";

/// Records for MySQL only whose table the corpus also creates in another form for the other engines.
const PREFIX: &str = "a key over the first characters of a column is MySQL's own";

/// What the skipped records of a script leave behind.
#[derive(Default)]
pub struct Missing {
    /// The record before was a row that was too long: a query right after it looks for that row.
    row: bool,
}

impl Missing {
    /// Like [`reason`], and remembers rows that were too long.
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

    /// Why a query that ran, but not to the expected rows, is not decided.
    pub fn reason_for_rows(&mut self) -> Option<&'static str> {
        std::mem::take(&mut self.row).then_some(LENGTH)
    }
}

/// The query with `TRUNC` inside its casts to integers; none when it has no such cast.
pub fn with_trunc(sql: &str) -> Option<String> {
    let mut out = String::with_capacity(sql.len() + 32);
    // For each open parenthesis, where a `CAST (` began in `out`.
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

/// Why a record is not decided; `None` when it must come out as it says.
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
