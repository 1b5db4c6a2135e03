//! The 22 queries on files that lack parts of their bytes, at scale 0.01: each answers what it
//! answers when all bytes are there, on one thread and on several, collected and streamed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_native::{ThreadPool, block_on, memory_host};
use nacre_testing::{lacking, reluctant};
use nacredb::{Database, Host, Options, QueryResult, Result, Session};
use std::sync::Arc;

fn lines(result: &QueryResult) -> Vec<String> {
    let line = |row: &Vec<nacredb::Value>| {
        row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")
    };
    result.to_rows().iter().map(line).collect()
}

fn streamed(session: &mut Session, sql: &str) -> Result<QueryResult> {
    block_on(async { session.stream(sql, &[]).await?.collect().await })
}

#[test]
fn every_query_is_answered_from_absent_bytes() {
    let threads = Arc::new(ThreadPool::new(3));
    let host = Host { parallelism: threads, ..memory_host() };
    let database = block_on(Database::open(host.clone(), Options::default())).unwrap();
    let mut session = database.session();
    nacre_tpch::generate_small(&mut session).unwrap();
    session.set_threads(1);
    let queries = nacre_tpch::queries().unwrap();
    let expected: Vec<Vec<String>> = (queries.iter())
        .map(|(_, sql)| lines(&block_on(session.execute(sql, &[])).unwrap()))
        .collect();
    drop(session);
    block_on(database.close()).unwrap();

    let (host, files) = lacking(reluctant(host), 3);
    // Hardly any block is found in the cache, and footers are read again and again.
    let options = Options { cache_bytes: 1, metadata_bytes: 1, ..Options::default() };
    let database = block_on(Database::open(host, options)).unwrap();
    let mut session = database.session();
    let mut wrong = Vec::new();
    for ((query, sql), expected) in queries.iter().zip(&expected) {
        let before = files.misses();
        for threads in [1, 3] {
            session.set_threads(threads);
            for (way, answer) in [
                ("collected", block_on(session.execute(sql, &[]))),
                ("streamed", streamed(&mut session, sql)),
            ] {
                match answer.as_ref().map(lines) {
                    Ok(rows) if rows == *expected => {}
                    Ok(rows) => wrong.push(format!(
                        "q{query:02}, {threads} threads, {way}: {} rows of {}",
                        rows.len(),
                        expected.len()
                    )),
                    Err(error) => {
                        wrong.push(format!("q{query:02}, {threads} threads, {way}: {error}"));
                    }
                }
            }
        }
        assert!(files.misses() > before, "q{query:02} read no absent byte");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    drop(session);
    block_on(database.close()).unwrap();
    assert_eq!(files.held(), 0, "guards that are left");
}
