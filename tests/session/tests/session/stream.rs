//! Row streams: the first row is returned before the last is read, returned rows are not held, a
//! stream shows its snapshot regardless of concurrent changes, and it releases its resources.

use nacre_native::block_on;
use nacre_session_tests::{
    Folder, folder, memory, memory_host, open_folder, options, rows, run, threaded,
};
use nacredb::{Batch, Budget, Database, ErrorKind, Options, ResultKind, Rows, Session, Value};
use std::path::Path;
use std::sync::atomic::Ordering;

const ROWS: usize = 100_000;
const SEGMENT_ROWS: usize = 10_000;

fn open(path: &Path) -> Database {
    let options = Options { segment_rows: SEGMENT_ROWS, ..options() };
    block_on(Database::open(open_folder(path).unwrap(), options)).unwrap()
}

/// `ROWS` rows in ten segments.
fn fill(session: &mut Session) {
    run(session, "create table big (id int primary key, a int, b text)").unwrap();
    let numbers = format!(
        "with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < {ROWS})"
    );
    run(
        session,
        &format!(
            "insert into big {numbers} select i, i * 7 % 1009, concat('text number ', i) from n"
        ),
    )
    .unwrap();
    run(session, "optimize table big flush").unwrap();
}

fn stream(session: &mut Session, sql: &str) -> Rows {
    block_on(session.stream(sql, &[])).unwrap()
}

fn next(rows: &mut Rows) -> nacredb::Result<Option<Batch>> {
    block_on(rows.next())
}

fn texts(batch: &Batch) -> Vec<String> {
    let row =
        |at| batch.columns.iter().map(|c| c.value(at).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.rows).map(row).collect()
}

fn rest(rows: &mut Rows) -> nacredb::Result<Vec<String>> {
    let mut all = Vec::new();
    while let Some(batch) = next(rows)? {
        assert!(batch.rows > 0 && batch.selection.is_none());
        all.extend(texts(&batch));
    }
    Ok(all)
}

#[test]
fn the_first_rows_come_before_the_others_are_read() {
    let place = Folder::new("stream");
    fill(&mut open(place.path()).session());
    for (threads, blocks) in [(1, 1), (2, 4)] {
        // The cache is empty.
        let db = open(place.path());
        let mut session = db.session();
        session.set_threads(threads);
        let mut rows = stream(&mut session, "select id, a, b from big");
        assert_eq!(rows.statistics().blocks_read, 0);
        let before = db.bytes_read();
        let first = next(&mut rows).unwrap().unwrap();
        let after_first = db.bytes_read() - before;
        assert_eq!(texts(&first)[..2], ["0|0|text number 0", "1|7|text number 1"]);
        assert!(rows.statistics().blocks_read <= blocks, "{:?}", rows.statistics());
        assert_eq!(first.rows + rest(&mut rows).unwrap().len(), ROWS);
        let all = db.bytes_read() - before;
        assert!(after_first * 5 < all, "{after_first} of {all} bytes");
        assert_eq!(rows.statistics().blocks_read, 30);
        assert_eq!(rows.statistics().rows_read, ROWS as u64);
        assert!(next(&mut rows).unwrap().is_none());
    }
}

