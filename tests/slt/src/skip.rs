//! The one list of reasons for which a record is not decided. Nothing else is ever skipped.
//!
//! A record is skipped for a feature only when its statement begins with the feature's words *and* the engine
//! refuses it: what works is run and compared, and the list shrinks by itself as features come.

use nacredb::{Error, QueryResult};

/// The record is for other engines only (`onlyif`, `skipif`).
pub const OTHER_ENGINE: &str = "for other engines (onlyif, skipif)";

/// First words of a statement, and the feature it needs.
const FEATURES: &[(&[&str], &str)] =
    &[(&["reindex"], "REINDEX is SQLite's own"), (&["create trigger", "drop trigger"], "triggers are not supported")];

/// SQLite stores text of any length in a `VARCHAR(n)`; we do not.
const LENGTH: &str = "text longer than its VARCHAR(n) is an error, unlike in SQLite";

/// SQLite compares values of any types; for us a text or a binary value beside a number is a mistake in the statement.
const TYPES: &str = "text that is no number, or binary, compared with a number is an error, unlike in SQLite";

/// What the corpus has for MySQL only, where the same table is made for everybody else.
const PREFIX: &str = "a key over the first characters of a column is MySQL's own";

/// What the skipped records of a script leave behind.
#[derive(Default)]
pub struct Missing {
    /// The record before was a row that was too long: a query right after it looks for that row.
    row: bool,
}

impl Missing {
    /// Like [`reason`], and remembers rows that were too long.
    pub fn reason(&mut self, sql: &str, outcome: &Result<QueryResult, Error>) -> Option<&'static str> {
        let after = std::mem::take(&mut self.row);
        if let Some(known) = reason(sql, outcome) {
            return Some(known);
        }
        if outcome.is_ok() {
            self.row = after && sql.trim_start().get(..6).is_some_and(|w| w.eq_ignore_ascii_case("select"));
            return None;
        }
        let error = outcome.as_ref().err()?;
        self.row = error.sqlstate() == "22001";
        if self.row {
            return Some(LENGTH);
        }
        let mixes = match error.sqlstate() {
            "22P02" => true,
            "42883" => error.message().starts_with("no operator = for BLOB and"),
            _ => false,
        };
        if mixes && sql.to_ascii_lowercase().contains(" in ") {
            return Some(TYPES);
        }
        let prefix = error.sqlstate() == "42P07" && sql.to_ascii_lowercase().contains("unique (a(1))");
        prefix.then_some(PREFIX)
    }

    /// Why a query that ran, but not to the expected rows, is not decided.
    pub fn reason_for_rows(&mut self) -> Option<&'static str> {
        std::mem::take(&mut self.row).then_some(LENGTH)
    }
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
    fn only_what_fails_is_skipped() {
        let failed = || Err(Error::unsupported("x"));
        assert!(reason("CREATE\n TRIGGER i on t", &failed()).is_some());
        assert!(reason("create table trigger1 (a int)", &failed()).is_none());
        assert!(reason("select 1", &failed()).is_none());
    }
}
