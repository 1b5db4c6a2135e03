//! Warming: what `OPTIMIZE TABLE … WARM BLOB CACHE` brings is read without a request, and `SHOW CACHE` says what is
//! on the local disk.

use nacre_native::block_on;
use nacre_session_tests::{blob_reads, cold, far_options, kind, memory, rows, run, upload};
use nacredb::{Database, ErrorKind, Options, Result, Session};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Rows of the table, in segments of 20,000.
const ROWS: u64 = 60_000;
const SEGMENT_ROWS: usize = 20_000;

fn fill(session: &mut Session) -> Result<()> {
    run(session, "create table t (id bigint primary key, n bigint, s text, key by_n (n))")?;
    let insert = format!(
        "insert into t with recursive r (i) as (select 0 union all select i + 1 from r \
         where i < {}) select i, (i * 7919) % 1000003, concat('text ', i * 31337, ' of ', i) \
         from r",
        ROWS - 1
    );
    run(session, &insert)?;
    run(session, "optimize table t full")?;
    run(session, "create table other (id int primary key); insert into other values (1)")?;
    run(session, "optimize table other flush").map(drop)
}

fn database() -> Database {
    cold(&upload(SEGMENT_ROWS, fill).unwrap(), SEGMENT_ROWS).unwrap()
}

/// Bytes that a warm-up fetches, and that were local before.
fn warm(session: &mut Session, how: &str) -> (u64, u64) {
    let found = rows(session, &format!("optimize table t warm blob cache {how}")).unwrap();
    let (fetched, local) = found[0].split_once('|').unwrap();
    assert_eq!(found.len(), 1);
    (fetched.parse().unwrap(), local.parse().unwrap())
}

/// Bytes of `t` in all, and those on the local disk, of what has a condition.
fn cached(session: &mut Session, condition: &str) -> (u64, u64) {
    let sums = "select sum(bytes), sum(local_bytes) from information_schema.cache";
    let found = rows(session, &format!("{sums} where table_name = 't' and {condition}")).unwrap();
    let (bytes, local) = found[0].split_once('|').unwrap();
    (bytes.parse().unwrap(), local.parse().unwrap())
}

/// Requests that statements make.
fn requests(db: &Database, session: &mut Session, statements: &[&str]) -> u64 {
    blob_reads(db, || {
        for statement in statements {
            assert!(!rows(session, statement).unwrap().is_empty(), "{statement}");
        }
    })
    .requests
}

#[test]
fn a_warm_table_is_read_without_requests() {
    let db = database();
    let mut session = db.session();
    let (all, none) = cached(&mut session, "true");
    assert!(all > 500_000 && none == 0, "{all} {none}");
    let warming = blob_reads(&db, || assert_eq!(warm(&mut session, ""), (all, 0)));
    assert_eq!((warming.bytes, warming.bytes_ahead), (all, 0), "{warming:?}");
    assert_eq!(warm(&mut session, ""), (0, all));
    let statements = [
        "select n, s from t where id = 31234",
        "select id, s from t where n = 7919",
        "select count(*), sum(n), sum(length(s)) from t",
    ];
    assert_eq!(requests(&db, &mut session, &statements), 0);
    assert_eq!(cached(&mut session, "true"), (all, all));
    let other = "select local_bytes from information_schema.cache where table_name = 'other'";
    assert!(rows(&mut session, other).unwrap().iter().all(|local| local == "0"));
}

