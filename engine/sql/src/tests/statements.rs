//! Statements other than queries, parameters and types.

use super::{check, plan, typed};

#[test]
fn statements() {
    check(
        "create table n (a bool, b tinyint, c smallint unsigned, d integer, e bigint unsigned not null, f float, g double precision, h numeric(10,2), i decimal, j varchar(20), k char, l string, m binary(8), n blob, o date, p time, q datetime(6), r timestamp, s json, u real, v int default 5, w text default 'x', x float(53), y int8, primary key (d, e))",
        "
        CreateTable n [a BOOLEAN, b TINYINT, c SMALLINT UNSIGNED, d INT NOT NULL, e BIGINT UNSIGNED NOT NULL, f FLOAT, g DOUBLE, h DECIMAL(10,2), i DECIMAL(18,3), j VARCHAR(20), k VARCHAR(1), l TEXT, m VARBINARY(8), n BLOB, o DATE, p TIME, q TIMESTAMP, r TIMESTAMP, s JSON, u FLOAT, v INT, w TEXT, x DOUBLE, y BIGINT]
          PrimaryKey [d, e]
        ",
    );
    check(
        "create table if not exists n (id bigint primary key, \"Weird name\" int null, `back` text comment 'hi')",
        "
        CreateTable n [id BIGINT NOT NULL, Weird name INT, back TEXT]
          PrimaryKey [id]
        ",
    );
    check(
        "create table n (d date default '2024-01-01', j json default '{}', p decimal(5,2) default -1)",
        "
        CreateTable n [d DATE, j JSON, p DECIMAL(5,2)]
        ",
    );
    check(
        "drop table if exists t, u",
        "
        DropTable t, u
        ",
    );
    check("truncate table u", "Truncate u");
    check("alter table u add column z int default 3, drop column c", "AlterTable u");
    check("alter table u add column if not exists a int", "Nothing");
    check(
        "insert into u values (1, 2, 'c'), (?, -3, null)",
        "
        Insert u
          Values [id, a, c] 2 rows
        parameters [Int64]
        ",
    );
    check(
        "insert into u (c, id) values ('x', ?), (default, 4)",
        "
        Insert u
          Values [id, a, c] 2 rows
        parameters [Int64]
        ",
    );
    check(
        "insert into t (id, price, ratio, day, at, big, tiny) values (1, 5, 5, '2024-01-01', date '2024-01-01', 7, 1000)",
        "
        Insert t
          Values [id, a, b, tiny, big, price, ratio, single, name, code, day, at, clock, flag, doc, raw, with_default] 1 rows
        ",
    );
    check(
        "insert into t default values",
        "
        Insert t
          Values [id, a, b, tiny, big, price, ratio, single, name, code, day, at, clock, flag, doc, raw, with_default] 1 rows
        ",
    );
    check(
        "insert into u select a, id, name from t where b > 1 order by id limit 3",
        "
        Insert u
          Project [cast(a as BIGINT) as id, cast(id as INT) as a, name as c]
            Limit 3
              Sort [id] limit 3 in key order
                Scan t [id, a, b, name] where b > 1
        ",
    );
    check(
        "insert into u (a) select price from t",
        "
        Insert u
          Project [NULL as id, cast(price as INT) as a, NULL as c]
            Scan t [price]
        ",
    );
    check(
        "update t set a = a + 1, price = ?, day = default where id = ? and name = 'x'",
        "
        Update t set a = cast(a + 1 as INT), price = $1, day = NULL
          Scan t [id, a, b, tiny, big, price, ratio, single, name, code, day, at, clock, flag, doc, raw, with_default] where id = $2 and name = 'x'
        parameters [Decimal { precision: 15, scale: 2 }, Int64]
        ",
    );
    check(
        "update t x set tiny = 300 where x.a in (?, ?)",
        "
        Update t set tiny = cast(300 as TINYINT)
          Scan t [id, a, b, tiny, big, price, ratio, single, name, code, day, at, clock, flag, doc, raw, with_default] where a in ($1, $2)
        parameters [Int32, Int32]
        ",
    );
    check(
        "delete from t where price > ? and day < '2024-01-01'",
        "
        Delete t
          Scan t [id, a, b, tiny, big, price, ratio, single, name, code, day, at, clock, flag, doc, raw, with_default] where price > $1 and day < DATE '2024-01-01'
        parameters [Decimal { precision: 15, scale: 2 }]
        ",
    );
    check(
        "delete from u",
        "
        Delete u
          Scan u [id, a, c]
        ",
    );
    check(
        "begin",
        "
        Begin
        ",
    );
    check(
        "start transaction",
        "
        Begin
        ",
    );
    check(
        "commit",
        "
        Commit
        ",
    );
    check(
        "rollback",
        "
        Rollback
        ",
    );
    for (sql, expected) in [
        ("savepoint s", "Savepoint s"),
        ("rollback to s", "RollbackTo s"),
        ("rollback to savepoint s", "RollbackTo s"),
        ("set threads = 2", "Set threads to 2"),
        ("set scan_strategy = 'Encoded'", "Set scan_strategy to encoded"),
        ("set scan_strategy = default", "Set scan_strategy to adaptive"),
        ("set lock_timeout = '2 min'", "Set lock_timeout to 120000 ms"),
        ("set lock_timeout to default", "Set lock_timeout to the default"),
        ("set session THREADS to default", "Set threads to the default"),
        ("release s", "Release s"),
        ("release savepoint s", "Release s"),
    ] {
        check(sql, expected);
    }
    check(
        "select x.a from u as x where x.id = 1 order by x.c limit 2 for update",
        "
        LockFirst u
          Scan u [id, a, c] where id = 1
          Project [a, row]
            Sort [c]
              Given 1
        ",
    );
    check(
        "select a from u where id > 5 offset 3 for update skip locked",
        "
        LockFirstFree u
          Scan u [id, a, c] where id > 5
          Project [a, row]
            Given 1
        ",
    );
    check(
        "select a from u order by id for update of u nowait",
        "
        Lock u
          Scan u [id, a, c]
          Project [a]
            Sort [id]
              Scan u [id, a]
        ",
    );
    check(
        "explain select 1",
        "
        Project [1]
          Values [] 1 rows
        ",
    );
    for profile in ["profile select 1", "explain analyze select 1"] {
        check(
            profile,
            "
            Project [1]
              Values [] 1 rows
            ",
        );
    }
    check(
        "explain delete from u",
        "
        Delete u
          Scan u [id, a, c]
        ",
    );
    check(
        "optimize table t",
        "
        Optimize t
        ",
    );
    check(
        "optimize table t full",
        "
        Optimize t full
        ",
    );
    check(
        "optimize table t flush",
        "
        Optimize t
        ",
    );
    check(
        "show tables",
        "
        Values [table_name] 10 rows
        ",
    );
    check(
        "describe u",
        "
        Values [Field, Type, Null, Key, Default] 3 rows
        ",
    );
    check(
        "desc u",
        "
        Values [Field, Type, Null, Key, Default] 3 rows
        ",
    );
    check(
        "show columns from u",
        "
        Values [Field, Type, Null, Key, Default] 3 rows
        ",
    );
    check(
        "show create table t",
        "
        Values [Table, Create Table] 1 rows
        ",
    );
    check(
        "select ?",
        "
        Project [$1]
          Values [] 1 rows
        parameters [Text { max_chars: None }]
        ",
    );
    check(
        "select ? + a, price = ?, name = ?, coalesce(?, 1), ? || 'x', case when ? then ? else a end, a between ? and ? from t",
        "
        Project [$1 + a, price = $2, name = $3, coalesce($4, 1), $5 || 'x', case when $6 then $7 else a end, a >= $8 and a <= $9]
          Scan t [a, price, name]
        parameters [Int64, Decimal { precision: 15, scale: 2 }, Text { max_chars: None }, Int32, Text { max_chars: None }, Boolean, Int32, Int32, Int32]
        ",
    );
    check(
        "select id from t where id = :id and a = :x or b = :id",
        "
        Project [id]
          Scan t [id, a, b] where (id = $1 and a = $2 or b = cast($1 as INT))
        parameters [Int64, Int32]
        ",
    );
    check(
        "select cast(? as date), ? = ? from t",
        "
        Project [$1, $2 = $3]
          Scan t []
        parameters [Date, Text { max_chars: None }, Text { max_chars: None }]
        ",
    );
    check(
        "select day + ?, ? - day from t",
        "
        Project [cast(day as TIMESTAMP) + $1 as day + $1, $2 - day]
          Scan t [day]
        parameters [Interval, Date]
        ",
    );
}