#[test]
fn a_result_far_over_the_memory_limit_is_streamed() {
    let place = Folder::new("stream");
    let db = open(place.path());
    let mut session = db.session();
    fill(&mut session);
    run(&mut session, "set memory_limit = '300KB'").unwrap();
    for threads in [1, 4] {
        session.set_threads(threads);
        let sql = "select id, a, b from big where id >= 0";
        // The whole result exceeds the limit.
        assert_eq!(run(&mut session, sql).unwrap_err().kind(), ErrorKind::Limit);
        let all = rest(&mut stream(&mut session, sql)).unwrap();
        assert_eq!(all.len(), ROWS);
        assert!(
            all.iter()
                .enumerate()
                .all(|(at, row)| row == &format!("{at}|{}|text number {at}", at * 7 % 1009))
        );
        // A sort holds rows up to the limit and spills the others; returned rows are not held
        // again.
        let mut sorted = stream(&mut session, "select a, id, b from big order by a desc, id");
        let all = rest(&mut sorted).unwrap();
        assert_eq!((all.len(), all[0].as_str()), (ROWS, "1008|144|text number 144"));
        assert!(sorted.statistics().bytes_spilled > 1_000_000);
        assert!(place.files("tmp-").is_empty());
    }
    // Without files to spill to, the limit applies.
    let db = memory().unwrap();
    let mut session = db.session();
    fill(&mut session);
    run(&mut session, "set memory_limit = '300KB'").unwrap();
    assert_eq!(rest(&mut stream(&mut session, "select * from big")).unwrap().len(), ROWS);
    let mut sorted = stream(&mut session, "select * from big order by b");
    assert_eq!(next(&mut sorted).unwrap_err().kind(), ErrorKind::Limit);
}

/// Replaces every row of the table: the old segments may be removed once no stream reads them.
fn replace_all(db: &Database, session: &mut Session) {
    run(session, "update big set a = a + 1").unwrap();
    run(session, "optimize table big full").unwrap();
    maintain(db);
}

fn maintain(db: &Database) {
    while db.maintain(Budget::Steps(100)).unwrap() {}
}

