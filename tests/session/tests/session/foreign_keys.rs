//! Foreign keys beside other transactions, of many rows, after a restart, and by bulk loads.

use nacre_native::block_on;
use nacre_session_tests::{
    Folder, blocked, folder, kind, memory, open_folder, options, rows, run, run_with,
};
use nacredb::{
    Batch, Budget, DataType, Database, ErrorKind, OnDuplicate, Options, Session, Value, Vector,
};
use std::path::Path;
use std::sync::Arc;

/// A parent with keys 1 to 3, and a child that refers to it, in memory and in segments.
fn both(action: &str, schedule: impl Fn(&Database)) {
    for in_segments in [false, true] {
        let db = memory().unwrap();
        let mut session = db.session();
        run(&mut session, "create table p (id int primary key, u int unique)").unwrap();
        run(
            &mut session,
            &format!("create table c (id int primary key, p int references p {action}, n int)"),
        )
        .unwrap();
        run(&mut session, "insert into p values (1, 10), (2, 20), (3, 30)").unwrap();
        run(&mut session, "insert into c values (1, 1, 0), (2, 1, 0), (3, null, 0)").unwrap();
        if in_segments {
            run(&mut session, "optimize table p flush; optimize table c flush").unwrap();
        }
        schedule(&db);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
        let orphans = "select * from c where p is not null and p not in (select id from p)";
        assert_eq!(rows(&mut session, orphans).unwrap(), Vec::<String>::new());
    }
}

fn begun(db: &Database) -> Session {
    let mut session = db.session();
    run(&mut session, "begin").unwrap();
    session
}

fn ok(session: &mut Session, sql: &str) {
    run(session, sql).unwrap();
}

#[test]
fn a_parent_cannot_go_while_a_row_that_refers_to_it_is_being_written() {
    both("", |db| {
        let (mut a, mut b) = (begun(db), db.session());
        ok(&mut a, "insert into c values (4, 2, 0)");
        let waited = blocked(&mut b, "delete from p where id = 2", || ok(&mut a, "commit"));
        assert_eq!(waited, Err(ErrorKind::Constraint));
        let mut a = begun(db);
        ok(&mut a, "insert into c values (5, 3, 0)");
        let waited = blocked(&mut b, "delete from p where id = 3", || ok(&mut a, "rollback"));
        assert_eq!(waited, Ok(1));
    });
}

#[test]
fn a_row_that_refers_to_a_parent_waits_for_its_deletion() {
    both("", |db| {
        let (mut a, mut b) = (begun(db), db.session());
        ok(&mut a, "delete from p where id = 2");
        let waited = blocked(&mut b, "insert into c values (4, 2, 0)", || ok(&mut a, "commit"));
        assert_eq!(waited, Err(ErrorKind::Constraint));
        let mut a = begun(db);
        ok(&mut a, "delete from p where id = 3");
        let waited = blocked(&mut b, "update c set p = 3 where id = 1", || ok(&mut a, "rollback"));
        assert_eq!(waited, Ok(1));
    });
}

#[test]
fn writers_of_rows_that_refer_to_one_parent_do_not_wait_for_each_other() {
    both("", |db| {
        let (mut a, mut b) = (begun(db), begun(db));
        ok(&mut a, "insert into c values (4, 2, 0)");
        ok(&mut b, "insert into c values (5, 2, 0)");
        ok(&mut a, "update p set u = 21 where id = 2");
        ok(&mut a, "commit");
        ok(&mut b, "commit");
    });
}

#[test]
fn an_older_snapshot_meets_a_conflict() {
    both("on delete cascade", |db| {
        let (mut old, mut other) = (begun(db), db.session());
        ok(&mut old, "select count(*) from c");
        ok(&mut other, "insert into c values (4, 2, 0)");
        // The new row would stay: this transaction does not see it.
        assert_eq!(kind(&mut old, "delete from p where id = 2"), Some(ErrorKind::Conflict));
        ok(&mut old, "rollback; begin");
        ok(&mut old, "select count(*) from c");
        ok(&mut other, "delete from p where id = 2");
        assert_eq!(kind(&mut old, "insert into c values (9, 2, 0)"), Some(ErrorKind::Conflict));
        ok(&mut other, "insert into p values (7, 70)");
        assert_eq!(kind(&mut old, "insert into c values (9, 7, 0)"), Some(ErrorKind::Conflict));
        ok(&mut old, "rollback");
        ok(&mut old, "insert into c values (9, 7, 0)");
        assert_eq!(rows(&mut old, "select id, p from c order by id").unwrap().len(), 4);
    });
}

