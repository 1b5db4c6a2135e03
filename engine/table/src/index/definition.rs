//! Secondary indexes: from values of some columns to the rows that have them, and uniqueness.
//!
//! An index has two halves. Rows in memory: [`Entries`] beside each rowstore, an entry for each index key that a row in
//! it has or lately had. Rows in segments: a [`part::Part`] for each segment, its index keys in order, each with its
//! row's number. Neither knows transactions: whoever finds a row looks whether it is there for him, and, in memory,
//! whether it has the key. So indexes are neither logged nor versioned, and recovery fills them from the rows.
//!
//! A segment without a part is read as a whole instead: an index answers right as soon as it is in the schema, and
//! quickly once its parts are there.
//!
//! Unique values are given out by locks ([`unique`]). One lives in a rowstore without rows, as the lock of a node whose
//! key is the index key: a transaction that gives a row such a value holds it to its end, and waits for it, or is found
//! in a deadlock, like for any row.

use crate::layout::keys::KeyRows;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_rowstore::{Entries, Row, Rowstore};
use nacre_types::{
    DataType, Error, IndexId, IndexKind, IndexSchema, PhysicalType, Result, TableSchema, Value, key,
};
use std::sync::Arc;

/// An index of one version of a table.
pub(crate) struct Index {
    pub schema: IndexSchema,
    /// Positions of its columns in the table.
    pub columns: Vec<usize>,
    pub types: Vec<DataType>,
    pub memory: Arc<IndexMemory>,
}

/// What an index keeps in memory. Versions of a table that share their partitions share it.
pub(crate) struct IndexMemory {
    /// Of each partition.
    pub entries: Vec<Entries>,
    /// Unique values that somebody is giving out: nodes without rows.
    pub given: Rowstore,
}

impl Index {
    /// The indexes of a table with so many partitions. `old` holds those of a version that it shares them with.
    pub fn all(schema: &TableSchema, partitions: usize, old: &[Index]) -> Vec<Index> {
        let make = |index: &IndexSchema| {
            let columns = schema.index_positions(index)?;
            let types: Vec<DataType> =
                columns.iter().map(|at| schema.columns[*at].data_type).collect();
            let is_integer =
                |at: &usize| schema.columns[*at].data_type.physical() == PhysicalType::I64;
            // Hidden row numbers are integers too.
            let numbered = schema
                .primary_key
                .as_ref()
                .is_none_or(|key| matches!(&key.columns[..], [at] if is_integer(at)));
            let is_packed = index.kind != IndexKind::Hash
                && numbered
                && matches!(&columns[..], [at] if is_integer(at));
            let known =
                old.iter().find(|old| old.schema.id == index.id).map(|old| old.memory.clone());
            let fresh = || {
                let new = if is_packed { Entries::of_integers } else { Entries::new };
                let entries = (0..partitions).map(|_| new()).collect();
                Arc::new(IndexMemory { entries, given: Rowstore::new() })
            };
            Some(Index {
                schema: index.clone(),
                columns,
                types,
                memory: known.unwrap_or_else(fresh),
            })
        };
        // `check_indexes` has seen to it that there are all columns.
        schema.indexes.iter().filter_map(make).collect()
    }

    /// Encodes values of its columns, or of the first of them.
    pub fn encode(&self, values: &[Value]) -> Result<Vec<u8>> {
        if values.len() > self.types.len() {
            return Err(Error::type_error(format!("index {} has fewer columns", self.schema.name)));
        }
        let mut out = Vec::with_capacity(values.len() * 9);
        for (value, data_type) in values.iter().zip(&self.types) {
            key::append(&mut out, *data_type, value)?;
        }
        Ok(out)
    }

    /// The index key of a row of this version of the table.
    pub fn key_of(&self, table: &Table, row: &Row) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(self.columns.len() * 9);
        for (column, data_type) in self.columns.iter().zip(&self.types) {
            match data_type.physical() {
                _ if table.layout().is_null(row, *column) => out.push(0),
                PhysicalType::I64 => {
                    out.push(1);
                    key::put_i64(&mut out, table.layout().i64(row, *column));
                }
                _ => key::append(&mut out, *data_type, &table.layout().value(row, *column))?,
            }
        }
        Ok(out)
    }

    /// Whether a row of any version of the table, up to this one, has this index key. `conflict` when the table was
    /// altered since and the row is newer.
    pub fn has_key(&self, table: &Table, row: &Row, index_key: &[u8]) -> Result<bool> {
        match table.upgrade(row.clone()) {
            Ok(row) => Ok(self.key_of(table, &row)? == index_key),
            Err(_) if !table.is_newest() => Err(table.superseded()),
            Err(error) => Err(error),
        }
    }

    /// Whether a row may have the same values as another: it is not unique, or one of them is null.
    pub fn may_repeat(&self, index_key: &[u8]) -> bool {
        !self.schema.unique
            || key::parts(index_key, &self.types).any(|part| part.first() == Some(&0))
    }

    /// The error for values that another row has.
    pub fn duplicate(&self, table: &Table, index_key: &[u8]) -> Error {
        let values = key::decode(index_key, &self.types).unwrap_or_default();
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        let (table, name) = (&table.schema().name, self.schema.name.clone());
        Error::duplicate_key(format!(
            "duplicate key ({}) in table {table}, key {name}",
            values.join(", ")
        ))
        .with_table(table.clone())
        .with_key(name)
    }

    /// The index keys of some rows of its columns, given in its own order.
    pub fn encode_rows(&self, batch: &Batch) -> Result<Vec<Vec<u8>>> {
        if !batch
            .columns
            .iter()
            .zip(&self.types)
            .all(|(column, t)| column.data_type().physical() == t.physical())
        {
            return Err(Error::corrupt(format!(
                "columns of index {} are of other types",
                self.schema.name
            )));
        }
        let keys = KeyRows::new(&batch.columns);
        let encode = |row| {
            let mut bytes = Vec::with_capacity(self.types.len() * 9);
            keys.put(row, &mut bytes);
            bytes
        };
        Ok((0..batch.rows).map(encode).collect())
    }
}

impl Table {
    /// Its index of an id. Who asks knows it from a version of the table: without it, this is another.
    pub(crate) fn index(&self, id: IndexId) -> Result<&Index> {
        self.indexes().iter().find(|index| index.schema.id == id).ok_or_else(|| self.superseded())
    }

    pub(crate) fn has_unique_index(&self) -> bool {
        self.indexes().iter().any(|index| index.schema.unique)
    }

    /// Bytes of its indexes' entries for the rowstore of a partition.
    pub(crate) fn entry_bytes(&self, partition: u32) -> usize {
        self.indexes()
            .iter()
            .filter_map(|i| i.memory.entries.get(partition as usize))
            .map(Entries::bytes)
            .sum()
    }

    /// How far an index is built: segments that have their part of it, and all segments. It answers right all the
    /// time, but reads segments without a part as a whole.
    pub fn index_progress(&self, id: IndexId) -> (usize, usize) {
        let current = self.segments().into_iter().filter(|state| state.is_current());
        current.fold((0, 0), |(done, all), state| {
            (done + usize::from(state.part(id).is_some()), all + 1)
        })
    }
}
