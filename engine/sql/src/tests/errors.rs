//! Errors: kind, SQLSTATE, position and hint; and the limits that prevent stack overflows.

use super::{fails, plan};
use crate::parse;
use nacre_types::ErrorKind;

#[test]
fn messages() {
    fails("selec 1", "42601 syntax: expected an SQL statement, found selec (line 1, column 1)");
    fails(
        "select from t where",
        "42601 syntax: expected an expression, found from (line 1, column 13)",
    );
    fails(
        "select 1 +",
        "42601 syntax: expected an expression, found the end of the input (line 1, column 11)",
    );
    fails("select 1 # 2", "42601 syntax: unknown operator (line 1, column 10)");
    fails("select '1'::int[]", "0A000 unsupported: arrays are not supported (line 1, column 16)");
    fails(
        "create table n (a int[])",
        "0A000 unsupported: arrays are not supported (line 1, column 22)",
    );
    fails(
        "select * from tt",
        "42P01 not_found: no table `tt`; did you mean `t`? (line 1, column 15)",
    );
    fails(
        "select nam from t",
        "42703 not_found: no column `nam` in `t`; did you mean `name`? (line 1, column 8)",
    );
    fails(
        "select t.nam from t",
        "42703 not_found: no column `nam` in `t`; did you mean `name`? (line 1, column 10)",
    );
    fails("select x.name from t", "42P01 not_found: no table `x` in FROM (line 1, column 10)");
    fails(
        "select id from t, u",
        "42702 type: column id is ambiguous; it is a column of t, u (line 1, column 8)",
    );
    fails(
        "select a, count(*) from t",
        "42803 type: column a must be in GROUP BY or inside an aggregate (line 1, column 8)",
    );
    fails(
        "select a from t where count(*) > 1",
        "42803 type: aggregates are not allowed in WHERE (line 1, column 23)",
    );
    fails(
        "select sum(sum(a)) from t",
        "42803 type: aggregates cannot be nested (line 1, column 12)",
    );
    fails(
        "select lenght(name) from t",
        "42883 not_found: no function `lenght`; did you mean `length`? (line 1, column 8)",
    );
    fails(
        "select left(name) from t",
        "42883 type: function left takes 2 arguments, not 1 (line 1, column 8)",
    );
    fails(
        "select name + 1 from t",
        "42883 type: no operator + for TEXT and INT (line 1, column 8)",
    );
    fails(
        "select * from t where name = 1",
        "42883 type: no operator = for TEXT and INT (line 1, column 23)",
    );
    fails(
        "select * from t where day = 'yesterday'",
        "22007 type: 'yesterday' is not a valid DATE (line 1, column 23)",
    );
    fails(
        "select * from t where a",
        "42804 type: WHERE must be BOOLEAN, not INT (line 1, column 23)",
    );
    fails(
        "select * from t where price like 'x'",
        "42883 type: no operator LIKE for DECIMAL(15,2); cast it to TEXT (line 1, column 23)",
    );
    fails(
        "create table t (x int)",
        "42P07 already_exists: table t already exists (line 1, column 14)",
    );
    fails(
        "create table n (x int, X text)",
        "42701 already_exists: column X is specified more than once (line 1, column 24)",
    );
    fails("create table n (x foo)", "42704 not_found: column x: no type `foo` (line 1, column 17)");
    fails(
        "create table n (x decimal(39,2))",
        "42804 type: column x: DECIMAL(39,2): precision must be between 1 and 38, scale between 0 and the precision (line 1, column 17)",
    );
    fails(
        "create table n (x int, key (y))",
        "42703 not_found: column y of the index does not exist (line 1, column 29)",
    );
    fails(
        "create index i on t ((random()))",
        "42P17 unsupported: KEY with random(), which varies (line 1, column 23)",
    );
    fails(
        "create index i on t (a) where a > 1",
        "0A000 unsupported: an index with WHERE is not supported",
    );
    fails("drop index i", "42704 not_found: index i does not exist (line 1, column 12)");
    fails(
        "create table n (x int, sort key (y))",
        "42703 not_found: no column `y` in `n` (line 1, column 24)",
    );
    fails(
        "create table n (x int primary key, y int, shard key (y))",
        "42P16 constraint: the SHARD KEY must be part of every unique key: column y is not in the PRIMARY KEY (line 1, column 43)",
    );
    fails(
        "set threads = 0",
        "22023 type: threads must be a whole number from 1 to 1024, or DEFAULT (line 1, column 15)",
    );
    fails(
        "set scan_strategy = 'quick'",
        "22023 type: scan_strategy must be 'adaptive', 'regular', 'encoded', 'group', 'index' or DEFAULT (line 1, column 21)",
    );
    fails(
        "set lock_timeout = '5 years'",
        "22023 type: lock_timeout must be a number of milliseconds, a time like '5s', or DEFAULT (line 1, column 20)",
    );
    fails(
        "select a from t for update of u",
        "42P01 not_found: FOR UPDATE OF names `u`, and FROM has `t` (line 1, column 31)",
    );
    fails("set colour = 1", "42704 not_found: no setting colour (line 1, column 5)");
    fails(
        "create table n (x int primary key, shard key ())",
        "42P16 unsupported: SHARD KEY () of a table with a PRIMARY KEY (line 1, column 36)",
    );
    fails(
        "create table n (name int, shard key (nam))",
        "42703 not_found: no column `nam` in `n`; did you mean `name`? (line 1, column 27)",
    );
    fails(
        "create table n (x int, shard key (x, x))",
        "42701 already_exists: column x appears twice in the SHARD KEY (line 1, column 24)",
    );
    fails(
        "create table n (x int, shard key (x), shard key ())",
        "42P16 syntax: a table can have only one SHARD KEY (line 1, column 39)",
    );
    fails(
        "create table n (x int, key k (x) using gin)",
        "0A000 unsupported: USING other than HASH and BTREE is not supported (line 1, column 28)",
    );
    fails(
        "create table n (x text, foreign key (x) references t (id))",
        "42804 type: column x of type TEXT cannot refer to column id of type BIGINT (line 1, column 52)",
    );
    fails(
        "create table n (x int primary key, y int, primary key (y))",
        "42P16 syntax: a table can have only one PRIMARY KEY (line 1, column 56)",
    );
    fails(
        "create table n (x text auto_increment)",
        "42804 type: identity column x is of type TEXT, not an integer (line 1, column 17)",
    );
    fails(
        "insert into t (id, id) values (1, 2)",
        "42701 already_exists: column id is specified more than once (line 1, column 20)",
    );
    fails(
        "insert into t (nope) values (1)",
        "42703 not_found: no column `nope` in `t` (line 1, column 16)",
    );
    fails(
        "insert into u values (1, 2)",
        "42601 syntax: INSERT has 3 target columns but 2 values (line 1, column 23)",
    );
    fails(
        "insert into u values (1, 'x', 'c')",
        "22P02 type: column a: 'x' is not a valid INT (line 1, column 26)",
    );
    fails(
        "insert into u values (1, 2, 'c') on conflict (c) do nothing",
        "42P10 not_found: ON CONFLICT matches no unique key of table u (line 1, column 47)",
    );
    fails(
        "insert or fail into u values (1, 2, 'c')",
        "0A000 unsupported: INSERT OR FAIL is not supported",
    );
    fails(
        "select * from t where id in (select id, a from u)",
        "42601 syntax: the subquery must have 1 column, not 2 (line 1, column 23)",
    );
    fails(
        "select (select id, a from u)",
        "42601 syntax: the subquery must have 1 column, not 2 (line 1, column 9)",
    );
    fails(
        "with recursive x as (select 1 union all (select a from y) ), y as (select * from x) select * from x",
        "0A000 unsupported: a table of WITH RECURSIVE that refers to a later one (mutual recursion) is not supported",
    );
    for (sql, feature) in [
        ("select * from t for share", "FOR SHARE"),
        (
            "select * from t for update nowait for update skip locked",
            "FOR UPDATE twice, and not alike,",
        ),
        ("select * from t, u for update", "FOR UPDATE on a join"),
        ("select * from t join u on t.id = u.id for update", "FOR UPDATE on a join"),
        ("select * from (select * from t) x for update", "FOR UPDATE on anything but a table"),
        (
            "select * from (select * from t for update) x",
            "FOR UPDATE or FOR SHARE inside a statement",
        ),
        (
            "insert into u select id, a, c from u for update",
            "FOR UPDATE or FOR SHARE inside a statement",
        ),
        ("with x as (select * from t) select * from x for update", "FOR UPDATE with WITH"),
        ("select 1 as one for update", "FOR UPDATE without a table"),
        ("values (1) for update", "FOR UPDATE on anything but a plain SELECT"),
        (
            "select a from t group by a for update",
            "FOR UPDATE with DISTINCT, GROUP BY or aggregates",
        ),
        ("select distinct a from t for update", "FOR UPDATE with DISTINCT, GROUP BY or aggregates"),
        (
            "select distinct on (a) a from t order by a for update",
            "FOR UPDATE with DISTINCT, GROUP BY or aggregates",
        ),
        ("select count(*) from t for update", "FOR UPDATE with DISTINCT, GROUP BY or aggregates"),
        ("select * from u as x (p, q, r) for update", "a target with renamed columns"),
    ] {
        fails(sql, &format!("0A000 unsupported: {feature} is not supported"));
    }
    fails(
        "select * from t order by 99",
        "42P10 type: ORDER BY position 99 is not between 1 and 17 (line 1, column 26)",
    );
    fails(
        "select distinct a from t order by b",
        "42P10 type: with DISTINCT, ORDER BY expressions must appear in the SELECT list",
    );
    fails("select * from t limit -1", "2201W type: LIMIT must not be negative (line 1, column 24)");
    fails("select * from t limit a", "42703 not_found: no column `a` (line 1, column 23)");
    fails(
        "select * from t limit 'x'",
        "42804 type: LIMIT takes a whole number or a parameter (line 1, column 23)",
    );
    fails(
        "select a from t where ? = $2",
        "42601 syntax: parameters must all be written ?, all $n or all :name (line 1, column 27)",
    );
    fails("update t set nope = 1", "42703 not_found: no column `nope` in `t` (line 1, column 14)");
    fails(
        "update t set a = name",
        "42804 type: column a is of type INT but the value is of type TEXT; add a CAST (line 1, column 18)",
    );
    fails("delete from nope", "42P01 not_found: no table `nope` (line 1, column 13)");
    fails(
        "select 1; select 2 3",
        "42601 syntax: unexpected 3 after the statement (line 1, column 20)",
    );
    fails("select 'abc", "42601 syntax: Unterminated string literal (line 1, column 8)");
    fails(
        "select case when 1 then 2 end",
        "42804 type: WHEN must be BOOLEAN, not INT (line 1, column 18)",
    );
    fails(
        "select id from t join u using (nope)",
        "42703 not_found: no column `nope` in `t` (line 1, column 32)",
    );
    fails(
        "select * from t join t on true",
        "42712 type: table t is specified more than once in FROM; give one an alias",
    );
    fails(
        "select case when flag then 1 else name end from t",
        "42804 type: CASE cannot mix INT and TEXT (line 1, column 8)",
    );
    fails(
        "select 1 from t left join u",
        "42601 syntax: a LEFT, RIGHT, FULL, SEMI or ANTI JOIN requires ON or USING",
    );
    fails(
        "select interval '1' fortnight",
        "22007 type: '1' is not a valid INTERVAL (line 1, column 17)",
    );
    fails(
        "select a from t group by 2",
        "42P10 type: GROUP BY position 2 is not between 1 and 1 (line 1, column 26)",
    );
    fails(
        "select a b c from t",
        "42601 syntax: unexpected c after the statement (line 1, column 12)",
    );
    for (sql, statement) in [
        ("grant all on t to x", "GRANT"),
        ("explain grant all on t to x", "GRANT"),
        ("create or replace function f() as 1", "CREATE FUNCTION"),
        ("create sequence s", "CREATE SEQUENCE"),
        ("create materialized view v as select 1", "MATERIALIZED VIEW"),
        ("create temporary table x (a int) on commit drop", "ON COMMIT"),
        ("create table x (a int) on commit preserve rows", "ON COMMIT"),
        ("create global temporary table x (a int)", "a GLOBAL or LOCAL table"),
        ("create algorithm = merge view v as select 1", "this form of CREATE VIEW"),
        ("create or replace unique index i on t (a)", "CREATE OR REPLACE INDEX"),
        ("create index i on t (a) lock = none", "ALGORITHM or LOCK in CREATE INDEX"),
        ("create unique index i on t (a) algorithm inplace", "ALGORITHM or LOCK in CREATE INDEX"),
        ("drop sequence s", "DROP SEQUENCE"),
        ("drop temporary table t", "this DROP"),
        ("alter view v as select 1", "ALTER VIEW"),
        ("set global threads = 2", "SET GLOBAL or SET LOCAL"),
        ("vacuum", "VACUUM"),
        ("select * from t pivot (sum(a) for b in ('x', 'y'))", "PIVOT"),
        ("select * from (select 1) pivot(sum(a) for b in (1))", "PIVOT"),
        ("select * from t unpivot (v for n in (a, b))", "UNPIVOT"),
        ("select * from t unpivot include nulls (v for n in (a, b))", "UNPIVOT"),
        ("alter table t modify column a bigint first", "ALTER TABLE … this change"),
        ("alter table t change a z bigint", "ALTER TABLE … CHANGE"),
        ("alter table t add partition (a = 1)", "ALTER TABLE … ADD PARTITION"),
        ("alter table t drop primary key", "ALTER TABLE … DROP PRIMARY KEY"),
        ("alter table t drop if exists partition (a = 1)", "ALTER TABLE … DROP PARTITION"),
        ("alter table t owner to me", "ALTER TABLE … OWNER"),
        ("alter table t set logged", "ALTER TABLE … SET"),
        ("alter table only t add z int", "this form of ALTER TABLE"),
        ("alter table t drop a set location 'x'", "this form of ALTER TABLE"),
        (
            "alter table t alter column a set data type bigint using a",
            "ALTER COLUMN … TYPE … USING",
        ),
        ("alter table t alter a add generated always as identity", "ALTER COLUMN … ADD GENERATED"),
        ("alter table t add primary key (a)", "ALTER TABLE … ADD CONSTRAINT"),
    ] {
        fails(sql, &format!("0A000 unsupported: {statement} is not supported"));
    }
    fails(
        "alter table t alter a type text",
        "0A000 unsupported: ALTER COLUMN … TYPE from INT to TEXT is not supported; add a column, UPDATE it and drop this one (line 1, column 21)",
    );
    let several = parse("grant all on t to x; select 1").unwrap();
    let texts: Vec<&str> = several.iter().map(|parsed| parsed.text()).collect();
    assert_eq!(texts, ["grant all on t to x", "select 1"]);
    fails(
        "alter table t alter a",
        "42601 syntax: expected SET or DROP of NOT NULL or DEFAULT after ALTER COLUMN, found the end of the input (line 1, column 22)",
    );
    fails(
        "alter table t grow",
        "42601 syntax: expected ADD, DROP, RENAME or ALTER after ALTER TABLE, found grow (line 1, column 15)",
    );
    fails(
        "create tab t (a int)",
        "42601 syntax: expected TABLE, VIEW or INDEX after CREATE, found tab (line 1, column 8)",
    );
    fails(
        "create or alter",
        "42601 syntax: expected TABLE, VIEW or INDEX after CREATE, found the end of the input (line 1, column 16)",
    );
    fails(
        "drop if exists t",
        "42601 syntax: expected TABLE, VIEW or INDEX after DROP, found if (line 1, column 6)",
    );
    fails(
        "set threads",
        "42601 syntax: expected TO, found the end of the input (line 1, column 12)",
    );
    for sql in ["explain profile select 1", "describe desc select 1"] {
        fails(sql, "42601 syntax: EXPLAIN and PROFILE cannot be nested (line 1, column 1)");
    }
    fails(
        "select date '2024-02-30'",
        "22007 type: '2024-02-30' is not a valid DATE (line 1, column 13)",
    );
    fails(
        "select 99999999999999999999999999999999999999999",
        "22003 type: number 99999999999999999999999999999999999999999 has more than 38 digits (line 1, column 8)",
    );
    fails(
        "select a::bit from t",
        "0A000 unsupported: type BIT is not supported (line 1, column 8)",
    );
    fails(
        "alter table t add constraint c check (a > 1) not valid",
        "0A000 unsupported: NOT VALID is not supported (line 1, column 39)",
    );
    fails(
        "alter table u add column z int not null",
        "23502 constraint: column z is NOT NULL without a default, but the table may contain rows; give it a DEFAULT (line 1, column 26)",
    );
    fails(
        "alter table region drop column r_regionkey",
        "2BP01 constraint: column r_regionkey is part of the PRIMARY KEY (line 1, column 32)",
    );
    fails(
        "alter table u drop column x",
        "42703 not_found: no column `x` in `u` (line 1, column 27)",
    );
    fails(
        "alter table u rename column a to c",
        "42701 already_exists: column c of table u already exists (line 1, column 34)",
    );
    fails(
        "alter table u rename to region",
        "42P07 already_exists: table region already exists (line 1, column 25)",
    );
    fails(
        "alter table u add column z int primary key",
        "0A000 unsupported: ADD COLUMN … PRIMARY KEY is not supported (line 1, column 26)",
    );
    fails(
        "profile create table p (a int)",
        "0A000 unsupported: PROFILE of a statement that neither reads nor writes rows is not supported",
    );
    fails(
        "select * from a.b.c",
        "0A000 unsupported: a qualified table name is not supported (line 1, column 15)",
    );
    fails(
        "select coalesce() from t",
        "42883 type: function coalesce takes 1 or more arguments, not 0 (line 1, column 8)",
    );
    fails(
        "select id from t where id = 'abc'",
        "22P02 type: 'abc' is not a valid BIGINT (line 1, column 24)",
    );
    fails(
        "select 1 +",
        "42601 syntax: expected an expression, found the end of the input (line 1, column 11)",
    );
}

