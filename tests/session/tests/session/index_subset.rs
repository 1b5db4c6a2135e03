//! Any subset of an index's columns can be looked up, also combined with other indexes under `AND`
//! and `OR`.

use nacre_session_tests::{Random, access, fill_twins, memory, rows, run, run_twins};
use nacredb::Session;

fn fill(session: &mut Session, random: &mut Random) {
    for (table, indexes) in [("t", ", key abc (a, b, c), key i_d (d)"), ("p", "")] {
        run(session, &format!("create table {table} (id int primary key, a int, b varchar(9), c int, d int{indexes})"))
            .unwrap();
    }
    fill_twins(session, 3, 2000, |id| {
        let mut or_null =
            |text: String| if random.below(25) == 0 { "null".to_string() } else { text };
        let (a, b, c) = (
            or_null(format!("{}", id % 150)),
            or_null(format!("'b{}'", id % 170)),
            or_null(format!("{}", id % 190)),
        );
        format!("({id}, {a}, {b}, {c}, {})", random.below(120))
    })
    .unwrap();
    run_twins(session, "delete from {} where id % 31 = 0").unwrap();
    run_twins(session, "update {} set a = 7, b = 'b7', c = 7 where id % 600 = 1").unwrap();
}

fn used(session: &mut Session, sql: &str) -> Vec<String> {
    let access = access(session, sql).unwrap();
    let mut names: Vec<String> = access.indexes().into_iter().map(str::to_string).collect();
    names.sort();
    names
}

/// Conditions on a subset of the three columns, and the indexes that serve them.
fn subset(columns: usize, x: u64, is_null: bool) -> (String, Vec<&'static str>) {
    let mut conditions = Vec::new();
    for (at, column) in
        ["a", "b", "c"].into_iter().enumerate().filter(|(at, _)| columns & (1 << at) != 0)
    {
        conditions.push(match (at, is_null) {
            (_, true) => format!("{column} is null"),
            (1, _) => format!("b in ('b{x}', 'b{}')", x + 1),
            _ => format!("{column} = {x}"),
        });
    }
    let names = match columns {
        0b001 | 0b011 | 0b111 => vec!["abc"],
        0b010 => vec!["abc.b"],
        0b100 => vec!["abc.c"],
        0b101 => vec!["abc", "abc.c"],
        _ => vec!["abc.b", "abc.c"],
    };
    (conditions.join(" and "), names)
}

#[test]
fn every_subset_of_three_columns() {
    let db = memory().unwrap();
    let session = &mut db.session();
    let random = &mut Random::new(7);
    fill(session, random);
    for round in 0..3 {
        for columns in 1..8 {
            for x in [7, 3, random.below(150), 900] {
                for is_null in [false, true] {
                    let (condition, names) = subset(columns, x, is_null);
                    let of = |table: &str, rest: &str| {
                        format!("select * from {table} where {condition}{rest} order by id")
                    };
                    let found = rows(session, &of("t", "")).unwrap();
                    assert_eq!(found, rows(session, &of("p", "")).unwrap(), "{condition}");
                    if !is_null {
                        assert_eq!(used(session, &of("t", "")), names, "{condition}");
                    }
                    let (other, _) = subset(1 + random.below(7) as usize, random.below(150), false);
                    for rest in [
                        format!(" or ({other})"),
                        format!(" or d = {x}"),
                        format!(" and d > 20 and ({other} or d = 30)"),
                    ] {
                        let (t, p) =
                            (rows(session, &of("t", &rest)), rows(session, &of("p", &rest)));
                        assert_eq!(t.unwrap(), p.unwrap(), "{condition}{rest}");
                    }
                }
            }
        }
        match round {
            // A transaction's own changes.
            0 => ["t", "p"].iter().for_each(|table| {
                run(
                    session,
                    &format!("update {table} set b = 'b3', c = 3 where a = 7 and id % 2 = 0"),
                )
                .unwrap();
                run(session, &format!("insert into {table} values (100000, 3, 'b3', 3, 1)"))
                    .unwrap();
            }),
            _ => drop(run(session, "optimize table t full; optimize table p full").unwrap()),
        }
    }
}

#[test]
fn indexes_contained_in_another_are_not_shown() {
    let db = memory().unwrap();
    let session = &mut db.session();
    run(session, "create table t (a int, b int, c int, key abc (a, b, c))").unwrap();
    run(session, "insert into t select value % 50, value % 60, value % 70 from (values (1), (2), (3)) v(value)")
        .unwrap();
    assert_eq!(rows(session, "show indexes from t").unwrap().len(), 3);
    let plan = |session: &mut Session| {
        rows(session, "explain select * from t where c = 3").unwrap().pop().unwrap()
    };
    assert!(plan(session).ends_with("using abc.c"), "{}", plan(session));
    assert!(run(session, "drop index `abc.c` on t").is_err());
    // An explicit index replaces the companion, which returns when that index is dropped.
    run(session, "create index c on t (c)").unwrap();
    assert!(plan(session).ends_with("using c"), "{}", plan(session));
    run(session, "drop index c on t").unwrap();
    assert!(plan(session).ends_with("using abc.c"), "{}", plan(session));
    // The companion's name is not reserved.
    run(session, "create index `abc.c` on t (b, a)").unwrap();
    run(session, "drop index `abc.c` on t; drop index abc on t").unwrap();
    assert!(!plan(session).contains("using"), "{}", plan(session));
    run(session, "alter table t drop column c").unwrap();
}
