//! Sub-columns in a footer: which entries belong to which, and that none is missing.
//!
//! In the file, the sub-columns of a column follow it, in the order of its schema. In memory they
//! come after all columns, so that positions of columns are not changed by them.

use super::entry::{ColumnEntry, PartOf};
use crate::document::Kind;
use nacre_types::Result;
use nacre_types::bytes::{Reader, Write};
use nacre_types::limits::MAX_SEGMENT_COLUMNS;

/// The first version whose columns may have sub-columns.
pub(super) const WITH_PARTS: u8 = 5;

/// Appends what an entry belongs to: the number of the entry, counted from 1, and the place in it.
pub(super) fn put(out: &mut Vec<u8>, part: Option<PartOf>) {
    let Some(PartOf { parent, node, kind }) = part else {
        out.put_varint(0);
        out.put_bytes(&[]);
        return;
    };
    out.put_varint(parent as u64 + 1);
    let mut place = Vec::new();
    place.put_varint(node as u64);
    place.put_u8(kind as u8);
    out.put_bytes(&place);
}

/// Entries being read.
#[derive(Default)]
pub(super) struct Columns {
    columns: Vec<ColumnEntry>,
    parts: Vec<ColumnEntry>,
    /// Number of the last column's entry in the file, counted from 1.
    number: u64,
    /// The sub-columns that the last column still lacks, in reverse order.
    missing: Vec<(usize, Kind)>,
}

impl Columns {
    /// Reads what the next entry belongs to.
    pub fn part(&mut self, reader: &mut Reader<'_>, version: u8) -> Result<Option<PartOf>> {
        let parent = reader.varint()?;
        let place = reader.bytes()?;
        if parent == 0 && place.is_empty() {
            return Ok(None);
        }
        if version < WITH_PARTS {
            return Err(reader.corrupt("nested column in a version that has none"));
        }
        let expected = self.missing.pop().filter(|_| parent == self.number);
        let (Some((node, kind)), Some(parent)) = (expected, self.columns.len().checked_sub(1))
        else {
            return Err(reader.corrupt("a sub-column of another column"));
        };
        let mut place = Reader::new(place, "footer");
        if place.varint()? != node as u64 || place.u8()? != kind as u8 {
            return Err(reader.corrupt("a sub-column at another place"));
        }
        place.finish()?;
        Ok(Some(PartOf { parent, node, kind }))
    }

    /// Number of rows of a sub-column.
    pub fn rows_of(&self, part: PartOf) -> usize {
        debug_assert!(part.parent < self.columns.len(), "a part of column {}", part.parent);
        let document = self.columns.get(part.parent).and_then(|column| column.document.as_ref());
        document.map_or(0, |document| document.schema.nodes[part.node].rows)
    }

    /// Adds the entry that was read.
    pub fn add(&mut self, reader: &Reader<'_>, mut column: ColumnEntry) -> Result<()> {
        if let Some(part) = column.part {
            let is = (column.meta.data_type, column.meta.nullable);
            if is != (part.kind.data_type(), part.kind.nullable()) {
                return Err(reader.corrupt("a sub-column of another type"));
            }
            let parent = &mut self.columns[part.parent].meta;
            parent.bytes = parent.bytes.saturating_add(column.meta.bytes);
            self.parts.push(column);
            return Ok(());
        }
        if !self.missing.is_empty() || self.columns.len() == MAX_SEGMENT_COLUMNS {
            return Err(reader.corrupt("a column without its sub-columns, or too many"));
        }
        self.number = (self.columns.len() + self.parts.len()) as u64 + 1;
        if let Some(document) = &mut column.document {
            // Among the sub-columns, until all columns are known.
            document.first = self.parts.len();
            self.missing = document.schema.each_column().collect();
            self.missing.reverse();
        }
        self.columns.push(column);
        Ok(())
    }

    /// The columns, then their sub-columns.
    pub fn finish(mut self, reader: &Reader<'_>) -> Result<Vec<ColumnEntry>> {
        if !self.missing.is_empty() {
            return Err(reader.corrupt("a column without its sub-columns"));
        }
        debug_assert!(self.parts.iter().all(|part| part.part.is_some()), "a part of no column");
        let count = self.columns.len();
        for document in self.columns.iter_mut().filter_map(|column| column.document.as_mut()) {
            document.first += count;
        }
        self.columns.append(&mut self.parts);
        Ok(self.columns)
    }
}
