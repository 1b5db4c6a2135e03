//! How often reads of files that are only blobs wait for the network, and for how many bytes: scans read ahead,
//! point reads do not, and what does not depend on each other is fetched at once.

use nacre_native::{block_on, memory_host};
use nacre_session_tests::{Far, blob_reads, cold, far_options, rows, run, upload};
use nacredb::{Database, Result, Session};

/// Rows of the table: 30 blocks of 4,096.
const ROWS: u64 = 120_000;

/// Creates a table of [`ROWS`] rows.
fn fill(session: &mut Session) -> Result<()> {
    run(session, "create table t (id bigint primary key, n bigint, s text, key (n))")?;
    insert(session, "i")?;
    run(session, "optimize table t full").map(drop)
}

/// Inserts [`ROWS`] rows, whose keys are an expression of `i`, their number.
fn insert(session: &mut Session, key: &str) -> Result<()> {
    let rows = format!(
        "insert into t with recursive r (i) as (select 0 union all select i + 1 from r \
         where i < {}) select {key}, ({key} * 7919) % 1000003, \
         concat('text ', i * 31337, ' of ', i) from r",
        ROWS - 1
    );
    run(session, &rows).map(drop)
}

#[test]
fn a_scan_reads_ahead_and_a_point_read_does_not() {
    let far = upload(1 << 20, fill).unwrap();
    let db = cold(&far, 1 << 20).unwrap();
    let mut session = db.session();
    let find = |session: &mut Session, id: u64| {
        let found = rows(session, &format!("select id, n from t where id = {id}")).unwrap();
        assert_eq!(found, [format!("{id}|{}", id * 7919 % 1_000_003)]);
    };
    // The footers.
    find(&mut session, 5);
    let point = blob_reads(&db, || find(&mut session, 98_765));
    assert!(point.waits <= 2 && point.bytes <= 128 << 10, "{point:?}");
    assert_eq!(point.bytes_ahead, 0, "{point:?}");
    let sum = "select count(*), sum(id), count(n), sum(length(s)) from t";
    let mut query = || {
        let expected = format!("{ROWS}|{}|{ROWS}|", ROWS * (ROWS - 1) / 2);
        let found = rows(&mut session, sum).unwrap();
        assert!(found[0].starts_with(&expected), "{found:?}");
    };
    // Block by block, it would wait for each of 30 blocks.
    let scan = blob_reads(&db, &mut query);
    assert!(scan.waits <= 6 && scan.requests <= 20, "{scan:?}");
    assert!(scan.bytes > 1_000_000 && scan.bytes_ahead * 10 > scan.bytes * 8, "{scan:?}");
    assert!(far.most_at_once() > 1, "requests are in progress beside each other");
    let again = blob_reads(&db, &mut query);
    assert_eq!((again.requests, again.waits), (0, 0), "{again:?}");
}

/// The places of the blocks of a large segment are not in its footer: they are absent, too, when the scan begins.
#[test]
fn threads_read_ahead_in_a_large_segment() {
    let large = |session: &mut Session| {
        run(session, "create table t (id bigint primary key, n bigint, s text)")?;
        let rows = "insert into t select i, (i * 7919) % 1000003, 'text' from generate_series(1, 1200000) s (i)";
        run(session, rows)?;
        run(session, "optimize table t full").map(drop)
    };
    let far = upload(1 << 20, large).unwrap();
    let groups = "select n % 25 as g, count(*), avg(id) from t group by n % 25 order by g";
    for threads in [1, 2] {
        let db = cold(&far, 1 << 20).unwrap();
        let mut session = db.session();
        run(&mut session, &format!("set threads = {threads}")).unwrap();
        let scan = blob_reads(&db, || assert_eq!(rows(&mut session, groups).unwrap().len(), 25));
        // It has hundreds of blocks.
        assert!(scan.waits <= 12 * threads, "{threads} threads: {scan:?}");
        assert!(scan.bytes_ahead * 10 > scan.bytes * 8, "{threads} threads: {scan:?}");
    }
}

