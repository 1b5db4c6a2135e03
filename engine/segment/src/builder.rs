//! Collecting rows column by column, in blocks, and writing them as one file.
//!
//! Nothing is encoded before the writing begins, because encodings are chosen by looking at
//! the whole column. Columns are written one after the other, each with its dictionary first, and
//! freed as they go. The footer comes last, so a file cut short has no trailer and is not a segment.

use crate::bounds::extremes;
use crate::column::ColumnSpec;
use crate::filter;
use crate::footer::{self, ALIGNMENT, ColumnEntry, DictionaryEntry, MAGIC};
use crate::index_order::{self, IndexOrder};
use crate::key_order::order_of;
use nacre_column::Scalar;
use nacre_column::block::{ColumnPlan, encode_block};
use nacre_column::{Batch, Bitmap, Values, Vector};
use nacre_host::LocalFile;
use nacre_types::bytes::Write;
use nacre_types::checksum::checksum;
use nacre_types::limits::{BLOCK_ROWS, MAX_SEGMENT_COLUMNS, MAX_SEGMENT_ROWS};
use nacre_types::{DataType, Error, Result, Value};

/// Bytes gathered before the file is written to.
pub(crate) const WRITE_BYTES: usize = 1 << 20;

/// The values of one block so far.
pub(crate) type Rows = (Values, Option<Bitmap>);

struct Column {
    spec: ColumnSpec,
    blocks: Vec<Rows>,
    raw_bytes: u64,
    /// Sorted, for searches.
    searched: bool,
}

impl Column {
    fn new(spec: ColumnSpec, blocks: Vec<Rows>, raw_bytes: u64) -> Column {
        Column { spec, blocks, raw_bytes, searched: false }
    }
}

/// Collects rows and writes them as one segment.
pub struct SegmentBuilder {
    columns: Vec<Column>,
    rows: usize,
    memory: usize,
    overflow: bool,
    /// Key columns and the id of the column of row numbers in key order.
    key_order: Option<(Vec<usize>, u32)>,
    /// Key columns and the id of the column of their filter.
    key_filter: Option<(Vec<usize>, u32)>,
    indexes: Vec<IndexOrder>,
    /// Its own columns are not written, only what the indexes need.
    indexes_only: bool,
}

impl SegmentBuilder {
    /// A builder of a segment with these columns.
    pub fn new(columns: Vec<ColumnSpec>) -> Self {
        let columns = columns.into_iter().map(|spec| Column::new(spec, Vec::new(), 0)).collect();
        SegmentBuilder {
            columns,
            rows: 0,
            memory: 0,
            overflow: false,
            key_order: None,
            key_filter: None,
            indexes: Vec::new(),
            indexes_only: false,
        }
    }

    /// Adds, at the end, a column of this id with the row numbers in the order of the key: for rows that come in
    /// another order.
    pub fn with_key_order(self, key_columns: Vec<usize>, id: u32) -> Self {
        SegmentBuilder { key_order: Some((key_columns, id)), ..self }
    }

    /// Adds, at the end, a column of this id with a Bloom filter of the key ([`Segment::may_have`]).
    ///
    /// [`Segment::may_have`]: crate::Segment::may_have
    pub fn with_key_filter(self, key_columns: Vec<usize>, id: u32) -> Self {
        SegmentBuilder { key_filter: Some((key_columns, id)), ..self }
    }

    /// Adds, at the end, what indexes need.
    pub fn with_indexes(self, indexes: Vec<IndexOrder>) -> Self {
        SegmentBuilder { indexes, ..self }
    }

