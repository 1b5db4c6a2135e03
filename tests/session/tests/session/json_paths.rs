//! Parts of documents that scans read by their paths equal those of whole documents: in segments of
//! several shapes, beside rows in memory, after deletions and merges, and by every strategy.

use nacre_session_tests::{Random, memory, rows, run, threaded};
use nacredb::{ErrorKind, Options, Session};

/// A document as a column that no scan sees through.
const HIDDEN: &str = "(select id, k, case when id >= 0 then doc end as doc from t)";

const PATHS: [&str; 21] = [
    "a",
    "a.b",
    "$.\"a.b\"",
    "a.b.c",
    "n",
    "s",
    "m",
    "items",
    "items[0]",
    "items[-1].q",
    "items[1].s",
    "items[0].deep.x",
    "tags[0]",
    "tags[2]",
    "/items/0/q",
    "{a,0}",
    "{tags,-1}",
    "rare",
    "none",
    "$.\"\\n\"",
    "m.q.q",
];

fn number(random: &mut Random) -> String {
    let odd = ["1", "1.0", "-0", "-0.0", "1e3", "12.50", "9007199254740993", "1e999"];
    match random.below(8) {
        0 => (*random.pick(&odd)).to_string(),
        1 => "123456789012345678901234567890.5".into(),
        2 => format!("{}.25", random.below(50)),
        _ => random.between(-40, 60).to_string(),
    }
}

fn string(random: &mut Random) -> String {
    let odd = ["", "x", "5", "1e3", "true", "2024-02-29", "\\ud800", "é\\n", "\\\"", "x' y"];
    match random.below(3) {
        0 => format!("\"{}\"", random.pick(&odd)),
        _ => format!("\"word {}\"", random.below(12)),
    }
}

fn scalar(random: &mut Random) -> String {
    match random.below(7) {
        0 => "null".into(),
        1 => "true".into(),
        2 => "false".into(),
        3 | 4 => string(random),
        _ => number(random),
    }
}