#[test]
fn the_footers_of_many_segments_are_fetched_at_once() {
    let far = upload(4_096, fill).unwrap();
    let db = cold(&far, 4_096).unwrap();
    let mut session = db.session();
    // Read by the index, whose parts are in the segments.
    let few = "select count(*), sum(n) from t where n > 500000 and n < 501000";
    let found = blob_reads(&db, || {
        let found = rows(&mut session, few).unwrap();
        assert!(found[0].starts_with("1"), "{found:?}");
    });
    let db = cold(&far, 4_096).unwrap();
    let mut session = db.session();
    // Two threads would wait for the same requests.
    run(&mut session, "set threads = 1").unwrap();
    let all = blob_reads(&db, || {
        let found = rows(&mut session, "select count(*), sum(id) from t where s <> ''").unwrap();
        assert_eq!(found, [format!("{ROWS}|{}", ROWS * (ROWS - 1) / 2)]);
    });
    let db = cold(&far, 4_096).unwrap();
    let mut session = db.session();
    run(&mut session, "set threads = 1").unwrap();
    let unfiltered = blob_reads(&db, || {
        let found = rows(&mut session, "select count(n), sum(id) from t").unwrap();
        assert_eq!(found, [format!("{ROWS}|{}", ROWS * (ROWS - 1) / 2)]);
    });
    assert!(found.waits <= 3, "{found:?}");
    assert!(unfiltered.waits < 30 && unfiltered.bytes_ahead > 0, "{unfiltered:?}");
    // One by one, the footers of 30 segments and what follows them would be waited for. How often a
    // block that was asked for is there in time depends on the machine.
    assert!(all.waits < 30 && all.bytes_ahead > 0, "{all:?}");
}

#[test]
fn the_log_is_fetched_at_once() {
    let far = Far::new();
    let host = nacre_testing::without_background(memory_host());
    let db = block_on(Database::open(host, far_options(&far, 4_096))).unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id bigint primary key)").unwrap();
    // Each piece is too long for the next one to replace it.
    for (from, to) in [(0, 4_000), (4_000, 5_000), (5_000, 5_200), (5_200, 5_240)] {
        let some = format!("insert into t select i from generate_series({from}, {to} - 1) s (i)");
        run(&mut session, &some).unwrap();
        block_on(db.upload()).unwrap();
    }
    let reader = cold(&far, 4_096).unwrap();
    assert_eq!(rows(&mut reader.session(), "select count(*) from t").unwrap(), ["5240"]);
    assert!(far.most_at_once() >= 4, "{} requests beside each other", far.most_at_once());
}

#[test]
fn a_key_that_several_runs_may_have_is_read_in_two_waits() {
    let three_runs = |session: &mut Session| {
        run(session, "create table t (id bigint primary key, n bigint, s text, key (n))")?;
        for run_of in 0..3 {
            insert(session, &format!("(i * 3 + {run_of})"))?;
        }
        run(session, "optimize table t flush").map(drop)
    };
    let far = upload(1 << 20, three_runs).unwrap();
    let db = cold(&far, 1 << 20).unwrap();
    let mut session = db.session();
    let find = |session: &mut Session, id: u64| {
        let found = rows(session, &format!("select id, n from t where id = {id}")).unwrap();
        assert_eq!(found, [format!("{id}|{}", id * 7919 % 1_000_003)]);
    };
    let first = blob_reads(&db, || find(&mut session, 5));
    let second = blob_reads(&db, || find(&mut session, 301_234));
    let by_index = blob_reads(&db, || {
        let found = rows(&mut session, "select id from t where n = 7919 and id > 0").unwrap();
        assert_eq!(found, ["1"]);
    });
    assert!(first.waits <= 3 && second.waits <= 2, "{first:?} {second:?}");
    assert!(by_index.waits <= 3, "{by_index:?}");
}

#[test]
fn a_point_read_of_a_cold_database_takes_two_waits_and_128_kib() {
    let far = upload(1 << 20, fill).unwrap();
    let db = cold(&far, 1 << 20).unwrap();
    let mut session = db.session();
    let mut find = |id: u64| {
        let found = rows(&mut session, &format!("select id, n from t where id = {id}")).unwrap();
        assert_eq!(found, [format!("{id}|{}", id * 7919 % 1_000_003)]);
    };
    let first = blob_reads(&db, || find(5));
    let second = blob_reads(&db, || find(98_765));
    assert!(first.waits <= 2 && first.bytes <= 128 << 10, "{first:?}");
    assert!(second.waits == 1 && second.bytes <= 128 << 10, "{second:?}");
}
