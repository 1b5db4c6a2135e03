//! Indexes of what documents contain, and of other expressions: found, ordered and joined by, unique,
//! beside writers, after a crash, and when definitions change.

use nacre_native::block_on;
use nacre_session_tests::{
    Random, access, kind, memory, memory_host, options, rows, run, run_with,
};
use nacredb::{Budget, Database, ErrorKind, Session, Value};

/// Orders with a status, a customer, a number and lines, partly in segments.
fn orders(session: &mut Session, count: i64) {
    run(session, "create table o (id bigint primary key, doc json, note text)").unwrap();
    insert(session, 0, count);
    run(session, "optimize table o flush").unwrap();
    insert(session, count, count + 50);
}

fn insert(session: &mut Session, from: i64, to: i64) {
    let row = |id: i64| {
        let (customer, status) = (id % 97, ["new", "paid", "sent"][id as usize % 3]);
        format!(
            r#"({id}, '{{"status":"{status}","customer":{{"id":{customer},"mail":"M{id}@x"}},"n":{id},"lines":[{{"sku":"s{}"}}]}}', 'Note {id}')"#,
            id % 11
        )
    };
    let values: Vec<String> = (from..to).map(row).collect();
    run(session, &format!("insert into o values {}", values.join(", "))).unwrap();
}