#[test]
fn a_dropped_stream_gives_its_segments_back() {
    let place = Folder::new("stream");
    let db = open(place.path());
    let mut session = db.session();
    session.set_threads(1);
    fill(&mut session);
    let old = place.files("seg-");
    let kept =
        |place: &Folder| old.iter().filter(|file| place.files("seg-").contains(file)).count();
    assert_eq!(old.len(), ROWS / SEGMENT_ROWS);

    // Streams that are dropped midway, cancelled, failed, and read to the end.
    let mut dropped = stream(&mut session, "select id, a from big");
    let mut cancelled = stream(&mut session, "select id, a from big");
    let mut failed = stream(&mut session, "select cast(id as smallint) from big");
    let mut ended = stream(&mut session, "select id, a from big");
    for rows in [&mut dropped, &mut cancelled, &mut failed, &mut ended] {
        assert!(next(rows).unwrap().is_some());
    }
    replace_all(&db, &mut session);
    assert_eq!(kept(&place), old.len());

    drop(dropped);
    cancelled.cancel_flag().store(true, Ordering::Relaxed);
    assert_eq!(next(&mut cancelled).unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(next(&mut cancelled).unwrap().is_none());
    maintain(&db);
    assert_eq!(kept(&place), old.len());
    let error = rest(&mut failed).unwrap_err();
    assert_eq!(error.sqlstate(), "22003", "{error:?}");
    assert!(next(&mut failed).unwrap().is_none());
    maintain(&db);
    assert_eq!(kept(&place), old.len());
    let last = rest(&mut ended).unwrap().pop().unwrap();
    assert_eq!(last, format!("{}|{}", ROWS - 1, (ROWS - 1) * 7 % 1009));
    maintain(&db);
    assert_eq!(kept(&place), 0);
    // Streams that have ended hold nothing, although they still exist.
    drop((cancelled, failed, ended));
    assert_eq!(
        rows(&mut session, "select count(*), sum(a) > 0 from big").unwrap(),
        ["100000|true"]
    );
}

#[test]
fn errors_come_when_their_row_does() {
    let place = Folder::new("stream");
    let db = open(place.path());
    let mut session = db.session();
    fill(&mut session);
    for threads in [1, 3] {
        session.set_threads(threads);
        let mut rows = stream(
            &mut session,
            "select id, cast(id - 95000 as tinyint) from big where id >= 94900",
        );
        let mut seen = 0;
        let error = loop {
            match next(&mut rows) {
                Ok(batch) => seen += batch.unwrap().rows,
                Err(error) => break error,
            }
        };
        assert_eq!(error.sqlstate(), "22003");
        assert!(seen < 228, "{seen}");
        assert!(next(&mut rows).unwrap().is_none());
    }
    // Errors of the statement itself are reported when the stream is opened.
    let kind =
        |session: &mut Session, sql: &str| block_on(session.stream(sql, &[])).err().unwrap().kind();
    assert_eq!(kind(&mut session, "select nothing from big"), ErrorKind::NotFound);
    assert_eq!(kind(&mut session, "select from from"), ErrorKind::Syntax);
    assert_eq!(kind(&mut session, "insert into big values (1, 1, 'twice')"), ErrorKind::Constraint);
    assert_eq!(rows(&mut session, "select count(*) from big").unwrap(), ["100000"]);
}

#[test]
fn the_session_goes_on_beside_its_streams() {
    let db = memory().unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key, a int)").unwrap();
    let values: Vec<String> = (0..5_000).map(|id| format!("({id}, 0)")).collect();
    run(&mut session, &format!("insert into t values {}", values.join(", "))).unwrap();
    let expected: Vec<String> = (0..5_000).map(|id| format!("{id}|0")).collect();
    let sql = "select id, a from t";
    for flush in [false, true] {
        if flush {
            run(&mut session, "optimize table t flush").unwrap();
        }
        let mut first = stream(&mut session, sql);
        let mut second = stream(&mut session, sql);
        let mut seen = texts(&next(&mut first).unwrap().unwrap());
        // Statements, transactions and maintenance do not affect an open stream.
        run(&mut session, "begin; update t set a = 1; delete from t where id >= 2500").unwrap();
        seen.extend(texts(&next(&mut first).unwrap().unwrap()));
        run(&mut session, "commit; optimize table t full").unwrap();
        maintain(&db);
        seen.extend(rest(&mut first).unwrap());
        assert_eq!(seen, expected);
        assert_eq!(rest(&mut second).unwrap(), expected);
        assert_eq!(rows(&mut session, "select count(*), sum(a) from t").unwrap(), ["2500|2500"]);
        run(&mut session, "delete from t").unwrap();
        run(&mut session, &format!("insert into t values {}", values.join(", "))).unwrap();
    }
    // A row changed while it is being read is returned once.
    let mut all = stream(&mut session, sql);
    let mut seen = 0;
    while let Some(batch) = next(&mut all).unwrap() {
        for row in 0..batch.rows {
            seen += 1;
            let id = batch.columns[0].value(row);
            block_on(
                session.execute("update t set id = id + 100000, a = a + 1 where id = ?", &[id]),
            )
            .unwrap();
        }
    }
    assert_eq!(seen, 5_000);
    assert_eq!(
        rows(&mut session, "select count(*), min(id), max(a) from t").unwrap(),
        ["5000|100000|1"]
    );
}

#[test]
fn a_table_may_go_while_it_is_streamed() {
    let place = Folder::new("stream");
    let db = open(place.path());
    let mut session = db.session();
    fill(&mut session);
    let sql = "select id, a, b from big";
    let mut altered = stream(&mut session, sql);
    let prepared = session.prepare(sql).unwrap();
    run(&mut session, "alter table big drop column b, add column c int default 5").unwrap();
    let after = block_on(session.stream_prepared(&prepared, &[])).err().unwrap();
    assert_eq!(after.kind(), ErrorKind::NotFound);
    let mut truncated = stream(&mut session, "select * from big");
    run(&mut session, "truncate big").unwrap();
    let mut dropped = stream(&mut session, "select * from big");
    run(&mut session, "drop table big").unwrap();
    maintain(&db);
    assert_eq!(
        rest(&mut altered).unwrap()[ROWS - 1],
        format!("99999|{}|text number 99999", 99_999 * 7 % 1009)
    );
    assert_eq!(rest(&mut truncated).unwrap()[ROWS - 1], format!("99999|{}|5", 99_999 * 7 % 1009));
    assert_eq!(rest(&mut dropped).unwrap(), [""; 0]);
    maintain(&db);
    assert!(place.files("seg-").is_empty());
}

