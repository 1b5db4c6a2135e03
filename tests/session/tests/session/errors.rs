//! Bad input: a typed error with the problem and its position, no changes, and a working session
//! afterwards.

use nacre_native::block_on;
use nacre_session_tests::{memory, rows, run};
use nacredb::{ErrorKind, Value};

#[test]
fn every_bad_statement_has_its_kind_and_changes_nothing() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(
        &mut s,
        "create table t (id int primary key, name varchar(3) not null, price decimal(5,2), d date)",
    )
    .unwrap();
    run(&mut s, "insert into t values (1, 'a', 1.5, '2026-02-28')").unwrap();
    let cases = [
        ("selec 1", ErrorKind::Syntax),
        ("select", ErrorKind::Syntax),
        ("select * from nowhere", ErrorKind::NotFound),
        ("select nope from t", ErrorKind::NotFound),
        ("select nofunction(1)", ErrorKind::NotFound),
        ("select 'x' + id from t where name = 1.5 + 'y'", ErrorKind::Type),
        ("create table t (id int)", ErrorKind::AlreadyExists),
        ("drop table nowhere", ErrorKind::NotFound),
        ("insert into t values (1, 'b', 1, null)", ErrorKind::Constraint),
        ("insert into t values (2, null, 1, null)", ErrorKind::Constraint),
        ("insert into t values (2, 'long', 1, null)", ErrorKind::Type),
        ("insert into t values (2, 'b', 1000, null)", ErrorKind::Type),
        ("insert into t values (3000000000, 'b', 1, null)", ErrorKind::Type),
        ("insert into t values (2, 'b', 1, '2026-02-30')", ErrorKind::Type),
        ("insert into t (id) values (2, 3)", ErrorKind::Syntax),
        (
            "insert into t values (7, 'g', 1, null), (8, 'h', 1, null), (7, 'g', 1, null)",
            ErrorKind::Constraint,
        ),
        ("update t set id = null", ErrorKind::Constraint),
        ("update t set price = price * 1000", ErrorKind::Type),
        ("select 1 / 0", ErrorKind::Type),
        ("select 9223372036854775807 + 1", ErrorKind::Type),
        ("select id from t group by name", ErrorKind::Type),
        ("select * from t where sum(id) > 1", ErrorKind::Type),
        ("create sequence s", ErrorKind::Unsupported),
        ("create role r", ErrorKind::Unsupported),
    ];
    for (sql, expected) in cases {
        match run(&mut s, sql) {
            Ok(_) => panic!("{sql} did not fail"),
            Err(e) => {
                assert_eq!(e.kind(), expected, "{sql}: {e}");
                assert_eq!(e.sqlstate().len(), 5, "{sql}");
            }
        }
        assert_eq!(
            rows(&mut s, "select * from t").unwrap(),
            ["1|a|1.50|2026-02-28"],
            "after {sql}"
        );
    }
}

#[test]
fn errors_say_where_and_suggest() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table customer (id int primary key, name text)").unwrap();
    let error = run(&mut s, "select id,\n  nmae from customer").unwrap_err();
    assert_eq!(error.position().map(|p| (p.line, p.column)), Some((2, 3)), "{error}");
    assert_eq!(error.message(), "no column `nmae` in `customer`; did you mean `name`?");
    let error = run(&mut s, "select * from custmer").unwrap_err();
    assert!(error.message().ends_with("did you mean `customer`?"), "{error}");
    let error = run(&mut s, "insert into customer values (1, 'a'), (1, 'b')").unwrap_err();
    assert_eq!((error.table(), error.sqlstate()), (Some("customer"), "23505"), "{error}");
    assert!(error.message().contains('1'), "{error}");
}

#[test]
fn deep_and_long_statements_are_errors_not_crashes() {
    let db = memory().unwrap();
    let mut s = db.session();
    let deep = format!("select {}1{}", "(".repeat(20_000), ")".repeat(20_000));
    assert!(run(&mut s, &deep).is_err());
    let nots = format!("select {} true", "not ".repeat(20_000));
    assert!(run(&mut s, &nots).is_err());
    let long = format!("select {}", vec!["1"; 3_000].join(" + "));
    match run(&mut s, &long) {
        Ok(result) => assert_eq!(result.row(0)[0].to_string(), "3000"),
        Err(e) => assert!(matches!(e.kind(), ErrorKind::Limit | ErrorKind::Syntax), "{e}"),
    }
    let many = format!("select 1 where {}", vec!["1 = 2"; 5_000].join(" or "));
    assert_eq!(run(&mut s, &many).map(|r| r.rows()).unwrap_or(0), 0);
    assert_eq!(rows(&mut s, "select 1").unwrap(), ["1"]);
}

#[test]
fn a_frame_bound_given_as_a_parameter_is_checked() {
    let db = memory().unwrap();
    let mut s = db.session();
    for unit in ["rows", "range", "groups"] {
        for bound in ["preceding", "following"] {
            let sql = format!(
                "select count(*) over (order by k desc {unit} between unbounded preceding and ? {bound}) \
                 from (values (null), (1), (3)) as t(k)"
            );
            assert_eq!(block_on(s.execute(&sql, &[Value::Int(1)])).unwrap().rows(), 3, "{sql}");
            for wrong in [Value::Int(-1), Value::Null] {
                let error = block_on(s.execute(&sql, std::slice::from_ref(&wrong))).unwrap_err();
                assert_eq!(
                    (error.kind(), error.sqlstate()),
                    (ErrorKind::Type, "22013"),
                    "{sql} {wrong}"
                );
            }
        }
    }
}
