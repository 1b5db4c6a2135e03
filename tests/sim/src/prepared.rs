//! Statements that a session prepares once and runs repeatedly while tables and columns change.

use crate::model::verdict::Answer;
use crate::op::condition::Where;
use crate::op::row::Column;
use crate::op::{Op, Upsert};
use nacredb::{ErrorKind, Prepared, Result, Session, Value};
use std::collections::BTreeMap;

/// A session's prepared statements, by their text.
pub type Statements = BTreeMap<String, Prepared>;

/// Runs an operation as a prepared statement, if it is one of those.
pub async fn run(
    session: &mut Session,
    statements: &mut Statements,
    op: &Op,
) -> Option<Result<Answer>> {
    let (sql, values) = statement(op)?;
    let prepared = match statements.get(&sql) {
        Some(prepared) => prepared.clone(),
        None => match session.prepare(&sql) {
            Ok(prepared) => statements.entry(sql).or_insert(prepared).clone(),
            Err(error) => return Some(Err(error)),
        },
    };
    // Use `get_async` for a single row, where it applies.
    if matches!(op, Op::Select { rows: Where::Key(_), .. }) {
        match session.get_async(&prepared, &values).await {
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            found => {
                let row = |row: Vec<Value>| row.iter().map(ToString::to_string).collect();
                return Some(found.map(|found| Answer::Rows(found.into_iter().map(row).collect())));
            }
        }
    }
    Some(session.run(&prepared, &values).await.map(|result| Answer::of(&result)))
}

/// A statement on rows with parameters for its values.
fn statement(op: &Op) -> Option<(String, Vec<Value>)> {
    let with = |text: String, mut first: Vec<Value>, rows: &Where| {
        let (condition, values) = condition(rows);
        first.extend(values);
        (text + &condition, first)
    };
    let number = |n: &i64| vec![Value::Int(*n)];
    Some(match op {
        Op::Select { table, rows } => with(format!("select * from {table}"), Vec::new(), rows),
        Op::Audit { table, rows } => {
            with(format!("select count(*), sum(v) from {table}"), Vec::new(), rows)
        }
        Op::ForUpdate { table, rows } => {
            let (text, values) = with(format!("select * from {table}"), Vec::new(), rows);
            (text + " for update", values)
        }
        Op::Add { table, rows, add } => {
            with(format!("update {table} set v = v + ?"), number(add), rows)
        }
        Op::Number { table, rows, v } => with(format!("update {table} set v = ?"), number(v), rows),
        Op::Text { table, rows, text } => {
            let text = text.as_ref().map_or(Value::Null, |text| Value::Text(text.clone()));
            with(format!("update {table} set s = ?"), vec![text], rows)
        }
        Op::Delete { table, rows } => with(format!("delete from {table}"), Vec::new(), rows),
        Op::Insert { table, rows } | Op::Upsert { table, rows, .. } if rows.len() <= 2 => {
            let (word, rest) = match op {
                Op::Upsert { how: Upsert::Replace, .. } => ("replace", ""),
                Op::Upsert { how: Upsert::Ignore, .. } => ("insert ignore", ""),
                Op::Upsert { how: Upsert::Nothing, .. } => ("insert", " on conflict do nothing"),
                Op::Upsert { how: Upsert::Duplicate, .. } => {
                    ("insert", " on duplicate key update v = v + values(v)")
                }
                Op::Upsert { .. } => return None,
                _ => ("insert", ""),
            };
            let values = rows
                .iter()
                .flat_map(|row| [Column::K, Column::V, Column::S].map(|column| column.of(row)));
            let places = vec!["(?, ?, ?)"; rows.len()].join(", ");
            (format!("{word} into {table} (k, v, s) values {places}{rest}"), values.collect())
        }
        Op::First { .. }
        | Op::Join { .. }
        | Op::Copy { .. }
        | Op::Rekey { .. }
        | Op::Wide { .. } => (op.sql(), Vec::new()),
        _ => return None,
    })
}

fn condition(rows: &Where) -> (String, Vec<Value>) {
    let number = |n: &i64| Value::Int(*n);
    let text = |text: &String| Value::Text(text.clone());
    let (condition, values) = match rows {
        Where::Key(k) => ("k = ?", vec![number(k)]),
        Where::Keys(low, high) => ("k between ? and ?", vec![number(low), number(high)]),
        Where::Remainder(r) => ("v % 7 = ?", vec![number(r)]),
        Where::V(v) => ("v = ?", vec![number(v)]),
        Where::Vs(low, high) => ("v between ? and ?", vec![number(low), number(high)]),
        Where::In(list) => ("v in (?, ?, ?)", list.iter().map(number).collect()),
        Where::S(s) => ("s = ?", vec![text(s)]),
        Where::Both(s, v) => ("s = ? and v = ?", vec![text(s), number(v)]),
        Where::Either(s, v) => ("(s = ? or v = ?)", vec![text(s), number(v)]),
        Where::W(w) => ("w = ?", vec![number(w)]),
        Where::Z(z) => ("z = ?", vec![number(z)]),
        Where::Number(v) => ("((d->>'number')::bigint) = ?", vec![number(v)]),
        Where::Listed(s) => ("(d->>'list[1].text') = ?", vec![text(s)]),
        Where::All | Where::NoText => return (rows.sql(), Vec::new()),
    };
    (format!(" where {condition}"), values)
}
