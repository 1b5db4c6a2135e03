//! The part of an index for one segment: the rows' index keys in order, each with the number of its row.
//!
//! A part is made of columns like those of any segment, with ids of their own: the key's columns, sorted, and the row
//! numbers, ascending among equal keys. They lie in the segment's own file, behind the table's columns, when the
//! segment was written after the index was made; otherwise in a file of their own that has nothing else. So a key is
//! found by zone maps and a search inside one block, and the rows of a key are neighbours: its postings list.

use crate::index::definition::Index;
use crate::load::common_keys::SortedKeys;
use nacre_column::{Scalar, Values};
use nacre_segment::{IndexOrder, Segment};
use nacre_types::{DataType, Error, IndexId, Result, Value};
use std::sync::Arc;

/// Ids of columns from here on, up to those reserved at the top, belong to parts of indexes.
const FIRST: u32 = 1 << 31;
/// Ids that an index has: the row numbers', then those of its columns, last that of the filter.
const IDS: u32 = 32;
const FILTER: u32 = IDS - 1;
/// So few row numbers are read one by one.
const FEW_ROWS: usize = 16;
/// Above are other reserved ids.
const END: u32 = u32::MAX - 63;

fn row_column(index: IndexId) -> u32 {
    FIRST + index * IDS
}

/// Whether a column of this id belongs to a part.
pub(crate) fn is_of_index(id: u32) -> bool {
    (FIRST..END).contains(&id)
}

/// The part of one index for one segment.
pub(crate) struct Part {
    pub index: IndexId,
    /// The segment itself or a file beside it.
    pub file: Arc<Segment>,
    /// Positions of the key's columns in it.
    pub keys: Vec<usize>,
    /// Position of the row numbers.
    pub rows: usize,
    /// Position of the filter.
    pub filter: Option<usize>,
}

/// The parts that are in a file.
pub(crate) fn parts_of(file: &Arc<Segment>) -> Vec<Arc<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for (at, column) in file.columns().iter().enumerate() {
        if !is_of_index(column.id) {
            continue;
        }
        let (index, place) = ((column.id - FIRST) / IDS, (column.id - FIRST) % IDS);
        match parts.last_mut() {
            _ if place == 0 => parts.push(Part {
                index,
                file: file.clone(),
                keys: Vec::new(),
                rows: at,
                filter: None,
            }),
            Some(part) if part.index == index && place == FILTER => part.filter = Some(at),
            Some(part) if part.index == index && part.keys.len() + 1 == place as usize => {
                part.keys.push(at)
            }
            // Of a later version: not understood, so not there.
            _ => {}
        }
    }
    parts.into_iter().map(Arc::new).collect()
}

impl Index {
    /// What the builder of a segment needs to know to write this index's part with it.
    pub fn order(&self) -> IndexOrder {
        let rows = row_column(self.schema.id);
        IndexOrder {
            columns: self.columns.clone(),
            rows,
            keys: (1..=self.columns.len() as u32).map(|n| rows + n).collect(),
            filter: rows + FILTER,
        }
    }
}

impl Part {
    /// Checks that it can be the part of an index for a segment of so many rows.
    pub fn check(&self, index: &Index, rows: usize) -> Result<()> {
        let columns = self.file.columns();
        let fits = self.keys.len() == index.types.len()
            && self
                .keys
                .iter()
                .zip(&index.types)
                .all(|(at, t)| columns[*at].data_type.physical() == t.physical())
            && columns[self.rows].data_type == DataType::UInt32
            && self.filter.is_none_or(|at| columns[at].data_type == DataType::UInt16)
            && self.file.rows() == rows;
        if fits {
            return Ok(());
        }
        let name = &index.schema.name;
        Err(Error::corrupt(format!(
            "segment {}: this is not a part of index {name}",
            self.file.name()
        )))
    }

    /// Whether a key, without nulls, may be there, by its range and its filter. `hash` is of the encoded key.
    pub fn may_have(&self, values: &[Value], hash: u64) -> Result<bool> {
        if self.file.is_outside(&self.keys, values) {
            return Ok(false);
        }
        match self.filter {
            Some(filter) => self.file.may_have(filter, hash),
            None => Ok(true),
        }
    }

    /// Its keys, in order, by position.
    pub fn sorted_keys(&self) -> SortedKeys<'_> {
        SortedKeys { file: &self.file, columns: self.keys.clone(), order: None }
    }

    /// The number of the row at a position in index order.
    pub fn row(&self, at: usize) -> Result<u32> {
        match self.file.get(self.rows, at)? {
            Value::Int(row) if (0..self.file.rows() as i64).contains(&row) => Ok(row as u32),
            other => Err(Error::corrupt(format!(
                "segment {}: {other} at {at} is not a row",
                self.file.name()
            ))),
        }
    }

    /// The numbers of the rows at some positions.
    pub fn rows(&self, start: usize, count: usize) -> Result<Vec<u32>> {
        let bound = self.file.rows() as i64;
        let mut rows = Vec::with_capacity(count);
        let mut add = |row: i64| match (0..bound).contains(&row) {
            true => {
                rows.push(row as u32);
                Ok(())
            }
            false => {
                Err(Error::corrupt(format!("segment {}: {row} is not a row", self.file.name())))
            }
        };
        let no_number =
            || Error::corrupt(format!("segment {}: row numbers are no numbers", self.file.name()));
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
        Ok(rows)
    }

    /// Positions of all keys that begin with some values, from the first to before the second.
    pub fn equal(&self, prefix: &[Value]) -> Result<(usize, usize)> {
        self.file.equal_range(&self.keys, prefix)
    }

    /// Positions of the keys from one prefix, inclusive or not, up to another. Values in the index's types.
    pub fn lower(&self, prefix: &[Value]) -> Result<usize> {
        self.file.lower_bound(&self.keys, prefix)
    }

    /// The first position, from `from` on, of a key that is above everything with this prefix.
    pub fn upper(&self, prefix: &[Value], from: usize) -> Result<usize> {
        self.file.upper_bound(&self.keys, prefix, from)
    }
}
