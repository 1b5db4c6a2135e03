//! Lists of constants, and statements with many parts.

use nacre_session_tests::{memory, rows, run};

#[test]
fn nan_twice_in_a_list_finds_a_row_once() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, e double, key (e))").unwrap();
    run(&mut s, "insert into t values (1, cast('nan' as double)), (2, 0e0), (3, cast('-0.0' as double)), (4, 5)")
        .unwrap();
    for _ in 0..2 {
        for tail in ["", " order by e limit 9"] {
            let found = |s: &mut _, list: &str| {
                rows(s, &format!("select id from t where e in ({list}){tail}")).unwrap()
            };
            assert_eq!(found(&mut s, "cast('nan' as double), cast('nan' as double)"), ["1"]);
            let mut zeros = found(&mut s, "0e0, cast('-0.0' as double)");
            zeros.sort();
            assert_eq!(zeros, ["2", "3"]);
        }
        run(&mut s, "optimize table t flush").unwrap();
    }
}

/// First a value with more digits than the column, then one with more decimal places.
#[test]
fn a_list_meets_in_a_type_that_is_wide_enough() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (d decimal(8,2)); insert into t values (3.00), (19.12), (null)")
        .unwrap();
    for list in
        ["123456789012.5, 3.0, 19.125", "19.125, 123456789012.5, 3", "3, 123456789012, 19.125"]
    {
        assert_eq!(
            rows(&mut s, &format!("select d from t where d in ({list})")).unwrap(),
            ["3.00"],
            "{list}"
        );
    }
}

#[test]
fn more_relations_than_are_ordered_together() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, n int); insert into t values (1, 2), (2, 3), (3, 4), (4, null)")
        .unwrap();
    for count in [63, 64, 65, 66, 130] {
        let list: Vec<String> =
            (0..count).map(|at| format!("(select n from t where id = {})", at % 4 + 1)).collect();
        let expected: Vec<&str> = (0..count).map(|at| ["2", "3", "4", "NULL"][at % 4]).collect();
        assert_eq!(
            rows(&mut s, &format!("select {}", list.join(", "))).unwrap(),
            [expected.join("|")]
        );
        // Each part joins 13 tables along a chain of keys.
        let part = |at: usize| {
            let tables: Vec<String> = (0..13).map(|k| format!("t a{k}")).collect();
            let on: Vec<String> = (1..13).map(|k| format!("a{k}.id = a{}.id", k - 1)).collect();
            format!(
                "(select a0.id, a12.n from {} where {}) p{at}",
                tables.join(", "),
                on.join(" and ")
            )
        };
        let parts: Vec<String> = (0..count / 13).map(part).collect();
        let on: Vec<String> =
            (1..count / 13).map(|at| format!("p{at}.id = p{}.n", at - 1)).collect();
        let last = count / 13 - 1;
        let sql =
            format!("select p0.id, p{last}.n from {} where {}", parts.join(", "), on.join(" and "));
        let expected: Vec<String> = (1..=4)
            .filter(|id| id + last <= 4)
            .map(|id| match id + last + 1 {
                5 => format!("{id}|NULL"),
                n => format!("{id}|{n}"),
            })
            .collect();
        let mut found = rows(&mut s, &sql).unwrap();
        found.sort();
        assert_eq!(found, expected, "{sql}");
    }
}

/// The maximum plan depth, on a stack as small as a web page's.
#[test]
fn many_subqueries_beside_each_other_fit_a_small_stack() {
    let body = || {
        let db = memory().unwrap();
        let mut s = db.session();
        run(&mut s, "create table t (id int primary key, n int); insert into t values (1, 2), (2, 3), (3, null)")
            .unwrap();
        let all = |item: &str, n: usize| vec![item; n].join(", ");
        let first =
            rows(&mut s, &format!("select {}", all("(select max(n) from t)", 150))).unwrap();
        assert_eq!(first, [vec!["3"; 150].join("|")]);
        let or = " or n = (select 2)".repeat(150);
        assert_eq!(rows(&mut s, &format!("select id from t where n = 7{or}")).unwrap(), ["1"]);
        let not_in = " and n not in (select id from t where n is null)".repeat(150);
        assert_eq!(rows(&mut s, &format!("select id from t where n > 0{not_in}")).unwrap(), ["1"]);
        let case: String = (0..150)
            .map(|i| format!(" when n = {i} then (select 1 / id from t where id = {i})"))
            .collect();
        assert_eq!(
            rows(&mut s, &format!("select case{case} end from t order by id")).unwrap(),
            ["0", "0", "NULL"]
        );
        let step = |i: usize| format!(", c{i} as (select max(a) a from c{} where a > 0)", i - 1);
        let steps: String = (1..=50).map(step).collect();
        assert_eq!(
            rows(&mut s, &format!("with c0 as (select 1 a){steps} select a from c50")).unwrap(),
            ["1"]
        );
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(body).unwrap().join().unwrap();
}
