//! Whatever the parser reads is done or refused, and never dropped.
//!
//! Statements that bind are varied: each field of their syntax trees that is empty takes what other statements,
//! of many databases, have in that field. The text of the varied tree must then be refused, or be bound to
//! something else than before. `WITHOUT_EFFECT` lists the clauses that rightly change nothing.

use nacre_sql::{bind, parse};
use nacre_syntax::Tables;
use serde_json::{Map, Value};
use sqlparser::ast::Statement;
use sqlparser::dialect::{
    AnsiDialect, BigQueryDialect, ClickHouseDialect, DatabricksDialect, Dialect, DuckDbDialect,
    GenericDialect, HiveDialect, MsSqlDialect, MySqlDialect, OracleDialect, PostgreSqlDialect,
    RedshiftSqlDialect, SQLiteDialect, SnowflakeDialect,
};
use sqlparser::parser::Parser;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const TABLES: &[&str] = &[
    "create table t (i int primary key, s varchar(20), d decimal(8,2), at timestamp, n int, key (n))",
    "create table u (i int primary key, s varchar(20), n int)",
    "create table x (i int, constraint c check (i > 0))",
    "create view v (a, b) as select i, s from t",
];

/// Statements that bind, one in a line.
const BOUND: &str = "bound.sql";
/// Statements of many databases, for what stands in the fields of their syntax trees.
const OTHERS: &str = "others.sql";

/// Clauses that rightly change nothing, by the reason: the field, and what is written.
const WITHOUT_EFFECT: &str = "without_effect.txt";

/// What other statements have in the fields of a struct, by the names of all its fields.
type Samples = BTreeMap<(String, String), BTreeSet<String>>;

/// Most values of one field that are tried.
const MOST_SAMPLES: usize = 4;

/// The lines of a file of statements.
fn lines(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("statements").join(name);
    std::fs::read_to_string(path).unwrap().lines().map(str::to_string).collect()
}

fn dialects() -> Vec<Box<dyn Dialect>> {
    vec![
        Box::new(GenericDialect {}),
        Box::new(PostgreSqlDialect {}),
        Box::new(MySqlDialect {}),
        Box::new(SQLiteDialect {}),
        Box::new(DuckDbDialect {}),
        Box::new(MsSqlDialect {}),
        Box::new(SnowflakeDialect {}),
        Box::new(BigQueryDialect {}),
        Box::new(ClickHouseDialect {}),
        Box::new(HiveDialect {}),
        Box::new(DatabricksDialect {}),
        Box::new(RedshiftSqlDialect {}),
        Box::new(OracleDialect {}),
        Box::new(AnsiDialect {}),
    ]
}

/// The syntax trees of a text, in each dialect that reads it.
fn trees(text: &str) -> Vec<Value> {
    let parsed = dialects().into_iter().filter_map(|dialect| {
        let mut statements = Parser::parse_sql(&*dialect, text).ok()?;
        (statements.len() == 1).then(|| serde_json::to_value(statements.remove(0)).unwrap())
    });
    parsed.collect()
}

fn kind(fields: &Map<String, Value>) -> String {
    fields.keys().map(String::as_str).collect::<Vec<_>>().join(",")
}

fn harvest(tree: &Value, samples: &mut Samples) {
    match tree {
        Value::Object(fields) => {
            for (name, value) in fields {
                if !is_empty(value) && is_varied(name) {
                    let known = samples.entry((kind(fields), name.clone())).or_default();
                    if known.len() < MOST_SAMPLES {
                        known.insert(value.to_string());
                    }
                }
                harvest(value, samples);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| harvest(item, samples)),
        _ => {}
    }
}

/// Whether a field may have a clause. Others have places in the text.
fn is_varied(name: &str) -> bool {
    let is_place = ["span", "token", "line", "column"].contains(&name);
    // Names mean the same with quotes where they are in small letters.
    name.starts_with(|c: char| c.is_ascii_lowercase()) && !is_place && name != "quote_style"
}

/// Whether a field has no clause: null, false, an empty list, or a word of the parser's such as `None`.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::String(word) => word.eq_ignore_ascii_case("none"),
        _ => false,
    }
}

