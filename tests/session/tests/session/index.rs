//! Index lookups return the same rows as scans, and use the expected indexes.

use nacre_native::{block_on, memory_host};
use nacre_session_tests::{
    Random, access, assert_twins_agree, fill_twins, partitioned, rows, run, run_twins, run_with,
};
use nacre_testing::without_background;
use nacredb::{Budget, Database, Options, Session, Value};

/// Creates an indexed table, and an unindexed one with the same rows.
fn fill(session: &mut Session, keys: &str, random: &mut Random) {
    for (table, indexes) in [
        ("t", ", key i_a (a), index i_bc using hash (b, c), unique key i_n (n), key i_d (d, a)"),
        ("p", ""),
    ] {
        run(session, &format!("drop table if exists {table}")).unwrap();
        let columns = "id int, a int, b varchar(20), c int, d date, n int";
        run(session, &format!("create table {table} ({columns}{keys}{indexes})")).unwrap();
    }
    fill_twins(session, 4, 1000, |id| {
        let a = if random.below(20) == 0 { "null".into() } else { random.below(300).to_string() };
        let c = if random.below(20) == 0 { "null".into() } else { random.below(9).to_string() };
        let day = format!("date '2024-01-01' + {}", random.below(400));
        let n = if random.below(10) == 0 { "null".into() } else { id.to_string() };
        format!("({id}, {a}, 'name {}', {c}, {day}, {n})", random.below(80))
    })
    .unwrap();
    run_twins(session, "delete from {} where id % 17 = 0").unwrap();
    run_twins(session, "update {} set a = a + 1, c = 4 where id % 23 = 0").unwrap();
}

/// A condition; most match few rows through an index.
fn condition(random: &mut Random, depth: usize) -> String {
    let day = |random: &mut Random| format!("date '2024-01-01' + {}", random.below(420));
    let (x, y) = (random.below(310), random.below(90));
    match random.below(if depth == 0 { 12 } else { 16 }) {
        0 => format!("a = {x}"),
        1 => format!("{x} = a and c > 3"),
        2 => format!("a in ({x}, {}, null, {x})", random.below(300)),
        3 => format!("b = 'name {y}'"),
        4 => format!("b = 'name {y}' and c = {}", random.below(9)),
        5 => format!("b in ('name {y}', 'name 3') and c in (1, 2, {})", random.below(9)),
        6 => format!("b = 'name {y}' and c between 2 and 4"),
        7 => format!("n = {}", random.below(4100)),
        8 => format!("n > {} and n <= {}", 10 * x, 10 * x + random.below(30)),
        9 => format!("d = {} and a < 100", day(random)),
        10 => "a is null and c is null".to_string(),
        11 => format!("a = {x} and a = {}", random.below(300)),
        12 => format!("({}) or ({})", condition(random, depth - 1), condition(random, depth - 1)),
        13 => format!("({}) and ({})", condition(random, depth - 1), condition(random, depth - 1)),
        14 => format!("({}) and id % 2 = 0", condition(random, depth - 1)),
        _ => format!("a = {x} and b = 'name {y}' and d > {}", day(random)),
    }
}

/// Names of the indexes that a statement used.
fn used(session: &mut Session, sql: &str) -> Vec<String> {
    access(session, sql).unwrap().indexes().into_iter().map(str::to_string).collect()
}

#[test]
fn indexes_find_what_scans_find() {
    let mut random = Random::new(11);
    for (round, keys) in
        ["", ", primary key (id)", ", primary key (id), sort key (d)", ", shard key ()"]
            .into_iter()
            .enumerate()
    {
        let db = partitioned(1 + round % 2).unwrap();
        let session = &mut db.session();
        fill(session, keys, &mut random);
        let mut with_index = 0;
        for step in 0..120 {
            let condition = condition(&mut random, 2);
            let query = format!("select * from {{t}} where {condition} order by id");
            assert_twins_agree(session, &query, "").unwrap();
            with_index += usize::from(!used(session, &query.replace("{t}", "t")).is_empty());
            if step % 10 == 0 {
                let count = format!("select count(*), sum(a) from {{t}} where {condition}");
                assert_twins_agree(session, &count, "").unwrap();
                for change in ["update {} set a = a + 7, d = d + 1 where", "delete from {} where"] {
                    let affected = ["t", "p"].map(|table| {
                        let sql = format!("{} {condition}", change.replace("{}", table));
                        run(session, &sql).unwrap().rows_affected
                    });
                    assert_eq!(affected[0], affected[1], "{condition}");
                }
            }
            if step == 60 {
                run(session, "optimize table t full; optimize table p full").unwrap();
            }
        }
        assert!(with_index > 50, "{with_index} of 120 used an index");
        assert_twins_agree(session, "select * from {t} order by id", "at the end").unwrap();
    }
}

