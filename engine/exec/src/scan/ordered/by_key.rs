//! A scan in the order of the sort key or the primary key: merges segments and rowstores, which are
//! already in that order, as runs.
//!
//! A run is read only when no other can come first; until then, its zone maps give a lower bound of
//! its keys. For few rows, segments that a merge left in one sorted run are one run here, of which
//! one segment is open at a time. So the first rows of a table take a few blocks, whatever its size. Keys are compared
//! as bytes (`nacre_types::key`), with descending ones inverted. A long stretch of one run is
//! returned without copying; short ones are collected.

use crate::scan::morsel::Morsel;
use crate::scan::source::{Locators, RowSource};
use crate::scan::spec::ScanSpec;
use nacre_column::Batch;
use nacre_operator::buffer::RowBuffer;
use nacre_operator::context::Context;
use nacre_operator::context::statistics::Statistics;
use nacre_operator::expr::ActiveRows;
use nacre_operator::operator::protocol::Operator;
use nacre_operator::sort::Sort;
use nacre_sql::{KeyOrder, kept_by_key};
use nacre_table::TableView;
use nacre_types::{DataType, Result, Value, key, limits};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Minimum length of a stretch of one run that is returned as is instead of being copied together
/// with others.
const LONG_STRETCH: usize = 256;
/// Maximum limit for an ordered scan. For more rows, sorting is as good, unless the runs do not
/// overlap.
const FEW_ROWS: u64 = 1 << 20;
/// Minimum number of rows of a run to read first.
const FIRST_ROWS: usize = 32;

/// The key of a run's next row, or a bound below it, and the run.
type Head = Reverse<(Vec<u8>, usize)>;

/// The merge of the runs.
pub(in crate::scan) struct OrderedScan {
    runs: Vec<Run>,
    heads: BinaryHeap<Head>,
    order: KeyOrder,
    types: Vec<DataType>,
    collected: RowBuffer,
    limit: Option<u64>,
    /// Rows left to return.
    left: u64,
}

struct Run {
    rows: Box<dyn Operator>,
    /// Whether it has rows of segments, of which the first is not counted as read yet.
    is_segment: bool,
    /// Whether nothing of it was read yet.
    is_unread: bool,
    /// The batch read last; its rows from `at` on are not returned yet.
    batch: Option<Batch>,
    at: usize,
}

/// Builds the operator; `None` if the rows should be sorted instead.
pub(in crate::scan) fn build(
    spec: ScanSpec<'_>,
    order: &KeyOrder,
    limit: Option<u64>,
    view: TableView,
    context: &Context<'_>,
) -> Result<Option<Box<dyn Operator>>> {
    let few = limit.is_some_and(|rows| rows <= FEW_ROWS);
    // Choosing blocks twice would cost most statements without a limit more than it gains.
    if !few && !order.leading {
        return Ok(None);
    }
    let chosen = Statistics::default();
    let choosing = Context { statistics: &chosen, ..*context };
    let source = RowSource::new(spec, view, Locators::Leave, context);
    let mut scan = OrderedScan::new(spec, order, limit);
    match few {
        true => scan.add_runs(source, spec, (context, &choosing))?,
        false if !scan.add_segments(source, spec, (context, &choosing))? => return Ok(None),
        false => {}
    }
    context.statistics.segments_skipped.add(chosen.segments_skipped.get() as usize);
    context.statistics.blocks_skipped.add(chosen.blocks_skipped.get() as usize);
    Ok(Some(Box::new(scan)))
}

/// A bound of the first column as the beginning of a key; without a bound, the least key.
fn bound(value: Option<Value>, data_type: DataType, order: &KeyOrder) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    if let Some(value) = value {
        encode(&mut out, data_type, &value, order)?;
    }
    Ok(out)
}

