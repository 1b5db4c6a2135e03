//! Statements whose planning time must not grow polynomially or exponentially with their length.
//! Each would take minutes, or all memory, if planning visited a shared part once per use. The
//! tests only require that a plan is found.

use super::plan;
use crate::explain;
use std::fmt::Write;

/// Plans a statement and renders the plan.
#[track_caller]
fn planned(sql: &str) -> Vec<String> {
    match plan(sql, &[]) {
        Ok((statement, _)) => explain(&statement),
        Err(e) => panic!("{sql}\n{e}"),
    }
}

fn joined(count: usize, separator: &str, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(separator)
}

/// Builds a `WITH` in which each table reads the previous one.
fn chain(levels: usize, first: &str, next: impl Fn(usize) -> String) -> String {
    let mut sql = format!("with c0 as ({first})");
    for level in 1..levels {
        let _ = write!(sql, ", c{level} as ({})", next(level - 1));
    }
    sql
}

#[test]
fn subqueries_computed_for_distinct_arguments() {
    let sub = |n: usize| format!("(select sum(e.b) from t e where e.a < d.a + {n})");
    planned(&format!("select {} from t d", joined(40, ", ", sub)));
    planned(&format!(
        "select a from t d where {}",
        joined(40, " and ", |n| format!("{} > 0", sub(n)))
    ));
    planned(&format!("update t d set b = {}", joined(40, " + ", sub)));
    planned(&format!(
        "select case {} end from t d",
        joined(40, " ", |n| format!("when a = {n} then {}", sub(n)))
    ));
    let lateral = |n: usize| {
        format!("left join lateral (select sum(b) s from t e where e.a < d.a + {n}) l{n} on true")
    };
    planned(&format!("select * from t d {}", joined(40, " ", lateral)));
}

#[test]
fn shared_tables_used_twice() {
    let twice = |n: usize| format!("select u.a, v.b from c{n} u join c{n} v on u.a = v.a");
    planned(&format!(
        "{} select * from c49 u, c49 v where u.a = v.b",
        chain(50, "select a, b from t", twice)
    ));
    // Inside a correlated subquery.
    let inner = chain(50, "select a, b from t where t.id = o.id", twice);
    planned(&format!("select ({inner} select max(c49.a + u.b) from c49, c49 u) from t o"));
    // Tables of one row each, read by a scalar subquery.
    let pair = |n: usize| format!("select u.x from c{n} u, c{n} v");
    planned(&format!(
        "select ({} select u.x from c49 u, c49 v) from t",
        chain(50, "select sum(a) x from t", pair)
    ));
}

#[test]
fn groups_of_groups() {
    let sql = chain(45, "select a as x from t", |n| format!("select x from c{n} group by x"));
    planned(&format!("{sql} select c44.x from c44 left join t on t.a = c44.x"));
    planned(&format!("{sql} select c44.x from c44 join t on t.a = c44.x"));
}

#[test]
fn conditions_on_what_is_computed_from_itself() {
    let case = |n: usize| {
        format!("select case when x > 1 then x - 1 when x is null then 0 else x end as x from c{n}")
    };
    planned(&format!("{} select x from c39 where x > 0", chain(40, "select a as x from t", case)));
    let sum = |n: usize| format!("select x+x+x+x+x+x+x+x as x from c{n}");
    planned(&format!("{} select x from c39 where x > 0", chain(40, "select a as x from t", sum)));
    let grouped = |n: usize| format!("select x+x+x+x as x from c{n} group by x+x+x+x");
    planned(&format!(
        "{} select x from c39 where x > 0",
        chain(40, "select a as x from t", grouped)
    ));
    // In a correlated subquery, whose columns are hoisted to the outer row.
    let inner = chain(40, "select a as x from t where t.a = o.a", sum);
    planned(&format!("select ({inner} select x from c39) from t o"));
    planned(&format!("select ({inner} select sum(x) from c39) from t o"));
    let inner = chain(40, "select sum(a) as x from t where t.a = o.a", sum);
    planned(&format!("select ({inner} select x from c39) from t o"));
}