    /// Writes nothing but what the indexes need.
    pub fn indexes_only(self) -> Self {
        SegmentBuilder { indexes_only: true, ..self }
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Values of a row so far.
    pub fn values(&self, columns: &[usize], row: usize) -> Vec<Value> {
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
        debug_assert_eq!(batch.columns.len(), self.columns.len());
        for (column, vector) in self.columns.iter_mut().zip(&batch.columns) {
            debug_assert_eq!(column.spec.data_type.physical(), vector.data_type().physical());
            let (bytes, fits) = column.push(vector, batch.selection.as_deref(), self.rows);
            self.memory += bytes;
            self.overflow |= !fits;
        }
        self.rows += batch.selected();
    }

    /// Writes the whole file, footer last, and answers its length. Does not sync.
    pub fn write(self, file: &dyn LocalFile) -> Result<u64> {
        let mut writer = self.into_writer()?;
        loop {
            if let Some(length) = writer.step(file, usize::MAX)? {
                return Ok(length);
            }
        }
    }

    /// The same in steps.
    pub fn into_writer(mut self) -> Result<SegmentWriter> {
        if let Some((key, id)) = self.key_order.take() {
            let keys: Vec<&[Rows]> =
                key.iter().map(|column| self.columns[*column].blocks.as_slice()).collect();
            let order = order_of(&keys, self.rows);
            let spec = ColumnSpec { id, data_type: DataType::UInt32, nullable: false };
            let blocks =
                order.chunks(BLOCK_ROWS).map(|rows| (Values::I64(rows.to_vec()), None)).collect();
            self.columns.push(Column::new(spec, blocks, self.rows as u64 * 8));
        }
        let filter = self.key_filter.take().map(|(key, id)| {
            let keys: Vec<&[Rows]> =
                key.iter().map(|column| self.columns[*column].blocks.as_slice()).collect();
            filter_column(id, filter::build(&keys, self.rows), self.rows)
        });
        self.columns.extend(filter);
        self.add_indexes();
        if self.rows > MAX_SEGMENT_ROWS || self.columns.len() > MAX_SEGMENT_COLUMNS || self.overflow
        {
            return Err(Error::limit(format!(
                "a segment holds {MAX_SEGMENT_ROWS} rows and 4 GiB of text a block"
            )));
        }
        Ok(SegmentWriter {
            rows: self.rows,
            entries: Vec::with_capacity(self.columns.len()),
            columns: self.columns.into_iter(),
            current: None,
            out: Output { written: 0, buffer: MAGIC.to_vec() },
        })
    }
}

impl SegmentBuilder {
    fn add_indexes(&mut self) {
        let mut added = Vec::new();
        for index in std::mem::take(&mut self.indexes) {
            let keys: Vec<&[Rows]> =
                index.columns.iter().map(|at| self.columns[*at].blocks.as_slice()).collect();
            let types: Vec<_> = index
                .columns
                .iter()
                .map(|at| self.columns[*at].spec.data_type.physical())
                .collect();
            let (order, sorted) = index_order::sorted(&keys, &types, self.rows);
            let spec = ColumnSpec { id: index.rows, data_type: DataType::UInt32, nullable: false };
            let blocks =
                order.chunks(BLOCK_ROWS).map(|rows| (Values::I64(rows.to_vec()), None)).collect();
            added.push(Column::new(spec, blocks, self.rows as u64 * 8));
            let filter =
                filter::build(&sorted.iter().map(Vec::as_slice).collect::<Vec<_>>(), self.rows);
            for ((at, id), blocks) in index.columns.iter().zip(&index.keys).zip(sorted) {
                let column = &self.columns[*at];
                let spec = ColumnSpec { id: *id, ..column.spec.clone() };
                added
                    .push(Column { searched: true, ..Column::new(spec, blocks, column.raw_bytes) });
            }
            added.push(filter_column(index.filter, filter, self.rows));
        }
        if self.indexes_only {
            self.columns.clear();
        }
        self.columns.extend(added);
    }
}

/// A segment being written, a few blocks at a time.
pub struct SegmentWriter {
    rows: usize,
    columns: std::vec::IntoIter<Column>,
    current: Option<ColumnWriter>,
    entries: Vec<ColumnEntry>,
    out: Output,
}

impl SegmentWriter {
    /// Encodes and writes about so many blocks of one column. Answers the file's length when it is complete. The file
    /// must be the same every time, and is not synced. After an error it is of no use.
    pub fn step(&mut self, file: &dyn LocalFile, blocks: usize) -> Result<Option<u64>> {
        let mut column = match self.current.take() {
            Some(column) => column,
            None => match self.columns.next() {
                // Looking at the whole column is a step of its own.
                Some(column) => {
                    self.current = Some(column.begin(file, &mut self.out)?);
                    return Ok(None);
                }
                None => return self.finish(file).map(Some),
            },
        };
        if column.step(file, &mut self.out, blocks)? {
            self.entries.push(column.finish());
        } else {
            self.current = Some(column);
        }
        Ok(None)
    }