fn encode(out: &mut Vec<u8>, data_type: DataType, value: &Value, order: &KeyOrder) -> Result<()> {
    let from = out.len();
    key::append(out, data_type, value)?;
    if order.descending {
        out[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

impl OrderedScan {
    /// A merge of no runs.
    fn new(spec: ScanSpec<'_>, order: &KeyOrder, limit: Option<u64>) -> OrderedScan {
        let types = spec.types();
        OrderedScan {
            runs: Vec::new(),
            heads: BinaryHeap::new(),
            order: order.clone(),
            collected: RowBuffer::new(&types),
            types,
            limit,
            left: limit.unwrap_or(u64::MAX),
        }
    }

    /// Adds each sorted run of the table, of which one segment is open at a time, and each rowstore.
    /// Statistics of segments that are chosen now are counted in the second context.
    fn add_runs(
        &mut self,
        source: RowSource,
        spec: ScanSpec<'_>,
        (context, choosing): (&Context<'_>, &Context<'_>),
    ) -> Result<()> {
        let (runs, memories) = source.by_run(spec, context)?;
        for mut run in runs {
            self.prepare(&mut run);
            if let Some(bounds) = run.open_first(self.order.columns[0], choosing)? {
                let (low, _) = self.bounds(Some(bounds))?;
                self.add(low, self.in_order(run), true);
            }
        }
        memories.iter().try_for_each(|morsel| self.add_memory(spec, morsel, context))
    }

    /// Adds each segment as a run, and each rowstore. Returns `false` if some of them overlap.
    fn add_segments(
        &mut self,
        source: RowSource,
        spec: ScanSpec<'_>,
        (context, choosing): (&Context<'_>, &Context<'_>),
    ) -> Result<bool> {
        let mut all = Vec::new();
        for morsel in source.morsels(usize::MAX, choosing)? {
            let Morsel::Blocks { view, blocks, .. } = &morsel else {
                self.add_memory(spec, &morsel, context)?;
                continue;
            };
            let mut run = RowSource::of_morsel(spec, &morsel, context);
            self.prepare(&mut run);
            let (low, high) = self.bounds(run.bounds(view, blocks, self.order.columns[0])?)?;
            debug_assert!(low <= high, "the bounds of a segment are in order");
            all.push((low.clone(), high));
            self.add(low, self.in_order(run), true);
        }
        all.sort_unstable();
        Ok(all.windows(2).all(|pair| pair[0].1 < pair[1].0))
    }

    /// Adds a rowstore.
    fn add_memory(
        &mut self,
        spec: ScanSpec<'_>,
        morsel: &Morsel,
        context: &Context<'_>,
    ) -> Result<()> {
        let mut source = RowSource::of_morsel(spec, morsel, context);
        source.start_small(self.first_rows());
        let rows = Box::new(InOrder { source, descending: false });
        let (low, _) = self.bounds(None)?;
        let is_in_order = !self.order.descending && kept_by_key(spec.schema);
        let rows: Box<dyn Operator> = match is_in_order {
            true => rows,
            false => {
                let keys = self.order.sort_keys(&self.types);
                Box::new(Sort::new(rows, &self.types, keys, self.limit, None))
            }
        };
        self.add(low, rows, false);
        Ok(())
    }

    fn add(&mut self, low: Vec<u8>, rows: Box<dyn Operator>, is_segment: bool) {
        self.heads.push(Reverse((low, self.runs.len())));
        self.runs.push(Run { rows, is_segment, is_unread: true, batch: None, at: 0 });
    }

    /// The most rows to read of a run first.
    fn first_rows(&self) -> usize {
        self.limit.map_or(limits::VECTOR_ROWS, |rows| (rows as usize).max(FIRST_ROWS))
    }

    /// Turns the rows of segments into the direction of the order.
    fn prepare(&self, source: &mut RowSource) {
        source.start_small(self.first_rows());
        if self.order.descending {
            source.read_backwards();
        }
    }

    fn in_order(&self, source: RowSource) -> Box<dyn Operator> {
        Box::new(InOrder { source, descending: self.order.descending })
    }

    /// Where keys of the first column between these values may begin and end.
    fn bounds(&self, known: Option<(Value, Value)>) -> Result<(Vec<u8>, Vec<u8>)> {
        let (mut low, mut high) = known.unzip();
        if self.order.descending {
            (low, high) = (high, low);
        }
        let data_type = self.types[self.order.columns[0]];
        Ok((bound(low, data_type, &self.order)?, bound(high, data_type, &self.order)?))
    }

    fn key(&self, batch: &Batch, row: usize) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(16);
        for at in &self.order.columns {
            encode(&mut out, self.types[*at], &batch.columns[*at].value(row), &self.order)?;
        }
        Ok(out)
    }

    /// How many rows of the batch, from `at` on, come before the next head of another run; at least
    /// one. Exponential search, then binary search.
    fn stretch(&self, batch: &Batch, at: usize) -> Result<usize> {
        let Some(Reverse((next, _))) = self.heads.peek() else { return Ok(batch.rows - at) };
        let (mut low, mut high, mut step) = (at + 1, batch.rows, batch.rows);
        // Usually the whole batch, or very few rows.
        while low < high {
            let middle = if step > 0 { (low + step - 1).min(high - 1) } else { low.midpoint(high) };
            if self.key(batch, middle)? <= *next {
                (low, step) = (middle + 1, if step == batch.rows { 1 } else { step * 2 });
            } else {
                (high, step) = (middle, if step == batch.rows { 1 } else { 0 });
            }
        }
        Ok(low - at)
    }

    /// The collected rows as a batch.
    fn flush(&mut self) -> Batch {
        let all: Vec<u32> = (0..self.collected.rows() as u32).collect();
        let columns = self.collected.take(&all);
        self.collected = RowBuffer::new(&self.types);
        Batch::new(columns, all.len())
    }
}

impl Operator for OrderedScan {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        while self.left > 0 {
            let Some(Reverse((low, number))) = self.heads.pop() else { break };
            let run = &mut self.runs[number];
            let Some(batch) = run.batch.take().filter(|batch| run.at < batch.rows) else {
                let is_first = std::mem::replace(&mut run.is_unread, false);
                context.statistics.runs.add(is_first.into());
                context.statistics.segments_read.add((is_first && run.is_segment).into());
                let read = match run.rows.next(context) {
                    Ok(Some(batch)) => batch,
                    Ok(None) => continue,
                    // The call can be repeated after an error.
                    other => {
                        self.heads.push(Reverse((low, number)));
                        return other;
                    }
                };
                let head = self.key(&read, 0)?;
                let run = &mut self.runs[number];
                (run.batch, run.at) = (Some(read), 0);
                self.heads.push(Reverse((head, number)));
                continue;
            };
            let from = run.at;
            let length =
                self.stretch(&batch, from)?.min(usize::try_from(self.left).unwrap_or(usize::MAX));
            // Collected rows come before the stretch.
            let hands_on = length >= LONG_STRETCH;
            let collected = (hands_on && self.collected.rows() > 0).then(|| self.flush());
            let length = if collected.is_some() { 0 } else { length };
            let rows: Vec<u32> = (from as u32..(from + length) as u32).collect();
            if length > 0 && !hands_on {
                self.collected
                    .append(&batch, ActiveRows { len: batch.rows, selection: Some(&rows) })?;
            }
            self.left -= length as u64;
            let at = from + length;
            let head = if at < batch.rows { self.key(&batch, at)? } else { low };
            let given = (hands_on && length > 0).then(|| {
                if length == batch.rows {
                    batch.clone()
                } else {
                    Batch { selection: Some(rows), ..batch.clone() }
                }
            });
            let run = &mut self.runs[number];
            (run.batch, run.at) = (Some(batch), at);
            self.heads.push(Reverse((head, number)));
            if let Some(batch) = collected.or(given) {
                return Ok(Some(batch));
            }
            if self.collected.rows() >= limits::VECTOR_ROWS - LONG_STRETCH {
                return Ok(Some(self.flush()));
            }
        }
        Ok(if self.collected.rows() > 0 { Some(self.flush()) } else { None })
    }
}

/// The rows of a source, compact; in reverse where the order is descending.
struct InOrder {
    source: RowSource,
    descending: bool,
}

impl Operator for InOrder {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let Some((batch, _)) = self.source.next(context)? else { return Ok(None) };
        if !self.descending {
            return Ok(Some(batch.compact()));
        }
        let rows: Vec<u32> = match &batch.selection {
            Some(selection) => selection.iter().rev().copied().collect(),
            None => (0..batch.rows as u32).rev().collect(),
        };
        let columns = batch.columns.iter().map(|column| Arc::new(column.take(&rows))).collect();
        Ok(Some(Batch::new(columns, rows.len())))
    }
}