#[test]
fn types() {
    typed("1", "INT");
    typed("3000000000", "BIGINT");
    typed("99999999999999999999", "DECIMAL(20,0)");
    typed("1.5", "DECIMAL(2,1)");
    typed(".5", "DECIMAL(1,1)");
    typed("1.50", "DECIMAL(3,2)");
    typed("1e3", "DOUBLE");
    typed("-9223372036854775808", "BIGINT");
    typed("'x'", "TEXT");
    typed("null", "NULL");
    typed("true", "BOOLEAN");
    typed("a + b", "BIGINT");
    typed("tiny * tiny", "BIGINT");
    typed("big + 1", "DECIMAL(20,0)");
    typed("big + big", "DECIMAL(20,0)");
    typed("big % big", "BIGINT UNSIGNED");
    typed("price + price", "DECIMAL(16,2)");
    typed("price * price", "DECIMAL(30,4)");
    typed("price * price * price", "DECIMAL(38,6)");
    typed("price / price", "DECIMAL(38,8)");
    typed("a / b", "BIGINT");
    typed("a / price", "DECIMAL(38,6)");
    typed("a / 2.0", "DECIMAL(38,6)");
    typed("sum(a) / 2", "DECIMAL(38,0)");
    typed("ratio + price", "DOUBLE");
    typed("single + single", "DOUBLE");
    typed("a div b", "BIGINT");
    typed("price div 2", "DECIMAL(38,0)");
    typed("price % 3", "DECIMAL(15,2)");
    typed("-tiny", "BIGINT");
    typed("-big", "DECIMAL(20,0)");
    typed("abs(tiny)", "BIGINT");
    typed("abs(price)", "DECIMAL(15,2)");
    typed("day - day", "BIGINT");
    typed("at - at", "INTERVAL");
    typed("day + interval '1' day", "DATE");
    typed("day + interval '1' hour", "TIMESTAMP");
    typed("at + interval '1 day'", "TIMESTAMP");
    typed("day + 1", "DATE");
    typed("case when flag then 1 else 2.5 end", "DECIMAL(11,1)");
    typed("case when flag then a else ratio end", "DOUBLE");
    typed("coalesce(code, name)", "TEXT");
    typed("coalesce(a, big)", "DECIMAL(20,0)");
    typed("greatest(tiny, 5)", "INT");
    typed("round(price, 1)", "DECIMAL(15,1)");
    typed("round(price)", "DECIMAL(14,0)");
    typed("round(ratio, 2)", "DOUBLE");
    typed("round(a)", "BIGINT");
    typed("ceil(price)", "DECIMAL(14,0)");
    typed("sum(a)", "DECIMAL(38,0)");
    typed("sum(price)", "DECIMAL(38,2)");
    typed("sum(ratio)", "DOUBLE");
    typed("avg(a)", "DECIMAL(38,6)");
    typed("avg(price)", "DECIMAL(38,8)");
    typed("avg(single)", "DOUBLE");
    typed("count(*)", "BIGINT");
    typed("min(day)", "DATE");
    typed("max(code)", "VARCHAR(5)");
    typed("length(name)", "BIGINT");
    typed("year(day)", "BIGINT");
    typed("substr(name, 1)", "TEXT");
    typed("code || name", "TEXT");
    typed("a = 1", "BOOLEAN");
    typed("sqrt(a)", "DOUBLE");
    typed("now()", "TIMESTAMP");
    typed("current_date", "DATE");
    typed("date_trunc('month', day)", "DATE");
    typed("extract(epoch from at)", "BIGINT");
    typed("typeof(price)", "TEXT");
    typed("x'00ff'", "BLOB");
    typed("a & 1", "BIGINT");
    typed("date '2024-01-01'", "DATE");
    typed("timestamp '2024-01-01'", "TIMESTAMP");
    typed("interval '1' month", "INTERVAL");
    typed("cast(a as varchar(3))", "VARCHAR(3)");
    typed("a::double", "DOUBLE");
    typed("sign(price)", "BIGINT");
    typed("mod(a, 2)", "BIGINT");
    typed("pow(2, 3)", "DOUBLE");
    typed("interval '1 year 2 months -3 days 04:05:06'", "INTERVAL");
    typed("nullif(a, 1)", "INT");
    typed("1 + 2 * 3", "BIGINT");
    typed("0.06 - 0.01", "DECIMAL(3,2)");
}

