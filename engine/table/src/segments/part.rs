//! The part of an index for one segment: the index keys of its rows in order, each with its row
//! number.
//!
//! A part consists of columns like those of any segment, with ids of their own
//! ([`crate::layout::columns`]): the key columns, sorted, and the row numbers, ascending among
//! equal keys. It is in the segment's own file, after the table's columns, if the segment was
//! written after the index was created; otherwise in a separate file. So a key is found by zone
//! maps and a search within one block, and the rows of a key are adjacent: its postings list.

use crate::layout::columns::{PartColumn, column_of_part};
use crate::layout::sorted_keys::SortedKeys;
use nacre_column::{Scalar, Values};
use nacre_segment::{ColumnMeta, Segment};
use nacre_types::{DataType, Error, IndexId, Result, Value};
use std::sync::Arc;

/// At most this many row numbers are read one by one instead of decoding a block.
const FEW_ROWS: usize = 16;

/// The part of one index for one segment.
pub(crate) struct Part {
    index: IndexId,
    /// The segment itself or a file beside it.
    file: Arc<Segment>,
    /// Positions of the key's columns in it.
    keys: Vec<usize>,
    /// Position of the row numbers.
    rows: usize,
    /// Position of the filter.
    filter: Option<usize>,
}

/// The index parts in a file.
pub(crate) fn parts_of(file: &Arc<Segment>) -> Vec<Arc<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for (at, id) in file.column_ids().iter().enumerate() {
        let Some((index, kind)) = column_of_part(*id) else { continue };
        match (kind, parts.last_mut()) {
            (PartColumn::RowNumbers, _) => parts.push(Part {
                index,
                file: file.clone(),
                keys: Vec::new(),
                rows: at,
                filter: None,
            }),
            (PartColumn::Filter, Some(part)) if part.index == index => part.filter = Some(at),
            (PartColumn::Key(key), Some(part)) if part.index == index && part.keys.len() == key => {
                part.keys.push(at)
            }
            // Written by a later version; ignored.
            _ => {}
        }
    }
    parts.into_iter().map(Arc::new).collect()
}

/// Fails with `corrupt` if columns of the part of an index in a file have other types than the
/// index's.
pub(crate) fn check_part_types(
    file: &str,
    columns: &[ColumnMeta],
    index: IndexId,
    types: &[DataType],
    index_name: &str,
) -> Result<()> {
    for column in columns {
        let found = column.data_type;
        let is_right = match column_of_part(column.id).filter(|(of, _)| *of == index) {
            Some((_, PartColumn::RowNumbers)) => found == DataType::UInt32,
            Some((_, PartColumn::Filter)) => found == DataType::UInt16,
            Some((_, PartColumn::Key(key))) => {
                types.get(key).is_none_or(|expected| found.physical() == expected.physical())
            }
            None => true,
        };
        if !is_right {
            return Err(invalid_part(file, index_name));
        }
    }
    Ok(())
}

fn invalid_part(file: &str, index_name: &str) -> Error {
    Error::corrupt(format!("segment {file}: not a valid part of index {index_name}"))
}

impl Part {
    /// The index.
    pub fn index(&self) -> IndexId {
        self.index
    }

    /// The segment's file or a separate one.
    pub fn file(&self) -> &Arc<Segment> {
        &self.file
    }

    /// Positions of the key's columns in the file.
    pub fn keys(&self) -> &[usize] {
        &self.keys
    }

    /// Positions of all of its columns in the file.
    pub fn columns(&self) -> Vec<usize> {
        let columns: Vec<usize> =
            self.keys.iter().copied().chain([self.rows]).chain(self.filter).collect();
        debug_assert!(columns.len() > self.keys.len(), "a part without row numbers");
        columns
    }

    /// Position of the filter in the file.
    pub fn filter(&self) -> Option<usize> {
        self.filter
    }

    /// Whether the file can hold the part of an index with columns of these types for a segment of
    /// `rows` rows. Reads its footer.
    pub fn fits(&self, types: &[DataType], rows: usize) -> Result<bool> {
        Ok(self.has_shape(types, rows) && self.has_types(types, &self.file.columns()?))
    }

    /// Whether the part has as many rows and key columns as that of an index for a segment.
    fn has_shape(&self, types: &[DataType], rows: usize) -> bool {
        self.keys.len() == types.len() && self.file.rows() == rows
    }

    /// Whether columns of the file have the types of an index's part.
    fn has_types(&self, types: &[DataType], columns: &[ColumnMeta]) -> bool {
        debug_assert!(self.rows < columns.len(), "a part in {} columns", columns.len());
        let mut keys = self.keys.iter().zip(types);
        keys.all(|(at, t)| columns[*at].data_type.physical() == t.physical())
            && columns[self.rows].data_type == DataType::UInt32
            && self.filter.is_none_or(|at| columns[at].data_type == DataType::UInt16)
    }