#[test]
fn a_transaction_sees_its_own_parents_and_undoes_its_locks() {
    both("on delete set null", |db| {
        let (mut a, mut b) = (begun(db), db.session());
        ok(&mut b, "update p set u = 31 where id = 3");
        ok(&mut a, "insert into p values (4, 40)");
        ok(&mut a, "insert into c values (4, 4, 0)");
        ok(&mut a, "savepoint s");
        ok(&mut a, "delete from p where id in (1, 4)");
        assert_eq!(rows(&mut a, "select count(*) from c where p is null").unwrap(), ["4"]);
        ok(&mut a, "rollback to s");
        ok(&mut b, "insert into c values (5, 1, 0)");
        ok(&mut a, "commit");
        assert_eq!(rows(&mut a, "select count(*) from c where p is null").unwrap(), ["1"]);
    });
}

#[test]
fn a_foreign_key_of_a_table_with_rows_is_checked_beside_writers() {
    let db = memory().unwrap();
    let (mut a, mut b) = (db.session(), db.session());
    ok(&mut a, "create table p (id int primary key); create table c (id int primary key, p int)");
    ok(&mut a, "insert into p select * from generate_series(1, 1000)");
    ok(&mut a, "insert into c select i, i from generate_series(1, 1000) as s (i)");
    ok(&mut a, "optimize table c flush");
    ok(&mut b, "begin");
    ok(&mut b, "insert into c values (5000, 5000)");
    ok(&mut a, "alter table c add constraint f foreign key (p) references p");
    assert_eq!(kind(&mut b, "commit"), Some(ErrorKind::Conflict));
    ok(&mut a, "begin");
    ok(&mut a, "alter table c drop constraint f");
    ok(&mut a, "alter table c add constraint g foreign key (p) references p on delete cascade");
    ok(&mut b, "delete from c where id = 7");
    assert_eq!(kind(&mut a, "commit"), Some(ErrorKind::Conflict));
    ok(&mut b, "begin; delete from p where id = 7");
    ok(&mut a, "create table d (id int references p)");
    assert_eq!(kind(&mut a, "insert into d values (7)"), Some(ErrorKind::LockTimeout));
    assert_eq!(kind(&mut b, "commit"), Some(ErrorKind::Conflict));
    ok(&mut a, "insert into d values (7)");
    assert_eq!(kind(&mut b, "delete from p where id = 7"), Some(ErrorKind::Constraint));
    ok(&mut b, "drop table d; delete from p where id = 7");
    assert_eq!(rows(&mut b, "select count(*) from c").unwrap(), ["999"]);
}

#[test]
fn many_rows_follow_and_are_checked_together() {
    both("on delete cascade on update cascade", |db| {
        let mut session = db.session();
        ok(&mut session, "create index on_p on c (p)");
        ok(&mut session, "insert into p select i, -i from generate_series(1000, 21000) as s (i)");
        ok(
            &mut session,
            "insert into c select 100 + i, 1000 + i % 20000, i from generate_series(0, 59999) as s (i)",
        );
        assert_eq!(
            kind(
                &mut session,
                "insert into c select 900000 + i, i, 0 from generate_series(20000, 31000) as s (i)"
            ),
            Some(ErrorKind::Constraint)
        );
        ok(&mut session, "update p set id = id + 1 where id >= 1000");
        assert_eq!(
            rows(
                &mut session,
                "select count(*), min(p), max(p), sum(p - n % 20000) from c where n > 0 or id = 100"
            )
            .unwrap(),
            ["60000|1001|21000|60060000"]
        );
        ok(&mut session, "delete from p where id % 2 = 0 and id > 1000");
        assert_eq!(rows(&mut session, "select count(*) from c").unwrap(), ["30003"]);
        ok(&mut session, "optimize table c full");
        ok(&mut session, "delete from p where id > 1000");
        assert_eq!(rows(&mut session, "select count(*) from c").unwrap(), ["3"]);
    });
}