/// The value of a parameter decides its type where the context would round the value or implies no
/// type.
#[test]
fn natural_parameter_types() {
    use nacre_types::DataType as T;
    let narrow = T::Decimal { precision: 3, scale: 1 };
    let narrow3 = T::Decimal { precision: 4, scale: 3 };
    for (sql, given, expected) in [
        ("select id from t where a = ?", T::Float64, T::Float64),
        ("select id from t where a = ?", T::Int64, T::Int32),
        ("select id from t where a = ?", T::TEXT, T::Int32),
        ("select id from t where a = ?", narrow, narrow),
        ("select id from t where price = ?", T::Int32, T::Decimal { precision: 15, scale: 2 }),
        ("select id from t where price = ?", T::Float64, T::Float64),
        ("select id from t where code = ?", T::TEXT, T::TEXT),
        ("select id from t where day = ?", T::TEXT, T::Date),
        ("select id from t where day = ?", T::Timestamp, T::Timestamp),
        ("select id from t where single = ?", T::Float64, T::Float64),
        ("select coalesce(price, ?) from t", narrow3, narrow3),
        ("insert into t (id) values (?)", T::Float64, T::Int64),
        ("select ?", T::Int32, T::Int32),
        ("select ? + 1", T::Float64, T::Float64),
        ("select day + ? from t", T::Int32, T::Int32),
        ("select day - ? from t", T::Interval, T::Interval),
    ] {
        assert_eq!(plan(sql, &[given]).unwrap().1, [expected], "{sql} {given}");
    }
}

