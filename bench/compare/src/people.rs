//! The table of the key-value workloads. Each row is computed from its number, so that every engine
//! gets the same rows.

use crate::measure::Outcome;
use nacredb::{Batch, DataType, VectorBuilder};
use std::sync::Arc;

/// Has the same meaning in all engines; SQLite stores `id` as its row id.
pub const CREATE: &str =
    "create table t (id bigint primary key, name text, n int, price double, note text)";
/// The same table for SQLite, where only this spelling makes the key the table's own tree.
pub const CREATE_SQLITE: &str =
    "create table t (id integer primary key, name text, n int, price double, note text)";

/// One row.
pub struct Person {
    pub id: i64,
    pub name: String,
    pub n: i64,
    pub price: f64,
    pub note: String,
}

/// Returns the row with a number. Out of `rows` rows, about ten share a name.
pub fn person(id: i64, rows: i64) -> Person {
    Person {
        id,
        name: format!("name {}", nacredb::hash::hash_u64(id as u64) % (rows as u64 / 10).max(1)),
        n: id % 97,
        price: (id % 1013) as f64 + 0.5,
        note: format!("a note of some length about row {id}"),
    }
}

/// Returns the rows of a range as one batch of the table's types.
pub fn batch(ids: impl ExactSizeIterator<Item = i64>, rows: i64, types: &[DataType]) -> Batch {
    let count = ids.len();
    let mut columns: Vec<VectorBuilder> = types.iter().map(|t| VectorBuilder::new(*t)).collect();
    for id in ids {
        let person = person(id, rows);
        columns[0].push_i64(person.id);
        columns[1].push_bytes(person.name.as_bytes());
        columns[2].push_i64(person.n);
        columns[3].push_f64(person.price);
        columns[4].push_bytes(person.note.as_bytes());
    }
    Batch::new(columns.into_iter().map(|c| Arc::new(c.finish())).collect(), count)
}

/// The types of [`CREATE`], for batches made without a table.
pub const TYPES: [DataType; 5] =
    [DataType::Int64, DataType::TEXT, DataType::Int32, DataType::Float64, DataType::TEXT];

/// Inserts rows into SQLite's table in one transaction.
pub fn insert_sqlite(
    connection: &mut rusqlite::Connection,
    ids: impl Iterator<Item = i64>,
    rows: i64,
) -> Outcome<()> {
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare("insert into t values (?, ?, ?, ?, ?)")?;
        for id in ids {
            let p = person(id, rows);
            insert.execute(rusqlite::params![p.id, p.name, p.n, p.price, p.note])?;
        }
    }
    Ok(transaction.commit()?)
}
