//! `ORDER BY … LIMIT` in index order returns the same rows as a sort.

use nacre_session_tests::{
    Random, access, assert_twins_agree, fill_twins, partitioned, rows, run, run_twins,
};
use nacredb::Session;

fn fill(session: &mut Session, keys: &str, random: &mut Random) {
    let indexes = ", key i_a (a), key i_bc (b, c), unique key i_u (u), key i_d (d)";
    for (table, indexes) in [("t", indexes), ("p", "")] {
        let columns = "id int, a int, b varchar(9), c int not null, d date, u bigint";
        run(session, &format!("create table {table} ({columns}{keys}{indexes})")).unwrap();
    }
    fill_twins(session, 4, 1500, |id| {
        let mut or_null =
            |text: String| if random.below(30) == 0 { "null".to_string() } else { text };
        let (a, b, d) = (
            or_null(format!("{}", id * 7919 % 3001)),
            or_null(format!("'b{}'", id % 90)),
            or_null(format!("date '2024-01-01' + {}", id * 31 % 800)),
        );
        format!("({id}, {a}, {b}, {}, {d}, {})", random.below(500), id * 77_777 % 100_003)
    })
    .unwrap();
    run_twins(session, "delete from {} where id % 19 = 0 or a between 100 and 180").unwrap();
    run_twins(session, "update {} set a = a - 5000, c = c + 1 where id % 29 = 0").unwrap();
}

/// A query with a total order, so that its result is unique, which may be read in index order.
fn query(random: &mut Random) -> String {
    let (x, n) = (random.below(3000), [1, 7, 40, 150][random.below(4) as usize]);
    let desc = if random.below(2) == 0 { "" } else { " desc" };
    let filter = match random.below(7) {
        0 => format!("where a > {x}"),
        1 => format!("where a between {x} and {}", x + 900),
        2 => "where id % 3 = 1".to_string(),
        3 => format!("where c < {}", random.below(500)),
        4 => format!("where u < {} and id % 2 = 0", x * 33),
        5 => format!("where b = 'b{}' and a < {x}", x % 90),
        _ => String::new(),
    };
    let offset =
        if random.below(3) == 0 { format!(" offset {}", random.below(60)) } else { String::new() };
    match random.below(6) {
        0 => format!("select u, id from {{t}} {filter} order by u{desc} limit {n}{offset}"),
        1 => format!("select u + 1, a, b from {{t}} {filter} order by u{desc} limit {n}"),
        // Of rows with equal sort keys, only the keys are compared.
        2 => format!("select a from {{t}} {filter} order by a{desc} limit {n}{offset}"),
        3 => format!("select c from {{t}} where b = 'b{}' order by c{desc} limit {n}", x % 90),
        4 => format!(
            "select b, c from {{t}} where b in ('b3', 'b{}') order by b{desc}, c{desc} limit {n}",
            x % 90
        ),
        _ => format!("select d from {{t}} {filter} order by d{desc} limit {n}"),
    }
}

#[test]
fn the_order_of_an_index_is_that_of_a_sort() {
    let mut random = Random::new(21);
    let layouts = [
        "",
        ", primary key (id)",
        ", primary key (id), sort key (c)",
        ", primary key (id), shard key (id)",
    ];
    for (round, keys) in layouts.into_iter().enumerate() {
        let db = partitioned(1 + round % 2).unwrap();
        let session = &mut db.session();
        fill(session, keys, &mut random);
        let mut by_index = 0;
        for step in 0..100 {
            let sql = query(&mut random);
            assert_twins_agree(session, &sql, keys).unwrap();
            let access = access(session, &sql.replace("{t}", "t")).unwrap();
            by_index += usize::from(!access.indexes().is_empty());
            match step {
                // A transaction's own changes appear in order.
                30 => ["t", "p"].iter().for_each(|table| {
                    let values =
                        "(70001, -9000, 'b3', 1, null, -5), (70002, 1500, 'b4', 2, null, 50000)";
                    run(session, if *table == "t" { "begin" } else { "select 1" }).unwrap();
                    run(session, &format!("insert into {table} values {values}")).unwrap();
                    run(
                        session,
                        &format!("update {table} set a = 4000, u = u + 200000 where id % 41 = 0"),
                    )
                    .unwrap();
                    run(session, &format!("delete from {table} where id % 43 = 0")).unwrap();
                }),
                60 => drop(run(session, "commit").unwrap()),
                80 => drop(run(session, "optimize table t full; optimize table p full").unwrap()),
                _ => {}
            }
        }
        assert!(by_index > 60, "{by_index} of 100 used an index");
    }
}

#[test]
fn few_rows_are_read_or_all_of_them() {
    let db = partitioned(1).unwrap();
    let session = &mut db.session();
    fill(session, ", primary key (id)", &mut Random::new(4));
    let explain = |session: &mut Session, sql: &str| {
        rows(session, &format!("explain {sql}")).unwrap().join("\n")
    };
    for (sql, index) in [
        ("select id from t order by a limit 10", "i_a"),
        ("select id from t order by a desc limit 10", "i_a"),
        ("select id from t where a > 500 order by a limit 10", "i_a"),
        ("select a + 1 from t where b = 'b7' order by c limit 5", "i_bc"),
        ("select id from t where c >= 0 order by u limit 10", "i_u"),
    ] {
        assert!(explain(session, sql).contains(&format!(" in the order of {index}")), "{sql}");
        let access = access(session, sql).unwrap();
        assert_eq!(access.indexes(), [index], "{sql}");
        let read = access.sum("rows_read");
        assert!(read <= 64, "{read} rows for {sql}");
    }
    // Too many rows for an index, and an order that no index has.
    for sql in ["select id from t order by a limit 2000", "select id from t order by c, a limit 3"]
    {
        assert_eq!(access(session, sql).unwrap().indexes(), Vec::<&str>::new(), "{sql}");
    }
    // A read in index order falls back to a sort if too few rows pass the filter.
    let sql = "select id from {t} where id % 1000 = 7 order by u limit 5";
    let read = access(session, &sql.replace("{t}", "t")).unwrap().sum("rows_read");
    assert!(read > 5_000, "{read}");
    assert_twins_agree(session, sql, "sorted").unwrap();
}
