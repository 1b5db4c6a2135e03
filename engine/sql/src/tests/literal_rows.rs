//! Cutting literal rows out of a text must not change the result: every text is bound with and
//! without cuts.

use super::catalog;
use crate::parse::literal_rows;
use crate::{Parsed, bind, parse};
use nacre_types::{Error, Result};

fn bound(parsed: Result<Vec<Parsed>>) -> Vec<String> {
    let shown = |error: Error| format!("{} {error}", error.sqlstate());
    match parsed {
        Err(error) => vec![shown(error)],
        Ok(parsed) => parsed
            .iter()
            .map(|one| {
                let statement =
                    bind(one, &catalog(), &[]).map(|bound| format!("{:?}", bound.statement));
                format!(
                    "{} | {:?} | {}",
                    one.text(),
                    one.parameter_names(),
                    statement.unwrap_or_else(shown)
                )
            })
            .collect(),
    }
}

/// Checks that both ways agree. Returns the number of statements with rows that were cut out.
#[track_caller]
fn same(sql: &str) -> usize {
    let parsed = parse(sql);
    let cut = parsed
        .as_ref()
        .map_or(0, |all| all.iter().filter(|one| one.literal_rows().is_some()).count());
    assert_eq!(bound(parsed), bound(crate::parse::parse_whole(sql)), "{sql}");
    cut
}

#[test]
fn rows_of_literals_are_cut_out() {
    for sql in [
        "insert into u values (1,2,'a'),(3,4,'b')",
        "insert into u values (1,2,'a'),(3,4,'b'),(5,6,'c');",
        "INSERT INTO u (c, id) VALUES ('a', 1) , ( 'b' , 2 )\n,\t('c',3)\r\n returning id, c, a",
        "replace into t (id, name) values (1, 'it''s'), (2, 'two''''quotes'), (3, '''')",
        "insert into \"u\" (`id`, \"a\") values (1, -2), (-3, null), (4, true)",
        "insert into t (id, ratio, price, big) values (1,1,1,1),(2,1.5,-2.5,18446744073709551615),(3,1e3,1.,0)",
        "insert into t (id) values (9223372036854775807), (-9223372036854775808), (-9223372036854775807)",
        "insert into t (id, day, at, flag, doc, code) values (1,'2024-02-29','2024-01-01 10:00:00','true','{}','five5'),\
         (2,'2024-02-28','2024-01-01',false,'[1]','x'), (3, null, NULL, Null, null, null)",
        "insert into u values (1,2,'ä;,()'),(3,4,'日本 -- /* '),(5,6,'') on conflict do nothing",
        "insert ignore into t (id, a) values (1, 2), (3, 4) on duplicate key update a = excluded.a + ?",
        "insert or replace into t (id, a) values (1, 2), (3, 4)",
        "insert into u values (1, 2, 'a'), (2, 3, 'b'), (4, a, 'c')",
        "insert into u values (1, 2, 'a'), (2, 3, 'b'), (4, 1 + 1, 'c'), (5, 6, 'd')",
        "insert into u values (1, 2, 'a'), (2, 3, 'b'), (?, 1, 'c'), (5, ?, 'd')",
        "insert into u values (1, 2, 'a'), (2, 3, 'b') -- and a comment\n, (4, 5, 'c')",
        "insert into u values (1, 2, 'a'), (2, 3, 'b') /* and */ returning id",
    ] {
        assert_eq!(same(sql), 1, "{sql}");
    }
    let two = "insert into u values (1,2,'a'),(3,4,'b'); insert into u values (5,6,'c'),\n(7,8,'d') returning id ;select 1";
    assert_eq!(same(two), 2);
    // After the first construct that the scanner does not recognise, it looks no further.
    assert_eq!(
        same(
            "insert into u values (1,2,'a'),(3,4,'b') /* ; */; insert into u values (5,6,'c'),(7,8,'d')"
        ),
        1
    );
}

#[test]
fn what_is_not_obvious_is_left_to_the_parser() {
    for sql in [
        "insert into u values (1, 2, 'a')",
        "insert into u values (?, 2, 'a'), (3, 4, 'b')",
        "insert into u values (1, 2, E'a\\'b'), (3, 4, 'b')",
        "insert into u values (1, 2, 'a' 'b'), (3, 4, 'b')",
        "insert into u values (1, 2, 'a') union select 1, 2, 'b'",
        "insert into u /* values (1), (2) */ values (1, 2, 'a'), (3, 4, 'b')",
        "insert into u select * from (values (1, 2, 'a'), (3, 4, 'b')) v",
        "insert into u values (1, 2, 'a') , (default, 4, 'b')",
        "insert into u values (1, 2, 'a'), row(3, 4, 'b')",
        "insert into u values (1, 2, 0x10), (3, 4, 'b')",
        "insert into u values (1, 2, 1_000), (3, 4, 'b')",
        "insert into u values (1, 2, - 1), (3, 4, 'b')",
        "values (1, 2), (3, 4)",
        "explain insert into u values (1, 2, 'a'), (3, 4, 'b')",
        "insert into u values",
        "insert into u values (",
        "insert into u values (1, 2, 'a",
        "insert",
        "",
    ] {
        assert_eq!(same(sql), 0, "{sql}");
    }
}