#[test]
fn a_stream_in_a_transaction_sees_what_the_transaction_saw() {
    let place = Folder::new("stream");
    let db = folder(place.path()).unwrap();
    let mut session = db.session();
    let mut other = db.session();
    run(&mut session, "create table t (id int primary key, a int)").unwrap();
    run(&mut session, "insert into t values (1, 1), (2, 2)").unwrap();
    run(&mut session, "begin; select * from t").unwrap();
    run(&mut other, "insert into t values (3, 3)").unwrap();

    // Without changes in the transaction, rows are read on demand, at its snapshot.
    let mut clean = stream(&mut session, "select * from t order by id");
    run(&mut session, "update t set a = 10 where id = 1; insert into t values (4, 4)").unwrap();
    // With changes, the stream shows them as of its opening.
    let mut dirty = stream(&mut session, "select * from t order by id");
    let mut counted = stream(&mut session, "select count(*) from t");
    run(&mut session, "delete from t where id <> 2; savepoint s").unwrap();
    let mut later = stream(&mut session, "select * from t");
    run(&mut session, "insert into t values (5, 5); rollback to s").unwrap();
    assert_eq!(rest(&mut clean).unwrap(), ["1|1", "2|2"]);
    run(&mut session, "commit").unwrap();
    assert_eq!(rest(&mut dirty).unwrap(), ["1|10", "2|2", "4|4"]);
    assert_eq!(rest(&mut counted).unwrap(), ["3"]);
    assert_eq!(rest(&mut later).unwrap(), ["2|2"]);
    assert_eq!(rows(&mut session, "select * from t").unwrap(), ["2|2", "3|3"]);
}

#[test]
fn many_rows_of_a_changed_transaction_wait_in_a_file() {
    let place = Folder::new("stream");
    let db = open(place.path());
    let mut session = db.session();
    fill(&mut session);
    run(&mut session, "set memory_limit = '300KB'; begin; update big set b = 'new' where id = 5")
        .unwrap();
    let mut dirty = stream(&mut session, "select id, b from big");
    assert_eq!(place.files("tmp-").len(), 1);
    run(&mut session, "update big set b = 'newer' where id < 10; rollback").unwrap();
    let mut all = rest(&mut dirty).unwrap();
    all.sort_by_key(|row| row.split('|').next().map(|id| id.parse::<u32>().unwrap()));
    assert_eq!((all.len(), all[5].as_str(), all[6].as_str()), (ROWS, "5|new", "6|text number 6"));
    assert!(dirty.statistics().bytes_spilled > 1_000_000);
    assert!(place.files("tmp-").is_empty());

    let db = memory().unwrap();
    let mut session = db.session();
    fill(&mut session);
    run(&mut session, "set memory_limit = '300KB'; begin; update big set b = 'new' where id = 5")
        .unwrap();
    let refused = block_on(session.stream("select id, b from big", &[])).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Limit);
    assert_eq!(rows(&mut session, "select b from big where id = 5").unwrap(), ["new"]);
}

/// One query per kind of operator.
const QUERIES: [&str; 12] = [
    "select * from big where a = 5",
    "select id, b from big order by b desc, id limit 10 offset 5",
    "select id from big order by id desc limit 5000",
    "select a, count(*), min(b) from big group by a order by a",
    "select count(*) from big",
    "select x.id, y.b from big as x join big as y on x.a = y.id and y.id < 50 order by 1, 2",
    "select x.id from big as x where not exists (select 1 from big as y where y.a = x.id) and x.id < 3000 order by 1",
    "select id, row_number() over (partition by a order by id) from big where id < 7000",
    "select a from big where id < 4000 union select id from big where id > 99000 order by 1",
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) select i from n",
    "with s as (select id from big where a < 3) select p.id, q.id from s as p join s as q on p.id = q.id order by 1",
    "values (1, 'a'), (2, 'b')",
];

