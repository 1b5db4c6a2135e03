//! A column of JSON before it is written: its documents are taken apart into sub-columns, in steps,
//! unless text is as good.

use super::blocks::Column;
use crate::document::{Inference, Kind, MAX_NODES, Schema, Shredder, SubColumn};
use crate::footer::extremes;
use nacre_column::{BlockValues, BytesColumn, Scalar, Values};
use nacre_types::{DataType, Result, invariant};
use std::collections::VecDeque;
use std::ops::Range;

/// Greatest number of sub-columns of a column.
pub(super) const MAX_COLUMN_PARTS: usize = MAX_NODES * Kind::ALL.len();
/// Blocks that are kept until it is known whether most of their text stays text.
const TRIAL_BLOCKS: usize = 16;
/// Rows that are read together: taking 256 documents of 300 bytes apart takes 0.5 ms.
const ROWS: usize = 256;
/// Bytes of text whose reading costs as much as a block of numbers.
const COST_BYTES: usize = 32 << 10;

/// The least and the greatest value of a block; `None` if all rows are null.
pub(super) type Extremes = Option<(Scalar<'static>, Scalar<'static>)>;

/// What the entry of a column of documents says of them.
pub(super) struct Documents {
    pub schema: Schema,
    /// By block.
    pub extremes: VecDeque<Extremes>,
}

/// A column that is ready to be written.
pub(super) struct Shredded {
    /// As it was; of documents, which rows are null.
    pub column: Column,
    /// The documents and their sub-columns, unless the column stays text.
    pub documents: Option<(Documents, Vec<SubColumn>)>,
}

/// A column whose documents are taken apart.
pub(super) struct Shredding {
    column: Column,
    /// The next block.
    next: usize,
    /// The next row in it.
    row: usize,
    stage: Stage,
    extremes: VecDeque<Extremes>,
}

enum Stage {
    /// Reads all documents.
    Infer(Inference),
    /// Reads all of them again.
    Shred(Shredder),
    Text,
}

impl Shredding {
    pub fn new(column: Column) -> Shredding {
        debug_assert!(column.spec.data_type == DataType::Json, "documents of another type");
        let stage = Stage::Infer(Inference::begun());
        Shredding { column, next: 0, row: 0, stage, extremes: VecDeque::new() }
    }

    /// Reads documents until they cost as much as `left` blocks; returns what they cost. `None` once
    /// all are read.
    pub fn step(&mut self, left: usize) -> Result<Option<usize>> {
        debug_assert!(left > 0, "a step of no blocks never ends");
        let mut cost = 0usize;
        while cost < left {
            let Some(block) = self.column.blocks.get(self.next) else {
                match self.stage {
                    Stage::Infer(_) => self.end_inference(),
                    Stage::Shred(_) | Stage::Text => return Ok(None),
                }
                continue;
            };
            let rows = self.row..block.0.len().min(self.row + ROWS);
            let is_last = rows.end == block.0.len();
            cost = cost.saturating_add(cost_of(block, rows.clone()));
            match &mut self.stage {
                Stage::Text => return Ok(None),
                Stage::Infer(inference) => {
                    if self.row == 0 {
                        inference.begin_block();
                    }
                    if !texts(block, rows.clone()).flatten().all(|text| inference.add(text)) {
                        self.stage = Stage::Text;
                    }
                }
                Stage::Shred(shredder) => {
                    texts(block, rows.clone()).try_for_each(|text| shredder.add(text))?;
                }
            }
            self.row = rows.end;
            if is_last {
                (self.row, self.next) = (0, self.next + 1);
                self.end_block();
            }
        }
        Ok(Some(cost))
    }

    fn end_inference(&mut self) {
        let Stage::Infer(inference) = std::mem::replace(&mut self.stage, Stage::Text) else {
            return;
        };
        if let Some(schema) = inference.finish() {
            debug_assert!(self.extremes.is_empty(), "blocks are gone before they are read again");
            self.stage = Stage::Shred(Shredder::new(schema));
            self.next = 0;
        }
    }

    /// Frees the text of blocks that were taken apart, once it is known that the column is.
    fn end_block(&mut self) {
        let Stage::Shred(shredder) = &self.stage else { return };
        let is_text = shredder.is_text();
        let done = self.next == self.column.blocks.len();
        if self.next < TRIAL_BLOCKS && !done {
            return;
        }
        if self.extremes.is_empty() && is_text {
            self.stage = Stage::Text;
            return;
        }
        for at in self.extremes.len()..self.next {
            let (values, validity) = &mut self.column.blocks[at];
            let found = extremes(values, validity.as_ref());
            self.extremes.push_back(found.map(|(low, high)| (low.into_owned(), high.into_owned())));
            let offsets = vec![0; values.len() + 1];
            *values = Values::Bytes(BytesColumn { offsets, data: Vec::new() });
        }
    }

    /// The column, once every step is done.
    pub fn finish(self) -> Shredded {
        let Shredding { column, next, stage, extremes, .. } = self;
        let Stage::Shred(shredder) = stage else {
            invariant!(extremes.is_empty(), "text of a column is gone");
            return Shredded { column, documents: None };
        };
        invariant!(
            next == column.blocks.len() && extremes.len() == next,
            "{} of {} blocks were taken apart",
            extremes.len(),
            column.blocks.len()
        );
        let (schema, parts) = shredder.finish();
        Shredded { column, documents: Some((Documents { schema, extremes }, parts)) }
    }
}

/// The texts of some rows of a block; `None` for null.
fn texts(
    (values, validity): &BlockValues,
    rows: Range<usize>,
) -> impl Iterator<Item = Option<&[u8]>> {
    rows.map(move |row| match values {
        Values::Bytes(texts) if validity.as_ref().is_none_or(|bits| bits.get(row)) => {
            Some(texts.get(row))
        }
        _ => None,
    })
}

/// What it costs to read some rows of a block, in blocks of numbers.
fn cost_of((values, _): &BlockValues, rows: Range<usize>) -> usize {
    match values {
        Values::Bytes(texts) => {
            1 + (texts.offsets[rows.end] - texts.offsets[rows.start]) as usize / COST_BYTES
        }
        _ => 1,
    }
}
