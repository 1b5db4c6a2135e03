//! Joins that look up their keys in an index of the larger side return the same rows as hash joins
//! over scans.

use nacre_session_tests::{
    Random, access, assert_twins_agree, fill_twins, partitioned, rows, run, run_twins,
};
use nacredb::Session;

/// Creates a large indexed table, an unindexed one with the same rows, and a small one to join
/// with.
fn fill(session: &mut Session, keys: &str, random: &mut Random) {
    let indexes = ", key i_a (a), key i_bc (b, c), unique key i_n (n), key i_d (d), key i_m (m)";
    for (table, indexes) in [("t", indexes), ("p", "")] {
        let columns = "id int, a int, b varchar(20), c int, n bigint, d date, m decimal(10, 2)";
        run(session, &format!("create table {table} ({columns}{keys}{indexes})")).unwrap();
    }
    fill_twins(session, 4, 1000, |id| {
        let mut or_null =
            |text: String| if random.below(20) == 0 { "null".to_string() } else { text };
        let (a, b, n) = (
            or_null(format!("{}", id * 7 % 900)),
            or_null(format!("'b{}'", id % 90)),
            or_null(id.to_string()),
        );
        let (c, d) = (random.below(9), random.below(500));
        let m = format!("{}.{:02}", id % 300, id % 100);
        format!("({id}, {a}, {b}, {c}, {n}, date '2024-01-01' + {d}, {m})")
    })
    .unwrap();
    run_twins(session, "delete from {} where id % 17 = 0").unwrap();
    run_twins(session, "update {} set a = a + 1, c = 4 where id % 23 = 0").unwrap();
    run(session, "create table s (k int, x bigint, y varchar(9), z int, w date, v decimal(10, 2))")
        .unwrap();
}

/// Fills the small table with few rows, or too many for index lookups.
fn refill(session: &mut Session, random: &mut Random) {
    run(session, "delete from s").unwrap();
    let count = [1, 3, 12, 400][random.below(4) as usize];
    let row = |k: u64| {
        let x = if random.below(6) == 0 { "null".into() } else { random.below(5000).to_string() };
        let y =
            if random.below(6) == 0 { "null".into() } else { format!("'b{}'", random.below(99)) };
        let (z, w, v) = (random.below(9), random.below(510), random.below(310));
        format!("({k}, {x}, {y}, {z}, date '2024-01-01' + {w}, {v}.{:02})", v % 100)
    };
    let rows: Vec<String> = (0..count).map(row).collect();
    run(session, &format!("insert into s values {}", rows.join(", "))).unwrap();
}

/// Names of the indexes that a statement used, and the number of join keys it looked up.
fn used(session: &mut Session, sql: &str) -> (Vec<String>, u64) {
    let access = access(session, sql).unwrap();
    (access.indexes().into_iter().map(str::to_string).collect(), access.sum("join_keys"))
}

const JOINS: [&str; 16] = [
    "select t.id, k from {t} t join s on a = x order by 1, 2",
    "select t.id, k from {t} t join s on a = x and t.c < 7 where t.id % 3 > 0 order by 1, 2",
    "select t.id, k from {t} t join s on b = y order by 1, 2",
    "select t.id, k from {t} t join s on b = y and c = z order by 1, 2",
    "select t.id, k from {t} t join s on c = z and b = 'b7' order by 1, 2",
    "select t.id, k from {t} t join s on n = x and c <> z order by 1, 2",
    "select t.id, k from {t} t join s on id = x order by 1, 2",
    "select t.id, k from {t} t join s on d = w order by 1, 2",
    "select t.id, k from {t} t join s on m = v order by 1, 2",
    "select id, a from {t} t where exists (select 1 from s where x = a) order by 1",
    "select id, a from {t} t where b in (select y from s) and a in (select x from s) order by 1",
    "select k, id from s left join {t} t on a = x order by 1, 2",
    "select k from s where not exists (select 1 from {t} t where t.n = x) order by 1",
    "select count(*), sum(t.id), min(b) from {t} t join s on a = x",
    "select x, count(*) from {t} t join s on a = x and b = y group by x order by 1",
    "select t.id, u.id from s join {t} t on t.a = s.x join {t} u on u.n = t.id order by 1, 2",
];

fn compare(session: &mut Session, at: &str) -> usize {
    let mut looked_up = 0;
    for sql in JOINS {
        assert_twins_agree(session, sql, at).unwrap();
        looked_up += usize::from(used(session, &sql.replace("{t}", "t")).1 > 0);
    }
    looked_up
}

#[test]
fn joins_by_index_find_what_joins_by_scan_find() {
    let mut random = Random::new(5);
    let layouts = [
        "",
        ", primary key (id)",
        ", primary key (id, c), sort key (d)",
        ", primary key (id), shard key (id)",
    ];
    for (round, keys) in layouts.into_iter().enumerate() {
        let db = partitioned(1 + round % 2).unwrap();
        let session = &mut db.session();
        fill(session, keys, &mut random);
        let mut looked_up = 0;
        for step in 0..8 {
            refill(session, &mut random);
            looked_up += compare(session, keys);
            if step == 2 {
                // Only the transaction sees its changes.
                run(session, "begin").unwrap();
                for change in [
                    "update {} set a = a + 2, b = 'b7' where id % 11 = 0",
                    "delete from {} where id % 13 = 0",
                    "insert into {} (id, a, b, c, n) values (9001, 5, 'b5', 5, 9001)",
                ] {
                    run_twins(session, change).unwrap();
                }
                compare(session, "inside a transaction");
                compare(&mut db.session(), "outside of it");
                run(session, "rollback").unwrap();
            }
            if step == 5 {
                run(session, "optimize table t full; optimize table p full").unwrap();
            }
        }
        assert!(looked_up > 40, "{looked_up} of {} looked keys up", 8 * JOINS.len());
    }
}

#[test]
fn many_keys_are_not_looked_up() {
    let db = partitioned(1).unwrap();
    let session = &mut db.session();
    fill(session, ", primary key (id)", &mut Random::new(9));
    run(session, "insert into s (k, x) select id, id from p where id < 2000").unwrap();
    let join = "select count(*) from t join s on a = x";
    assert_eq!(used(session, join), (vec![], 0));
    run(session, "delete from s where k not in (3, 7, 9, 14, 250)").unwrap();
    assert_eq!(used(session, join), (vec!["i_a".into()], 5));
    let rows_read = |session: &mut Session| {
        let texts = run(session, &format!("profile {join}")).unwrap().to_rows();
        let texts: Vec<String> = texts.iter().map(|row| row[3].to_string()).collect();
        let scan =
            texts.iter().find(|text| text.contains("join_keys")).cloned().unwrap_or_default();
        scan.split(' ')
            .find_map(|word| word.strip_prefix("rows_read="))
            .map_or(0, |n| n.parse::<u64>().unwrap())
    };
    assert!((1..60).contains(&rows_read(session)), "{}", rows_read(session));
    let explained = rows(session, &format!("explain {join}")).unwrap().join(" ");
    assert!(explained.contains("filtered by join 1 on a or using i_a"), "{explained}");
    // A filter's index and a join's index combined.
    let both = used(session, "select count(*) from t join s on a = x where b = 'b9'");
    assert_eq!(both, (vec!["i_a".into(), "i_bc".into()], 5));
}
