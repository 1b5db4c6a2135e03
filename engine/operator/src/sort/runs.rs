//! External merge sort: sorted runs in the temporary file, merged as they are read.
//!
//! Runs are kept in the order in which their rows came, and only neighbours are merged, so the sort
//! is stable. Once [`FAN_IN`] neighbours are of one generation, they become one run of the next:
//! each row is written about once for every factor of [`FAN_IN`] in the number of runs.

use super::key::SortKeys;
use crate::buffer::RowBuffer;
use crate::buffer::limits::BATCH_BYTES;
use crate::context::Context;
use crate::expr::{self, ActiveRows};
use crate::spill::{SpillFile, SpilledRows};
use nacre_column::Batch;
use nacre_sql::plan::SortKey;
use nacre_types::{DataType, Result, limits};
use std::sync::Arc;

/// Runs that are merged at a time.
const FAN_IN: usize = 16;

/// Sorted runs.
pub struct Runs {
    file: Arc<SpillFile>,
    types: Arc<[DataType]>,
    keys: Vec<SortKey>,
    /// Only this many rows of each run matter.
    limit: usize,
    batch_rows: usize,
    /// Each with its generation.
    runs: Vec<(u32, SpilledRows)>,
}

impl Runs {
    /// No runs yet, of rows of these types.
    pub fn new(file: Arc<SpillFile>, types: &[DataType], keys: &[SortKey], limit: usize) -> Runs {
        Runs {
            file,
            types: types.into(),
            keys: keys.to_vec(),
            limit,
            batch_rows: limits::VECTOR_ROWS,
            runs: Vec::new(),
        }
    }

    fn run(&self) -> SpilledRows {
        SpilledRows::new(self.file.clone(), self.types.clone())
    }

    /// Sorts rows by their encoded keys and writes them as the newest run.
    pub fn add(
        &mut self,
        rows: &RowBuffer,
        encoded: &SortKeys,
        context: &Context<'_>,
    ) -> Result<()> {
        if rows.rows() == 0 {
            return Ok(());
        }
        let row_bytes = rows.memory_bytes() / rows.rows() + 1;
        self.batch_rows = (context.memory.chunk_bytes() / row_bytes).clamp(16, limits::VECTOR_ROWS);
        let mut run = self.run();
        run.push_rows(rows, &encoded.order(self.limit), self.batch_rows, context)?;
        self.runs.push((0, run));
        while let Some(from) = self.runs.len().checked_sub(FAN_IN)
            && self.runs[from].0 == self.runs[self.runs.len() - 1].0
        {
            self.merge_from(from, context)?;
        }
        Ok(())
    }

    /// Merges the newest runs, from `from` on, into one.
    fn merge_from(&mut self, from: usize, context: &Context<'_>) -> Result<()> {
        let newest = self.runs.split_off(from);
        let generation =
            newest.iter().map(|(generation, _)| *generation).max().map_or(0, |newest| newest + 1);
        let mut merge = self.merge_of(newest);
        let mut run = self.run();
        while let Some(batch) = merge.next(self.batch_rows, context)? {
            run.push(&batch, context)?;
        }
        self.runs.push((generation, run));
        Ok(())
    }

    fn merge_of(&self, runs: Vec<(u32, SpilledRows)>) -> Merge {
        let cursor = |(_, rows)| Cursor {
            rows,
            chunk: 0,
            batch: None,
            encoded: SortKeys::new(&self.keys),
            at: 0,
        };
        Merge {
            types: self.types.clone(),
            keys: self.keys.clone(),
            runs: runs.into_iter().map(cursor).collect(),
            left: self.limit,
        }
    }

    /// All rows in order, merged as they are read.
    pub fn merge(mut self, context: &Context<'_>) -> Result<Merge> {
        while self.runs.len() > FAN_IN {
            // The newest runs are the shortest.
            let count = (self.runs.len() - FAN_IN + 1).min(FAN_IN);
            self.merge_from(self.runs.len() - count, context)?;
        }
        let runs = std::mem::take(&mut self.runs);
        Ok(self.merge_of(runs))
    }
}

/// Runs being merged.
pub struct Merge {
    types: Arc<[DataType]>,
    keys: Vec<SortKey>,
    /// Runs with rows left, oldest first.
    runs: Vec<Cursor>,
    /// Rows left to return.
    left: usize,
}

struct Cursor {
    rows: SpilledRows,
    chunk: usize,
    batch: Option<Batch>,
    encoded: SortKeys,
    at: usize,
}

impl Cursor {
    /// Reads the next batch if need be; whether there is a row.
    fn load(&mut self, keys: &[SortKey], context: &Context<'_>) -> Result<bool> {
        while self.batch.as_ref().is_none_or(|batch| self.at == batch.rows) {
            let Some(batch) = self.rows.read(self.chunk)? else { return Ok(false) };
            context.check_cancelled()?;
            let vectors = keys
                .iter()
                .map(|k| expr::evaluate_shared(&k.expr, &batch, context))
                .collect::<Result<Vec<_>>>()?;
            self.encoded = SortKeys::new(keys);
            self.encoded.append(keys, &vectors, ActiveRows::all(batch.rows));
            debug_assert!(self.encoded.is_sorted(), "a run is sorted");
            (self.batch, self.chunk, self.at) = (Some(batch), self.chunk + 1, 0);
        }
        Ok(true)
    }

    /// Whether the row at `at` comes before the other cursor's next row. Of equal rows, those of
    /// the older run come first.
    fn is_before(&self, at: usize, other: &Cursor, is_older: bool) -> bool {
        let order = self.encoded.compare_with(at, &other.encoded, other.at);
        order.is_lt() || (is_older && order.is_eq())
    }
}

impl Merge {
    /// The next rows, at most `rows` and fewer where they are long; `None` at the end.
    pub fn next(&mut self, rows: usize, context: &Context<'_>) -> Result<Option<Batch>> {
        let wanted = rows.min(self.left);
        let mut out = RowBuffer::new(&self.types);
        while out.rows() < wanted && out.memory_bytes() < BATCH_BYTES {
            let mut at = 0;
            while at < self.runs.len() {
                if self.runs[at].load(&self.keys, context)? {
                    at += 1;
                } else {
                    self.runs.remove(at);
                }
            }
            let Some((best, second)) = self.first_two() else { break };
            let run = &self.runs[best];
            let Some(batch) = &run.batch else { break };
            // Take its rows as long as they precede all other runs.
            let mut to = run.at + 1;
            let end = batch.rows.min(run.at + (wanted - out.rows()));
            while to < end
                && second.is_none_or(|other| run.is_before(to, &self.runs[other], best < other))
            {
                to += 1;
            }
            let taken: Vec<u32> = (run.at as u32..to as u32).collect();
            out.append(batch, ActiveRows::all(batch.rows).narrowed(&taken))?;
            self.runs[best].at = to;
        }
        if out.rows() == 0 {
            return Ok(None);
        }
        self.left -= out.rows();
        let order: Vec<u32> = (0..out.rows() as u32).collect();
        Ok(Some(Batch::new(out.take(&order), order.len())))
    }

    /// The runs with the first and the second next row.
    fn first_two(&self) -> Option<(usize, Option<usize>)> {
        let before =
            |a: usize, b: usize| self.runs[a].is_before(self.runs[a].at, &self.runs[b], a < b);
        let (mut best, mut second) = (0, None);
        for at in 1..self.runs.len() {
            if before(at, best) {
                (best, second) = (at, Some(best));
            } else if second.is_none_or(|second| before(at, second)) {
                second = Some(at);
            }
        }
        (!self.runs.is_empty()).then_some((best, second))
    }
}
