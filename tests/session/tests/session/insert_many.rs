//! `INSERT IGNORE … SELECT` and `REPLACE INTO … SELECT` of many rows: written as segments, in bounded
//! memory, with the outcome that they have row by row.

use nacre_native::{block_on, memory_host, open_folder};
use nacre_session_tests::{Folder, blocked, kind, options, rows, run};
use nacredb::{Database, ErrorKind, Options, Session};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Enough rows to be written as segments.
const ROWS: u64 = 3_000;
/// Few enough rows to be written one by one.
const FEW: u64 = 500;

const IGNORE: &str = "insert ignore into";
const REPLACE: &str = "replace into";

fn opened(lock_timeout_ms: u64) -> Database {
    let options = Options {
        load_rows: 2_000,
        bulk_rows: 100,
        segment_rows: 700,
        lock_timeout_ms,
        ..Options::default()
    };
    block_on(Database::open(memory_host(), options)).unwrap()
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

/// Makes a table of rows that often share a primary key, a unique value or a unique pair.
fn source(session: &mut Session, name: &str, count: u64, random: &mut Random) {
    run(
        session,
        &format!("create table {name} (pos int primary key, id int, u int, v int, w int, n int)"),
    )
    .unwrap();
    for first in (0..count).step_by(FEW as usize) {
        let row = |pos| {
            let u = match random.below(5) {
                0 => "null".to_string(),
                _ => random.below(8_000).to_string(),
            };
            let (id, v, w) = (random.below(2_000), random.below(60), random.below(60));
            format!("({pos}, {id}, {u}, {v}, {w}, {})", random.below(1_000))
        };
        let values: Vec<String> = (first..(first + FEW).min(count)).map(row).collect();
        run(session, &format!("insert into {name} values {}", values.join(", "))).unwrap();
    }
}

/// Makes tables with the same rows, in segments and in memory.
fn targets(session: &mut Session, names: [&str; 2]) {
    for name in names {
        let table = format!(
            "create table {name} (id int primary key, u int unique, v int, w int, n int check (n >= 0), \
             twice int as (n * 2) stored, unique (v, w))"
        );
        run(session, &table).unwrap();
        let fill = |from, to| {
            format!(
                "insert ignore into {name} (id, u, v, w, n) \
                 select id, u, v, w, n from before where pos >= {from} and pos < {to} order by pos"
            )
        };
        run(session, &fill(0, 500)).unwrap();
        run(session, &format!("optimize table {name} flush")).unwrap();
        run(session, &fill(500, 1_000)).unwrap();
    }
}

fn statement(verb: &str, table: &str, from: u64, to: u64) -> String {
    format!(
        "{verb} {table} (id, u, v, w, n) select id, u, v, w, n from source \
         where pos >= {from} and pos < {to} order by pos"
    )
}

/// Writes the source's rows, a few at a time. Returns how many were written.
fn few_by_few(session: &mut Session, verb: &str, table: &str) -> u64 {
    let steps = (0..ROWS).step_by(FEW as usize);
    steps
        .map(|from| run(session, &statement(verb, table, from, from + FEW)).unwrap().rows_affected)
        .sum()
}

fn all(session: &mut Session, table: &str) -> Vec<String> {
    rows(session, &format!("select * from {table} order by id")).unwrap()
}

fn memory_rows(db: &Database, table: &str) -> u64 {
    db.inspect().unwrap().iter().find(|t| t.name == table).unwrap().rowstore_rows
}

#[test]
fn many_rows_have_the_outcome_of_rows_written_one_by_one() {
    for (seed, verb) in (0..).zip([IGNORE, REPLACE, IGNORE, REPLACE]) {
        let db = opened(150);
        let mut s = db.session();
        let mut random = Random(seed);
        source(&mut s, "before", 1_000, &mut random);
        source(&mut s, "source", ROWS, &mut random);
        // Alone: nothing goes through the rowstore.
        targets(&mut s, ["t", "r"]);
        let before = memory_rows(&db, "t");
        let many = run(&mut s, &statement(verb, "t", 0, ROWS)).unwrap().rows_affected;
        assert!(memory_rows(&db, "t") <= before, "{verb}: rows are in memory");
        assert_eq!(many, few_by_few(&mut s, verb, "r"), "{verb}");
        assert_eq!(all(&mut s, "t"), all(&mut s, "r"), "{verb}");
        assert_eq!(many == ROWS, verb == REPLACE, "{verb}: {many} rows");
        // In a transaction, after other changes of it, and undone.
        run(&mut s, "drop table t; drop table r").unwrap();
        targets(&mut s, ["t", "r"]);
        let before = all(&mut s, "t");
        let changes = |table| {
            format!(
                "begin; delete from {table} where id % 7 = 0; update {table} set n = n + 1, u = null \
                 where id % 5 = 0; savepoint s"
            )
        };
        run(&mut s, &changes("r")).unwrap();
        let few = few_by_few(&mut s, verb, "r");
        let expected = all(&mut s, "r");
        let again = few_by_few(&mut s, verb, "r");
        run(&mut s, "commit").unwrap();
        run(&mut s, &changes("t")).unwrap();
        let changed = all(&mut s, "t");
        for _ in 0..2 {
            let many = run(&mut s, &statement(verb, "t", 0, ROWS)).unwrap().rows_affected;
            assert_eq!(many, few, "{verb}");
            assert_eq!(all(&mut s, "t"), expected, "{verb}: what the transaction sees");
            run(&mut s, "rollback to s").unwrap();
            assert_eq!(all(&mut s, "t"), changed, "{verb}: after the savepoint");
        }
        assert_eq!(all(&mut db.session(), "t"), before, "{verb}: what others see");
        run(&mut s, "rollback").unwrap();
        assert_eq!(all(&mut s, "t"), before, "{verb}: rolled back");
        run(&mut s, &changes("t")).unwrap();
        run(&mut s, &statement(verb, "t", 0, ROWS)).unwrap();
        let many = run(&mut s, &statement(verb, "t", 0, ROWS)).unwrap().rows_affected;
        assert_eq!(many, again, "{verb}: twice in one transaction");
        run(&mut s, "commit").unwrap();
        assert_eq!(all(&mut s, "t"), all(&mut s, "r"), "{verb}: committed");
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn what_a_row_breaks_besides_keys_is_an_error_and_changes_nothing() {
    let db = opened(150);
    let mut s = db.session();
    let mut random = Random(7);
    source(&mut s, "before", 1_000, &mut random);
    source(&mut s, "source", ROWS, &mut random);
    targets(&mut s, ["t", "r"]);
    let before = all(&mut s, "t");
    run(&mut s, "update source set n = -1 where pos = 2999").unwrap();
    for begin in ["select 1", "begin"] {
        for verb in [IGNORE, REPLACE] {
            run(&mut s, begin).unwrap();
            let refused = kind(&mut s, &statement(verb, "t", 0, ROWS));
            assert_eq!(refused, Some(ErrorKind::Constraint), "{begin}, {verb}");
            run(&mut s, "rollback").unwrap();
            assert_eq!(all(&mut s, "t"), before);
        }
    }
    run(&mut s, "update source set n = 1 where pos = 2999").unwrap();
    // A conflict target names the only key that may be taken.
    let named = format!("{} on conflict (id) do nothing", statement("insert into", "t", 0, ROWS));
    assert_eq!(kind(&mut s, &named), Some(ErrorKind::Constraint));
    assert_eq!(all(&mut s, "t"), before);
    run(&mut s, "create table one (id int primary key, n int)").unwrap();
    let named = "insert into one select id, n from source on conflict (id) do nothing";
    let ids = rows(&mut s, "select count(distinct id) from source").unwrap();
    assert_eq!(run(&mut s, named).unwrap().rows_affected.to_string(), ids[0]);
    assert_eq!(memory_rows(&db, "one"), 0);
    assert_eq!(run(&mut s, named).unwrap().rows_affected, 0);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

/// A load chooses among few rows that have one key and other unique values; more are written one by
/// one.
#[test]
fn any_number_of_rows_may_share_a_key() {
    let db = opened(150);
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, u int unique)").unwrap();
    let from = format!("t select i % 100, i from generate_series(0, {}) as g (i)", ROWS - 1);
    for begin in ["select 1", "begin"] {
        run(&mut s, begin).unwrap();
        assert_eq!(run(&mut s, &format!("{IGNORE} {from}")).unwrap().rows_affected, 100);
        assert_eq!(run(&mut s, &format!("{REPLACE} {from}")).unwrap().rows_affected, ROWS);
        let sum: u64 = (ROWS - 100..ROWS).sum();
        let found = rows(&mut s, "select count(*), sum(u) from t").unwrap();
        assert_eq!(found, [format!("100|{sum}")]);
        run(&mut s, "commit; delete from t").unwrap();
    }
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn more_rows_than_memory_and_the_log_take() {
    const MANY: u64 = 280_000;
    const SOME: u64 = 40_000;
    let place = Folder::new("insert-many");
    let options = Options { memory_bytes: 48 << 20, ..options() };
    let db = block_on(Database::open(open_folder(place.path()).unwrap(), options)).unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, u int unique, s text)").unwrap();
    let from = |verb: &str, text: &str, count: u64| {
        format!(
            "{verb} t select i, {MANY} - i, concat('{text} ', i, repeat(' and more', 110)) \
             from generate_series(0, {}) as g (i)",
            count - 1
        )
    };
    let first = |s: &mut Session| {
        let sql =
            "select count(*), sum(u), sum(case when s like 'first%' then 1 else 0 end) from t";
        rows(s, sql).unwrap()
    };
    let sums = |first: u64| [format!("{MANY}|{}|{first}", MANY * (MANY + 1) / 2)];
    // 280 MB. A transaction may log 256 MiB, and memory holds 12 MiB of changed rows.
    let before = db.log_position();
    assert_eq!(run(&mut s, &from(IGNORE, "first", MANY)).unwrap().rows_affected, MANY);
    assert_eq!(first(&mut s), sums(MANY));
    run(&mut s, "begin").unwrap();
    assert_eq!(run(&mut s, &from(IGNORE, "second", SOME)).unwrap().rows_affected, 0);
    assert_eq!(run(&mut s, &from(REPLACE, "third", SOME)).unwrap().rows_affected, SOME);
    assert_eq!(first(&mut s), sums(MANY - SOME));
    run(&mut s, "rollback").unwrap();
    assert_eq!(first(&mut s), sums(MANY));
    assert_eq!(run(&mut s, &from(REPLACE, "third", MANY)).unwrap().rows_affected, MANY);
    assert_eq!(first(&mut s), sums(0));
    let logged = db.log_position() - before;
    assert!(logged < 4 << 20, "{logged} bytes are logged");
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

/// The load waits in the middle: it keeps the locks that it has, and does not begin again.
#[test]
fn a_load_that_waits_keeps_the_locks_that_it_has() {
    let db = opened(20_000);
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, n int)").unwrap();
    run(&mut s, "insert into t values (1, 1), (2, 2), (3, 3)").unwrap();
    let mut holder = db.session();
    run(&mut holder, "begin; update t set n = 4 where id = 2").unwrap();
    let load = format!("{REPLACE} t select i, 5 from generate_series(1, {ROWS}) as g (i)");
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        let loaded = blocked(&mut s, &load, || {
            for id in [1, 3] {
                let update = format!("update t set n = n + 1 where id = {id}");
                let mut session = db.session();
                others.push(scope.spawn(move || run(&mut session, &update).unwrap()));
            }
            std::thread::sleep(Duration::from_millis(100));
            assert!(others.iter().any(|other| !other.is_finished()), "the load has let go");
            run(&mut holder, "commit").unwrap();
        });
        assert_eq!(loaded, Ok(ROWS));
        others.into_iter().for_each(|other| assert_eq!(other.join().unwrap().rows_affected, 1));
    });
    let changed = rows(&mut s, "select sum(n - 5) from t where id in (1, 3)").unwrap();
    assert!(changed[0] != "0", "a row was changed before the load, and one or two after it");
    assert_eq!(rows(&mut s, "select n from t where id = 2").unwrap(), ["5"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

/// While a load waits for a lock, the statement of the transaction that holds it may begin.
#[test]
fn a_load_that_waits_leaves_its_slot_to_others() {
    let (concurrent_statements, lock_timeout_ms, load_rows) = (1, 20_000, 1_000);
    let options =
        Options { concurrent_statements, lock_timeout_ms, load_rows, ..Options::default() };
    let db = block_on(Database::open(memory_host(), options)).unwrap();
    let (mut s, mut other) = (db.session(), db.session());
    run(&mut s, "create table t (id int primary key, n int); insert into t values (1, 1)").unwrap();
    run(&mut other, "begin; update t set n = 2 where id = 1").unwrap();
    let load = format!("{IGNORE} t select i, 5 from generate_series(1, {ROWS}) as g (i)");
    let loaded = blocked(&mut s, &load, || {
        assert_eq!(rows(&mut other, "select sum(n) from t where n > 0").unwrap(), ["2"]);
        run(&mut other, "commit").unwrap();
    });
    assert_eq!(loaded, Ok(ROWS - 1));
}

#[test]
fn a_cancelled_load_stops_waiting() {
    let db = opened(60_000);
    let (mut s, mut other) = (db.session(), db.session());
    run(&mut s, "create table t (id int primary key, n int); insert into t values (1, 1)").unwrap();
    run(&mut other, "begin; update t set n = 2 where id = 1").unwrap();
    let load = format!("{REPLACE} t select i, 5 from generate_series(1, {ROWS}) as g (i)");
    let cancel = s.cancel_flag();
    let loaded = blocked(&mut s, &load, || cancel.store(true, Ordering::Relaxed));
    assert_eq!(loaded, Err(ErrorKind::Cancelled));
    run(&mut other, "commit").unwrap();
    assert_eq!(rows(&mut s, "select * from t").unwrap(), ["1|2"]);
}

/// A row that the statement read does not change before it is replaced.
#[test]
fn replacing_rows_by_what_was_read_of_them_loses_no_change() {
    const ADDED: u64 = 1 << 32;
    let db = opened(20_000);
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, n bigint)").unwrap();
    run(&mut s, &format!("insert into t select i, 0 from generate_series(1, {ROWS}) as g (i)"))
        .unwrap();
    let (mut replaced, mut updated) = (0, 0);
    std::thread::scope(|scope| {
        let updates = scope.spawn(|| {
            let mut session = db.session();
            for round in 0..60 {
                let id = 1 + round * 37 % ROWS;
                let update = format!("update t set n = n + 1 where id = {id}");
                updated += run(&mut session, &update).unwrap().rows_affected;
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let replace = format!("{REPLACE} t select id, n + {ADDED} from t");
        while !updates.is_finished() || replaced == 0 {
            match run(&mut s, &replace) {
                Ok(done) => replaced += done.rows_affected,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
        }
    });
    let sum = rows(&mut s, "select sum(n) from t").unwrap();
    assert_eq!(sum, [(replaced * ADDED + updated).to_string()]);
    assert_eq!(updated, 60);
}

/// Rows that are handled one by one are held, and counted until the statement ends.
#[test]
fn rows_that_are_held_are_counted_and_given_back() {
    let options = Options { memory_bytes: 32 << 20, ..options() };
    let db = block_on(Database::open(memory_host(), options)).unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, n int, s text)").unwrap();
    let upsert = |count: u64| {
        format!(
            "insert into t select i, 1, concat(i, repeat(' wide', 100)) from generate_series(1, {count}) as g (i) \
             on conflict (id) do update set n = t.n + 1"
        )
    };
    let statements = |db: &Database| {
        db.memory().into_iter().find(|part| part.part == "statements").unwrap().bytes
    };
    assert_eq!(kind(&mut s, &upsert(60_000)), Some(ErrorKind::Limit));
    assert_eq!(rows(&mut s, "select count(*) from t").unwrap(), ["0"]);
    assert_eq!(statements(&db), 0);
    for _ in 0..2 {
        assert_eq!(run(&mut s, &upsert(2_000)).unwrap().rows_affected, 2_000);
    }
    assert_eq!(rows(&mut s, "select count(*), sum(n) from t").unwrap(), ["2000|4000"]);
    // What a transaction's statement held is given back before its end.
    run(&mut s, "begin").unwrap();
    run(&mut s, &upsert(2_000)).unwrap();
    assert_eq!(statements(&db), 0);
    let returning = format!("{} returning s", upsert(2_000));
    assert_eq!(run(&mut s, &returning).unwrap().to_rows().len(), 2_000);
    run(&mut s, "update t set n = u.n from t as u where u.id = t.id").unwrap();
    assert_eq!(statements(&db), 0);
    run(&mut s, "rollback").unwrap();
    assert_eq!(rows(&mut s, "select count(*), sum(n) from t").unwrap(), ["2000|4000"]);
}
