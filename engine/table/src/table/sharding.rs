//! Which partition a row is in: a function of its key, and for tables without a primary key of its hidden
//! row number, which is given out so that it says so.
//!
//! The hash is part of the stored format: rows would not be found if it changed (`docs/FORMAT.md`).

use crate::layout::rows;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_types::hash::hash_bytes;
use nacre_types::{DataType, Result, TableSchema, Value, key};
use std::sync::atomic::Ordering;

/// How many partitions a table of this schema has.
pub(crate) fn partitions(schema: &TableSchema) -> u32 {
    schema.shard_key.as_ref().map_or(1, |key| key.partitions.max(1))
}

/// The partitions of a new table.
pub(crate) fn new_partitions(schema: &TableSchema) -> Vec<Partition> {
    let count = partitions(schema);
    (0..count).map(|number| Partition::new(number, count)).collect()
}

fn partition_of_hash(encoded: &[u8], partitions: usize) -> usize {
    (hash_bytes(encoded) % partitions as u64) as usize
}

impl Table {
    /// Columns that decide a row's partition; `None` where nothing has to be decided or any will do.
    fn deciding_columns(&self) -> Option<&[usize]> {
        let key = self.schema().shard_key.as_ref()?;
        (self.partitions().len() > 1 && !key.columns.is_empty()).then_some(key.columns.as_slice())
    }

    /// The partition that the row of a key is in, if there is such a row. `key` is encoded and well formed.
    pub(crate) fn partition_of(&self, key: &[u8]) -> &Partition {
        let all = self.partitions();
        if all.len() == 1 {
            return &all[0];
        }
        let number = match (self.key_columns(), self.deciding_columns()) {
            (Some(primary), Some(shard)) if primary == shard => partition_of_hash(key, all.len()),
            (Some(primary), Some(shard)) => {
                let parts: Vec<&[u8]> = key::parts(key, &self.key_types()).collect();
                let mut deciding = Vec::with_capacity(key.len());
                for column in shard {
                    // A shard key is among the columns of the primary key.
                    let part =
                        primary.iter().position(|c| c == column).and_then(|at| parts.get(at));
                    deciding.extend_from_slice(part.copied().unwrap_or_default());
                }
                partition_of_hash(&deciding, all.len())
            }
            _ => (row_number(key) % all.len() as u64) as usize,
        };
        &all[number]
    }

    /// The partition of rows with these values of the shard key's columns, in the shard key's order.
    pub fn partition_of_values(&self, values: &[Value]) -> Result<u32> {
        let Some(columns) = self.deciding_columns() else { return Ok(0) };
        let mut encoded = Vec::new();
        for (column, value) in columns.iter().zip(values) {
            key::encode(&mut encoded, self.schema().columns[*column].data_type, value)?;
        }
        Ok(partition_of_hash(&encoded, self.partitions().len()) as u32)
    }

    /// The partition for a new row of a table without a primary key.
    pub(crate) fn partition_for(&self, row: &[Value]) -> Result<&Partition> {
        let number = match self.deciding_columns() {
            Some(columns) => self.partition_of_values(&rows::key_of(columns, row))?,
            None => self.spread(1),
        };
        Ok(self.partition(number))
    }

    /// Whether a row of a table without a primary key may stay where it is with these new values.
    pub(crate) fn may_stay(&self, partition: u32, row: &[Value]) -> Result<bool> {
        match self.deciding_columns() {
            Some(columns) => {
                Ok(self.partition_of_values(&rows::key_of(columns, row))? == partition)
            }
            None => Ok(true),
        }
    }

    fn spread(&self, rows: usize) -> u32 {
        (self.next_spread.fetch_add(rows as u64, Ordering::Relaxed)
            % self.partitions().len() as u64) as u32
    }

    /// Splits a compact batch by partition. Rows that may go anywhere stay together.
    pub(crate) fn split(&self, batch: Batch) -> Result<Vec<(u32, Batch)>> {
        let Some(columns) = self.deciding_columns() else {
            return Ok(vec![(self.spread(1), batch)]);
        };
        let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); self.partitions().len()];
        for row in 0..batch.rows {
            let values: Vec<Value> = columns.iter().map(|c| batch.columns[*c].value(row)).collect();
            rows_of[self.partition_of_values(&values)? as usize].push(row as u32);
        }
        let filled = rows_of.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty());
        let part = |rows: &[u32]| {
            let columns = batch.columns.iter().map(|c| std::sync::Arc::new(c.take(rows))).collect();
            Batch::new(columns, rows.len())
        };
        Ok(filled.map(|(number, rows)| (number as u32, part(&rows))).collect())
    }
}

/// The number in a hidden key; 0 when it is none.
fn row_number(encoded: &[u8]) -> u64 {
    match key::decode(encoded, &[DataType::Int64]).as_deref() {
        Ok([Value::Int(number)]) => *number as u64,
        _ => 0,
    }
}