#[test]
fn a_chain_of_rows_is_deleted_from_its_end() {
    let db = memory().unwrap();
    let mut session = db.session();
    ok(
        &mut session,
        "create table link (id int primary key, before int references link on delete cascade)",
    );
    ok(&mut session, "create index on_before on link (before)");
    ok(&mut session, "insert into link values (0, null)");
    ok(&mut session, "insert into link select i, i - 1 from generate_series(1, 2000) as s (i)");
    ok(&mut session, "delete from link where id = 5");
    assert_eq!(rows(&mut session, "select count(*), max(id) from link").unwrap(), ["5|4"]);
}

#[test]
fn foreign_keys_are_there_after_a_restart() {
    let place = Folder::new("foreign_keys");
    {
        let db = small_log(place.path());
        let mut session = db.session();
        ok(&mut session, "create table p (id int primary key)");
        ok(
            &mut session,
            "create table c (id int primary key, p int references p on delete cascade)",
        );
        ok(&mut session, "insert into p values (1), (2); insert into c values (1, 1), (2, 2)");
    }
    for _ in 0..2 {
        let db = small_log(place.path());
        let mut session = db.session();
        let error = run(&mut session, "insert into c values (3, 3)").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Constraint);
        assert_eq!((error.table(), error.key()), (Some("c"), Some("c_p_fkey")), "{error}");
        assert!(error.message().contains("id = 3 of table p"), "{error}");
        assert!(kind(&mut session, "drop table p").is_some());
        // Snapshots take the place of the log.
        for id in 100..400 {
            ok(
                &mut session,
                &format!("insert into p values ({id}); delete from p where id = {id}"),
            );
            while db.maintain(Budget::Steps(10)).unwrap() {}
        }
        assert!(!place.files("snap-").is_empty());
    }
    let db = folder(place.path()).unwrap();
    let mut session = db.session();
    ok(&mut session, "delete from p where id = 1");
    assert_eq!(rows(&mut session, "select id from c").unwrap(), ["2"]);
}

fn small_log(path: &Path) -> Database {
    let host = open_folder(path).unwrap();
    block_on(Database::open(host, Options { snapshot_bytes: 4_096, ..options() })).unwrap()
}

#[test]
fn a_bulk_load_is_checked() {
    both("", |db| {
        let ints = |values: &[i64]| {
            let values: Vec<Value> = values.iter().map(|v| Value::Int(*v)).collect();
            Arc::new(Vector::from_values(DataType::Int32, &values))
        };
        let load = |ids: &[i64], parents: &[i64]| {
            block_on(async {
                let mut session = db.session();
                let mut appender = session.appender("c", OnDuplicate::Error).await?;
                let columns = vec![ints(ids), ints(parents), ints(parents)];
                appender.append(&Batch::new(columns, ids.len()))?;
                appender.finish().await
            })
        };
        assert_eq!(load(&[10, 11], &[1, 3]).unwrap(), 2);
        assert_eq!(load(&[12, 13], &[1, 9]).unwrap_err().kind(), ErrorKind::Constraint);
        assert_eq!(load(&[10], &[1]).unwrap_err().kind(), ErrorKind::Constraint);
        let mut session = db.session();
        assert_eq!(rows(&mut session, "select count(*) from c").unwrap(), ["5"]);
        let refused = block_on(session.appender("p", OnDuplicate::Replace)).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
    });
}

#[test]
fn prepared_statements_check_each_time() {
    both("on delete restrict", |db| {
        let mut session = db.session();
        for (id, parent) in [(10, 1), (11, 2), (12, 9), (13, 3)] {
            let parameters = [Value::Int(id), Value::Int(parent)];
            let done = run_with(&mut session, "insert into c values (?, ?, 0)", &parameters);
            assert_eq!(done.is_ok(), parent < 4, "{parent}");
        }
        for id in [1, 2, 3] {
            assert!(
                run_with(&mut session, "delete from p where id = ?", &[Value::Int(id)]).is_err()
            );
        }
        ok(&mut session, "update c set n = n + 1");
        ok(&mut session, "delete from c where p = 2");
        ok(&mut session, "delete from p where id = 2");
    });
}