    fn finish(&mut self, file: &dyn LocalFile) -> Result<u64> {
        let footer = footer::encode(self.rows, &self.entries);
        let out = &mut self.out;
        // Together with the trailer, which follows it without a gap.
        let offset = out.align();
        out.buffer.extend_from_slice(&footer);
        out.buffer.put_u64(offset);
        out.buffer.put_u64(footer.len() as u64);
        out.buffer.put_u64(checksum(&footer));
        out.buffer.extend_from_slice(&MAGIC);
        out.flush(file)?;
        Ok(out.written)
    }
}

/// A column being written.
struct ColumnWriter {
    blocks: Vec<Rows>,
    next: usize,
    plan: ColumnPlan,
    entry: ColumnEntry,
    /// Least and greatest value so far.
    whole: Option<(Scalar<'static>, Scalar<'static>)>,
}

impl ColumnWriter {
    /// Writes so many blocks; answers whether all are written.
    fn step(&mut self, file: &dyn LocalFile, out: &mut Output, blocks: usize) -> Result<bool> {
        let data_type = self.entry.meta.data_type;
        let entry = &mut self.entry;
        let end = self.next.saturating_add(blocks).min(self.blocks.len());
        for index in self.next..end {
            // Freed as they go.
            let (values, validity) =
                std::mem::replace(&mut self.blocks[index], (Values::Bool(Vec::new()), None));
            let block = encode_block(&self.plan, index, &values, validity.as_ref());
            entry.lengths.push(length(&block.bytes)?);
            entry.checksums.push(checksum(&block.bytes));
            entry.encodings.push(block.encoding);
            entry.offsets.push(out.put(file, &block.bytes)?);
            entry.nulls.push(validity.as_ref().map_or(0, |v| v.len() - v.count_ones()) as u16);
            let found = extremes(&values, validity.as_ref());
            entry.bounds.push(data_type, found.as_ref());
            let Some((min, max)) = found else { continue };
            self.whole = Some(match self.whole.take() {
                None => (min.into_owned(), max.into_owned()),
                Some((low, high)) => (
                    if min.order(&low).is_lt() { min.into_owned() } else { low },
                    if max.order(&high).is_gt() { max.into_owned() } else { high },
                ),
            });
        }
        self.next = end;
        Ok(end == self.blocks.len())
    }

    fn finish(self) -> ColumnEntry {
        let mut entry = self.entry;
        entry.bounds.push(entry.meta.data_type, self.whole.as_ref());
        entry
    }
}

impl Column {
    /// Appends rows of a vector, `at` rows being there; answers the bytes added and whether offsets
    /// still fit.
    fn push(&mut self, vector: &Vector, selection: Option<&[u32]>, at: usize) -> (usize, bool) {
        let count = selection.map_or(vector.len(), <[u32]>::len);
        let flat = vector.flat();
        let (mut done, mut added, mut fits) = (0, 0, true);
        while done < count {
            let room = BLOCK_ROWS - (at + done) % BLOCK_ROWS;
            if room == BLOCK_ROWS {
                self.blocks.push((Values::empty(self.spec.data_type.physical()), None));
            }
            let n = room.min(count - done);
            let Some((values, validity)) = self.blocks.last_mut() else { break };
            let before = size(values);
            let old_rows = values.len();
            match selection {
                None => append_range(values, &flat, done, n),
                Some(rows) => append_some(values, &flat, &rows[done..done + n]),
            }
            let row = |i: usize| selection.map_or(i, |rows| rows[i] as usize);
            if validity.is_some()
                || (vector.validity().is_some() && (done..done + n).any(|i| vector.is_null(row(i))))
            {
                let bits = validity.get_or_insert_with(|| Bitmap::filled(old_rows, true));
                (done..done + n).for_each(|i| bits.push(!vector.is_null(row(i))));
            }
            let bytes = size(values) - before;
            fits &= !matches!(values, Values::Bytes(v) if v.data.len() > u32::MAX as usize);
            self.raw_bytes += bytes as u64;
            added += bytes;
            done += n;
        }
        (added, fits)
    }

