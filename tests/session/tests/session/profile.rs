//! `PROFILE` runs a statement and returns what each node of its plan did.

use nacre_session_tests::{kind, memory, rows, run, threaded};
use nacredb::{ErrorKind, Options, QueryResult, Session, Value};

/// 10,000 rows in two segments with disjoint key ranges, and ten in memory.
fn fill(session: &mut Session) {
    run(session, "create table t (id int primary key, a int, b text)").unwrap();
    let rows = |from: i64, to: i64| {
        let rows: Vec<String> =
            (from..to).map(|id| format!("({id}, {}, 'b{}')", id % 100, id % 7)).collect();
        format!("insert into t values {}", rows.join(", "))
    };
    for (from, to) in [(0, 5_000), (5_000, 10_000)] {
        run(session, &rows(from, to)).unwrap();
        run(session, "optimize table t flush").unwrap();
    }
    run(session, &rows(10_000, 10_010)).unwrap();
}

/// The lines of a result without times: plan, rows, access.
fn lines(result: &QueryResult) -> Vec<String> {
    let names: Vec<&str> = result.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["plan", "rows", "time_us", "access", "filters"]);
    let mut lines = Vec::new();
    for row in result.to_rows() {
        assert_eq!(row[1].is_null(), row[2].is_null(), "{row:?}");
        assert!(row[2].is_null() || matches!(row[2], Value::Int(us) if us >= 0), "{row:?}");
        let access = row[3].to_string();
        // Byte counts depend on the encodings.
        let access: Vec<&str> =
            access.split(' ').filter(|word| !word.starts_with("bytes_read=")).collect();
        lines.push(format!("{} | {} | {}", row[0], row[1], access.join(" ")));
    }
    lines
}

fn profile(session: &mut Session, sql: &str) -> Vec<String> {
    lines(&run(session, sql).unwrap())
}

#[test]
fn scans_say_what_they_read() {
    let db = memory().unwrap();
    let session = &mut db.session();
    fill(session);
    assert_eq!(
        profile(
            session,
            "profile select a, count(*) from t where id < 300 group by a having count(*) > 2"
        ),
        [
            "Filter count(*) > 2 | 100 | NULL",
            "  Aggregate by [a] compute [count(*)] | 100 | NULL",
            "    Scan t [id, a] where id < 300 | 300 | rows_read=4106 memory_rows=10 segments_read=1 \
             segments_skipped=1 blocks_read=1 blocks_skipped=3",
        ]
    );
    let result = run(session, "explain analyze select b from t where id = 7").unwrap();
    assert!(result.to_rows().iter().any(|row| row[3].to_string().contains("point_reads=1")));
    // The statistics of the whole statement are still reported.
    assert_eq!((result.statistics.point_reads, result.statistics.rows_read), (1, 1));
}

#[test]
fn several_threads_count_together() {
    let db = threaded(Options { threads: 3, ..Options::default() }).unwrap();
    let session = &mut db.session();
    fill(session);
    run(session, "create table u (a int, c text)").unwrap();
    run(session, "insert into u values (1, 'x'), (2, 'y'), (2, 'z')").unwrap();
    for sql in [
        "profile select t.id, u.c from t join u on t.a = u.a where t.id < 1000",
        "profile select u.c, sum(t.id) from t join u on t.a = u.a where t.id < 1000 group by u.c",
    ] {
        let together = profile(session, sql);
        assert!(
            together.iter().any(|line| line.contains("InnerJoin") && line.contains("| 30 |")),
            "{together:?}"
        );
        run(session, "set threads = 1").unwrap();
        assert_eq!(profile(session, sql), together);
        run(session, "set threads = default").unwrap();
    }
}

#[test]
fn joins_say_what_they_collected_and_scans_what_joins_told_them() {
    let db = memory().unwrap();
    let session = &mut db.session();
    fill(session);
    run(session, "create table u (a int, c text)").unwrap();
    run(session, "insert into u values (1, 'x'), (2, 'y'), (2, 'z'), (500, 'none')").unwrap();
    assert_eq!(
        profile(session, "profile select t.b, u.c from t join u on t.a = u.a where t.id < 1000"),
        [
            "Project [b, c] | 30 | NULL",
            "  InnerJoin 1 on a = a | 30 | build_rows=4",
            "    Project [a, b] | 20 | NULL",
            "      Scan t [id, a, b] where id < 1000 filtered by join 1 on a | 20 | rows_read=4106 memory_rows=10 \
             segments_read=1 segments_skipped=1 blocks_read=1 blocks_skipped=3 join_filtered=980",
            "    Scan u [a, c] | 4 | rows_read=4 memory_rows=4",
        ]
    );
}

#[test]
fn what_is_written_is_written() {
    let db = memory().unwrap();
    let session = &mut db.session();
    fill(session);
    assert_eq!(
        profile(session, "profile update t set a = -1 where id between 10 and 12"),
        [
            "Update t set a = -1 | 3 | NULL",
            "  Scan t [id, a, b] where id >= 10 and id <= 12 | 3 | rows_read=4106 memory_rows=10 segments_read=1 \
             segments_skipped=1 blocks_read=1 blocks_skipped=3",
        ]
    );
    assert_eq!(rows(session, "select count(*) from t where a = -1").unwrap(), ["3"]);
    assert_eq!(
        profile(session, "profile insert into t values (-1, 0, 'x')"),
        ["Insert t | 1 | NULL", "  Values [id, a, b] 1 rows | 1 | NULL"]
    );
    profile(session, "profile delete from t where id = -1");
    assert_eq!(rows(session, "select count(*) from t where id = -1").unwrap(), ["0"]);
    let lines = profile(session, "profile update t set a = -2 where id < 3 returning id");
    assert!(
        lines.iter().any(|line| line.contains("Scan t") && line.contains(" | 3 | ")),
        "{lines:?}"
    );
    assert_eq!(rows(session, "select count(*) from t where a = -2").unwrap(), ["3"]);
    // Inside a transaction, its writes belong to the transaction.
    run(session, "begin").unwrap();
    profile(session, "profile delete from t");
    run(session, "rollback").unwrap();
    assert_eq!(rows(session, "select count(*) from t").unwrap(), ["10010"]);
    assert_eq!(kind(session, "profile drop table t"), Some(ErrorKind::Unsupported));
}

#[test]
fn what_is_computed_once_is_measured_once() {
    let db = memory().unwrap();
    let session = &mut db.session();
    fill(session);
    let lines = profile(
        session,
        "profile with x as (select a, count(*) n from t group by a) select * from x union all select * from x where n > 1000",
    );
    let scans: Vec<_> = lines.iter().filter(|line| line.contains("Scan t")).collect();
    assert_eq!(scans.len(), 1, "{lines:?}");
    assert!(scans[0].contains("rows_read=10010"), "{lines:?}");
    assert!(lines.iter().filter(|line| line.contains("Shared 1 | 100 ")).count() == 2, "{lines:?}");
}
