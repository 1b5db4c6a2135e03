//! `MERGE`: what it changes, returns and refuses, in transactions and beside other writers.

use nacre_session_tests::{kind, memory, rows, run};
use nacredb::{Database, ErrorKind, Session};

fn opened() -> (Database, Session) {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table stock (id int primary key, n int default 0, note text)").unwrap();
    run(&mut s, "insert into stock values (1, 10, 'a'), (2, 20, 'b'); optimize table stock flush")
        .unwrap();
    run(&mut s, "insert into stock values (3, 30, 'c')").unwrap();
    run(&mut s, "create table buy (id int, m int); insert into buy values (1, 5), (3, 7), (4, 9)")
        .unwrap();
    (db, s)
}

fn all(s: &mut Session) -> Vec<String> {
    rows(s, "select * from stock order by id").unwrap()
}

#[test]
fn clauses_update_delete_and_insert_by_one_join() {
    let (db, mut s) = opened();
    let merge = "merge into stock as s using buy as b on s.id = b.id \
                 when matched and b.m = 7 then delete \
                 when matched then update set n = n + b.m \
                 when not matched then insert (id, n) values (b.id, b.m) \
                 when not matched by source then update set note = 'none', n = default";
    assert_eq!(run(&mut s, merge).unwrap().rows_affected, 4);
    assert_eq!(all(&mut s), ["1|15|a", "2|0|none", "4|9|NULL"]);
    let returning = "with w (id, m) as (values (1, 2), (9, 3)) merge into stock using w using (id) \
                     when matched then delete when not matched then insert values (w.id, w.m, 'new') \
                     returning merge_action(), *, w.m";
    let mut returned = rows(&mut s, returning).unwrap();
    returned.sort();
    assert_eq!(returned, ["DELETE|1|15|a|2", "INSERT|9|3|new|3"]);
    assert_eq!(all(&mut s), ["2|0|none", "4|9|NULL", "9|3|new"]);
    let by_name = "merge into stock using (values ('x', 4), ('y', 5)) as v (note, id) using (id) \
                   when matched then update by name when not matched then insert by name";
    run(&mut s, by_name).unwrap();
    assert_eq!(all(&mut s), ["2|0|none", "4|9|x", "5|0|y", "9|3|new"]);
    let in_order = "merge into stock using (values (5, 1, 'o'), (6, 1, 'p')) as v on v.column1 = stock.id \
                    when matched then update when not matched then insert";
    run(&mut s, in_order).unwrap();
    assert_eq!(all(&mut s), ["2|0|none", "4|9|x", "5|1|o", "6|1|p", "9|3|new"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_row_is_changed_once_and_failures_change_nothing() {
    let (db, mut s) = opened();
    let before = all(&mut s);
    let twice = "(values (1, 5), (1, 6)) as v (id, m) on stock.id = v.id";
    for (merge, expected) in [
        (
            format!("merge into stock using {twice} when matched then update set n = m"),
            ErrorKind::Constraint,
        ),
        (format!("merge into stock using {twice} when matched then delete"), ErrorKind::Constraint),
        (format!("merge into stock using {twice} when matched then insert"), ErrorKind::Syntax),
        (format!("merge into stock using {twice} when not matched then delete"), ErrorKind::Syntax),
        (format!("merge into stock using {twice}"), ErrorKind::Syntax),
        ("merge into stock using stock on true when matched then delete".into(), ErrorKind::Type),
        ("merge into stock using buy on id = 1 when matched then delete".into(), ErrorKind::Type),
        (
            "merge into nowhere using buy on true when matched then delete".into(),
            ErrorKind::NotFound,
        ),
        (
            "merge into stock using buy on stock.id = buy.id when matched then delete \
          when not matched then error 'no ' || buy.id"
                .into(),
            ErrorKind::Constraint,
        ),
        (
            "merge into stock using buy on stock.id = buy.id when matched then delete \
          when not matched then insert values (2, 0, '')"
                .into(),
            ErrorKind::Constraint,
        ),
    ] {
        assert_eq!(kind(&mut s, &merge), Some(expected), "{merge}");
        assert_eq!(all(&mut s), before, "{merge}");
    }
    let one =
        format!("merge into stock using {twice} when matched and m = 6 then update set n = m");
    assert_eq!(run(&mut s, &one).unwrap().rows_affected, 1);
    let exchanged = "merge into stock using (values (1, 2), (2, 1), (3, 0), (9, 3)) as v (old, new) \
                     on stock.id = v.old when matched and v.new = 0 then delete \
                     when matched then update set id = v.new \
                     when not matched then insert values (v.new, 33, 'new')";
    run(&mut s, exchanged).unwrap();
    assert_eq!(all(&mut s), ["1|20|b", "2|6|a", "3|33|new"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn it_conflicts_with_other_writers_and_is_undone() {
    let (db, mut s) = opened();
    let mut other = db.session();
    run(&mut s, "begin").unwrap();
    run(&mut other, "update stock set n = 11 where id = 1").unwrap();
    let merge =
        "merge into stock using buy on stock.id = buy.id when matched then update set n = 0";
    assert_eq!(kind(&mut s, merge), Some(ErrorKind::Conflict));
    run(&mut s, "rollback; begin").unwrap();
    run(&mut s, merge).unwrap();
    assert_eq!(all(&mut s), ["1|0|a", "2|20|b", "3|0|c"]);
    assert_eq!(
        kind(&mut other, "update stock set n = 1 where id = 1"),
        Some(ErrorKind::LockTimeout)
    );
    run(&mut s, "rollback").unwrap();
    assert_eq!(all(&mut other), ["1|11|a", "2|20|b", "3|30|c"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn many_rows_are_merged() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table big (id int primary key, n int)").unwrap();
    run(&mut s, "insert into big select v, v from range(100000) r (v)").unwrap();
    run(&mut s, "insert into big values (-1, -1)").unwrap();
    let merge = "merge into big using (select v as id from range(50000, 190000) s (v) union all select -1) as s \
                 on big.id = s.id when matched and big.id >= 90000 then delete \
                 when matched and big.id = -1 then do nothing when matched then update set n = n + 1 \
                 when not matched then insert values (s.id, 7)";
    assert_eq!(run(&mut s, merge).unwrap().rows_affected, 140_000);
    let sums = "select count(*), sum(n), count(*) filter (where n = id + 1) from big";
    assert_eq!(rows(&mut s, sums).unwrap(), ["180001|4050624999|40000"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}
