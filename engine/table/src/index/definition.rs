//! An index of one version of a table: its keys and its in-memory state.
//!
//! An index has two halves. For rows in memory, the [`Entries`] beside each rowstore have one entry
//! for each index key that a row has or recently had. For rows in segments, each segment has a
//! [`Part`](crate::segments::part::Part): its index keys in order, each with its row number.
//! Neither half knows transactions: a reader that finds a row checks that the row is visible and,
//! in memory, that it still has the key. So indexes are neither logged nor versioned, and recovery
//! rebuilds the entries from the rows.
//!
//! A segment without a part is scanned instead: an index answers correctly as soon as it is in the
//! schema, and fast once its parts are built.
//!
//! Unique values are claimed by locks. A claim is the lock of a node, keyed by the index key, in a
//! rowstore without rows: a transaction that assigns a unique value holds this lock until it ends.
//! Waiting and deadlock detection work as for row locks.

use crate::layout::columns::{PartColumn, id_in_part};
use crate::layout::keys::KeyRows;
use crate::layout::table_layout::TableLayout;
use nacre_column::Batch;
use nacre_rowstore::{Entries, Row, Rowstore};
use nacre_segment::IndexOrder;
use nacre_types::row::{self, RowLayout};
use nacre_types::{
    DataType, Error, IndexId, IndexSchema, PhysicalType, Result, TableSchema, Value, invariant, key,
};
use std::sync::Arc;

/// An index of one version of a table.
pub(crate) struct Index {
    schema: IndexSchema,
    /// Positions of its columns in the table.
    columns: Vec<usize>,
    types: Vec<DataType>,
    memory: Arc<IndexMemory>,
}

/// The in-memory state of an index, shared by table versions that share their partitions.
struct IndexMemory {
    /// Indexed by partition.
    entries: Vec<Entries>,
    /// Claimed unique values: nodes without rows.
    claims: Rowstore,
}

impl Index {
    /// Creates the indexes of a table with this many partitions. `old` are those of a version that
    /// shares the partitions.
    pub fn all(schema: &TableSchema, partitions: usize, old: &[Index]) -> Vec<Index> {
        let make = |index: &IndexSchema| {
            let columns = schema.index_positions(index);
            invariant!(columns.is_some(), "index {} has a column that is missing", index.name);
            let columns = columns?;
            let known = old.iter().find(|old| old.id() == index.id);
            debug_assert!(
                known.is_none_or(|known| known.memory.entries.len() == partitions),
                "index {} shares its memory with one of other partitions",
                index.name
            );
            let memory = match known {
                Some(known) => known.memory.clone(),
                None => Arc::new(IndexMemory::new(schema, index, &columns, partitions)),
            };
            let types = columns.iter().map(|at| schema.key_column(*at).data_type).collect();
            Some(Index { schema: index.clone(), columns, types, memory })
        };
        schema.indexes.iter().filter_map(make).collect()
    }

    /// Its identity in the table.
    pub fn id(&self) -> IndexId {
        self.schema.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.schema.name
    }

    /// Whether the index is unique.
    pub fn is_unique(&self) -> bool {
        self.schema.unique
    }

    /// Positions of its columns in the table.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Data types of its columns.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// The entries for the rows in a partition's rowstore.
    pub fn entries(&self, partition: u32) -> &Entries {
        debug_assert!(
            (partition as usize) < self.memory.entries.len(),
            "partition {partition} of {}",
            self.memory.entries.len()
        );
        &self.memory.entries[partition as usize]
    }

    /// Claimed unique values: nodes without rows.
    pub fn claims(&self) -> &Rowstore {
        &self.memory.claims
    }

    /// The description that a segment builder needs to write this index's part.
    pub fn order(&self) -> IndexOrder {
        let id = |column| id_in_part(self.id(), column);
        IndexOrder {
            columns: self.columns.clone(),
            rows: id(PartColumn::RowNumbers),
            keys: (0..self.columns.len()).map(|at| id(PartColumn::Key(at))).collect(),
            filter: id(PartColumn::Filter),
        }
    }

    /// Encodes values of its columns, or of a prefix of them.
    pub fn encode(&self, values: &[Value]) -> Result<Vec<u8>> {
        if values.len() > self.types.len() {
            return Err(Error::type_error(format!(
                "more values than index {} has columns",
                self.name()
            )));
        }
        let mut out = Vec::with_capacity(values.len() * 9);
        for (value, data_type) in values.iter().zip(&self.types) {
            key::append(&mut out, *data_type, value)?;
        }
        Ok(out)
    }

