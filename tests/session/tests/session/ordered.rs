//! `ORDER BY` in storage order: the same rows as with a sort, without reading more than necessary.

use nacre_native::block_on;
use nacre_session_tests::{Random, memory_host, rows, run, run_with};
use nacredb::{Database, Options, Session, Value};

fn database() -> Database {
    block_on(Database::open(memory_host(), Options { partitions: 3, ..Options::default() }))
        .unwrap()
}

/// Some runs of rows with scattered keys, some with consecutive ranges; rows deleted and changed in
/// both; rows in memory. In every third round a single run, in every fourth nothing in memory.
fn fill(session: &mut Session, keys: &str, random: &mut Random, round: u64) {
    run(session, "drop table if exists t").unwrap();
    run(session, &format!("create table t (a int, b varchar(20), c int, d int{keys})")).unwrap();
    let mut insert = |session: &mut Session, from: u64, to: u64, count: u64| {
        let rows: Vec<String> = (0..count)
            .map(|_| {
                let a = from + random.below(to - from);
                let c = if random.below(9) == 0 {
                    "null".to_string()
                } else {
                    random.below(12).to_string()
                };
                format!("({a}, 'key {}', {c}, {})", random.below(40), random.below(1000))
            })
            .collect();
        run(session, &format!("insert ignore into t values {}", rows.join(", "))).unwrap();
    };
    for _ in 0..3 {
        insert(session, 0, 60, 900);
        run(session, "optimize table t flush").unwrap();
    }
    insert(session, 60, 100, 700);
    run(session, "optimize table t flush").unwrap();
    insert(session, 0, 100, 300);
    run(session, "delete from t where d % 7 = 0 or a between 20 and 25").unwrap();
    run(session, "update t set d = d + 1 where d % 5 = 0").unwrap();
    if round.is_multiple_of(3) {
        run(session, "optimize table t full").unwrap();
        insert(session, 50, 70, 200);
    }
    if round.is_multiple_of(4) {
        run(session, "optimize table t flush").unwrap();
    }
}

/// Compares with a sort, which is forced by an expression that no key is ordered by.
fn check(
    session: &mut Session,
    columns: &str,
    condition: &str,
    order: &str,
    limit: &str,
    in_order: bool,
) {
    let query =
        |order: &str| format!("select {columns} from t {condition} order by {order}{limit}");
    let plan = rows(session, &format!("explain {}", query(order))).unwrap();
    if !limit.is_empty() {
        assert_eq!(
            plan.iter().any(|line| line.ends_with(" in key order")),
            in_order,
            "{order}: {plan:?}"
        );
    }
    let first = order.split([' ', ',']).next().unwrap();
    let sorted = order.replacen(first, &format!("coalesce({first}, null)"), 1);
    let (found, expected) =
        (rows(session, &query(order)).unwrap(), rows(session, &query(&sorted)).unwrap());
    assert_eq!(found, expected, "{condition} {order} {limit}");
}

#[test]
fn the_order_of_keys_is_the_order_of_sorting() {
    let db = database();
    let session = &mut db.session();
    let mut random = Random::new(7);
    for round in 1..=12u64 {
        let (keys, sorted) = [
            (", primary key (a, b)", false),
            (", primary key (a, b), sort key (c, a)", true),
            (", primary key (a, b), shard key (a)", false),
            (", sort key (c, a), shard key ()", true),
        ][round as usize % 4];
        fill(session, keys, &mut random, round);
        for limit in
            ["", " limit 1", " limit 7 offset 3", " limit 500", " limit 100000", " limit 0"]
        {
            for desc in ["", " desc"] {
                for condition in [
                    "",
                    "where d > 300",
                    "where a > 70",
                    "where a between 10 and 30 and d < 900",
                    "where a < 0",
                ] {
                    if sorted {
                        // Rows with equal keys come in any order, so only the keys are compared.
                        check(
                            session,
                            "c, a",
                            condition,
                            &format!("c{desc}, a{desc}"),
                            limit,
                            true,
                        );
                        check(session, "c", condition, &format!("c{desc}"), limit, true);
                        check(session, "a", condition, &format!("a{desc}"), limit, false);
                    } else {
                        check(
                            session,
                            "a, b, d",
                            condition,
                            &format!("a{desc}, b{desc}"),
                            limit,
                            true,
                        );
                        check(
                            session,
                            "d + 1, b, a",
                            condition,
                            &format!("a{desc}, b{desc}, d"),
                            limit,
                            true,
                        );
                        check(session, "a", condition, &format!("a{desc}"), limit, true);
                        check(session, "b", condition, &format!("b{desc}"), limit, false);
                    }
                }
                if sorted {
                    check(session, "a", "where c = 5", &format!("a{desc}"), limit, true);
                    check(
                        session,
                        "a",
                        "where c = 5 and d > 500",
                        &format!("c{desc}, a{desc}"),
                        limit,
                        true,
                    );
                } else {
                    check(session, "b, d", "where a = 33", &format!("b{desc}"), limit, true);
                    check(
                        session,
                        "b, d",
                        "where a = 33 and d > 100",
                        &format!("b{desc}, c"),
                        limit,
                        true,
                    );
                }
            }
        }
        let mixed = if sorted { "c, a desc" } else { "a, b desc" };
        check(session, "a, c", "", &format!("{mixed}, b, d"), " limit 9", false);
        if sorted {
            check(session, "c", "", "c nulls last", " limit 9", false);
            check(session, "c", "", "c desc nulls first", " limit 9", false);
        }
    }
}

