//! The 22 queries with each strategy of scans, on one thread and on three: the answers are the same.
//! The scale is large enough that adaptive scans measure.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_native::block_on;
use nacredb::{Database, Options, Session};

const SCALE: f64 = 0.03;
const FIXED: [&str; 4] = ["regular", "encoded", "group", "index"];

fn answer(session: &mut Session, sql: &str) -> Vec<String> {
    let result = block_on(session.execute(sql, &[])).unwrap();
    let line = |row: &Vec<nacredb::Value>| {
        row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")
    };
    result.to_rows().iter().map(line).collect()
}

fn set(session: &mut Session, strategy: &str) {
    block_on(session.execute(&format!("set scan_strategy = '{strategy}'"), &[])).unwrap();
}

/// The decisions of the scans of a query.
fn decisions(session: &mut Session, sql: &str) -> String {
    let result = block_on(session.execute(&format!("profile {sql}"), &[])).unwrap();
    result.to_rows().iter().filter_map(|row| row.last().map(ToString::to_string)).collect()
}

#[test]
fn every_strategy_answers_the_same() {
    let host = nacre_native::memory_host();
    let database = block_on(Database::open(host, Options::default())).unwrap();
    let mut session = database.session();
    nacre_tpch::generate(&mut session, SCALE).unwrap();
    for (name, _) in nacre_tpch::tables() {
        block_on(session.execute(&format!("optimize table {name} full"), &[])).unwrap();
    }
    // For scans and joins that may use an index.
    block_on(session.execute("create index by_part on lineitem (l_partkey)", &[])).unwrap();
    block_on(session.execute("create index by_date on lineitem (l_shipdate)", &[])).unwrap();
    block_on(session.execute("optimize table lineitem full", &[])).unwrap();
    let mut measured = 0;
    for (query, sql) in nacre_tpch::queries().unwrap() {
        session.set_threads(1);
        set(&mut session, "adaptive");
        let expected = answer(&mut session, &sql);
        assert!(!expected.is_empty(), "q{query:02}");
        let decisions = decisions(&mut session, &sql);
        let mut counts = decisions.split(" measured=").skip(1);
        measured += usize::from(counts.any(|count| !count.starts_with("0 ")));
        for threads in [1, 3] {
            session.set_threads(threads);
            for strategy in FIXED.into_iter().chain(["adaptive"]) {
                set(&mut session, strategy);
                let found = answer(&mut session, &sql);
                assert!(found == expected, "q{query:02}, {strategy}, {threads} threads: {found:?}");
            }
        }
    }
    assert!(measured >= 5, "the scans of {measured} queries measured");
}
