//! A statement over its memory limit spills and returns correct results if there are files, and
//! fails with `limit` if there are none. Either way it leaves nothing behind, and the next
//! statement works.

use nacre_session_tests::{Folder, folder, kind, memory, rows, run};
use nacredb::{ErrorKind, Session, Value};
use std::path::Path;

fn fill(session: &mut Session) {
    run(session, "create table t (id int primary key, a int, b text)").unwrap();
    for from in (0..20_000).step_by(5_000) {
        let rows: Vec<String> = (from..from + 5_000)
            .map(|id| format!("({id}, {}, 'text {}')", id * 7 % 19_997, id % 5_003))
            .collect();
        run(session, &format!("insert into t values {}", rows.join(", "))).unwrap();
        run(session, "optimize table t flush").unwrap();
    }
}

/// Each holds almost all rows in at least one operator and returns few.
const STATEMENTS: [&str; 6] = [
    "select count(*), sum(n), max(b) from (select a, b, count(*) as n from t group by a, b) as g",
    "select count(*), sum(x.a), max(y.b) from t as x join t as y on x.a = y.id",
    "select count(*), count(y.id) from t as x left join t as y on x.id = y.a and y.id % 3 = 0",
    "select sum(r), max(b) from (select b, row_number() over (partition by b order by a) as r from t) as w",
    "select count(*) from (select a from t except select id from t where id < 15000) as e",
    "select sum(id), min(b) from (select id, b from t order by b desc, a limit 12000) as s",
];

fn temporary(path: &Path) -> usize {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("tmp-")).count()
}

#[test]
fn what_cannot_be_held_is_spilled() {
    let place = Folder::new("spill");
    let db = folder(place.path()).unwrap();
    let mut session = db.session();
    fill(&mut session);
    for sql in STATEMENTS {
        run(&mut session, "set memory_limit = default").unwrap();
        let expected = rows(&mut session, sql).unwrap();
        run(&mut session, "set memory_limit = '200KB'").unwrap();
        for threads in [1, 4] {
            session.set_threads(threads);
            let result = run(&mut session, sql).unwrap();
            assert!(result.statistics.bytes_spilled > 100_000, "{sql}");
            assert_eq!(rows(&mut session, sql).unwrap(), expected, "{sql}");
            assert_eq!(temporary(place.path()), 0);
        }
    }
    // The result itself is held.
    assert_eq!(kind(&mut session, "select * from t order by b"), Some(ErrorKind::Limit));
    assert_eq!(temporary(place.path()), 0);
    assert_eq!(rows(&mut session, "select count(*) from t").unwrap(), ["20000"]);
}

/// A row keeps the value of a volatile key when it is spilled.
#[test]
fn spilled_rows_keep_their_volatile_keys() {
    let place = Folder::new("spill-volatile");
    let db = folder(place.path()).unwrap();
    let mut session = db.session();
    fill(&mut session);
    run(&mut session, "set memory_limit = '200KB'").unwrap();
    let mut spilled = |sql: &str| {
        let result = run(&mut session, sql).unwrap();
        assert!(result.statistics.bytes_spilled > 0, "{sql}");
        result.to_rows()
    };
    let groups = "select floor(random() * 15000) as k, count(*) as n from t group by k";
    let twice = format!("select k from ({groups}) as g group by k having count(*) > 1");
    assert_eq!(spilled(&twice), Vec::<Vec<Value>>::new(), "a group is returned once");
    let first = "select row_number() over (partition by floor(random() * 100) order by id) as r, b \
                 from t qualify r = 1";
    assert!(spilled(first).len() <= 100, "a partition has one first row");
    let sample = "select count(*) from t tablesample (12000 rows)";
    assert_eq!(spilled(sample), [[Value::Int(12_000)]]);
}

/// The first rows in index order are held until there are enough; if they are too wide, they are
/// sorted instead.
#[test]
fn first_rows_by_index_are_counted() {
    let place = Folder::new("spill-by-index");
    let db = folder(place.path()).unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key, a int, b text, key i_a (a))").unwrap();
    let wide = "wide ".repeat(400);
    let values: Vec<String> =
        (0..4_000).map(|id| format!("({id}, {}, '{wide}{id}')", id * 7 % 4_001)).collect();
    run(
        &mut session,
        &format!("insert into t values {}; optimize table t flush", values.join(", ")),
    )
    .unwrap();
    let sql = "select sum(a), max(b) from (select a, b from t order by a limit 120) as s";
    let result = run(&mut session, sql).unwrap();
    assert_eq!(result.statistics.bytes_spilled, 0);
    assert!(result.statistics.rows_read < 300, "{}", result.statistics.rows_read);
    let expected = rows(&mut session, sql).unwrap();
    run(&mut session, "set memory_limit = '200KB'").unwrap();
    let result = run(&mut session, sql).unwrap();
    assert!(result.statistics.bytes_spilled > 100_000, "{}", result.statistics.bytes_spilled);
    assert_eq!(rows(&mut session, sql).unwrap(), expected);
}

#[test]
fn without_files_the_limit_is_an_error() {
    let db = memory().unwrap();
    let mut session = db.session();
    fill(&mut session);
    run(&mut session, "set memory_limit = 200000").unwrap();
    for sql in STATEMENTS {
        assert_eq!(kind(&mut session, sql), Some(ErrorKind::Limit), "{sql}");
    }
    assert_eq!(kind(&mut session, "update t set a = a + 1"), Some(ErrorKind::Limit));
    assert_eq!(
        rows(&mut session, "select count(*), sum(a) from t where id < 3").unwrap(),
        ["3|21"]
    );
    run(&mut session, "set memory_limit = '1 GB'").unwrap();
    assert_eq!(kind(&mut session, STATEMENTS[0]), None);
    for wrong in ["0", "-1", "'many'", "'5 XB'", "null"] {
        assert_eq!(
            kind(&mut session, &format!("set memory_limit = {wrong}")),
            Some(ErrorKind::Type),
            "{wrong}"
        );
    }
}

#[test]
fn what_a_crash_left_goes_at_the_next_opening() {
    let place = Folder::new("left-over");
    drop(folder(place.path()).unwrap());
    std::fs::write(place.path().join("tmp-0000000000000001"), b"rows").unwrap();
    let db = folder(place.path()).unwrap();
    assert_eq!(temporary(place.path()), 0);
    assert_eq!(rows(&mut db.session(), "select 1").unwrap(), ["1"]);
}
