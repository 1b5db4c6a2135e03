//! The one list of reasons for which a record is not decided. Nothing else is ever skipped.
//!
//! A record is skipped for a feature only when its statement begins with the feature's words *and* the engine
//! refuses it: what works is run and compared, and the list shrinks by itself as features come.

use nacredb::{Error, QueryResult};

/// The record is for other engines only (`onlyif`, `skipif`).
pub const OTHER_ENGINE: &str = "for other engines (onlyif, skipif)";

/// First words of a statement, and the feature it needs.
const FEATURES: &[(&[&str], &str)] = &[
    (&["create index", "create unique index", "drop index"], "secondary indexes are not there yet"),
    (&["reindex"], "REINDEX is SQLite's own"),
    (&["create trigger", "drop trigger"], "triggers are not supported"),
];

/// Why a record is not decided; `None` when it must come out as it says.
pub fn reason(sql: &str, outcome: &Result<QueryResult, Error>) -> Option<&'static str> {
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
        assert!(reason("CREATE UNIQUE\n INDEX i ON t(a)", &failed()).is_some());
        assert!(reason("create table index1 (a int)", &failed()).is_none());
        assert!(reason("select 1", &failed()).is_none());
    }
}