fn settle(db: &Database) {
    while db.maintain(Budget::Steps(100)).unwrap() {}
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

fn uses(session: &mut Session, sql: &str) -> Vec<String> {
    access(session, sql).unwrap().indexes().iter().map(ToString::to_string).collect()
}

#[test]
fn conditions_on_paths_use_their_index() {
    let db = memory().unwrap();
    let mut s = db.session();
    orders(&mut s, 6_000);
    run(&mut s, "create index mail on o ((doc->>'customer.mail'))").unwrap();
    run(&mut s, "create index n on o ((json_value(doc, '$.n' returning double)))").unwrap();
    run(
        &mut s,
        "create index big on o ((cast(doc->>'customer.id' as bigint)), (doc->>'$.status'))",
    )
    .unwrap();
    run(&mut s, "create index low on o (lower(note)) using hash").unwrap();
    for step in ["before parts are built", "after", "after a merge"] {
        for (condition, index, expected) in [
            ("doc->>'customer.mail' = 'M4711@x'", "mail", vec!["4711"]),
            ("doc->>'$.customer.mail' in ('M6020@x', 'M3@x', 'none')", "mail", vec!["3", "6020"]),
            ("json_extract_string(doc, 'customer', 'mail') = 'M6001@x'", "mail", vec!["6001"]),
            ("doc->>'n' = 77", "n", vec!["77"]),
            ("doc->'n' >= 6048 and doc->>'n' < 9000", "n", vec!["6048", "6049"]),
            (
                "(doc->>'customer.id')::bigint = 5 and doc->>'status' = 'paid' and id < 700",
                "big",
                vec!["199", "490"],
            ),
            ("lower(note) = 'note 5999'", "low", vec!["5999"]),
        ] {
            let sql = format!("select id from o where {condition} order by id");
            assert_eq!(rows(&mut s, &sql).unwrap(), expected, "{sql}, {step}");
            if step != "before parts are built" {
                assert_eq!(uses(&mut s, &sql), [index], "{sql}, {step}");
            }
            let explained = rows(&mut s, &format!("explain {sql}")).unwrap().join("\n");
            assert!(explained.contains(&format!("using {index}")), "{explained}");
        }
        assert_eq!(
            run_with(
                &mut s,
                "select id from o where doc->>'customer.mail' = ?",
                &[Value::Text("M9@x".into())]
            )
            .unwrap()
            .to_rows()
            .len(),
            1
        );
        match step {
            "before parts are built" => settle(&db),
            _ => drop(run(&mut s, "optimize table o full").unwrap()),
        }
        settle(&db);
    }
}

#[test]
fn rows_in_the_order_of_a_path_come_from_its_index() {
    let db = memory().unwrap();
    let mut s = db.session();
    orders(&mut s, 8_000);
    run(&mut s, "create index mail on o ((doc->>'customer.mail'))").unwrap();
    run(&mut s, "optimize table o full").unwrap();
    settle(&db);
    for (down, expected) in
        [("", ["M0@x", "M1000@x", "M1001@x"]), (" desc", ["M9@x", "M99@x", "M999@x"])]
    {
        let sql = format!(
            "select doc->>'customer.mail' as mail from o where doc->>'customer.mail' is not null \
             order by doc->>'customer.mail'{down} limit 3"
        );
        assert_eq!(rows(&mut s, &sql).unwrap(), expected);
        assert_eq!(uses(&mut s, &sql), ["mail"], "{sql}");
    }
}

#[test]
fn joins_look_up_paths() {
    let db = memory().unwrap();
    let mut s = db.session();
    orders(&mut s, 8_000);
    run(&mut s, "create index mail on o ((doc->>'customer.mail'))").unwrap();
    run(&mut s, "create table m (mail text); insert into m values ('M5@x'), ('M7000@x'), ('no')")
        .unwrap();
    settle(&db);
    let sql = "select o.id from m join o on o.doc->>'customer.mail' = m.mail order by 1";
    assert_eq!(rows(&mut s, sql).unwrap(), ["5", "7000"]);
    assert_eq!(uses(&mut s, sql), ["mail"]);
}

#[test]
fn unique_paths_hold_for_every_way_of_writing() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table u (id int primary key, doc json, hits int default 0, unique key mail ((doc->>'mail')))")
        .unwrap();
    run(&mut s, r#"insert into u (id, doc) values (1, '{"mail":"a"}'), (2, '{"mail":"b"}'), (3, '{}'), (4, null), (5, '{"mail":null}')"#)
        .unwrap();
    for flush in [false, true] {
        if flush {
            run(&mut s, "optimize table u flush").unwrap();
            settle(&db);
        }
        let taken = r#"insert into u (id, doc) values (9, '{"x":1,"mail":"a"}')"#;
        assert_eq!(kind(&mut s, taken), Some(ErrorKind::Constraint));
        let twice = r#"insert into u (id, doc) values (8, '{"mail":"c"}'), (9, '{"mail":"c"}')"#;
        assert_eq!(kind(&mut s, twice), Some(ErrorKind::Constraint));
        let change = "update u set doc = json_set(doc, '$.mail', 'b') where id = 1";
        assert_eq!(kind(&mut s, change), Some(ErrorKind::Constraint));
        let many =
            r#"insert into u (id, doc) select 100 + x, '{"mail":"a"}' from range(0, 2) r(x)"#;
        assert_eq!(kind(&mut s, many), Some(ErrorKind::Constraint));
        run(&mut s, r#"insert into u (id, doc) values (7, '{"mail":"a","n":1}') on duplicate key update hits = hits + 1"#)
            .unwrap();
        run(&mut s, r#"insert into u (id, doc) values (7, '{"mail":"b"}') on conflict on constraint mail do update set hits = u.hits + 10"#)
            .unwrap();
        run(&mut s, r#"insert ignore into u (id, doc) values (7, '{"mail":"b"}')"#).unwrap();
    }
    assert_eq!(
        rows(&mut s, "select id, hits from u where hits > 0 order by id").unwrap(),
        ["1|2", "2|20"]
    );
    // Values are exchanged by one statement, and free once they are gone.
    run(&mut s, "update u set doc = json_set(doc, '$.mail', case id when 1 then 'b' else 'a' end) where id < 3").unwrap();
    assert_eq!(rows(&mut s, "select id from u where doc->>'mail' = 'a'").unwrap(), ["2"]);
    run(&mut s, r#"replace into u (id, doc) values (6, '{"mail":"a"}')"#).unwrap();
    assert_eq!(rows(&mut s, "select id from u where doc->>'mail' = 'a'").unwrap(), ["6"]);
    run(&mut s, r#"delete from u where doc->>'mail' = 'a'; insert into u (id, doc) values (2, '{"mail":"a"}')"#)
        .unwrap();
    settle(&db);
    assert_eq!(rows(&mut s, "select id from u order by id").unwrap(), ["1", "2", "3", "4", "5"]);
}

#[test]
fn a_row_whose_key_cannot_be_computed_is_refused() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, doc json)").unwrap();
    run(&mut s, r#"insert into t values (1, '{"n":5}'), (2, '{"n":"x"}')"#).unwrap();
    let create = "create index n on t (((doc->>'n')::bigint))";
    assert_eq!(kind(&mut s, create), kind(&mut s, "select 'x'::bigint"));
    run(&mut s, "optimize table t flush").unwrap();
    assert!(kind(&mut s, create).is_some());
    run(&mut s, r#"update t set doc = '{"n":"6"}' where id = 2"#).unwrap();
    run(&mut s, create).unwrap();
    for bad in [
        r#"insert into t values (3, '{"n":"y"}')"#,
        r#"update t set doc = '{"n":1.5e400}' where id = 1"#,
        r#"insert into t values (1, '{"n":"z"}') on duplicate key update doc = excluded.doc"#,
        r#"insert into t select 10 + x, '{"n":[]}' from range(0, 3) r(x)"#,
    ] {
        assert!(kind(&mut s, bad).is_some(), "{bad}");
    }
    settle(&db);
    assert_eq!(
        rows(&mut s, "select id from t where (doc->>'n')::bigint between 5 and 6 order by id")
            .unwrap(),
        ["1", "2"]
    );
}

#[test]
fn open_writers_commit_and_the_index_has_their_rows() {
    let db = memory().unwrap();
    let mut s = db.session();
    orders(&mut s, 300);
    let mut writer = db.session();
    run(&mut writer, r#"begin; insert into o values (9000, '{"customer":{"mail":"new"}}', '')"#)
        .unwrap();
    run(
        &mut writer,
        "update o set doc = json_set(doc, '$.customer.mail', 'changed') where id in (5, 320)",
    )
    .unwrap();
    run(&mut s, "create index mail on o ((doc->>'customer.mail'))").unwrap();
    run(&mut writer, r#"insert into o values (9001, '{"customer":{"mail":"newer"}}', ''); commit"#)
        .unwrap();
    settle(&db);
    for (mail, ids) in [
        ("new", vec!["9000"]),
        ("newer", vec!["9001"]),
        ("changed", vec!["5", "320"]),
        ("M5@x", vec![]),
    ] {
        let sql = format!("select id from o where doc->>'customer.mail' = '{mail}' order by id");
        assert_eq!(rows(&mut s, &sql).unwrap(), ids, "{mail}");
    }
}

#[test]
fn indexes_of_paths_survive_a_crash() {
    let host = memory_host();
    for round in 0..4 {
        // Opened again without having been closed.
        let db = block_on(Database::open(host.clone(), options())).unwrap();
        let mut s = db.session();
        if round == 0 {
            orders(&mut s, 400);
            run(&mut s, "create unique index mail on o ((doc->>'customer.mail'))").unwrap();
            run(&mut s, "alter table o add key both (note, (doc->>'status'))").unwrap();
        }
        if round == 2 {
            run(&mut s, "optimize table o full").unwrap();
            settle(&db);
        }
        assert_eq!(
            rows(&mut s, "select id from o where doc->>'customer.mail' = 'M7@x'").unwrap(),
            ["7"]
        );
        assert_eq!(
            rows(&mut s, "select id from o where doc->>'customer.mail' = 'M430@x'").unwrap(),
            ["430"]
        );
        let taken = r#"insert into o values (-1, '{"customer":{"mail":"M430@x"}}', '')"#;
        assert_eq!(kind(&mut s, taken), Some(ErrorKind::Constraint), "round {round}");
        let created = rows(&mut s, "show create table o").unwrap().join("\n");
        assert!(created.contains("UNIQUE KEY \"mail\" ((doc ->> 'customer.mail'))"), "{created}");
        assert!(created.contains("KEY \"both\" (\"note\", (doc ->> 'status'))"), "{created}");
        settle(&db);
    }
}

#[test]
fn definitions_follow_the_columns_that_they_read() {
    let db = memory().unwrap();
    let mut s = db.session();
    orders(&mut s, 200);
    run(&mut s, "create index mail on o ((doc->>'customer.mail'))").unwrap();
    assert_eq!(kind(&mut s, "alter table o drop column doc"), Some(ErrorKind::Constraint));
    run(&mut s, "alter table o rename column doc to body; alter table o drop column note").unwrap();
    run(&mut s, "alter table o add column first int default 3 first; alter table o rename to p")
        .unwrap();
    insert_into_p(&mut s);
    settle(&db);
    assert_eq!(
        rows(
            &mut s,
            "select id from p where body->>'customer.mail' in ('M7@x', 'late') order by id"
        )
        .unwrap(),
        ["7", "999"]
    );
    assert_eq!(
        rows(&mut s, "select index_name, column_name, expression from information_schema.statistics where table_name = 'p' and index_name <> 'PRIMARY'").unwrap(),
        ["mail|NULL|\"body\" ->> 'customer.mail'"]
    );
    assert_eq!(rows(&mut s, "show indexes from p").unwrap().len(), 2);
    // The same expression in two indexes is computed once, and gone with the last of them.
    run(&mut s, "create index again on p ((body->>'$.customer.mail'), id); drop index mail on p")
        .unwrap();
    run(&mut s, "drop index again on p; alter table p drop column body").unwrap();
    settle(&db);
}

fn insert_into_p(session: &mut Session) {
    run(session, r#"insert into p (id, body) values (999, '{"customer":{"mail":"late"}}')"#)
        .unwrap();
}

#[test]
fn what_cannot_be_indexed_is_unsupported() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, doc json, n int)").unwrap();
    for bad in [
        "create index i on t ((doc->'a'))",
        "create index i on t ((cast(doc->'$.tags' as char(10) array)))",
        "create index i on t ((rand()))",
        "create index i on t ((now()))",
        "create index i on t ((1))",
        "create index i on t ((n + (select 1)))",
        "create index i on t ((sum(n)))",
        "create index i on t (n(10))",
        "create table x (doc json, primary key ((doc->>'a')))",
    ] {
        let kind = kind(&mut s, bad);
        assert!(
            matches!(kind, Some(ErrorKind::Unsupported | ErrorKind::Syntax | ErrorKind::Type)),
            "{bad}: {kind:?}"
        );
    }
    assert_eq!(rows(&mut s, "show indexes from t").unwrap().len(), 1);
}

/// Random changes of a table with indexes on paths, and of one without, answer alike.
#[test]
fn tables_with_and_without_indexes_on_paths_agree() {
    let db = memory().unwrap();
    let mut s = db.session();
    let columns = "(id bigint primary key, doc json)";
    run(&mut s, &format!("create table plain {columns}")).unwrap();
    run(&mut s, "create table keyed (id bigint primary key, doc json, key ((doc->>'a')), key ((json_value(doc, '$.b' returning double)), (doc->>'c.d')), key ((doc->>'c.d')) using hash)")
        .unwrap();
    let mut random = Random::new(59);
    for step in 0..300 {
        let id = random.below(120);
        let value = [
            "\"x\"",
            "\"y\"",
            "1",
            "1.0",
            "2",
            "true",
            "null",
            "[1]",
            "{\"d\":\"x\"}",
            "{\"d\":7}",
        ];
        let member = |random: &mut Random, name: &str| match random.below(5) {
            0 => String::new(),
            _ => format!("\"{name}\":{},", random.pick(&value)),
        };
        let doc = format!(
            "{{{}{}{}\"e\":0}}",
            member(&mut random, "a"),
            member(&mut random, "b"),
            member(&mut random, "c")
        );
        let path = *random.pick(&["a", "b", "c.d"]);
        let text = *random.pick(&["x", "y", "1", "2", "7", "true"]);
        let conditions = [
            format!("doc->>'{path}' = '{text}'"),
            format!("doc->>'b' = {}", random.below(3)),
            format!("doc->>'b' = {} and doc->>'c.d' = '{text}'", random.below(3)),
            format!("doc->>'{path}' in ('x', '1', '{text}')"),
            format!("doc->>'c.d' > '{text}'"),
            format!("doc->>'{path}' is null"),
            format!("(doc->>'a' = '{text}' or doc->>'c.d' = 'x')"),
        ];
        let condition = random.pick(&conditions).clone();
        for table in ["plain", "keyed"] {
            let sql = match step % 6 {
                0..=2 => format!("replace into {table} values ({id}, '{doc}')"),
                3 => format!(
                    "update {table} set doc = json_set(doc, '$.a', '{text}') where {condition}"
                ),
                4 if step % 4 == 0 => format!("delete from {table} where {condition}"),
                _ => format!("update {table} set doc = '{doc}' where id = {id}"),
            };
            run(&mut s, &sql).unwrap();
            if step % 23 == 22 {
                run(&mut s, &format!("optimize table {table} flush")).unwrap();
            }
        }
        for condition in &conditions {
            let of = |table: &str| format!("select * from {table} where {condition} order by id");
            let expected = rows(&mut s, &of("plain")).unwrap();
            assert_eq!(rows(&mut s, &of("keyed")).unwrap(), expected, "step {step}: {condition}");
        }
        if step % 50 == 49 {
            settle(&db);
        }
    }
}
