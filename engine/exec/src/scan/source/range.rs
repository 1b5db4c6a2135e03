//! The columns of a range of rows inside one block, read as far as they are asked for.

use super::columns::StoredColumns;
use nacre_column::Vector;
use nacre_operator::context::Context;
use nacre_table::SegmentView;
use nacre_types::{Result, limits};
use std::ops::Range;
use std::sync::Arc;

/// Where fetching is faster than decoding even for one row in this many, testing decodes, too.
const DECODED_TO_TEST: usize = 2;

/// The rows that are left are returned by themselves if at most one in this many is left; otherwise
/// with the others of the range, and a selection.
const COMPACT_ONE_IN: usize = 8;

/// The columns of a range: decoded as a whole, or fetched for some of its rows.
pub(super) struct RangeColumns<'a> {
    pub columns: &'a StoredColumns,
    pub view: &'a SegmentView,
    pub range: Range<usize>,
    pub context: &'a Context<'a>,
    /// By output column.
    decoded: Vec<Option<Arc<Vector>>>,
    /// By output column: positions in the range, and their values.
    taken: Vec<Option<(Vec<u32>, Arc<Vector>)>>,
    /// By output column: see [`StoredColumns::seek_one_in`]; 0 if not known yet.
    seek_one_in: Vec<usize>,
}

impl<'a> RangeColumns<'a> {
    /// Nothing read yet.
    pub fn new(
        columns: &'a StoredColumns,
        view: &'a SegmentView,
        range: Range<usize>,
        context: &'a Context<'a>,
    ) -> RangeColumns<'a> {
        let (decoded, taken) = (vec![None; columns.len()], vec![None; columns.len()]);
        let seek_one_in = vec![0; columns.len()];
        RangeColumns { columns, view, range, context, decoded, taken, seek_one_in }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether a number of rows of a column is fetched faster one by one than decoded with the range.
    pub fn is_few(&mut self, column: usize, rows: usize) -> Result<bool> {
        if self.is_decoded(column) || rows >= self.len() {
            return Ok(false);
        }
        if self.seek_one_in[column] == 0 {
            let block = self.range.start / limits::BLOCK_ROWS;
            self.seek_one_in[column] = self.columns.seek_one_in(self.view, column, block)?;
        }
        Ok(rows * self.seek_one_in[column] <= self.len())
    }

    /// Whether a number of rows of a column is fetched faster one by one than all encoded values of the
    /// range are tested, which takes `tested` times as long as decoding them.
    pub fn is_few_to_test(&mut self, column: usize, rows: usize, tested: f32) -> Result<bool> {
        let is_few = self.is_few(column, rows)?;
        if !is_few || self.seek_one_in[column] <= DECODED_TO_TEST {
            return Ok(is_few);
        }
        // As many rows as can be fetched while the range is decoded are few.
        Ok(tested > 0.0 && self.is_few(column, (rows as f32 / tested) as usize)?)
    }

    /// Whether this many rows are read by themselves, of these columns: because they are few, or
    /// because of a column of which they are fetched faster one by one.
    pub fn is_compact(
        &mut self,
        rows: usize,
        mut columns: impl Iterator<Item = usize>,
    ) -> Result<bool> {
        if rows * COMPACT_ONE_IN <= self.len() {
            return Ok(true);
        }
        columns.try_fold(false, |found, column| Ok(found || self.is_few(column, rows)?))
    }

    /// Whether a column is decoded already.
    pub fn is_decoded(&self, column: usize) -> bool {
        self.decoded[column].is_some()
    }

    /// A column, decoded.
    pub fn decode(&mut self, column: usize) -> Result<Arc<Vector>> {
        if let Some(vector) = &self.decoded[column] {
            return Ok(vector.clone());
        }
        let vector = self.columns.decode(self.view, column, self.range.clone(), self.context)?;
        self.decoded[column] = Some(vector.clone());
        Ok(vector)
    }

    /// The values of a column at ascending positions: of the decoded column, or of values fetched
    /// before, or by seek or decoding.
    pub fn at(&mut self, column: usize, positions: &[u32]) -> Result<Arc<Vector>> {
        if let Some(vector) = &self.decoded[column] {
            return Ok(Arc::new(vector.take(positions)));
        }
        if let Some((known, vector)) = &self.taken[column]
            && let Some(places) = places(known, positions)
        {
            return Ok(match places.len() == known.len() {
                true => vector.clone(),
                false => Arc::new(vector.take(&places)),
            });
        }
        if !self.is_few(column, positions.len())? {
            return Ok(Arc::new(self.decode(column)?.take(positions)));
        }
        let rows = self.rows_of(positions);
        let vector = self.columns.take_in_scan(self.view, column, &rows, self.context)?;
        self.taken[column] = Some((positions.to_vec(), vector.clone()));
        Ok(vector)
    }

    /// Converts positions in the range to row numbers of the segment.
    pub fn rows_of(&self, positions: &[u32]) -> Vec<u32> {
        positions.iter().map(|at| self.range.start as u32 + at).collect()
    }
}

/// Where these ascending positions are among known ones; `None` if one is not.
fn places(known: &[u32], positions: &[u32]) -> Option<Vec<u32>> {
    let mut places = Vec::with_capacity(positions.len());
    let mut at = 0;
    for position in positions {
        while known.get(at)? < position {
            at += 1;
        }
        if known[at] != *position {
            return None;
        }
        places.push(at as u32);
    }
    Some(places)
}