/// Calls with each variation of a tree, and the name of the field that differs.
fn vary(tree: &Value, samples: &Samples, check: &mut dyn FnMut(&str, Value)) {
    let mut places = Vec::new();
    fields_of(tree, String::new(), String::new(), &mut places);
    for (pointer, label, kind, name) in places {
        let mut values = samples.get(&(kind, name)).cloned().unwrap_or_default();
        let before = tree.pointer(&pointer).cloned().unwrap_or_default();
        if before.is_boolean() {
            values.insert("true".into());
        }
        for value in values {
            let mut varied = tree.clone();
            if let Some(place) = varied.pointer_mut(&pointer) {
                *place = serde_json::from_str(&value).unwrap();
                check(&label, varied);
            }
        }
    }
}

/// The empty fields of a tree: where they are, their names below the nearest name of a type, the kind of their
/// struct, and their own names.
fn fields_of(
    tree: &Value,
    pointer: String,
    label: String,
    out: &mut Vec<(String, String, String, String)>,
) {
    match tree {
        Value::Object(fields) => {
            for (name, value) in fields {
                let pointer = format!("{pointer}/{name}");
                let label = match name.starts_with(|c: char| c.is_ascii_uppercase()) {
                    true => name.clone(),
                    false => format!("{label}.{name}"),
                };
                if is_empty(value) && is_varied(name) {
                    out.push((pointer.clone(), label.clone(), kind(fields), name.clone()));
                }
                fields_of(value, pointer, label, out);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                fields_of(item, format!("{pointer}/{at}"), label.clone(), out);
            }
        }
        _ => {}
    }
}

/// What a text is bound to; `None` if it is refused.
fn bound(text: &str, tables: &Tables) -> Option<String> {
    let parsed = parse(text).ok()?;
    let statements: Option<Vec<_>> =
        parsed.iter().map(|parsed| bind(parsed, tables, &[]).ok()).collect();
    Some(format!("{:?}", statements?))
}

#[test]
fn every_clause_is_done_or_refused() {
    let tables = Tables::of(TABLES).unwrap();
    let mut samples = Samples::new();
    let (statements, others) = (lines(BOUND), lines(OTHERS));
    let mut unread = Vec::new();
    for text in statements.iter().chain(&others) {
        let trees = trees(text);
        if trees.is_empty() {
            unread.push(text.as_str());
        }
        trees.iter().for_each(|tree| harvest(tree, &mut samples));
    }
    assert!(unread.is_empty(), "no dialect has\n{}", unread.join("\n"));
    let is_refused = |text: &&String| bound(text, &tables).is_none();
    let refused: Vec<&str> = statements.iter().filter(is_refused).map(String::as_str).collect();
    assert!(refused.is_empty(), "these do not bind:\n{}", refused.join("\n"));
    let (mut varied, mut dropped) = (0, BTreeMap::new());
    for text in &statements {
        let tree = trees(text).remove(0);
        let written = serde_json::from_value::<Statement>(tree.clone()).unwrap().to_string();
        let before = bound(&written, &tables);
        assert!(before.is_some(), "{written} is refused, and {text} is not");
        vary(&tree, &samples, &mut |label, tree| {
            let Ok(statement) = serde_json::from_value::<Statement>(tree) else { return };
            let other = statement.to_string();
            if other != written {
                varied += 1;
                if bound(&other, &tables) == before {
                    let clause = format!("{label}: {}", added(&written, &other));
                    dropped.entry(clause).or_insert(other);
                }
            }
        });
    }
    println!("{varied} variations");
    assert!(varied > 1_000, "{varied} variations");
    for line in lines(WITHOUT_EFFECT) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let before = dropped.len();
        match line.strip_suffix('*') {
            Some(start) => dropped.retain(|clause, _| !clause.starts_with(start)),
            None => dropped.retain(|clause, _| *clause != line),
        }
        assert!(dropped.len() < before, "this is refused or has an effect: {line}");
    }
    let list: Vec<String> =
        dropped.iter().map(|(clause, text)| format!("{clause}\n    {text}")).collect();
    assert!(list.is_empty(), "{} clauses are read and ignored:\n{}", list.len(), list.join("\n"));
}

/// What a text has that the other one lacks.
fn added<'a>(before: &str, after: &'a str) -> &'a str {
    let start: usize = before
        .chars()
        .zip(after.chars())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    let rest = before.len().min(after.len()) - start;
    let end: usize = (before[start..].chars().rev().zip(after[start..].chars().rev()))
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    after[start..after.len() - end.min(rest)].trim()
}