/// A counter of the scan.
fn counted(session: &mut Session, sql: &str, what: &str) -> u64 {
    let result = run(session, &format!("profile {sql}")).unwrap();
    let access: Vec<String> = result.to_rows().iter().map(|row| row[3].to_string()).collect();
    let word = |text: &str| {
        text.strip_prefix(what)
            .and_then(|n| n.strip_prefix('='))
            .and_then(|n| n.parse::<u64>().ok())
    };
    access.iter().flat_map(|text| text.split(' ')).find_map(word).unwrap_or(0)
}

#[test]
fn the_first_rows_cost_the_first_rows() {
    let db = database();
    let session = &mut db.session();
    run(session, "create table t (id int primary key, n int)").unwrap();
    for part in 0..4 {
        let rows: Vec<String> =
            (part * 5_000..(part + 1) * 5_000).map(|id| format!("({id}, {})", id % 10)).collect();
        run(session, &format!("insert into t values {}", rows.join(", "))).unwrap();
        run(session, "optimize table t flush").unwrap();
    }
    run(session, "insert into t values (-1, 0), (20000, 0)").unwrap();
    for (order, first) in [("id", "-1"), ("id desc", "20000")] {
        let sql = format!("select id from t order by {order} limit 10");
        assert_eq!(rows(session, &sql).unwrap()[0], first);
        // The rows in memory, and one segment.
        assert_eq!(
            (counted(session, &sql, "runs"), counted(session, &sql, "segments_read")),
            (2, 1),
            "{order}"
        );
        assert!(counted(session, &sql, "rows_read") <= 66, "{order}");
        let page = format!(
            "select id from t where id > 12000 and n = 3 order by {order} limit 10 offset 5"
        );
        assert_eq!(counted(session, &page, "runs"), 2, "{order}");
        // Within a block, rows are read up to the first match.
        assert!(counted(session, &page, "rows_read") <= 5_000, "{order}");
    }
    // The limit as a parameter.
    let sql = "select id from t order by id desc limit ?";
    let result = run_with(session, &format!("profile {sql}"), &[Value::Int(3)]).unwrap();
    assert!(result.to_rows().iter().any(
        |row| row[3].to_string().contains("runs=2 ") || row[3].to_string().ends_with("runs=2")
    ));
    assert_eq!(run_with(session, sql, &[Value::Int(3)]).unwrap().rows(), 3);
    // Without a limit, runs with consecutive ranges are read one after another.
    assert_eq!(counted(session, "select id from t order by id", "runs"), 5);
    run(session, "insert into t select id + 100000, n from t where id % 2 = 0").unwrap();
    run(session, "optimize table t flush").unwrap();
    run(session, "insert into t select id + 99999, n from t where id % 2 = 0 and id < 90000")
        .unwrap();
    run(session, "optimize table t flush").unwrap();
    assert_eq!(counted(session, "select id from t order by id", "runs"), 0);
}

#[test]
fn an_open_transaction_sees_its_own_rows_in_order() {
    let db = database();
    let session = &mut db.session();
    run(session, "create table t (id int primary key, n int)").unwrap();
    run(session, "insert into t values (1, 1), (3, 3), (5, 5), (7, 7)").unwrap();
    run(session, "optimize table t flush").unwrap();
    run(
        session,
        "begin; insert into t values (2, 2), (6, 6); delete from t where id = 3; update t set id = 4 where id = 5",
    )
    .unwrap();
    assert_eq!(
        rows(session, "select id from t order by id limit 4").unwrap(),
        ["1", "2", "4", "6"]
    );
    assert_eq!(
        rows(session, "select id from t order by id desc limit 3").unwrap(),
        ["7", "6", "4"]
    );
    run(session, "rollback").unwrap();
    assert_eq!(
        rows(session, "select id from t order by id desc limit 3").unwrap(),
        ["7", "5", "3"]
    );
}

/// The length of keys is limited; that of sort columns, default values and search values is not.
#[test]
fn texts_longer_than_keys_are_ordered_and_looked_for() {
    let db = database();
    let session = &mut db.session();
    let long = |c: char| c.to_string().repeat(17_000);
    run(session, "create table t (id varchar(20) primary key, s text, sort key (s))").unwrap();
    for (first, second) in [('d', 'a'), ('c', 'b')] {
        let (a, b) = (long(first), long(second));
        run(session, &format!("insert into t values ('{first}', '{a}'), ('{second}', '{b}')"))
            .unwrap();
        run(session, "optimize table t flush").unwrap();
    }
    assert_eq!(rows(session, "select id from t order by s limit 3").unwrap(), ["a", "b", "c"]);
    assert_eq!(rows(session, "select id from t order by s desc limit 3").unwrap(), ["d", "c", "b"]);
    run(session, "optimize table t full").unwrap();
    assert_eq!(rows(session, "select id from t order by s").unwrap(), ["a", "b", "c", "d"]);
    assert_eq!(
        rows(session, &format!("select id from t where id = '{}'", long('a'))).unwrap(),
        [""; 0]
    );
    assert_eq!(
        rows(session, &format!("select id from t where id in ('{}', 'a')", long('a'))).unwrap(),
        ["a"]
    );
    run(session, &format!("create table u (id int primary key, s text default '{}')", long('u')))
        .unwrap();
    run(session, "insert into u (id) values (1), (2)").unwrap();
    run(session, "update u set s = 'b' where id = 2").unwrap();
    assert_eq!(rows(session, "select u.id, t.id from u join t on t.id = u.s").unwrap(), ["2|b"]);
    assert_eq!(rows(session, "select length(s) from u where id = 1").unwrap(), ["17000"]);
}
