//! Functions that the application creates: scalar ones and aggregates, their nulls, errors and
//! places.

use nacre_native::block_on;
use nacre_session_tests::memory_host;
use nacredb::{
    AggregateDefinition, DataType, Database, Error, ErrorKind, Options, Result, ScalarDefinition,
    Session, Value, Vector, Volatility, vector_from_values,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn open(options: Options) -> (Database, Session) {
    let db = block_on(Database::open(memory_host(), options)).unwrap();
    let session = db.session();
    (db, session)
}

fn run(session: &mut Session, sql: &str) -> Result<Vec<Vec<Value>>> {
    let result = block_on(session.execute(sql, &[]))?;
    Ok((0..result.rows()).map(|row| result.row(row)).collect())
}

fn one(session: &mut Session, sql: &str) -> Value {
    let rows = run(session, sql).unwrap();
    assert_eq!((rows.len(), rows[0].len()), (1, 1), "{sql}");
    rows[0][0].clone()
}

fn fails(session: &mut Session, sql: &str) -> Error {
    run(session, sql).unwrap_err()
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// `shout(text)`: counts its calls.
fn shout(db: &Database) -> Arc<AtomicU64> {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let definition = ScalarDefinition::by_row("shout", &["text"], "text", move |row| {
        counted.fetch_add(1, Ordering::Relaxed);
        match row {
            [Value::Text(text)] if text == "bad" => Err(Error::constraint("it is bad")),
            [Value::Text(text)] => Ok(Value::Text(format!("{}!", text.to_uppercase()))),
            _ => Ok(Value::Null),
        }
    });
    db.create_function(definition.unwrap());
    calls
}

/// `product_of(double)`, which is 1 over nothing.
fn product(db: &Database) {
    let definition = AggregateDefinition::by_row(
        "product_of",
        &["double"],
        "double",
        |state: &mut Option<f64>, row| {
            let Value::Float(x) = row[0] else { return Err(Error::type_error("no double")) };
            *state = Some(state.unwrap_or(1.0) * x);
            Ok(())
        },
        |state| Ok(state.map_or(Value::Null, Value::Float)),
    );
    db.create_aggregate(definition.unwrap().over_nothing(&Value::Int(1)).unwrap());
}

#[test]
fn a_scalar_function_is_called_wherever_one_can_be() {
    let (db, mut session) = open(Options::default());
    shout(&db);
    run(&mut session, "create table t (id bigint primary key, s text)").unwrap();
    run(&mut session, "insert into t values (1, 'a'), (2, null), (3, 'b'), (4, 'a')").unwrap();
    for flushed in [false, true] {
        if flushed {
            run(&mut session, "optimize table t flush").unwrap();
        }
        let all = run(&mut session, "select shout(s) from t order by id").unwrap();
        assert_eq!(all, [[text("A!")], [Value::Null], [text("B!")], [text("A!")]]);
        let filtered = "select id from t where shout(s) = 'A!' order by shout(s), id desc";
        let ids = run(&mut session, filtered).unwrap();
        assert_eq!(ids, [[Value::Int(4)], [Value::Int(1)]]);
        let grouped = "select shout(s), count(*) from t group by shout(s) order by 1 nulls first";
        let groups = run(&mut session, grouped).unwrap();
        assert_eq!(groups[1], [text("A!"), Value::Int(2)]);
        assert_eq!(groups.len(), 3);
    }
    // Arguments are cast as if they were inserted.
    assert_eq!(one(&mut session, "select Shout(12)"), text("12!"));
    run(&mut session, "update t set s = shout(s) where id = 1").unwrap();
    assert_eq!(one(&mut session, "select s from t where id = 1"), text("A!"));
    let joined = "select count(*) from t a join t b on shout(a.s) = b.s";
    assert_eq!(one(&mut session, joined), Value::Int(1));
}

#[test]
fn it_is_called_once_an_entry_of_a_dictionary_and_only_for_rows_that_are_left() {
    let (db, mut session) = open(Options::default());
    let calls = shout(&db);
    run(&mut session, "create table t (id bigint primary key, s text)").unwrap();
    let insert = "insert into t select i, 'word' || (i % 3) from generate_series(1, 3000) as g(i)";
    run(&mut session, insert).unwrap();
    run(&mut session, "optimize table t full").unwrap();
    assert_eq!(one(&mut session, "select count(distinct shout(s)) from t"), Value::Int(3));
    let of_entries = calls.swap(0, Ordering::Relaxed);
    assert!((3..=30).contains(&of_entries), "{of_entries} calls for three texts");
    // A branch that is not taken is not computed, so the error does not come.
    let guarded = "select case when s = 'bad' then 'x' else shout(s) end
                   from (values ('bad'), ('good')) as v(s) order by 1";
    assert_eq!(run(&mut session, guarded).unwrap(), [[text("GOOD!")], [text("x")]]);
}

#[test]
fn its_errors_are_those_of_the_statement() {
    let (db, mut session) = open(Options::default());
    shout(&db);
    run(&mut session, "create table t (id bigint primary key, s text)").unwrap();
    let error = fails(&mut session, "insert into t values (1, shout('ok')), (2, shout('bad'))");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Constraint, "it is bad"));
    assert_eq!(one(&mut session, "select count(*) from t"), Value::Int(0), "nothing changed");
    assert_eq!(fails(&mut session, "select shout()").sqlstate(), "42883");
    assert_eq!(fails(&mut session, "select shout('a', 'b')").sqlstate(), "42883");
    let error = fails(&mut session, "select shuot('a')");
    assert!(error.to_string().contains("`shout`"), "{error}");
    // A kernel that returns something else than it declared is told.
    let wrong = |_: &[Arc<Vector>], _: usize| vector_from_values(DataType::Int64, &[]);
    db.create_function(ScalarDefinition::new("wrong", &["int"], "int", wrong).unwrap());
    assert_eq!(fails(&mut session, "select wrong(1)").kind(), ErrorKind::Type);
    let other = |_: &[Arc<Vector>], rows: usize| {
        vector_from_values(DataType::TEXT, &vec![Value::Text("a".into()); rows])
    };
    db.create_function(ScalarDefinition::new("other", &["int"], "int", other).unwrap());
    assert_eq!(fails(&mut session, "select other(1)").kind(), ErrorKind::Type);
}

