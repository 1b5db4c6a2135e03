//! Collects rows column by column, in blocks, until they are written as one file.
//!
//! Nothing is encoded before writing begins: choosing the encodings takes the whole column.

use super::blocks::Column;
use super::derived::{Derivation, Wanted};
use super::index_order::IndexOrder;
use super::writer::SegmentWriter;
use crate::column::ColumnSpec;
use crate::footer::FooterHead;
use crate::identity::{Identity, OrderBounds};
use nacre_column::{Batch, Scalar};
use nacre_host::LocalFile;
use nacre_types::limits::{BLOCK_ROWS, MAX_SEGMENT_COLUMNS, MAX_SEGMENT_ROWS};
use nacre_types::{Error, Result, Value, invariant};

/// Collects rows and writes them as one segment.
pub struct SegmentBuilder {
    columns: Vec<Column>,
    rows: usize,
    memory: usize,
    overflow: bool,
    /// Key columns, and the id of the column of row numbers in key order.
    key_order: Option<(Vec<usize>, u32)>,
    /// Key columns, and the id of their filter column.
    key_filter: Option<(Vec<usize>, u32)>,
    indexes: Vec<IndexOrder>,
    /// How many of the columns to write. Indexes may be over the others.
    written: usize,
    head: FooterHead,
}

impl SegmentBuilder {
    /// Creates a builder for a segment with these columns.
    pub fn new(columns: Vec<ColumnSpec>) -> Self {
        let columns: Vec<Column> =
            columns.into_iter().map(|spec| Column::new(spec, Vec::new(), 0)).collect();
        SegmentBuilder {
            written: columns.len(),
            columns,
            rows: 0,
            memory: 0,
            overflow: false,
            key_order: None,
            key_filter: None,
            indexes: Vec::new(),
            head: FooterHead::default(),
        }
    }

    /// Adds a last column with this id: the row numbers in key order, for rows sorted by other
    /// columns.
    pub fn with_key_order(self, key_columns: Vec<usize>, id: u32) -> Self {
        debug_assert!(self.has(&key_columns), "a key of columns {key_columns:?}");
        SegmentBuilder { key_order: Some((key_columns, id)), ..self }
    }

    /// Adds a last column with this id: a Bloom filter of the key ([`Segment::may_have`]).
    ///
    /// [`Segment::may_have`]: crate::Segment::may_have
    pub fn with_key_filter(self, key_columns: Vec<usize>, id: u32) -> Self {
        debug_assert!(self.has(&key_columns), "a filter of columns {key_columns:?}");
        SegmentBuilder { key_filter: Some((key_columns, id)), ..self }
    }

    /// Adds the columns of indexes after all others.
    pub fn with_indexes(self, indexes: Vec<IndexOrder>) -> Self {
        debug_assert!(
            indexes.iter().all(|index| self.has(&index.columns)),
            "an index of columns that the segment does not have"
        );
        SegmentBuilder { indexes, ..self }
    }

    /// Sets which file it will be.
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.head.identity = Some(identity);
        self
    }

    /// Sets the bounds of its rows. No row may be pushed afterwards.
    pub fn with_order_bounds(mut self, bounds: OrderBounds) -> Self {
        self.head.order_bounds = Some(bounds);
        self
    }

    /// Writes the first columns, and those of the indexes.
    pub fn writing(self, written: usize) -> Self {
        debug_assert!(written <= self.columns.len(), "{written} columns are to be written");
        SegmentBuilder { written, ..self }
    }

    /// Whether there is at least one column and all of these positions exist.
    fn has(&self, columns: &[usize]) -> bool {
        !columns.is_empty() && columns.iter().all(|column| *column < self.columns.len())
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values of some columns in a row.
    pub fn values(&self, columns: &[usize], row: usize) -> Vec<Value> {
        debug_assert!(row < self.rows, "row {row} of a builder with {}", self.rows);
        let value = |column: &usize| {
            let column = &self.columns[*column];
            let (values, validity) = &column.blocks[row / BLOCK_ROWS];
            match validity.as_ref().is_none_or(|v| v.get(row % BLOCK_ROWS)) {
                true => Scalar::at(values, row % BLOCK_ROWS).to_value(column.spec.data_type),
                false => Value::Null,
            }
        };
        columns.iter().map(value).collect()
    }

    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.memory
    }

    /// Appends the selected rows of a batch, whose columns are those of the builder, in order.
    pub fn push(&mut self, batch: &Batch) {
        invariant!(
            batch.columns.len() == self.columns.len(),
            "a batch of {} columns for a segment of {}",
            batch.columns.len(),
            self.columns.len()
        );
        debug_assert!(
            batch.columns.iter().all(|vector| vector.len() == batch.rows),
            "a column of a batch has not its {} rows",
            batch.rows
        );
        for (column, vector) in self.columns.iter_mut().zip(&batch.columns) {
            let pushed = column.push(vector, batch.selection.as_deref(), self.rows);
            self.memory += pushed.bytes;
            self.overflow |= !pushed.fits;
        }
        self.rows += batch.selected();
    }

    /// Writes the whole file, footer last, and returns its length. Does not sync.
    pub fn write(self, file: &dyn LocalFile) -> Result<u64> {
        let mut writer = self.into_writer()?;
        loop {
            if let Some(length) = writer.step(file, usize::MAX)? {
                return Ok(length);
            }
        }
    }

    /// Converts into a writer that does the same in steps. Fails with `limit` if a segment cannot
    /// hold this number of rows.
    pub fn into_writer(self) -> Result<SegmentWriter> {
        let order = self.key_order.map(|(columns, id)| Wanted::KeyOrder { columns, id });
        let filter = self.key_filter.map(|(columns, id)| Wanted::KeyFilter { columns, id });
        let indexes = self.indexes.into_iter().map(Wanted::Index);
        let wanted: Vec<Wanted> = order.into_iter().chain(filter).chain(indexes).collect();
        let derived: usize = wanted.iter().map(Wanted::columns).sum();
        let columns = self.written + derived;
        invariant!(columns > 0, "a file of indexes without an index");
        if self.rows > MAX_SEGMENT_ROWS || columns > MAX_SEGMENT_COLUMNS || self.overflow {
            return Err(Error::limit(format!(
                "a segment holds at most {MAX_SEGMENT_ROWS} rows, {MAX_SEGMENT_COLUMNS} columns and 4 GiB \
                 of text per block"
            )));
        }
        let derivation = Derivation::new(wanted, self.rows);
        Ok(SegmentWriter::new(self.columns, derivation, self.written, self.rows, self.head))
    }
}
