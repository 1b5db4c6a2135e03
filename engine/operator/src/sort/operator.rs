//! `ORDER BY`: collects all rows, sorts their keys, and returns the rows in that order.
//!
//! With a limit it keeps little more than that many rows and drops others as they come, and tells
//! the scans below which they may leave out (`first_key`). Rows that do not fit in memory are written
//! as sorted runs (`runs`).

use super::first_key::FirstKey;
use super::key::SortKeys;
use super::runs::{Merge, Runs};
use crate::buffer::{RowBuffer, pieces};
use crate::context::Context;
use crate::expr::{self, ActiveRows};
use crate::memory::Reservation;
use crate::operator::protocol::Operator;
use nacre_column::Batch;
use nacre_sql::plan::SortKey;
use nacre_types::{DataType, Result, limits};

/// Rows collected beyond twice the limit before the last ones are dropped.
const SLACK_ROWS: usize = 256;

/// A stable sort, or the first rows of one.
pub struct Sort {
    input: Box<dyn Operator>,
    types: Vec<DataType>,
    keys: Vec<SortKey>,
    limit: usize,
    /// With a limit: what is told to the scans below.
    first: Option<FirstKey>,
    rows: RowBuffer,
    encoded: SortKeys,
    /// Once `limit` rows are known: the last of them. New rows must sort before it.
    bound: Option<u32>,
    order: Option<Vec<u32>>,
    emitted: usize,
    held: Reservation,
    /// Rows that did not fit in memory, until all rows are there; then their merge.
    runs: Option<Runs>,
    merge: Option<Merge>,
}

impl Sort {
    /// Over an input of rows of these types. With a limit, only the first rows are returned.
    pub fn new(
        input: Box<dyn Operator>,
        types: &[DataType],
        keys: Vec<SortKey>,
        limit: Option<u64>,
        first: Option<FirstKey>,
    ) -> Sort {
        // A limit beyond the address space has no effect.
        let limit = limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        let encoded = SortKeys::new(&keys);
        Sort {
            input,
            types: types.to_vec(),
            keys,
            limit,
            first,
            rows: RowBuffer::new(types),
            encoded,
            bound: None,
            order: None,
            emitted: 0,
            held: Reservation::default(),
            runs: None,
            merge: None,
        }
    }

    fn consume(&mut self, batch: &Batch, context: &Context<'_>) -> Result<()> {
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        let vectors = self
            .keys
            .iter()
            .map(|k| expr::evaluate_shared(&k.expr, batch, context))
            .collect::<Result<Vec<_>>>()?;
        let before = self.first.as_ref().zip(vectors.first());
        let before = before.and_then(|(first, vector)| first.kept(vector, rows));
        let rows = before.as_ref().map_or(rows, |before| rows.narrowed(before));
        let start = self.encoded.len();
        self.encoded.append(&self.keys, &vectors, rows);
        if self.bound.is_none() && rows.count() <= self.limit {
            self.rows.append(batch, rows)?;
        } else {
            self.append_first(batch, rows, start)?;
        }
        let most = match self.bound {
            None => self.limit,
            Some(_) => self.limit.saturating_mul(2).saturating_add(SLACK_ROWS),
        };
        if self.rows.rows() >= most {
            self.prune();
        }
        let bytes = self.rows.memory_bytes() + self.encoded.memory_bytes() + self.rows.rows() * 24;
        if self.held.try_resize(bytes, context.memory) { Ok(()) } else { self.spill(context) }
    }

    /// Appends those rows of a batch, whose keys are there from `start` on, that may be returned.
    fn append_first(&mut self, batch: &Batch, rows: ActiveRows<'_>, start: usize) -> Result<()> {
        let is_before = |at: &u32| match self.bound {
            // Equal keys of later rows lose: the sort is stable.
            Some(bound) => self.encoded.is_before(*at as usize, bound as usize),
            None => true,
        };
        let all = start as u32..self.encoded.len() as u32;
        let (kept, _) = self.encoded.first_of(all.filter(is_before).collect(), self.limit);
        self.encoded.keep_from(start, &kept);
        let row = |at: &u32| {
            let at = *at as usize - start;
            rows.selection.map_or(at as u32, |selection| selection[at])
        };
        let selection: Vec<u32> = kept.iter().map(row).collect();
        self.rows.append(batch, rows.narrowed(&selection))
    }

    /// Writes the rows in memory as a sorted run.
    fn spill(&mut self, context: &Context<'_>) -> Result<()> {
        let runs = match &mut self.runs {
            Some(runs) => runs,
            None => {
                let file = context.spill_file("sort")?;
                self.runs.insert(Runs::new(file, &self.types, &self.keys, self.limit))
            }
        };
        runs.add(&self.rows, &self.encoded, context)?;
        self.rows = RowBuffer::new(&self.types);
        self.encoded = SortKeys::new(&self.keys);
        self.bound = None;
        self.held.release();
        Ok(())
    }

    /// Drops all but the first `limit` rows.
    fn prune(&mut self) {
        let all = (0..self.encoded.len() as u32).collect();
        let (kept, last) = self.encoded.first_of(all, self.limit);
        self.encoded.retain(&kept);
        self.rows.retain(&kept);
        self.bound = last.and_then(|last| kept.binary_search(&last).ok()).map(|at| at as u32);
        if let Some((first, bound)) = self.first.as_ref().zip(self.bound) {
            first.tighten(&self.rows, bound);
        }
    }
}

impl Operator for Sort {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        if self.limit == 0 {
            return Ok(None);
        }
        let order = match self.order.take() {
            Some(order) => order,
            None => {
                if let Some(first) = &mut self.first {
                    first.look_ahead(self.limit, context)?;
                }
                while let Some(batch) = self.input.next(context)? {
                    context.check_cancelled()?;
                    pieces(batch).iter().try_for_each(|batch| self.consume(batch, context))?;
                }
                if self.runs.is_some() {
                    self.spill(context)?;
                }
                self.merge = self.runs.take().map(|runs| runs.merge(context)).transpose()?;
                self.encoded.order(self.limit)
            }
        };
        if let Some(merge) = &mut self.merge {
            self.order = Some(order);
            return merge.next(limits::VECTOR_ROWS, context);
        }
        let to = (self.emitted + limits::VECTOR_ROWS).min(order.len());
        let batch = Batch::new(self.rows.take(&order[self.emitted..to]), to - self.emitted);
        self.emitted = to;
        self.order = Some(order);
        context.check_cancelled()?;
        Ok((batch.rows > 0).then_some(batch))
    }
}