#[test]
fn names_and_types_are_checked() {
    let (db, mut session) = open(Options::default());
    let of = |name: &str, returns: &str| {
        ScalarDefinition::by_row(name, &[], returns, |_| Ok(Value::Int(1))).map(drop)
    };
    for name in ["upper", "Count", "row_number", "grouping"] {
        let refused = of(name, "int").map_err(|error| error.kind());
        assert_eq!(refused, Err(ErrorKind::AlreadyExists), "{name}");
    }
    for name in ["", "1st", "a b", "a.b", "a-b", "columns", "x(1)--"] {
        let refused = of(name, "int").map_err(|error| error.kind());
        assert_eq!(refused, Err(ErrorKind::Syntax), "{name}");
    }
    for returns in ["", "nonsense", "int)", "int), (1"] {
        assert!(of("f", returns).is_err(), "{returns}");
    }
    let f = ScalarDefinition::by_row("F", &["decimal(10, 2)"], "timestamp", |_| Ok(Value::Null));
    let f = f.unwrap();
    assert_eq!(f.parameters()[0].to_string(), "DECIMAL(10,2)");
    assert_eq!(f.returns(), DataType::Timestamp);
    db.create_function(f);
    assert_eq!(one(&mut session, "select f(1.5)"), Value::Null);
    let listed = run(&mut session, "show functions like 'f'").unwrap();
    assert_eq!(listed, [[text("f"), text("scalar")]]);
}

#[test]
fn replacing_and_dropping_reach_statements_that_were_prepared() {
    let (db, mut session) = open(Options::default());
    let number = |n: i64| ScalarDefinition::by_row("n", &[], "bigint", move |_| Ok(Value::Int(n)));
    db.create_function(number(1).unwrap());
    let prepared = session.prepare("select n()").unwrap();
    let mut value = || -> Result<Value> {
        let result = block_on(session.run(&prepared, &[]))?;
        Ok(result.row(0)[0].clone())
    };
    assert_eq!(value().unwrap(), Value::Int(1));
    db.create_function(number(2).unwrap());
    assert_eq!(value().unwrap(), Value::Int(2));
    assert!(db.drop_function("N"));
    assert!(!db.drop_function("n"));
    assert_eq!(value().unwrap_err().sqlstate(), "42883");
}

#[test]
fn rules_of_tables_refuse_it_and_views_need_it() {
    let (db, mut session) = open(Options::default());
    shout(&db);
    for rule in ["default (shout('a'))", "check (shout(s) = 'A!')", "as (shout('a')) stored"] {
        let sql = format!("create table r (id bigint primary key, s text, x text {rule})");
        assert_eq!(fails(&mut session, &sql).kind(), ErrorKind::Unsupported, "{rule}");
    }
    run(&mut session, "create view v as select shout('a') as s").unwrap();
    assert_eq!(one(&mut session, "select s from v"), text("A!"));
    db.drop_function("shout");
    assert_eq!(fails(&mut session, "select s from v").kind(), ErrorKind::NotFound);
}