    /// Fails with `corrupt` unless the part is one of an index, as far as is known without reading
    /// its file.
    pub fn check_shape(&self, types: &[DataType], index_name: &str, rows: usize) -> Result<()> {
        debug_assert!(!types.is_empty(), "index {index_name} has no columns");
        match self.has_shape(types, rows) {
            true => Ok(()),
            false => Err(invalid_part(self.file.name(), index_name)),
        }
    }

    /// Fails with `corrupt` unless [`Part::fits`].
    pub fn check(&self, types: &[DataType], index_name: &str, rows: usize) -> Result<()> {
        match self.fits(types, rows)? {
            true => Ok(()),
            false => Err(invalid_part(self.file.name(), index_name)),
        }
    }

    /// Whether the segment may hold a key without nulls, according to its bounds and the filter.
    /// `hash` is the hash of the encoded key.
    pub fn may_have(&self, values: &[Value], hash: u64) -> Result<bool> {
        debug_assert!(
            values.len() == self.keys.len(),
            "{} values of a whole key of {}",
            values.len(),
            self.keys.len()
        );
        debug_assert!(
            !values.iter().any(Value::is_null),
            "filters leave out keys with nulls, like {values:?}"
        );
        if self.file.is_outside(&self.keys, values)? {
            return Ok(false);
        }
        match self.filter {
            Some(filter) => self.file.may_have(filter, hash),
            None => Ok(true),
        }
    }

    /// The keys in order, by position.
    pub fn sorted_keys(&self) -> SortedKeys<'_> {
        SortedKeys::new(&self.file, self.keys.clone(), None)
    }

    /// The number of the row at a position in index order.
    pub fn row(&self, at: usize) -> Result<u32> {
        debug_assert!(at < self.file.rows(), "key {at} of a part of {}", self.file.rows());
        match self.file.get(self.rows, at)? {
            Value::Int(row) if (0..self.file.rows() as i64).contains(&row) => Ok(row as u32),
            other => Err(Error::corrupt(format!(
                "segment {}: {other} at {at} is not a row number",
                self.file.name()
            ))),
        }
    }

    /// The numbers of the rows at `count` positions.
    pub fn rows(&self, start: usize, count: usize) -> Result<Vec<u32>> {
        debug_assert!(
            start + count <= self.file.rows(),
            "keys {start} and {count} more of a part of {}",
            self.file.rows()
        );
        let bound = self.file.rows() as i64;
        let mut rows = Vec::with_capacity(count);
        let mut add = |row: i64| match (0..bound).contains(&row) {
            true => {
                rows.push(row as u32);
                Ok(())
            }
            false => Err(Error::corrupt(format!(
                "segment {}: {row} is not a row number",
                self.file.name()
            ))),
        };
        let no_number = || {
            Error::corrupt(format!("segment {}: row numbers are not integers", self.file.name()))
        };
        if count <= FEW_ROWS {
            self.file.each(self.rows, start, count, &mut |scalar| match scalar {
                Scalar::I64(row) => add(row),
                _ => Err(no_number()),
            })?;
        } else {
            let vector = self.file.decode(self.rows, start, count)?;
            let flat = vector.flat();
            let Values::I64(values) = &*flat else { return Err(no_number()) };
            values.iter().try_for_each(|row| add(*row))?;
        }
        debug_assert!(rows.len() == count, "{} numbers of {count} rows", rows.len());
        Ok(rows)
    }

    /// Fails with `corrupt` unless these rows of one key ascend.
    pub fn check_ascending(&self, rows: &[u32]) -> Result<()> {
        match rows.is_sorted() {
            true => Ok(()),
            false => Err(Error::corrupt(format!(
                "segment {}: rows of one key do not ascend",
                self.file.name()
            ))),
        }
    }

    /// Positions of all keys with this prefix: the first, and the one after the last.
    pub fn equal(&self, prefix: &[Value]) -> Result<(usize, usize)> {
        self.check_prefix(prefix);
        self.file.equal_range(&self.keys, prefix)
    }

    /// The first position of a key that is not below this prefix. Values must be of the index's
    /// types.
    pub fn lower(&self, prefix: &[Value]) -> Result<usize> {
        self.check_prefix(prefix);
        self.file.lower_bound(&self.keys, prefix)
    }

    /// The first position, starting at `from`, of a key above every key with this prefix.
    pub fn upper(&self, prefix: &[Value], from: usize) -> Result<usize> {
        self.check_prefix(prefix);
        debug_assert!(from <= self.file.rows(), "a search from key {from} of {}", self.file.rows());
        self.file.upper_bound(&self.keys, prefix, from)
    }

    /// Searches ignore values beyond the key's columns.
    fn check_prefix(&self, prefix: &[Value]) {
        debug_assert!(
            prefix.len() <= self.keys.len(),
            "{} values of a key of {} columns",
            prefix.len(),
            self.keys.len()
        );
    }
}