fn value(random: &mut Random, depth: u64) -> String {
    match random.below(5 - depth.min(3)) {
        0 | 1 => scalar(random),
        2 => {
            let elements: Vec<String> =
                (0..random.below(4)).map(|_| value(random, depth + 1)).collect();
            format!("[{}]", elements.join(","))
        }
        _ => {
            let keys = ["b", "c", "q", "a.b", "0"];
            let members: Vec<String> = (0..random.below(4))
                .map(|_| format!("\"{}\":{}", random.pick(&keys), value(random, depth + 1)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn item(random: &mut Random) -> String {
    let mut members = vec![format!("\"q\":{}", random.below(9))];
    if random.percent(70) {
        members.push(format!("\"s\":{}", string(random)));
    }
    if random.percent(30) {
        members.push(format!("\"deep\":{{\"x\":{}}}", scalar(random)));
    }
    format!("{{{}}}", members.join(","))
}

/// A document; `is_even` for a table whose paths mostly have one kind of values.
fn document(random: &mut Random, is_even: bool) -> String {
    if random.percent(3) {
        return value(random, 0);
    }
    let odd = |random: &mut Random| !is_even || random.percent(2);
    let mut members = vec![format!(
        "\"n\":{}",
        if odd(random) { scalar(random) } else { random.below(1000).to_string() }
    )];
    let text = format!("\"word {}\"", random.below(12));
    members.push(format!("\"s\":{}", if odd(random) { scalar(random) } else { text }));
    if odd(random) {
        members.push(format!("\"a\":{}", value(random, 0)));
        members.push(format!("\"a.b\":{}", scalar(random)));
        members.push(format!("\"m\":{}", value(random, 0)));
    } else {
        members.push(format!("\"a\":{{\"b\":{}}}", random.below(90)));
    }
    let items: Vec<String> = (0..random.below(4)).map(|_| item(random)).collect();
    members.push(match random.below(30) {
        0 if !is_even => format!("\"items\":{}", value(random, 1)),
        _ => format!("\"items\":[{}]", items.join(",")),
    });
    if random.percent(40) {
        members.push(format!("\"tags\":[\"t{}\",\"u\",{}]", random.below(5), scalar(random)));
    }
    if random.percent(4) {
        members.push(format!("\"\\ud800\":1,\"\\n\":{}", scalar(random)));
    }
    if random.percent(1) {
        members.push(format!("\"rare\":{},\"n\":7", value(random, 1)));
    }
    format!("{{{}}}", members.join(","))
}

fn insert(session: &mut Session, ids: std::ops::Range<i64>, random: &mut Random, is_even: bool) {
    let values: Vec<String> = ids
        .map(|id| match random.percent(3) {
            true => format!("({id}, {}, null)", id % 11),
            false => {
                let text = document(random, is_even).replace('\'', "''");
                format!("({id}, {}, '{text}')", id % 11)
            }
        })
        .collect();
    run(session, &format!("insert into t values {}", values.join(", "))).unwrap();
}

/// Expressions over a document at a path.
fn expressions(path: &str) -> Vec<String> {
    let path = format!("'{}'", path.replace('\'', "''"));
    let mut all = vec![
        format!("doc->{path}"),
        format!("doc->>{path}"),
        format!("json_query(doc, {path})"),
        format!("json_exists(doc, {path})"),
        format!("(doc->>{path})::bigint"),
        format!("(doc->>{path})::double"),
        format!("(doc->>{path})::decimal(20, 2)"),
        format!("doc->{path}->>'b'"),
        format!("doc #>> {path}"),
    ];
    for returns in ["text", "bigint", "int", "double", "boolean", "decimal(12, 3)", "date"] {
        all.push(format!("json_value(doc, {path} returning {returns})"));
    }
    all
}

fn filters(path: &str) -> Vec<String> {
    let text = format!("doc->>'{path}'");
    vec![
        format!("{text} = 'word 3'"),
        format!("{text} in ('5', 'x', 'true', 'word 7')"),
        format!("{text} like 'word 1%' or {text} like '%d 2'"),
        format!("{text} is null"),
        format!("{text} is not null and doc->'{path}' > 20"),
        format!("doc->'{path}' between 3 and 30"),
        format!("doc->'{path}' = 1"),
        format!("json_value(doc, '{path}' returning bigint) < 10"),
        format!("(doc->>'{path}')::bigint >= 50"),
    ]
}

/// Rows, or the kind of the error.
fn answer(session: &mut Session, sql: &str) -> Result<Vec<String>, ErrorKind> {
    rows(session, sql).map_err(|error| error.kind())
}

/// Compares a query of `{t}` with the same one of whole documents.
fn same(session: &mut Session, sql: &str) {
    let expected = answer(session, &sql.replace("{t}", HIDDEN));
    let found = answer(session, &sql.replace("{t}", "t"));
    assert!(
        expected.is_ok() || sql.contains("::") || sql.contains("_elements"),
        "{sql}: {expected:?}"
    );
    if let (Ok(found), Ok(expected)) = (&found, &expected)
        && let Some((a, b)) = found.iter().zip(expected).find(|(a, b)| a != b)
    {
        panic!("{sql}: {a}, and of the whole document {b}");
    }
    assert_eq!(found, expected, "{sql}");
}

fn compare(session: &mut Session, random: &mut Random, share: u64) {
    for path in PATHS {
        for expr in expressions(path) {
            if random.percent(share) {
                same(session, &format!("select id, {expr} from {{t}} t order by id"));
                same(session, &format!("select id, {expr} from {{t}} t where k = 3 order by id"));
            }
        }
    }
    for path in ["n", "s", "a.b", "items[0].q", "m", "tags[0]", "rare"] {
        for filter in filters(path) {
            if random.percent(share) {
                same(session, &format!("select id from {{t}} t where {filter} order by id"));
                same(
                    session,
                    &format!("select id, doc->>'s' from {{t}} t where {filter} order by id"),
                );
            }
        }
        let text = format!("doc->>'{path}'");
        same(
            session,
            &format!("select {text}, count(*), min(id) from {{t}} t group by {text} order by 1"),
        );
        let number = format!("json_value(doc, '{path}' returning double)");
        // Sums of doubles depend on the order of rows.
        let exact = number.replace("double", "bigint");
        same(session, &format!("select sum({exact}), max({number}), count({text}) from {{t}} t"));
    }
    for sql in [
        "select id, i.* from {t} t, json_table(doc, '$.items[*]' columns (n for ordinality,
            q bigint path '$.q', s text path '$.s', x text path '$.deep.x', j json path '$'))
            i order by id, n",
        "select sum(q), count(*), count(x) from {t} t, json_table(doc, '$.items[*]' columns
            (q double path '$.q', x text path '$.deep.x')) i",
        "select v, count(*) from {t} t, json_table(doc, '$.tags[*]' columns (v text path '$')) i
            group by v order by 1",
        "select k, max(q) from {t} t, json_table(doc, '$.items[*]' columns (q bigint path '$.q')) i
            where k > 4 and doc->>'s' like 'word%' group by k order by k",
        "select count(*) from {t} t, json_table(doc, '$.items[*]' columns (q bigint path '$.q')) i",
        "select id, e.value->>'q' from {t} t, json_array_elements(doc->'items') e
            where doc->>'items' like '[%' order by id, 2",
        "select t.id, e.key, e.value->>'q' from {t} t, json_each(doc, '$.items') e order by 1, 2",
        "select a.id, b.id from {t} a, {t} b where a.doc->>'s' = b.doc->>'a.b' order by 1, 2",
    ] {
        same(session, sql);
    }
}

fn fill(session: &mut Session, random: &mut Random, is_even: bool) {
    run(session, "create table t (id bigint primary key, k int, doc json, index (k))").unwrap();
    for part in 0..3 {
        insert(session, part * 700..part * 700 + 700, random, is_even);
        run(session, "optimize table t flush").unwrap();
    }
    run(session, "delete from t where id % 7 = 3").unwrap();
    insert(session, 5000..5120, random, is_even);
    run(session, "update t set doc = json_set(doc, '$.n', 3) where id % 31 = 4").unwrap();
}

#[test]
fn parts_of_documents_are_those_of_the_whole() {
    let share = if std::env::var("NACRE_ABSENT").is_ok() { 20 } else { 100 };
    for (seed, is_even) in [(1, true), (2, false)] {
        let mut random = Random::new(seed);
        let db = memory().unwrap();
        let session = &mut db.session();
        fill(session, &mut random, is_even);
        compare(session, &mut random, share);
        run(session, "optimize table t full").unwrap();
        compare(session, &mut random, share / 2);
    }
}

#[test]
fn every_strategy_finds_the_same_parts() {
    let mut random = Random::new(7);
    let db = threaded(Options { threads: 2, ..Options::default() }).unwrap();
    let session = &mut db.session();
    fill(session, &mut random, true);
    for strategy in ["regular", "encoded", "group", "index"] {
        run(session, &format!("set scan_strategy = '{strategy}'")).unwrap();
        compare(session, &mut random, 10);
    }
}

/// Documents of which one has a key that most have not.
fn wide(session: &mut Session) {
    run(session, "create table t (id bigint primary key, k int, doc json)").unwrap();
    for start in (0..12_000).step_by(3_000) {
        let values: Vec<String> = (start..start + 3_000)
            .map(|id: i64| {
                let rare = if id == 5_000 { ",\"rare\":{\"x\":[5,\"y\"]}" } else { "" };
                let text = format!("{:016x}", (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let (status, n) = (id % 5, id * 3);
                format!(
                    "({id}, 0, '{{\"n\":{n},\"status\":\"state {status}\",\"long\":\"{text}{text}\",\
                     \"o\":{{\"f\":{id}.5}},\"items\":[{{\"q\":1,\"t\":\"{text}\"}},{{\"q\":{status}}}]\
                     {rare}}}')"
                )
            })
            .collect();
        run(session, &format!("insert into t values {}", values.join(", "))).unwrap();
    }
    run(session, "optimize table t full").unwrap();
}

#[test]
fn one_path_takes_few_bytes_and_its_zones_skip_blocks() {
    let db = memory().unwrap();
    let session = &mut db.session();
    wide(session);
    let bytes = |session: &mut Session, sql: &str| run(session, sql).unwrap().statistics.bytes_read;
    let whole = bytes(session, "select max(length(doc::text)) from t");
    for (sql, share) in [
        ("select sum((doc->>'n')::bigint) from t", 20),
        ("select doc->>'status', count(*) from t group by 1", 20),
        ("select sum(json_value(doc, '$.o.f' returning double)) from t", 10),
        ("select sum(q) from t, json_table(doc, '$.items[*]' columns (q int path '$.q')) i", 10),
        ("select count(*) from t where doc->'rare' is not null", 10),
    ] {
        let one = bytes(session, sql);
        assert!(one * share < whole, "{sql} reads {one} bytes, documents have {whole}");
    }
    assert_eq!(rows(session, "select sum((doc->>'n')::bigint) from t").unwrap(), ["215982000"]);
    assert_eq!(
        rows(session, "select doc->>'rare.x[1]' from t where doc->'rare' is not null").unwrap(),
        ["y"]
    );
    for filter in [
        "(doc->>'n')::bigint > 35990",
        "doc->'n' > 35990",
        "json_value(doc, '$.n' returning bigint) = 35991",
        "json_value(doc, '$.o.f' returning double) > 11997.0",
        "doc->>'o.none' = 'x'",
    ] {
        let found = run(session, &format!("select count(*) from t where {filter}")).unwrap();
        assert!(found.statistics.blocks_skipped >= 2, "{filter}: {:?}", found.statistics);
        same(session, &format!("select count(*) from {{t}} t where {filter}"));
    }
}