/// Rows are not cut out if the source of the insert has more than rows, such as an `ORDER BY`.
#[test]
fn rows_of_a_query_stay_in_it() {
    for tail in [
        "order by 1",
        "limit 1",
        "union all select 1, 2, 'b'",
        "offset 1",
        "fetch first 1 rows only",
    ] {
        let sql = format!("insert into u values (1, 2, 'a'), (3, 4, 'b'), (5, 6, 'c') {tail}");
        assert!(!literal_rows::find(&sql).is_empty());
        assert_eq!(same(&sql), 0, "{sql}");
    }
}

#[test]
fn errors_are_the_same() {
    for sql in [
        "insert into u values (1,2,'a'),\n (3,4), (5,6,'c')",
        "insert into u values (1,2,'a'),(3,4,'b','c')",
        "insert into u (id) values (1), ('ä'),\n('x')",
        "insert into t (id, day) values (1,'2024-01-01'),\n (2,\t'2024-02-30')",
        "insert into t (id, tiny) values (1, 1),(2, -129),(3, 128)",
        "insert into t (id, code) values (1, 'abcde'),(2, 'abcdef')",
        "insert into t (id, a) values (1, 1),(2, true)",
        "insert into t (id, raw) values (1, null),(2, 1.5)",
        "insert into t (id, price) values (1, 1),(2, 123456789012345678901234567890123456789012)",
        "insert into nowhere values (1,2,'a'),(3,4,'b')",
        "insert into u values (1,2,'a'),(3,4,'b') on",
        "insert into u values (1,2,'a'),(3,4,'b'),",
        "insert into u values (1,2,'a'),(3,4,'b'\n",
        "insert into u values (1,2,'a'),(3,4,'b') returning nothing_like_it",
        "insert into u values (1,2,'a'),\n(3,4,'ä')   garbage here; select 1",
        "insert into u values (1,2,'a'),(3,4,'b'); select * frm u",
        "insert into u values (1,2,'a'),(3,4,'b'); select 'open",
    ] {
        same(sql);
    }
}

#[test]
fn both_ways_agree_on_random_texts() {
    let mut state = 7u64;
    let mut pick = |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let literals = [
        "1",
        "-2",
        "3.5",
        "-.5",
        "1e3",
        "'a'",
        "'it''s'",
        "'ä\n'",
        "null",
        "true",
        "?",
        "1+1",
        "default",
        "'",
        "--",
        "E'x'",
        "(1)",
        "2024",
        "'2024-01-01'",
        "x",
        "1.",
        "-9223372036854775808",
        "$1",
        "-- c\n1",
        "/**/2",
        "0x1f",
        "1e",
        "",
    ];
    let heads = [
        "insert into u values",
        "insert into t (id, a, name) values",
        "replace into u values ",
        "INSERT u VALUES\n",
    ];
    let tails = [
        "",
        ";",
        " returning id",
        " on conflict do nothing",
        " limit 1",
        "; select 1",
        " 'x",
        " -- end",
        "; insert into u values (1,2,'a'),(3,4,'b')",
    ];
    let mut cut = 0;
    for _ in 0..6_000 {
        let mut sql = String::from(heads[pick(heads.len())]);
        for row in 0..1 + pick(5) {
            sql += if row > 0 {
                [",", " , ", ",\n", "", ",,"][[0, 0, 1, 1, 2, 2, 0, 1, 3, 4][pick(10)]]
            } else {
                ""
            };
            // Mostly literals that can be cut out.
            let mut values = Vec::new();
            for _ in 0..[3, 3, 3, 3, 3, 3, 2, 4][pick(8)] {
                let known = [6, 10, literals.len()][pick(3)];
                values.push(literals[pick(known)]);
            }
            sql += &format!("({})", values.join([",", ", ", " ,\t"][pick(3)]));
        }
        sql += tails[pick(tails.len())];
        cut += same(&sql);
    }
    assert!(cut > 300, "{cut}");
}
