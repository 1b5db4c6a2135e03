//! A footer's description of one column, and the division of rows into blocks.

use super::bounds::Bounds;
use super::groups::GroupZone;
use crate::column::{ColumnMeta, ColumnSpec};
use crate::document::{Kind, Schema};
use nacre_column::encoding::Encoding;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{DataType, Value, invariant};
use std::sync::OnceLock;

/// What reports call the encoding of a column of shredded documents.
const SHREDDED: &str = "shredded";

/// Location of a column's outline.
#[derive(Clone, Copy, Debug)]
pub struct OutlineEntry {
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
    /// Its checksum.
    pub checksum: u64,
}

/// Location of a column's dictionary.
#[derive(Clone, Copy, Debug)]
pub struct DictionaryEntry {
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
    /// Its checksum.
    pub checksum: u64,
    /// Number of its values.
    pub values: u32,
}

/// What a column of shredded documents says of its sub-columns.
#[derive(Debug)]
pub struct DocumentEntry {
    /// Their schema.
    pub schema: Schema,
    /// The entry of the first one; the others follow.
    pub first: usize,
}

/// What a sub-column belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOf {
    /// The entry of the column.
    pub parent: usize,
    /// The node in its schema.
    pub node: usize,
    /// What it has of the node.
    pub kind: Kind,
}

/// A column: its public metadata, and the location of its blocks. Stored as one array per property
/// with one entry per block: a segment of a million rows has 256 blocks per column.
#[derive(Debug)]
pub struct ColumnEntry {
    /// Metadata for reports.
    pub meta: ColumnMeta,
    /// Number of rows: those of the segment, except in sub-columns of the elements of arrays.
    pub rows: usize,
    /// Set if its values are in sub-columns. Its blocks then only say which rows are null.
    pub document: Option<Box<DocumentEntry>>,
    /// Set for a sub-column.
    pub part: Option<PartOf>,
    /// Offsets of the blocks in the file.
    pub offsets: Vec<u64>,
    /// Lengths of the blocks, in bytes.
    pub lengths: Vec<u32>,
    /// Checksums of the blocks.
    pub checksums: Vec<u64>,
    /// Encodings of the blocks.
    pub encodings: Vec<Encoding>,
    /// Number of null rows of each block.
    pub nulls: Vec<u16>,
    /// Bounds of each block and, last, of the column.
    pub bounds: Bounds,
    /// Zones of groups of blocks, once one was asked for.
    pub groups: OnceLock<Vec<GroupZone>>,
    /// The dictionary of values or tokens, if a block takes it ([`Encoding::shares`]).
    pub dictionary: Option<DictionaryEntry>,
    /// The outline, if rows of any block are read by parts.
    pub outline: Option<OutlineEntry>,
}

impl ColumnEntry {
    /// Creates the entry of a column of `rows` rows, without blocks.
    pub fn new(spec: &ColumnSpec, rows: usize) -> ColumnEntry {
        ColumnEntry {
            rows,
            document: None,
            part: None,
            meta: ColumnMeta {
                id: spec.id,
                data_type: spec.data_type,
                nullable: spec.nullable,
                encoding: Encoding::Constant.name(),
                bytes: 0,
                raw_bytes: 0,
                null_count: 0,
                min: Value::Null,
                max: Value::Null,
                exact: true,
            },
            offsets: Vec::new(),
            lengths: Vec::new(),
            checksums: Vec::new(),
            encodings: Vec::new(),
            nulls: Vec::new(),
            bounds: Bounds::new(spec.data_type.physical()),
            groups: OnceLock::new(),
            dictionary: None,
            outline: None,
        }
    }

    /// Number of blocks.
    #[inline]
    pub fn blocks(&self) -> usize {
        block_count(self.rows)
    }

    /// Number of rows in a block.
    #[inline]
    pub fn block_rows(&self, block: usize) -> usize {
        debug_assert!(block < self.blocks(), "rows of block {block} of {}", self.blocks());
        block_rows(self.rows, block)
    }

    /// Crashes unless the entry describes a complete column, as the reader accepts it.
    pub fn assert_complete(&self) {
        let (id, blocks) = (self.meta.id, self.blocks());
        let counts = [
            self.offsets.len(),
            self.lengths.len(),
            self.checksums.len(),
            self.encodings.len(),
            self.nulls.len(),
        ];
        invariant!(
            counts.iter().all(|n| *n == blocks),
            "column {id}: {counts:?} of {blocks} blocks"
        );
        let bounds = [self.bounds.min.len(), self.bounds.max.len(), self.bounds.exact.len()];
        invariant!(bounds.iter().all(|n| *n == blocks + 1), "column {id}: {bounds:?} bounds");
        invariant!(self.offsets.is_sorted_by(|a, b| a < b), "column {id}: offsets do not ascend");
        let shares = |encoding: &Encoding| encoding.shares();
        let is_coded = self.encodings.iter().any(shares);
        invariant!(!is_coded || self.dictionary.is_some(), "column {id}: codes, but no dictionary");
        invariant!(
            self.has_one_kind_of_codes(),
            "column {id}: a dictionary of values and of tokens"
        );
        for block in 0..blocks {
            let (nulls, rows) = (self.nulls[block] as usize, self.block_rows(block));
            invariant!(nulls <= rows, "column {id}, block {block}: {nulls} nulls in {rows} rows");
        }
    }

    /// Whether all blocks that take the dictionary mean the same by it.
    pub(super) fn has_one_kind_of_codes(&self) -> bool {
        let mut coded = self.encodings.iter().filter(|encoding| encoding.shares());
        let first = coded.next();
        coded.all(|other| Some(other) == first)
    }

    /// Computes the fields of `meta` that depend on other fields.
    pub(super) fn summarise(&mut self) {
        let blocks = self.offsets.len();
        let meta = &mut self.meta;
        meta.null_count = self.nulls.iter().map(|n| *n as u64).sum();
        meta.bytes = self.lengths.iter().map(|n| *n as u64).sum();
        meta.bytes += self.dictionary.map_or(0, |d| d.length as u64);
        meta.bytes += self.outline.map_or(0, |o| o.length as u64);
        meta.exact = self.bounds.exact.get(blocks);
        if meta.null_count < self.rows as u64 {
            (meta.min, meta.max) = self.bounds.values(meta.data_type, blocks);
        }
        // Ties go to the encoding with the greatest number.
        let uses = |encoding: &&Encoding| {
            (self.encodings.iter().filter(|used| used == encoding).count(), **encoding as u8)
        };
        if let Some(most) = Encoding::ALL.iter().max_by_key(uses).filter(|_| blocks > 0) {
            meta.encoding = most.name();
        }
        debug_assert!(
            self.document.is_none() || meta.data_type == DataType::Json,
            "documents of another type"
        );
        if self.document.is_some() {
            meta.encoding = SHREDDED;
        }
    }
}

/// Number of blocks in a segment of `rows` rows.
pub fn block_count(rows: usize) -> usize {
    rows.div_ceil(BLOCK_ROWS)
}

/// Number of rows of one of its blocks.
#[inline]
pub fn block_rows(rows: usize, block: usize) -> usize {
    BLOCK_ROWS.min(rows.saturating_sub(block * BLOCK_ROWS))
}
