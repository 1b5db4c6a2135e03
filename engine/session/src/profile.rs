//! `PROFILE`: runs a statement and answers its plan, with what each node of it did, instead of its rows. What the
//! statement writes is written.

use crate::result::{ResultKind, StatementResult};
use crate::statement::{self, Settings};
use nacre_column::{Batch, Vector};
use nacre_exec::{Measured, Profile};
use nacre_sql::{Field, Statement, explain_nodes};
use nacre_table::Transaction;
use nacre_types::{DataType, Result, Value};
use std::fmt::Write;
use std::sync::Arc;

/// Columns of the answer.
pub(crate) fn fields() -> Vec<Field> {
    let field = |(name, data_type): (&str, DataType)| Field {
        name: name.into(),
        data_type,
        nullable: true,
    };
    let (text, number) = (DataType::TEXT, DataType::Int64);
    [("plan", text), ("rows", number), ("time_us", number), ("access", text)].map(field).into()
}

/// Runs the statement under measurement.
pub(crate) fn run(
    transaction: &mut Transaction,
    statement: &Statement,
    settings: &Settings<'_>,
) -> Result<StatementResult> {
    let lines = explain_nodes(statement);
    let profile = Profile::of(lines.iter().filter_map(|(_, plan)| *plan));
    let store = transaction.store().clone();
    let from = store.now_ns();
    let done =
        statement::run(transaction, statement, &Settings { profile: Some(&profile), ..*settings })?;
    let whole = vec![
        Value::Int(done.rows_affected as i64),
        Value::Int((store.now_ns().saturating_sub(from) / 1_000) as i64),
        Value::Null,
    ];
    let mut nodes = profile.nodes().iter();
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for (line, plan) in lines {
        let mut row = vec![Value::Text(line)];
        row.extend(match plan {
            // The statement itself is all there is beside the nodes.
            None => whole.clone(),
            Some(_) => nodes.next().map_or_else(Vec::new, |node| {
                settings.statistics.add(&node.statistics);
                cells(node)
            }),
        });
        rows.push(row);
    }
    let columns = fields();
    let vector = |(at, field): (usize, &Field)| {
        let values: Vec<Value> =
            rows.iter().map(|row| row.get(at).cloned().unwrap_or(Value::Null)).collect();
        Arc::new(Vector::from_values(field.data_type, &values))
    };
    let batch = Batch::new(columns.iter().enumerate().map(vector).collect(), rows.len());
    Ok(StatementResult { columns, batches: vec![batch], ..StatementResult::new(ResultKind::Query) })
}

/// Rows, time and access of a node; nothing of one that was merged into another or that nobody needed.
fn cells(node: &Measured) -> Vec<Value> {
    if node.calls.get() == 0 {
        return Vec::new();
    }
    let mut access = String::new();
    for name in node.statistics.indexes() {
        access += if access.is_empty() { "index=" } else { "," };
        access += &name;
    }
    for (name, counter) in node.statistics.counters() {
        if counter.get() > 0 {
            let space = if access.is_empty() { "" } else { " " };
            let _ = write!(access, "{space}{name}={}", counter.get());
        }
    }
    let access = if access.is_empty() { Value::Null } else { Value::Text(access) };
    vec![
        Value::Int(node.rows.get() as i64),
        Value::Int((node.time_ns.get() / 1_000) as i64),
        access,
    ]
}