/// The counts of the blobs in the first line of a profile.
fn profiled(session: &mut Session, statement: &str) -> String {
    let lines = run(session, &format!("profile {statement}")).unwrap().to_rows();
    let access = lines[0][3].to_string();
    assert!(lines[1..].iter().all(|line| !line[3].to_string().contains("blob_")), "{lines:?}");
    let is_read = |word: &&str| ["blob_", "read_"].iter().any(|start| word.starts_with(start));
    access.split(' ').filter(is_read).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_profile_tells_what_came_from_the_blobs() {
    let db = database();
    let mut session = db.session();
    let sum = "select sum(n) from t";
    let mut access = String::new();
    let reads = blob_reads(&db, || access = profiled(&mut session, sum));
    assert!(reads.requests > 0 && reads.waits > 0, "{reads:?}");
    for (name, count) in
        [("requests", reads.requests), ("bytes", reads.bytes), ("waits", reads.waits)]
    {
        assert!(access.contains(&format!("blob_{name}={count}")), "{access} {reads:?}");
    }
    assert_eq!(profiled(&mut session, sum), "");
    let lengths = "select sum(length(s)) from t";
    let access = profiled(&mut session, lengths);
    assert!(access.contains("read_bytes=") && access.contains("blob_bytes="), "{access}");
    assert_eq!(profiled(&mut session, lengths), "", "all of it is in memory");
}

#[test]
fn a_profile_tells_what_was_on_the_disk() {
    let far = upload(SEGMENT_ROWS, fill).unwrap();
    // Memory for a few blocks only.
    let options =
        Options { cache_bytes: 20_000, read_only: true, ..far_options(&far, SEGMENT_ROWS) };
    let db = block_on(Database::open(nacre_native::memory_host(), options)).unwrap();
    let mut session = db.session();
    warm(&mut session, "");
    let mut access = String::new();
    let reads = blob_reads(&db, || access = profiled(&mut session, "select sum(length(s)) from t"));
    assert!(reads.hits > 0 && reads.requests == 0, "{reads:?}");
    assert!(access.contains(&format!("blob_hits={}", reads.hits)), "{access}");
    assert!(access.contains("read_bytes=") && !access.contains("blob_bytes"), "{access}");
}

#[test]
fn columns_indexes_and_rows_are_warmed_by_themselves() {
    let db = database();
    let mut session = db.session();
    let (fetched, _) = warm(&mut session, "for column (n)");
    let (bytes, local) = cached(&mut session, "column_name = 'n'");
    assert!(fetched > 0 && fetched <= bytes && bytes == local, "{fetched} {bytes} {local}");
    assert_eq!(requests(&db, &mut session, &["select sum(n) from t"]), 0);
    assert!(requests(&db, &mut session, &["select sum(length(s)) from t"]) > 0);

    let db = database();
    let mut session = db.session();
    warm(&mut session, "for index by_n");
    let (bytes, local) = cached(&mut session, "index_name = 'by_n'");
    assert!(bytes > 100_000 && bytes == local, "{bytes} {local}");
    assert_eq!(requests(&db, &mut session, &["select count(*) from t where n between 5 and 6"]), 0);

    let db = database();
    let mut session = db.session();
    let (fetched, _) = warm(&mut session, "where id between 25000 and 26000");
    let (all, local) = cached(&mut session, "true");
    assert!(fetched * 4 < all && local < all / 2, "{fetched} of {all}, {local} local");
    let within = ["select sum(n), sum(length(s)) from t where id between 25000 and 26000"];
    assert_eq!(requests(&db, &mut session, &within), 0);
    assert_eq!(warm(&mut session, "where id > 10 and id < 5").0, 0);
}

#[test]
fn without_blobs_everything_is_local() {
    let db = memory().unwrap();
    let mut session = db.session();
    fill(&mut session).unwrap();
    let (fetched, local) = warm(&mut session, "");
    assert!(fetched == 0 && local > 500_000, "{fetched} {local}");
    let (all, here) = cached(&mut session, "true");
    assert!(all == here && all == local, "{all} {here} {local}");
    let shown = rows(&mut session, "show cache").unwrap();
    let names: Vec<String> = shown
        .iter()
        .map(|row| row.split('|').take(3).collect::<Vec<_>>().join("|"))
        .filter(|row| row.starts_with("t|"))
        .collect();
    let expected =
        ["t|id|NULL", "t|n|NULL", "t|s|NULL", "t|NULL|PRIMARY", "t|NULL|by_n", "t|NULL|NULL"];
    assert_eq!(names, expected);
    // Like a query, also inside a transaction.
    run(&mut session, "begin; optimize table t warm blob cache for index primary; commit").unwrap();
}

#[test]
fn a_cancelled_warm_up_stops_and_is_taken_up_again() {
    let far = upload(SEGMENT_ROWS, fill).unwrap();
    let db = cold(&far, SEGMENT_ROWS).unwrap();
    let mut session = db.session();
    far.set_by_next_read(session.cancel_flag());
    let error = run(&mut session, "optimize table t warm blob cache").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    // The first of three segments has come.
    let (all, local) = cached(&mut session, "true");
    assert!(local > 0 && local < all / 2, "{local} of {all}");
    assert_eq!(warm(&mut session, ""), (all - local, local));
}

#[test]
fn a_warm_up_tells_how_far_it_is() {
    let far = upload(SEGMENT_ROWS, fill).unwrap();
    let db = cold(&far, SEGMENT_ROWS).unwrap();
    let mut session = db.session();
    // The footers are there, so each read from here on is one of the warm-up.
    warm(&mut session, "for column (n)");
    let (progress, seen) = (session.progress(), Arc::new(Mutex::new(Vec::new())));
    let noted = seen.clone();
    far.at_each_read(move || noted.lock().unwrap().push(progress.rows_and_total()));
    warm(&mut session, "");
    // A read for each segment. Nothing was reported before the first, which is when it was wanted.
    assert_eq!(*seen.lock().unwrap(), [(0, 0), (ROWS / 3, ROWS), (2 * ROWS / 3, ROWS)]);
}

#[test]
fn what_cannot_be_warmed_is_named() {
    let db = database();
    let mut session = db.session();
    let mut refused =
        |how: &str| kind(&mut session, &format!("optimize table {how}")).expect("it is refused");
    assert_eq!(refused("missing warm blob cache"), ErrorKind::NotFound);
    assert_eq!(refused("t warm blob cache for index nothing"), ErrorKind::NotFound);
    assert_eq!(refused("t warm blob cache for column (id, x)"), ErrorKind::NotFound);
    assert_eq!(refused("t warm blob cache for column (id + 1)"), ErrorKind::Unsupported);
    assert_eq!(refused("t warm blob"), ErrorKind::Syntax);
    assert_eq!(refused("t warm blob cache for nothing"), ErrorKind::Syntax);
    let subquery = "t warm blob cache where id in (select id from other)";
    assert_eq!(refused(subquery), ErrorKind::Unsupported);
    assert_eq!(
        rows(&mut session, "explain optimize table t warm blob cache for column (n, s)").unwrap()
            [0],
        "WarmUp t columns [n, s]"
    );
}

#[test]
fn footers_and_indexes_are_warm_a_moment_after_opening() {
    let far = upload(SEGMENT_ROWS, fill).unwrap();
    let mut options = Options { read_only: true, ..far_options(&far, SEGMENT_ROWS) };
    options.blobs.as_mut().unwrap().options.warms = true;
    let db = block_on(Database::open(nacre_native::memory_host(), options)).unwrap();
    let mut session = db.session();
    let until = Instant::now() + Duration::from_secs(60);
    let (all, local) = loop {
        let (all, local) = cached(&mut session, "index_name is not null");
        if all == local && all > 0 {
            break cached(&mut session, "true");
        }
        assert!(Instant::now() < until, "{local} of {all} bytes of the indexes are there");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(local < all / 2, "{local} of {all} bytes are there, but nothing has read a column");
    // Only the row is fetched: where it is, is known.
    let mut waits = |sql| blob_reads(&db, || drop(rows(&mut session, sql).unwrap())).waits;
    assert_eq!(waits("select n, s from t where id = 31234"), 1);
    assert_eq!(waits("select id from t where n = 1000002"), 0, "no row has it");
}

#[test]
fn a_row_of_many_columns_takes_two_waits_and_few_bytes() {
    let create =
        "create table c (id bigint primary key, name varchar(25), address varchar(40), nation int,
        phone char(15), balance decimal(15,2), segment char(10), comment varchar(117))";
    let insert =
        "insert into c select n, 'Customer#' || lpad(n::text, 9, '0'), md5(n::text), n % 25,
        '12-345-678-' || (n % 9000 + 1000), (n * 7919 % 1000000) / 100.0,
        case n % 3 when 0 then 'BUILDING' when 1 then 'AUTOMOBILE' else 'MACHINERY' end,
        'the ' || md5((n * 3)::text) || ' quickly final deposits ' || (n % 1000)
        from generate_series(1, 120000) as g(n)";
    let far = upload(1 << 20, |session| {
        run(session, create)?;
        run(session, insert)?;
        run(session, "optimize table c full").map(drop)
    });
    let far = far.unwrap();
    let point = |id: u32| format!("select * from c where id = {id}");
    let db = cold(&far, 1 << 20).unwrap();
    let mut session = db.session();
    let first = blob_reads(&db, || drop(rows(&mut session, &point(1_000)).unwrap()));
    assert_eq!(first.waits, 2, "a footer and the row: {first:?}");

    let mut options = Options { read_only: true, ..far_options(&far, 1 << 20) };
    options.blobs.as_mut().unwrap().options.warms = true;
    let db = block_on(Database::open(nacre_native::memory_host(), options)).unwrap();
    let key =
        "select sum(bytes - local_bytes) from information_schema.cache where column_name = 'id'
        and bytes > 0 having count(*) > 0";
    let until = Instant::now() + Duration::from_secs(60);
    let mut session = db.session();
    while rows(&mut session, key).unwrap() != ["0"] {
        assert!(Instant::now() < until, "the key is not there");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Long dictionaries come with the first row.
    rows(&mut session, &point(60_000)).unwrap();
    for id in [1_000, 30_000, 50_000, 90_000, 119_000] {
        let mut found = Vec::new();
        let reads = blob_reads(&db, || found = rows(&mut session, &point(id)).unwrap());
        assert!(found[0].starts_with(&format!("{id}|Customer#")), "{found:?}");
        assert!(reads.waits <= 2 && reads.bytes <= 160 << 10, "{reads:?}");
    }
}
