//! Recognition of texts that end a transaction.

use crate::ends_transaction;

#[test]
fn finds_statements_that_end_a_transaction() {
    for sql in [
        "commit",
        " END;",
        "abort",
        "Rollback Work",
        "commit and chain",
        "insert into t values ('it''s; x');\n-- that is all\nCOMMIT",
        "select 'it''s'; /* ; */ rollback transaction; select 1",
        "/* first */ -- second\n rollback",
    ] {
        assert!(ends_transaction(sql), "{sql}");
    }
}

#[test]
fn overlooks_words_that_are_no_statement() {
    for sql in [
        "",
        "rollback to s",
        "rollback work to savepoint s",
        "select 1; rollback transaction to s",
        "select case when a then b end from t",
        "select '; commit', \"; commit\", `; commit` -- ; commit",
        "select 'x' /* y; commit */ from committed",
        "select commit from t",
        "explain commit",
        "savepoint commit; release commit",
        "commit; this is no statement",
        "'",
    ] {
        assert!(!ends_transaction(sql), "{sql}");
    }
}
