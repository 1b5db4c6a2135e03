//! `PROFILE`: runs a statement and returns its plan with the measurements of each node instead of
//! its rows. Writes of the statement take effect.

use crate::execution::Execution;
use crate::result::{ResultKind, StatementResult};
use nacre_column::{Batch, Vector};
use nacre_host::BlobReads;
use nacre_operator::{Measured, Profile};
use nacre_sql::{Field, Output, RowStatement, explain_row_nodes};
use nacre_table::Store;
use nacre_types::{Result, Value};
use std::fmt::Write;
use std::sync::Arc;

/// Runs the statement through `run` and measures it.
pub(crate) async fn run(
    store: &Store,
    statement: &RowStatement,
    execution: &Execution<'_>,
    run: impl AsyncFnOnce(&Execution<'_>) -> Result<StatementResult>,
) -> Result<StatementResult> {
    let lines = explain_row_nodes(statement);
    let profile = Profile::of(lines.iter().filter_map(|(_, plan)| *plan));
    let (started_ns, reads) = (store.now_ns(), execution.blob_reads());
    let read_bytes = store.cache().read_bytes();
    let done = run(&execution.measured_by(&profile)).await?;
    let whole = vec![
        Value::Int(done.rows_affected as i64),
        Value::Int((store.now_ns().saturating_sub(started_ns) / 1_000) as i64),
        Value::Null,
        Value::Null,
    ];
    let mut nodes = profile.nodes().iter();
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for (line, plan) in lines {
        let mut row = vec![Value::Text(line)];
        row.extend(match plan {
            // A line without a node describes the whole statement.
            None => whole.clone(),
            Some(_) => nodes.next().map_or_else(Vec::new, |node| {
                execution.statistics().add(&node.statistics);
                cells(node)
            }),
        });
        rows.push(row);
    }
    if let (Some(before), Some(after)) = (reads, execution.blob_reads())
        && let Some(first) = rows.first_mut()
    {
        let read_bytes = store.cache().read_bytes() - read_bytes;
        note_reads(first, &before, &after, read_bytes);
    }
    let columns = Output::Profile.fields();
    let vector = |(at, field): (usize, &Field)| {
        let values: Vec<Value> =
            // A node that did nothing has no cells.
            rows.iter().map(|row| row.get(at).cloned().unwrap_or(Value::Null)).collect();
        Arc::new(Vector::from_values(field.data_type, &values))
    };
    let batch = Batch::new(columns.iter().enumerate().map(vector).collect(), rows.len());
    Ok(StatementResult { columns, batches: vec![batch], ..StatementResult::new(ResultKind::Query) })
}

/// Adds what was read meanwhile to the first line, which covers the statement: bytes of blocks that were not in
/// memory, and of these what was not on the disk.
fn note_reads(first: &mut Vec<Value>, before: &BlobReads, after: &BlobReads, read_bytes: u64) {
    let counts = [
        ("read_bytes", read_bytes),
        ("blob_requests", after.requests - before.requests),
        ("blob_bytes", after.bytes - before.bytes),
        ("blob_waits", after.waits - before.waits),
        ("blob_hits", after.hits - before.hits),
    ];
    let words = counts.iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> = words.map(|(name, count)| format!("{name}={count}")).collect();
    if words.is_empty() {
        return;
    }
    // The plan, rows, time, access, filters.
    first.resize(5, Value::Null);
    first[3] = Value::Text(match &first[3] {
        Value::Text(access) => format!("{access} {}", words.join(" ")),
        _ => words.join(" "),
    });
}

/// Rows, time, access and filters of a node; empty if it was merged into another or never ran.
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
    let filters = node.statistics.filters().join(" | ");
    let or_null = |text: String| if text.is_empty() { Value::Null } else { Value::Text(text) };
    vec![
        Value::Int(node.rows.get() as i64),
        Value::Int((node.time_ns.get() / 1_000) as i64),
        or_null(access),
        or_null(filters),
    ]
}