#[test]
fn stack_is_safe() {
    // Run with a stack as small as that of a wasm instance.
    let body = || {
        for (sql, kind) in [
            (format!("select {}1{}", "(".repeat(10_000), ")".repeat(10_000)), ErrorKind::Limit),
            (format!("select {}1{}", "(".repeat(100), ")".repeat(100)), ErrorKind::Closed),
            (format!("select {}1{}", "abs(".repeat(10_000), ")".repeat(10_000)), ErrorKind::Limit),
            (format!("select {}1", "- ".repeat(10_000)), ErrorKind::Limit),
            (format!("select {}1{}", "abs(".repeat(40), ")".repeat(40)), ErrorKind::Closed),
            (format!("select {}1{}", "abs(- - ".repeat(40), ")".repeat(40)), ErrorKind::Closed),
            (format!("select {}1{}", "(1 + 1 * ".repeat(50), ")".repeat(50)), ErrorKind::Closed),
            (format!("select {}1{}", "(1 + 1 * ".repeat(60), ")".repeat(60)), ErrorKind::Limit),
            (
                format!("select {}1 > 0{}", "(true or true and ".repeat(50), ")".repeat(50)),
                ErrorKind::Closed,
            ),
            (
                format!(
                    "select {}1{}",
                    "(true or true and 2 = 1 + 1 * ".repeat(40),
                    ")".repeat(40)
                ),
                ErrorKind::Limit,
            ),
            (format!("select {}1{}", "1 in (".repeat(5000), ")".repeat(5000)), ErrorKind::Limit),
            (format!("select {}true", "not ".repeat(10_000)), ErrorKind::Limit),
            (format!("select 1{}", " + 1".repeat(5_000)), ErrorKind::Limit),
            (format!("select 1{}", " + 1".repeat(390)), ErrorKind::Closed),
            (format!("select id{} from t", " + a".repeat(390)), ErrorKind::Closed),
            (format!("select 1{}", "::bigint".repeat(5_000)), ErrorKind::Limit),
            (
                format!("select id from t where a = 1{}", " or a = 2".repeat(5_000)),
                ErrorKind::Closed,
            ),
            (
                format!("select id from t where a = 1{}", " and b <> 2".repeat(5_000)),
                ErrorKind::Closed,
            ),
            (
                format!("select id from t where a = 1{}", " and b <> 2 or a = 3".repeat(2_900)),
                ErrorKind::Closed,
            ),
            (format!("select a = 1{} from t", " or a = 2".repeat(5_000)), ErrorKind::Closed),
            (
                format!("select id from t where a = 1{}", " or a = 2".repeat(50_000)),
                ErrorKind::Limit,
            ),
            (format!("select id from t where a in (1{})", ", 2".repeat(50_000)), ErrorKind::Closed),
            (format!("select 1{}", " union select 1".repeat(5_000)), ErrorKind::Limit),
            (
                format!("select {}1{}", "(select ".repeat(5_000), ")".repeat(5_000)),
                ErrorKind::Limit,
            ),
            (
                format!(
                    "select * from {}t{}",
                    "(select * from ".repeat(5_000),
                    ") x".repeat(5_000)
                ),
                ErrorKind::Limit,
            ),
            (
                format!("select * from {}t{}", "(select * from ".repeat(16), ") x".repeat(16)),
                ErrorKind::Closed,
            ),
            (
                format!(
                    "select * from t a0{}",
                    (1..5_000).map(|i| format!(" cross join t a{i}")).collect::<String>()
                ),
                ErrorKind::Limit,
            ),
            (
                format!(
                    "select {}1{}",
                    "case when true then 1 else ".repeat(5_000),
                    " end".repeat(5_000)
                ),
                ErrorKind::Limit,
            ),
            (
                format!("select case {} end from t", "when a = 1 then 2 ".repeat(5_000)),
                ErrorKind::Closed,
            ),
            (format!("select a{} from t", " is null".repeat(5_000)), ErrorKind::Limit),
            // Siblings are not nested.
            (format!("select 1{}", ", abs(1)".repeat(3_000)), ErrorKind::Closed),
            (
                format!("insert into t (id) values (0){}", ", (cast('1' as int))".repeat(3_000)),
                ErrorKind::Closed,
            ),
            (format!("select 1{}", ", (select 2)".repeat(150)), ErrorKind::Closed),
            (
                format!("select id from t where a = 1{}", " or a = (select 2)".repeat(150)),
                ErrorKind::Closed,
            ),
            (
                format!(
                    "select id from t where a = 1{}",
                    " and a in (select b from t)".repeat(150)
                ),
                ErrorKind::Closed,
            ),
            (
                format!(
                    "select id from t where a = 1{}",
                    " and a <> (select max(b) from t)".repeat(150)
                ),
                ErrorKind::Closed,
            ),
            (
                format!(
                    "with c0 as (select 1 a){} select * from c50",
                    (1..=50)
                        .map(|i| format!(", c{i} as (select count(*) a from c{})", i - 1))
                        .collect::<String>()
                ),
                ErrorKind::Closed,
            ),
            (
                format!(
                    "with c0 as (select 1 a){} select * from c100",
                    (1..=100)
                        .map(|i| format!(", c{i} as (select a from c{})", i - 1))
                        .collect::<String>()
                ),
                ErrorKind::Limit,
            ),
            (format!("select 1{}", ", (select 2)".repeat(200)), ErrorKind::Limit),
            (
                format!("create table x (a {}int{})", "array<".repeat(5_000), ">".repeat(5_000)),
                ErrorKind::Limit,
            ),
        ] {
            let result = plan(&sql, &[]);
            match result {
                Ok(_) => assert_eq!(kind, ErrorKind::Closed, "{}", &sql[..80.min(sql.len())]),
                Err(e) => assert_eq!(e.kind(), kind, "{e} {}", &sql[..80.min(sql.len())]),
            }
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(body).unwrap().join().unwrap();
}

/// Each limit names its value.
#[test]
fn limits_name_their_values() {
    let sum = vec!["b"; 390].join(" + ");
    let between = vec![format!("{sum} between 1 and 2"); 400].join(", ");
    for (sql, limit) in [
        (format!("select a from t where a in (1{})", ", 1".repeat(1 << 20)), 1usize << 20),
        (format!("select {between} from t"), 1 << 18),
        (format!("select 1{}", ", (select 2)".repeat(200)), 160),
        (
            format!("select * from t{}", (1..=64).map(|i| format!(", t a{i}")).collect::<String>()),
            64,
        ),
    ] {
        let error = plan(&sql, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.message().contains(&format!("more than {limit} ")), "{error}");
    }
}

#[test]
fn text_is_bounded() {
    let sql = " ".repeat(nacre_types::limits::MAX_SQL_BYTES + 1);
    assert_eq!(parse(&sql).unwrap_err().kind(), ErrorKind::Limit);
}