#[test]
fn plans_and_profiles_name_the_index() {
    let db = partitioned(1).unwrap();
    let session = &mut db.session();
    fill(session, ", primary key (id)", &mut Random::new(3));
    for (condition, plan, names) in [
        ("a = 5", "using i_a", vec!["i_a"]),
        ("a = 5 and b = 'name 7'", "using i_a and i_bc", vec!["i_a", "i_bc"]),
        ("a = 5 or n in (8, 9)", "using i_a or i_n", vec!["i_a", "i_n"]),
        ("n = 77", "using i_n", vec!["i_n"]),
        // A scan is faster for this many rows, and for non-constant values.
        ("c = 5", "using i_bc.c", vec![]),
        ("a = id", "where a = id", vec![]),
        ("a = 5 or c = 7", "using i_a or i_bc.c", vec![]),
        ("a = 5 or id % 7 = 1", "where (a = 5 or id % 7 = 1)", vec![]),
        // The primary key finds one row.
        ("id = 5 and a = 3", "where id = 5 and a = 3", vec![]),
        // A scan is faster for this many rows.
        ("n > 100", "using i_n", vec![]),
        ("a >= 0 and b = 'name 7'", "using i_a and i_bc", vec!["i_bc"]),
    ] {
        let sql = format!("select id from t where {condition}");
        let explained = rows(session, &format!("explain {sql}")).unwrap();
        assert!(explained.iter().any(|line| line.ends_with(plan)), "{condition}: {explained:?}");
        let mut found = used(session, &sql);
        found.sort_unstable();
        assert_eq!(found, names, "{condition}");
    }
    // Writes find their rows in the same way.
    assert_eq!(used(session, "update t set c = 1 where a = 5"), ["i_a"]);
    assert_eq!(used(session, "delete from t where b = 'name 7' and c = 1"), ["i_bc"]);
    // Values of other types, and values that no row can have.
    let exact = rows(session, "select id from t where n = 70").unwrap();
    for (value, sql) in
        [(Value::Float(70.0), "n = ?"), (Value::Text("70".into()), "n = cast(? as int)")]
    {
        let sql = format!("select id from t where {sql}");
        let found = run_with(session, &sql, &[value]).unwrap().to_rows();
        assert_eq!(found.iter().map(|row| row[0].to_string()).collect::<Vec<_>>(), exact, "{sql}");
    }
    assert!(
        rows(session, "select id from t where b = 'a name that is far too long for its column'")
            .unwrap()
            .is_empty()
    );
    assert!(
        run_with(session, "select id from t where n = ?", &[Value::Null])
            .unwrap()
            .to_rows()
            .is_empty()
    );
}

#[test]
fn an_open_transaction_finds_its_own_rows() {
    let db = partitioned(1).unwrap();
    let (session, other) = (&mut db.session(), &mut db.session());
    run(session, "create table t (id int primary key, a int, key (a))").unwrap();
    run(session, "insert into t select value, value % 10 from (values (1), (2), (3), (4), (11), (12), (21)) v(value)")
        .unwrap();
    run(session, "optimize table t flush; begin; update t set a = 2 where a = 1; insert into t values (5, 2)").unwrap();
    run(session, "delete from t where id = 12").unwrap();
    let by_two = "select id from t where a = 2 order by id";
    assert_eq!(rows(session, by_two).unwrap(), ["1", "2", "5", "11", "21"]);
    assert_eq!(rows(other, by_two).unwrap(), ["2", "12"]);
    assert_eq!(rows(other, "select id from t where a = 1 order by id").unwrap(), ["1", "11", "21"]);
    run(session, "commit").unwrap();
    assert_eq!(rows(other, by_two).unwrap(), ["1", "2", "5", "11", "21"]);
}

#[test]
fn segments_that_are_not_indexed_yet_are_scanned() {
    let db = Database::open(without_background(memory_host()), Options::default());
    let db = block_on(db).unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key, k int)").unwrap();
    let fill = "insert into t select i, i * 7919 % 100003 from range(50000) s(i)";
    run(&mut session, fill).unwrap();
    run(&mut session, "optimize table t flush").unwrap();
    run(&mut session, "create index by_k on t (k)").unwrap();
    for condition in ["k < 100", "k = 7919", "k between 500 and 600 and id > 20000"] {
        let sql = format!("select id, k from t where {condition} order by id");
        let probes = |session: &mut Session| {
            let lines = run(session, &format!("profile {sql}")).unwrap().to_rows();
            format!("{lines:?}").contains("index_probes=1")
        };
        let scanned = rows(&mut session, &sql).unwrap();
        assert!(!scanned.is_empty(), "{condition}");
        assert!(!probes(&mut session), "{condition}: bytes of keys are compared one by one");
        while db.maintain(Budget::Steps(10)).unwrap() {}
        assert!(probes(&mut session), "{condition}");
        assert_eq!(rows(&mut session, &sql).unwrap(), scanned, "{condition}");
        run(&mut session, "drop index by_k on t; create index by_k on t (k)").unwrap();
    }
}