    /// The index key of a row of this version of the table.
    pub fn key_of(&self, layout: &TableLayout, row: &Row) -> Result<Vec<u8>> {
        let rows = layout.rows();
        debug_assert!(
            row::version(row) == Some(rows.version()),
            "a row of version {:?} is read as of version {}",
            row::version(row),
            rows.version()
        );
        if self.is_computed(layout) {
            return self.encode(&layout.key_values_of(&self.columns, row)?);
        }
        let mut out = Vec::with_capacity(self.columns.len() * 9);
        for (column, data_type) in self.columns.iter().zip(&self.types) {
            match data_type.physical() {
                _ if rows.is_null(row, *column) => out.push(0),
                PhysicalType::I64 => {
                    out.push(1);
                    key::put_i64(&mut out, rows.i64(row, *column));
                }
                _ => key::append(&mut out, *data_type, &rows.value(row, *column))?,
            }
        }
        self.check_key(&out);
        debug_assert!(
            self.encode(&self.values_of(rows, row)).map_or(true, |encoded| encoded == out),
            "a row and its values have different keys in index {}",
            self.name()
        );
        Ok(out)
    }

    /// Whether one of its columns is computed.
    fn is_computed(&self, layout: &TableLayout) -> bool {
        let width = layout.schema().columns.len();
        debug_assert!(
            self.columns.iter().all(|at| *at < width + layout.schema().computed.len()),
            "index {} is of another table",
            self.name()
        );
        self.columns.iter().any(|at| *at >= width)
    }

    /// Whether a row, of this or an earlier version of the table, has this index key.
    pub fn is_key_of(&self, layout: &TableLayout, row: &Row, index_key: &[u8]) -> Result<bool> {
        let row = layout.upgrade(row.clone())?;
        Ok(self.key_of(layout, &row)? == index_key)
    }

    /// Whether several rows may have this index key: the index is not unique, or a value is null.
    pub fn may_repeat(&self, index_key: &[u8]) -> bool {
        self.check_key(index_key);
        !self.is_unique() || key::parts(index_key, &self.types).any(|part| part.first() == Some(&0))
    }

    /// The error for values that another row already has.
    pub fn duplicate(&self, table: &str, index_key: &[u8]) -> Error {
        // A key that cannot be decoded is reported without its values.
        let values = key::decode(index_key, &self.types).unwrap_or_default();
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        let name = self.name();
        Error::duplicate_key(format!(
            "duplicate key ({}) in table {table}, key {name}",
            values.join(", ")
        ))
        .with_table(table)
        .with_key(name)
    }

    /// The index keys of rows whose columns are in index order.
    pub fn encode_rows(&self, batch: &Batch) -> Result<Vec<Vec<u8>>> {
        debug_assert!(
            batch.columns.len() == self.types.len(),
            "{} columns for index {} of {}",
            batch.columns.len(),
            self.name(),
            self.types.len()
        );
        debug_assert!(batch.selection.is_none(), "keys of rows that are not selected");
        if !batch
            .columns
            .iter()
            .zip(&self.types)
            .all(|(column, t)| column.data_type().physical() == t.physical())
        {
            return Err(Error::corrupt(format!(
                "columns of index {} have unexpected types",
                self.name()
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

impl Index {
    /// The values of its columns in a row.
    fn values_of(&self, layout: &RowLayout, row: &Row) -> Vec<Value> {
        self.columns.iter().map(|column| layout.value(row, *column)).collect()
    }

    /// A whole key divides into the index's columns.
    fn check_key(&self, index_key: &[u8]) {
        debug_assert!(
            key::parts(index_key, &self.types).map(<[u8]>::len).sum::<usize>() == index_key.len(),
            "a key of index {} does not divide into its {} columns",
            self.name(),
            self.types.len()
        );
    }
}

impl IndexMemory {
    fn new(
        schema: &TableSchema,
        index: &IndexSchema,
        columns: &[usize],
        partitions: usize,
    ) -> IndexMemory {
        let is_integer =
            |at: &usize| schema.key_column(*at).data_type.physical() == PhysicalType::I64;
        // Hidden row numbers are integers too.
        let numbered = schema
            .primary_key
            .as_ref()
            .is_none_or(|key| matches!(&key.columns[..], [at] if is_integer(at)));
        let is_packed = index.kind.traits().packs_integers
            && numbered
            && matches!(columns, [at] if is_integer(at));
        let new = if is_packed { Entries::of_integers } else { Entries::new };
        invariant!(!columns.is_empty() && partitions > 0, "index {} is over no column", index.name);
        let entries = (0..partitions).map(|_| new()).collect();
        IndexMemory { entries, claims: Rowstore::new() }
    }
}