#[test]
fn nulls_and_volatility_are_as_declared() {
    let (db, mut session) = open(Options::default());
    let is_null = ScalarDefinition::by_row("missing", &["int", "int"], "boolean", |row| {
        Ok(Value::Boolean(row.iter().any(Value::is_null)))
    });
    db.create_function(is_null.unwrap().takes_nulls());
    let sql = "select missing(a, b) from (values (1, 2), (null, 2), (1, null)) as t(a, b)";
    let rows = run(&mut session, sql).unwrap();
    assert_eq!(rows, [[Value::Boolean(false)], [Value::Boolean(true)], [Value::Boolean(true)]]);
    let count = AtomicU64::new(0);
    let next = ScalarDefinition::by_row("next_one", &[], "bigint", move |_| {
        Ok(Value::Int(count.fetch_add(1, Ordering::Relaxed) as i64))
    });
    db.create_function(next.unwrap().volatility(Volatility::Volatile));
    let rows = run(&mut session, "select next_one() from generate_series(1, 5) as g(i)").unwrap();
    let mut seen: Vec<String> = rows.iter().map(|row| row[0].to_string()).collect();
    seen.dedup();
    assert_eq!(seen.len(), 5, "each row has a value of its own: {seen:?}");
    let refused =
        fails(&mut session, "select 1 from generate_series(1, 2) as g(i) where next_one() > 1");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

#[test]
fn an_aggregate_is_one_with_groups_windows_distinct_and_filters() {
    let (db, mut session) = open(Options::default());
    product(&db);
    run(&mut session, "create table t (id bigint primary key, g int, x int)").unwrap();
    let rows = "insert into t values (1, 1, 2), (2, 1, 3), (3, 2, 5), (4, 2, null), (5, 3, null),
                (6, 1, 3)";
    run(&mut session, rows).unwrap();
    let grouped =
        run(&mut session, "select g, product_of(x) from t group by g order by g").unwrap();
    let products: Vec<Value> = grouped.into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(products, [18.0, 5.0, 1.0].map(Value::Float));
    for (sql, expected) in [
        ("select product_of(x) from t", 90.0),
        ("select product_of(distinct x) from t", 30.0),
        ("select product_of(x) filter (where g = 1) from t", 18.0),
        ("select product_of(x) from t where id > 100", 1.0),
        ("select (select product_of(i.x) from t i where i.g = o.g + 2) from t o where id = 3", 1.0),
        ("select product_of(x) + product_of(x) from t", 180.0),
    ] {
        assert_eq!(one(&mut session, sql), Value::Float(expected), "{sql}");
    }
    let running = "select product_of(x) over (order by id rows between 1 preceding and current row)
                   from t order by id";
    let running: Vec<Value> =
        run(&mut session, running).unwrap().into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(running, [2.0, 6.0, 15.0, 5.0, 1.0, 3.0].map(Value::Float));
    let ordered = fails(&mut session, "select product_of(x order by id) from t");
    assert_eq!(ordered.kind(), ErrorKind::Unsupported);
    assert_eq!(
        fails(&mut session, "select product_of(1) + product_of('x')").kind(),
        ErrorKind::Type
    );
}

#[test]
fn many_threads_groups_and_small_memory_agree_with_the_engines_own() {
    let options =
        Options { threads: 3, morsel_rows: 1_000, memory_limit: 4 << 20, ..Options::default() };
    let (db, mut session) = open(options);
    let double = ScalarDefinition::by_row("twice", &["bigint"], "bigint", |row| match row {
        [Value::Int(n)] => Ok(Value::Int(n * 2)),
        _ => Ok(Value::Null),
    });
    db.create_function(double.unwrap());
    let total = AggregateDefinition::by_row(
        "total_of",
        &["bigint"],
        "bigint",
        |sum: &mut i64, row| {
            if let [Value::Int(n)] = row {
                *sum += n;
            }
            Ok(())
        },
        |sum| Ok(Value::Int(*sum)),
    );
    db.create_aggregate(total.unwrap());
    run(&mut session, "create table t (id bigint primary key, g bigint, n bigint)").unwrap();
    let insert = "insert into t select i, i % 5000, i from generate_series(1, 60000) as s(i)";
    run(&mut session, insert).unwrap();
    run(&mut session, "optimize table t full").unwrap();
    let sums = run(&mut session, "select sum(twice(n)), total_of(n) from t").unwrap();
    assert_eq!(sums[0][0].to_string(), "3600060000");
    assert_eq!(sums[0][1], Value::Int(1_800_030_000));
    let differing = "select count(*) from
        (select g, sum(n) as s, total_of(n) as o from t group by g) as d where s <> o";
    assert_eq!(one(&mut session, differing), Value::Int(0));
}

#[test]
fn a_volatile_function_is_called_for_each_row_whatever_its_arguments_are() {
    let (db, mut s) = open(Options::default());
    let counter = AtomicU64::new(0);
    let next = ScalarDefinition::by_row("next_after", &["bigint", "text"], "bigint", move |row| {
        let Value::Int(from) = row[0] else { return Ok(Value::Null) };
        Ok(Value::Int(from + counter.fetch_add(1, Ordering::Relaxed) as i64))
    });
    db.create_function(next.unwrap().volatility(Volatility::Volatile));
    run(&mut s, "create table t (id int primary key, s text)").unwrap();
    run(&mut s, "insert into t select range, 'a' from range(0, 1000)").unwrap();
    run(&mut s, "optimize table t flush").unwrap();
    for argument in ["'x'", "s"] {
        let sql = format!(
            "select count(distinct n) from (select next_after(7, {argument}) as n from t) q"
        );
        assert_eq!(one(&mut s, &sql), Value::Int(1_000), "{argument}");
    }
}