    /// Chooses encodings and writes the dictionary, if there is one.
    fn begin(self, file: &dyn LocalFile, out: &mut Output) -> Result<ColumnWriter> {
        let plan = match self.searched {
            true => ColumnPlan::choose_for_search(&self.blocks),
            false => ColumnPlan::choose(&self.blocks),
        };
        let mut entry = ColumnEntry::new(&self.spec);
        entry.meta.raw_bytes = self.raw_bytes;
        if let Some((bytes, values)) = plan.dictionary() {
            let (length, checksum) = (length(&bytes)?, checksum(&bytes));
            let offset = out.put(file, &bytes)?;
            entry.dictionary =
                Some(DictionaryEntry { offset, length, checksum, values: values as u32 });
        }
        Ok(ColumnWriter { blocks: self.blocks, next: 0, plan, entry, whole: None })
    }
}

fn filter_column(id: u32, blocks: Vec<Rows>, rows: usize) -> Column {
    Column::new(
        ColumnSpec { id, data_type: DataType::UInt16, nullable: false },
        blocks,
        rows as u64 * 8,
    )
}

fn length(bytes: &[u8]) -> Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| Error::limit("block longer than 4 GiB"))
}

/// Uncompressed bytes.
fn size(values: &Values) -> usize {
    match values {
        Values::Bool(v) => v.len(),
        Values::I64(v) => v.len() * 8,
        Values::I128(v) => v.len() * 16,
        Values::F64(v) => v.len() * 8,
        Values::Bytes(v) => v.data.len() + v.len() * 4,
    }
}

fn append_range(to: &mut Values, from: &Values, start: usize, len: usize) {
    let range = start..start + len;
    match (to, from) {
        (Values::Bool(to), Values::Bool(from)) => to.extend_from_slice(&from[range]),
        (Values::I64(to), Values::I64(from)) => to.extend_from_slice(&from[range]),
        (Values::I128(to), Values::I128(from)) => to.extend_from_slice(&from[range]),
        (Values::F64(to), Values::F64(from)) => to.extend_from_slice(&from[range]),
        (Values::Bytes(to), Values::Bytes(from)) => to.append(from, start, len),
        _ => debug_assert!(false, "vector of another physical type"),
    }
}

fn append_some(to: &mut Values, from: &Values, rows: &[u32]) {
    let rows = rows.iter().map(|row| *row as usize);
    match (to, from) {
        (Values::Bool(to), Values::Bool(from)) => to.extend(rows.map(|row| from[row])),
        (Values::I64(to), Values::I64(from)) => to.extend(rows.map(|row| from[row])),
        (Values::I128(to), Values::I128(from)) => to.extend(rows.map(|row| from[row])),
        (Values::F64(to), Values::F64(from)) => to.extend(rows.map(|row| from[row])),
        (Values::Bytes(to), Values::Bytes(from)) => rows.for_each(|row| to.push(from.get(row))),
        _ => debug_assert!(false, "vector of another physical type"),
    }
}

/// The file, written in large pieces.
struct Output {
    written: u64,
    buffer: Vec<u8>,
}

impl Output {
    /// Appends bytes at the next aligned offset, and answers it.
    fn put(&mut self, file: &dyn LocalFile, bytes: &[u8]) -> Result<u64> {
        let offset = self.align();
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            // Whole units only, so that what is left starts aligned.
            self.align();
            self.flush(file)?;
        }
        Ok(offset)
    }

    /// Goes to the next aligned offset, and answers it.
    fn align(&mut self) -> u64 {
        let padded = self.buffer.len().next_multiple_of(ALIGNMENT);
        self.buffer.resize(padded, 0);
        self.written + padded as u64
    }

    fn flush(&mut self, file: &dyn LocalFile) -> Result<()> {
        file.write(self.written, &self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