#[test]
fn every_query_answers_the_same_either_way() {
    let db = block_on(Database::open(
        memory_host(),
        Options { segment_rows: SEGMENT_ROWS, morsel_rows: 1, ..options() },
    ))
    .unwrap();
    let mut session = db.session();
    fill(&mut session);
    run(&mut session, "update big set b = 'in memory' where id % 1000 = 5").unwrap();
    for threads in [1, 3] {
        session.set_threads(threads);
        for sql in QUERIES {
            let mut rows_of = stream(&mut session, sql);
            let whole = run(&mut session, sql).unwrap();
            assert_eq!(
                (rows_of.kind(), rows_of.columns()),
                (ResultKind::Query, &whole.columns[..]),
                "{sql}"
            );
            let expected = rows(&mut session, sql).unwrap();
            assert_eq!(rest(&mut rows_of).unwrap(), expected, "{sql}");
        }
    }
}

#[test]
fn parameters_and_statements_that_write() {
    let db = memory().unwrap();
    let mut session = db.session();
    let done = stream(
        &mut session,
        "create table t (id int primary key, a text); insert into t values (1, 'a'), (2, 'b')",
    );
    assert_eq!(
        (done.kind(), done.rows_affected(), done.columns().len()),
        (ResultKind::Write, 2, 0)
    );
    let one = |rows: nacredb::Result<Rows>| rest(&mut rows.unwrap()).unwrap();
    let sql = "select a from t where id >= ? order by id";
    assert_eq!(one(block_on(session.stream(sql, &[Value::Int(2)]))), ["b"]);
    let named = [("from".to_string(), Value::Int(1))];
    assert_eq!(
        one(block_on(session.stream_named("select a from t where id >= :from", &named))),
        ["a", "b"]
    );
    let prepared = session.prepare(sql).unwrap();
    assert_eq!(one(block_on(session.stream_prepared(&prepared, &[Value::Int(1)]))), ["a", "b"]);
    let point = session.prepare("select a from t where id = ?").unwrap();
    assert_eq!(one(block_on(session.stream_prepared(&point, &[Value::Int(2)]))), ["b"]);
    assert_eq!(one(block_on(session.stream_prepared(&point, &[Value::Int(3)]))), [""; 0]);
    let missing = block_on(session.stream(sql, &[])).err().unwrap();
    assert_eq!(missing.kind(), ErrorKind::Type);

    // The write takes effect even if the rows are not read.
    drop(stream(&mut session, "insert into t values (3, 'c') returning id, a"));
    assert_eq!(
        one(block_on(session.stream("delete from t where id < 3 returning a", &[]))),
        ["a", "b"]
    );
    assert_eq!(rows(&mut session, "select * from t").unwrap(), ["3|c"]);
    assert_eq!(one(block_on(session.stream("begin; select a from t for update", &[]))), ["c"]);
    run(&mut session, "rollback").unwrap();
    assert!(stream(&mut session, "").columns().is_empty());
}

#[test]
fn an_error_comes_after_the_rows_that_were_gathered_before_it() {
    let db = memory().unwrap();
    let mut session = db.session();
    fill(&mut session);
    let mut rows = stream(&mut session, &format!("select 10 / (id - {}) from big", ROWS / 2));
    let some = block_on(rows.next_batches(ROWS)).unwrap();
    let have: usize = some.iter().map(|batch| batch.rows).sum();
    assert!(have > 0 && have <= ROWS / 2, "{have}");
    assert!(!rows.has_ended());
    assert_eq!(block_on(rows.next_batches(ROWS)).unwrap_err().kind(), ErrorKind::Type);
    assert!(rows.has_ended());
    assert!(block_on(rows.next_batches(ROWS)).unwrap().is_empty());
}