#[test]
fn any_number_of_arguments() {
    typed(&format!("coalesce(a{})", ", b".repeat(300)), "INT");
    typed(&format!("least(a{})", ", b".repeat(300)), "INT");
}

#[test]
fn several_statements() {
    let parsed =
        crate::parse("select 1 ;\n insert into u values (:x, :y, 'é;') ;; select :x").unwrap();
    let texts: Vec<&str> = parsed.iter().map(|p| p.text()).collect();
    assert_eq!(texts, ["select 1", "insert into u values (:x, :y, 'é;')", "select :x"]);
    let names: Vec<&str> =
        parsed[0].parameter_names().iter().flatten().map(String::as_str).collect();
    assert_eq!(names, ["x", "y"]);
    assert!(crate::parse(" -- nothing\n ; ").unwrap().is_empty());
}

#[test]
fn show_create_reads_back() {
    let Ok((
        crate::Statement::Rows(crate::RowStatement::Query(crate::Plan::Values { rows, .. })),
        _,
    )) = plan("show create table t", &[])
    else {
        panic!("not rows")
    };
    let crate::ExprKind::Literal(nacre_types::Value::Text(sql)) = &rows[0][1].kind else {
        panic!("not text")
    };
    let again = sql.replace("\"t\"", "again");
    let Ok((crate::Statement::Catalog(crate::CatalogStatement::CreateTable { schema, .. }), _)) =
        plan(&again, &[])
    else {
        panic!("{again}")
    };
    let t = crate::Catalog::table(&super::catalog(), "t").unwrap();
    assert_eq!(schema.columns, t.columns);
    assert_eq!(schema.primary_key, t.primary_key);
}

#[test]
fn indexes() {
    check(
        "create table n (a int unique, b text, c int, unique key u (b, c), key (c), index k using hash (a, b desc), \
         constraint x unique (c), unique (a), primary key (c), unique (c))",
        "
        CreateTable n [a INT, b TEXT, c INT NOT NULL]
          PrimaryKey [c]
          UniqueIndex a [a]
          UniqueIndex u [b, c]
          Index c [c]
          Index k [a, b]
          UniqueIndex x [c]
        ",
    );
    check(
        "create unique index if not exists i on u using btree (a, c desc)",
        "
        CreateUniqueIndex i on u [a, c]
        ",
    );
    check(
        "create index on u (a)",
        "
        CreateIndex a on u [a]
        ",
    );
    check(
        "drop index if exists nope",
        "
        Nothing
        ",
    );
}
