//! `CREATE TABLE AS` is a single commit: after a crash the table exists with all its rows, or not
//! at all.

use nacre_native::block_on;
use nacre_session_tests::{Folder, folder, kind, memory, memory_host, rows, run};
use nacre_testing::{FaultStore, Random};
use nacredb::host::LocalStore;
use nacredb::{Database, ErrorKind, Options, Result, Session};
use std::sync::Arc;

const STATEMENT: &str =
    "create table t as select a, concat('row ', a) as b from source where a % 2 = 0";

fn open(store: Arc<dyn LocalStore>) -> Result<Database> {
    let mut host = memory_host();
    host.store = store;
    block_on(Database::open(host, Options::default()))
}

fn fill(session: &mut Session) {
    run(session, "create table source (a int primary key)").unwrap();
    let values: Vec<String> = (0..100).map(|a| format!("({a})")).collect();
    run(session, &format!("insert into source values {}", values.join(", "))).unwrap();
}

fn steps_of(store: FaultStore) -> (usize, Result<()>) {
    let db = open(Arc::new(store.clone())).unwrap();
    let mut session = db.session();
    let before = store.steps();
    let made = run(&mut session, STATEMENT).map(|_| ());
    (store.steps() - before, made)
}

#[test]
fn a_crash_leaves_all_of_it_or_nothing() {
    let start = FaultStore::default();
    let db = open(Arc::new(start.clone())).unwrap();
    fill(&mut db.session());
    block_on(db.close()).unwrap();
    let (steps, made) = steps_of(FaultStore::with_files_of(&start));
    made.unwrap();
    let (mut whole, mut none) = (0, 0);
    for step in 0..=steps {
        for seed in 1..=8 {
            let store = FaultStore::with_files_of(&start);
            let db = open(Arc::new(store.clone())).unwrap();
            let mut session = db.session();
            store.fail_after(step);
            let made = run(&mut session, STATEMENT);
            drop((session, db));
            let random = &mut Random::new(seed * 7919 + step as u64);
            let db = open(store.after_crash(random)).unwrap();
            let mut session = db.session();
            match rows(&mut session, "select count(*), sum(a), max(b) from t") {
                Ok(found) => {
                    assert_eq!(found, ["50|2450|row 98"], "step {step}, seed {seed}");
                    whole += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotFound, "step {step}, seed {seed}");
                    assert!(made.is_err(), "step {step}, seed {seed}: it was acknowledged");
                    none += 1;
                    run(&mut session, STATEMENT).unwrap();
                }
            }
            assert_eq!(db.check().unwrap(), Vec::<String>::new());
        }
    }
    assert!(steps > 3 && whole > 8 && none > 8, "{steps} steps: {whole} whole, {none} none");
}

#[test]
fn what_fails_leaves_nothing() {
    let place = Folder::new("create-as");
    let db = folder(place.path()).unwrap();
    let mut s = db.session();
    fill(&mut s);
    assert_eq!(
        kind(&mut s, "create table t as select a, 10 div (a - 99) as b from source"),
        Some(ErrorKind::Type)
    );
    assert_eq!(kind(&mut s, "select * from t"), Some(ErrorKind::NotFound));
    run(&mut s, STATEMENT).unwrap();
    assert_eq!(kind(&mut s, STATEMENT), Some(ErrorKind::AlreadyExists));
    run(&mut s, &STATEMENT.replace("table t", "table if not exists t")).unwrap();
    run(&mut s, "create view v as select 1 as one").unwrap();
    assert_eq!(kind(&mut s, "create table v as select 2 as two"), Some(ErrorKind::AlreadyExists));
    let segments = place.files("seg-").len();
    assert_eq!(segments, 1, "files of statements that failed are gone");
    run(&mut s, "create table nothing as select * from source where a < 0").unwrap();
    assert_eq!(rows(&mut s, "select count(*) from nothing").unwrap(), ["0"]);
    run(&mut s, "insert into nothing values (1); update t set b = 'changed' where a = 4; delete from t where a = 6")
        .unwrap();
    drop((s, db));
    let db = folder(place.path()).unwrap();
    let mut s = db.session();
    assert_eq!(rows(&mut s, "select count(*), min(b) from t").unwrap(), ["49|changed"]);
    assert_eq!(rows(&mut s, "select * from nothing").unwrap(), ["1"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn no_session_sees_the_table_without_its_rows() {
    let db = memory().unwrap();
    let mut s = db.session();
    fill(&mut s);
    let mut other = db.session();
    run(&mut other, "begin").unwrap();
    assert_eq!(rows(&mut other, "select count(*) from source").unwrap(), ["100"]);
    assert_eq!(run(&mut s, STATEMENT).unwrap().rows_affected, 50);
    run(&mut other, "commit").unwrap();
    assert_eq!(rows(&mut other, "select count(*) from t").unwrap(), ["50"]);
}