#[test]
fn rows_are_gathered_and_become_arrow() {
    let db = memory().unwrap();
    let mut session = db.session();
    fill(&mut session);
    let mut rows = stream(&mut session, "select id, b from big");
    let some = block_on(rows.next_batches(3_000)).unwrap();
    let have: usize = some.iter().map(|batch| batch.rows).sum();
    assert!((3_000..5_100).contains(&have), "{have}");
    let record = block_on(rows.next_record_batch(3_000)).unwrap().unwrap();
    assert_eq!(record.schema(), rows.arrow_schema());
    assert!((3_000..5_100).contains(&record.num_rows()));
    assert!(!rows.has_ended());
    let left = block_on(rows.collect()).unwrap();
    assert_eq!(left.row(0)[0], Value::Int((have + record.num_rows()) as i64));
    assert_eq!(have + record.num_rows() + left.rows(), ROWS);
    assert_eq!(left.statistics.rows_read, ROWS as u64);

    let mut few = stream(&mut session, "select id from big where id < 3");
    let whole =
        run(&mut session, "select id from big where id < 3").unwrap().to_arrow_ipc().unwrap();
    assert_eq!(block_on(few.next_arrow_ipc(3_000)).unwrap(), whole);
    assert!(few.has_ended());
    let none =
        run(&mut session, "select id from big where id < 0").unwrap().to_arrow_ipc().unwrap();
    assert_eq!(block_on(few.next_arrow_ipc(3_000)).unwrap(), none);
}

#[test]
fn a_closed_database_ends_its_streams() {
    let db = memory().unwrap();
    let mut session = db.session();
    fill(&mut session);
    let mut rows = stream(&mut session, "select * from big");
    assert!(next(&mut rows).unwrap().is_some());
    block_on(db.close()).unwrap();
    assert_eq!(next(&mut rows).unwrap_err().kind(), ErrorKind::Closed);
    assert!(next(&mut rows).unwrap().is_none());
}

/// Parts of a plan built during execution, when its tables have been dropped: the sort that
/// replaces a read in index order, and build sides of parallel joins.
#[test]
fn what_is_built_late_finds_its_tables_though_they_are_gone() {
    let queries = [
        "select id from t where b = 999 order by a limit 10",
        "select t.id from t join u on t.id = u.n where t.b > 990",
        "select count(*), max(t.id) from t join u on t.id = u.n where t.b > 990",
        "select t.id from t left join u on t.id = u.n and u.id > 5 where t.b > 990 order by 1",
    ];
    let changes = [
        "drop table t, u",
        "truncate t, u",
        "alter table t drop column b, add column b int default 7; alter table u rename to v",
        "alter table t drop index i_a; optimize table t full",
    ];
    let cases = queries.iter().flat_map(|sql| changes.iter().map(move |change| (sql, change)));
    for ((sql, change), threads) in cases.flat_map(|case| [(case, 1), (case, 3)]) {
        let db = threaded(Options { threads, ..options() }).unwrap();
        let mut session = db.session();
        run(&mut session, "create table t (id int primary key, a int, b int, key i_a (a))")
            .unwrap();
        run(&mut session, "create table u (id int primary key, n int)").unwrap();
        let values: Vec<String> =
            (0..3_000).map(|id| format!("({id}, {}, {})", id * 7 % 3_001, id % 1_000)).collect();
        run(
            &mut session,
            &format!("insert into t values {}; optimize table t flush", values.join(", ")),
        )
        .unwrap();
        run(
            &mut session,
            "insert into u select id, a from t where b < 500; optimize table u flush",
        )
        .unwrap();
        let mut expected = rows(&mut session, sql).unwrap();
        let mut stream = block_on(session.stream(sql, &[])).unwrap();
        run(&mut session, change).unwrap();
        let mut found = Vec::new();
        while let Some(batch) =
            block_on(stream.next()).unwrap_or_else(|e| panic!("{sql}; {change}: {e}"))
        {
            let text = |row| {
                batch.columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join("|")
            };
            found.extend((0..batch.rows).map(text));
        }
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{sql}; {change}");
        assert!(!found.is_empty(), "{sql}");
    }
}
