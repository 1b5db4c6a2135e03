//! Errors: kind, SQLSTATE, place and advice; and the limits that keep the stack safe.

use super::{catalog, fails, plan};
use crate::{bind, parse};
use nacre_types::ErrorKind;

#[test]
fn dump() {
    for sql in [
        "selec 1",
        "select from t where",
        "select 1 +",
        "select * from tt",
        "select nam from t",
        "select t.nam from t",
        "select x.name from t",
        "select id from t, u",
        "select a, count(*) from t",
        "select a from t where count(*) > 1",
        "select sum(sum(a)) from t",
        "select lenght(name) from t",
        "select left(name) from t",
        "select name + 1 from t",
        "select * from t where name = 1",
        "select * from t where day = 'yesterday'",
        "select * from t where a",
        "select * from t where price like 'x'",
        "create table t (x int)",
        "create table n (x int, X text)",
        "create table n (x foo)",
        "create table n (x decimal(39,2))",
        "create table n (x int, unique (x))",
        "create table n (x int unique)",
        "create table n (x int, key (x))",
        "create table n (x int, sort key (x))",
        "create table n (x int, shard key (x))",
        "create table n (x int, key k (x) using hash)",
        "create table n (x int, foreign key (x) references t (id))",
        "create table n (x int primary key, y int, primary key (y))",
        "create table n (x int auto_increment)",
        "create table n as select 1",
        "insert into t (id, id) values (1, 2)",
        "insert into t (nope) values (1)",
        "insert into u values (1, 2)",
        "insert into u values (1, 'x', 'c')",
        "insert into u values (1, 2, 'c') on conflict do nothing",
        "insert into u values (1, 2, 'c') on duplicate key update a = 1",
        "insert ignore into u values (1, 2, 'c')",
        "replace into u values (1, 2, 'c')",
        "insert into u values (1, 2, 'c') returning id",
        "select 1 union all select 2",
        "select row_number() over () from t",
        "select * from t where id in (select id from u)",
        "select (select 1)",
        "select * from t where exists (select 1 from u)",
        "with recursive x as (select 1) select * from x",
        "truncate table t",
        "savepoint s",
        "rollback to savepoint s",
        "create view v as select 1",
        "select * from t for update",
        "select * from t order by 99",
        "select distinct a from t order by b",
        "select * from t limit -1",
        "select * from t limit a",
        "select * from t limit 'x'",
        "select try_cast(a as text) from t",
        "select a from t where ? = $2",
        "update t set nope = 1",
        "update t set a = 1, a = 2",
        "update t set a = name",
        "delete from nope",
        "select 1; select 2 3",
        "select 'abc",
        "select case when 1 then 2 end",
        "select id from t join u using (nope)",
        "select * from t join t on true",
        "select case when flag then 1 else name end from t",
        "select 1 from t left join u",
        "select interval '1' fortnight",
        "select group_concat(name) from t",
        "select a from t group by 2",
        "select a b c from t",
        "grant all on t to x",
        "select date '2024-02-30'",
        "select 99999999999999999999999999999999999999999",
        "select a::uuid from t",
        "alter table t add column z int",
        "explain analyze select 1",
        "drop index x",
        "select * from a.b.c",
        "select coalesce() from t",
        "select id from t where id = 'abc'",
    ] {
        match parse(sql).and_then(|p| p.iter().try_for_each(|p| bind(p, &catalog(), &[]).map(|_| ()))) {
            Ok(()) => println!("OK?? {sql}"),
            Err(e) => println!("fails({sql:?}, {:?});", format!("{} {e}", e.sqlstate())),
        }
    }
}

#[test]
fn stack_is_safe() {
    // As small as the stack of a wasm instance.
    let body = || {
        for (sql, kind) in [
            (format!("select {}1{}", "(".repeat(10_000), ")".repeat(10_000)), ErrorKind::Limit),
            (format!("select {}1{}", "(".repeat(150), ")".repeat(150)), ErrorKind::Closed),
            (format!("select {}1{}", "abs(".repeat(10_000), ")".repeat(10_000)), ErrorKind::Limit),
            (format!("select {}1", "- ".repeat(10_000)), ErrorKind::Limit),
            (format!("select {}true", "not ".repeat(10_000)), ErrorKind::Limit),
            (format!("select 1{}", " + 1".repeat(5_000)), ErrorKind::Limit),
            (format!("select 1{}", " + 1".repeat(390)), ErrorKind::Closed),
            (format!("select id{} from t", " + a".repeat(390)), ErrorKind::Closed),
            (format!("select 1{}", "::bigint".repeat(5_000)), ErrorKind::Limit),
            (format!("select id from t where a = 1{}", " or a = 2".repeat(5_000)), ErrorKind::Closed),
            (format!("select id from t where a = 1{}", " and b <> 2".repeat(5_000)), ErrorKind::Closed),
            (format!("select id from t where a = 1{}", " and b <> 2 or a = 3".repeat(2_900)), ErrorKind::Closed),
            (format!("select a = 1{} from t", " or a = 2".repeat(5_000)), ErrorKind::Closed),
            (format!("select id from t where a = 1{}", " or a = 2".repeat(50_000)), ErrorKind::Limit),
            (format!("select id from t where a in (1{})", ", 2".repeat(50_000)), ErrorKind::Closed),
            (format!("select 1{}", " union select 1".repeat(5_000)), ErrorKind::Limit),
            (format!("select {}1{}", "(select ".repeat(5_000), ")".repeat(5_000)), ErrorKind::Limit),
            (format!("select * from {}t{}", "(select * from ".repeat(5_000), ") x".repeat(5_000)), ErrorKind::Limit),
            (format!("select * from {}t{}", "(select * from ".repeat(35), ") x".repeat(35)), ErrorKind::Closed),
            (format!("select * from t a0{}", (1..5_000).map(|i| format!(" cross join t a{i}")).collect::<String>()), ErrorKind::Limit),
            (format!("select {}", "case when flag then 1 else ".repeat(5_000)), ErrorKind::Limit),
            (format!("select case {} end from t", "when a = 1 then 2 ".repeat(5_000)), ErrorKind::Closed),
            (format!("select a{} from t", " is null".repeat(5_000)), ErrorKind::Limit),
            (format!("create table x (a {}int{})", "array<".repeat(5_000), ">".repeat(5_000)), ErrorKind::Limit),
        ] {
            let result = plan(&sql, &[]);
            match result {
                Ok(_) => assert_eq!(kind, ErrorKind::Closed, "{}", &sql[..80.min(sql.len())]),
                Err(e) => assert_eq!(e.kind(), kind, "{e} {}", &sql[..80.min(sql.len())]),
            }
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(body).unwrap().join().unwrap();
}

#[test]
fn text_is_bounded() {
    let sql = " ".repeat(nacre_types::limits::MAX_SQL_BYTES + 1);
    assert_eq!(parse(&sql).unwrap_err().kind(), ErrorKind::Limit);
    fails("select a frm t", "x");
}
