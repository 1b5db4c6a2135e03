//! Assigns rows to partitions, by the key or, without a primary key, by the hidden row number,
//! which is chosen accordingly.
//!
//! The hash is part of the stored format: if it changed, rows would not be found
//! (`docs/FORMAT.md`).

use crate::layout::rows::key_of;
use crate::layout::table_layout::TableLayout;
use nacre_column::Batch;
use nacre_types::hash::hash_bytes;
use nacre_types::{DataType, Result, TableSchema, Value, invariant, key};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of partitions of a table with this schema.
pub(crate) fn partition_count(schema: &TableSchema) -> u32 {
    schema.shard_key.as_ref().map_or(1, |key| key.partitions.max(1))
}

/// The assignment of a table's rows to its partitions.
pub(crate) struct Sharding {
    partitions: u32,
    /// Columns that determine a row's partition; `None` if there is only one partition, or any will
    /// do.
    columns: Option<Vec<usize>>,
    /// Counts rows, or batches of rows, that may go to any partition.
    next: AtomicU64,
}

/// The rows of a batch that go to one partition.
pub(crate) struct Share {
    pub partition: u32,
    pub batch: Batch,
}

impl Sharding {
    /// The sharding of a table.
    pub fn new(schema: &TableSchema) -> Sharding {
        let partitions = partition_count(schema);
        let columns = schema.shard_key.as_ref().map(|key| key.columns.clone());
        let columns = columns.filter(|columns| partitions > 1 && !columns.is_empty());
        debug_assert!(
            columns.iter().flatten().all(|column| *column < schema.columns.len()),
            "a shard column that table {} does not have",
            schema.name
        );
        Sharding { partitions, columns, next: AtomicU64::new(0) }
    }

    fn of_hash(&self, encoded: &[u8]) -> u32 {
        debug_assert!(self.partitions > 1, "a hash decides between {} partitions", self.partitions);
        (hash_bytes(encoded) % u64::from(self.partitions)) as u32
    }

    /// The partition that would hold the row of an encoded key.
    pub fn of_key(&self, layout: &TableLayout, key: &[u8]) -> u32 {
        if self.partitions == 1 {
            return 0;
        }
        match (layout.key_columns(), &self.columns) {
            (Some(primary), Some(shard)) if primary == shard => self.of_hash(key),
            (Some(primary), Some(shard)) => {
                let parts: Vec<&[u8]> = key::parts(key, &layout.key_types()).collect();
                let mut deciding = Vec::with_capacity(key.len());
                for column in shard {
                    let part =
                        primary.iter().position(|c| c == column).and_then(|at| parts.get(at));
                    invariant!(part.is_some(), "shard column {column} is not in the primary key");
                    deciding.extend_from_slice(part.copied().unwrap_or_default());
                }
                self.of_hash(&deciding)
            }
            (Some(_), None) => {
                invariant!(false, "rows with a primary key are in any of several partitions");
                0
            }
            (None, _) => (row_number(key) % u64::from(self.partitions)) as u32,
        }
    }

    /// The partition of rows with these values in the shard key's columns.
    pub fn of_values(&self, schema: &TableSchema, values: &[Value]) -> Result<u32> {
        let Some(columns) = &self.columns else { return Ok(0) };
        debug_assert!(
            values.len() == columns.len(),
            "{} values for {} shard columns",
            values.len(),
            columns.len()
        );
        let mut encoded = Vec::new();
        for (column, value) in columns.iter().zip(values) {
            key::encode(&mut encoded, schema.columns[*column].data_type, value)?;
        }
        Ok(self.of_hash(&encoded))
    }

    /// The partition for a new row of a table without a primary key.
    pub fn of_new_row(&self, schema: &TableSchema, row: &[Value]) -> Result<u32> {
        debug_assert!(
            schema.primary_key.is_none(),
            "a key says where its row of {} is",
            schema.name
        );
        match &self.columns {
            Some(columns) => self.of_values(schema, &key_of(columns, row)),
            None => Ok(self.any()),
        }
    }

    /// Whether a row of a table without a primary key may stay in its partition with these new
    /// values.
    pub fn may_stay(&self, schema: &TableSchema, partition: u32, row: &[Value]) -> Result<bool> {
        debug_assert!(partition < self.partitions, "partition {partition} of {}", self.partitions);
        match &self.columns {
            Some(columns) => Ok(self.of_values(schema, &key_of(columns, row))? == partition),
            None => Ok(true),
        }
    }

    /// Chooses partitions round-robin.
    fn any(&self) -> u32 {
        debug_assert!(self.columns.is_none(), "the values of a row decide its partition");
        (self.next.fetch_add(1, Ordering::Relaxed) % u64::from(self.partitions)) as u32
    }

    /// Splits a compact batch by partition. Rows without a fixed partition stay together.
    pub fn split(&self, schema: &TableSchema, batch: Batch) -> Result<Vec<Share>> {
        debug_assert!(batch.selection.is_none(), "a batch to divide is not compact");
        let Some(columns) = &self.columns else {
            return Ok(vec![Share { partition: self.any(), batch }]);
        };
        let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); self.partitions as usize];
        for row in 0..batch.rows {
            let values: Vec<Value> = columns.iter().map(|c| batch.columns[*c].value(row)).collect();
            rows_of[self.of_values(schema, &values)? as usize].push(row as u32);
        }
        let filled = (0..).zip(rows_of).filter(|(_, rows)| !rows.is_empty());
        let share = |(partition, rows): (u32, Vec<u32>)| {
            let columns = batch.columns.iter().map(|c| Arc::new(c.take(&rows))).collect();
            Share { partition, batch: Batch::new(columns, rows.len()) }
        };
        let shares: Vec<Share> = filled.map(share).collect();
        invariant!(
            shares.iter().map(|share| share.batch.rows).sum::<usize>() == batch.rows,
            "a batch of {} rows is divided into others",
            batch.rows
        );
        Ok(shares)
    }
}

/// Decodes a hidden key. A damaged key maps to the first partition, where it is not found.
fn row_number(encoded: &[u8]) -> u64 {
    match key::decode(encoded, &[DataType::Int64]).as_deref() {
        Ok([Value::Int(number)]) => *number as u64,
        _ => 0,
    }
}
