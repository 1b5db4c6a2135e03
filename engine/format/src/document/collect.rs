//! A sub-column being collected: values at ascending rows, null in between.

use super::schema::Kind;
use nacre_column::{Bitmap, BlockValues, Values};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, invariant};

/// The values of a sub-column, in blocks.
pub struct SubColumn {
    /// Its node.
    pub node: usize,
    /// Its kind.
    pub kind: Kind,
    /// Its blocks.
    pub blocks: Vec<BlockValues>,
    rows: usize,
}

/// A value of a sub-column.
#[derive(Clone, Copy)]
pub(super) enum Given<'a> {
    Integer(i64),
    Double(f64),
    Boolean(bool),
    Bytes(&'a [u8]),
}

impl SubColumn {
    /// The values of a kind at a node, none yet.
    pub fn new(node: usize, kind: Kind) -> SubColumn {
        SubColumn { node, kind, blocks: Vec::new(), rows: 0 }
    }

    /// Sets the value of a row, which is after all others. Fails with `limit` if a block would have
    /// more than 4 GiB of text.
    pub(super) fn push(&mut self, row: usize, value: Given<'_>) -> Result<()> {
        invariant!(row >= self.rows, "row {row} of a sub-column of {} is set", self.rows);
        self.fill(row);
        let (values, validity) = self.block();
        match (values, value) {
            (Values::I64(values), Given::Integer(value)) => values.push(value),
            (Values::F64(values), Given::Double(value)) => values.push(value),
            (Values::Bool(values), Given::Boolean(value)) => values.push(value),
            (Values::Bytes(values), Given::Bytes(value)) => {
                if values.data.len() + value.len() > u32::MAX as usize {
                    return Err(Error::limit("more than 4 GiB of JSON in one block"));
                }
                values.push(value);
            }
            _ => invariant!(false, "a value of another type than its sub-column"),
        }
        if let Some(validity) = validity {
            validity.push(true);
        }
        debug_assert!(
            self.blocks.last().is_some_and(|(values, validity)| {
                validity.as_ref().is_none_or(|bits| bits.len() == values.len())
            }),
            "validity of other rows than a sub-column has"
        );
        self.rows += 1;
        Ok(())
    }

    /// Makes the rows up to `end` null.
    pub(super) fn fill(&mut self, end: usize) {
        debug_assert!(self.kind.nullable() || self.rows >= end, "nulls among starts of arrays");
        while self.rows < end {
            let count = (BLOCK_ROWS - self.rows % BLOCK_ROWS).min(end - self.rows);
            let before = self.rows % BLOCK_ROWS;
            let (values, validity) = self.block();
            let bits = validity.get_or_insert_with(|| Bitmap::filled(before, true));
            bits.extend_run(false, count);
            match values {
                Values::Bool(values) => values.resize(before + count, false),
                Values::I64(values) => values.resize(before + count, 0),
                Values::I128(values) => values.resize(before + count, 0),
                Values::F64(values) => values.resize(before + count, 0.0),
                Values::Bytes(values) => (0..count).for_each(|_| values.push(&[])),
            }
            self.rows += count;
        }
    }

    /// Gives the rows up to `end` a number.
    pub(super) fn fill_with(&mut self, end: usize, number: i64) {
        debug_assert!(number >= 0 && self.kind == Kind::Start, "{number} elements before a row");
        while self.rows < end {
            let count = (BLOCK_ROWS - self.rows % BLOCK_ROWS).min(end - self.rows);
            if let (Values::I64(values), None) = self.block() {
                values.resize(values.len() + count, number);
            }
            self.rows += count;
        }
    }

    /// The block of the next row.
    fn block(&mut self) -> &mut BlockValues {
        let at = self.rows / BLOCK_ROWS;
        debug_assert!(at <= self.blocks.len(), "block {at} of {}", self.blocks.len());
        if at == self.blocks.len() {
            self.blocks.push((Values::empty(self.kind.data_type().physical()), None));
        }
        &mut self.blocks[at]
    }
}
