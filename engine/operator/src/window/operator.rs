//! The window operator. Collects all rows, sorts them by partition and order, then computes each
//! call partition by partition. A frame that only grows, from the first row forwards or from the
//! last row backwards, is accumulated incrementally. Any other frame is accumulated from scratch
//! whenever it changes, using precomputed parts if it is wide (`summaries`).
//!
//! If rows and results do not fit in memory, the rows are sorted externally (`spill/runs`) and then
//! processed a few whole partitions at a time.

use super::bounds::{Bounds, Offset};
use super::results::Results;
use super::run::{Places, Run};
use super::summaries::{Summaries, WIDE};
use crate::aggregate::accumulator::{Accumulator, inputs, may_merge};
use crate::buffer::{RowBuffer, pieces};
use crate::context::Context;
use crate::expr::{self, ActiveRows, Evaluator, compare_values};
use crate::memory::Reservation;
use crate::operator::inputs::{Inputs, exactly};
use crate::operator::protocol::Operator;
use crate::sort::{Merge, Runs, SortKeys};
use nacre_column::{Batch, Vector, VectorBuilder};
use nacre_function::entry::window::WindowRow;
use nacre_function::vector::groups::Groups;
use nacre_sql::plan::node::window as node;
use nacre_sql::plan::{FrameBound, FrameUnit, SortKey, WindowCall, WindowFrame, Windowed};
use nacre_sql::{Aggregate, Expr};
use nacre_types::{DataType, Result, Value, limits};
use std::ops::Range;
use std::sync::Arc;

/// Rows to merge at a time. Partitions are held whole, so a batch must be small compared with the
/// memory.
const MERGED_ROWS: usize = limits::VECTOR_ROWS / 8;

/// The window operator.
pub struct WindowOperator {
    input: Box<dyn Operator>,
    partition: Vec<SortKey>,
    order: Vec<SortKey>,
    calls: Vec<WindowCall>,
    rows: RowBuffer,
    /// Encoded partition keys, and partition keys followed by order keys.
    partitions: SortKeys,
    keys: SortKeys,
    result: Option<Batch>,
    emitted: usize,
    types: Vec<DataType>,
    held: Reservation,
    /// Bytes reserved for the rows and their fixed-width results.
    bytes: usize,
    consumed: bool,
    /// Rows that did not fit in memory, until the input ends; then their merge.
    runs: Option<Runs>,
    merge: Option<Merge>,
    /// Merged rows of the next partition.
    ahead: Option<Batch>,
}

/// Builds the operator of a node.
pub fn operator(node: &node::Window, inputs: Inputs) -> Result<Box<dyn Operator>> {
    let [input] = exactly(inputs);
    let types = node.input.types();
    let calls = node.calls.clone();
    Ok(Box::new(WindowOperator::new(input, &types, &node.partition, &node.order, calls)))
}

impl WindowOperator {
    /// Computes calls over the rows of an input.
    pub fn new(
        input: Box<dyn Operator>,
        types: &[DataType],
        partition: &[Expr],
        order: &[SortKey],
        calls: Vec<WindowCall>,
    ) -> WindowOperator {
        let plain = |e: &Expr| SortKey { expr: e.clone(), descending: false, nulls_first: true };
        let partition: Vec<SortKey> = partition.iter().map(plain).collect();
        let all: Vec<SortKey> = partition.iter().chain(order).cloned().collect();
        WindowOperator {
            input,
            partitions: SortKeys::new(&partition),
            keys: SortKeys::new(&all),
            partition,
            order: order.to_vec(),
            calls,
            rows: RowBuffer::new(types),
            result: None,
            emitted: 0,
            types: types.to_vec(),
            held: Reservation::default(),
            bytes: 0,
            consumed: false,
            runs: None,
            merge: None,
            ahead: None,
        }
    }

    /// Collects a batch. Returns false if all collected rows exceed the memory.
    fn consume(&mut self, batch: &Batch, context: &Context<'_>) -> Result<bool> {
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        let all = self.all_keys();
        let vectors = all
            .iter()
            .map(|k| expr::evaluate_shared(&k.expr, batch, context))
            .collect::<Result<Vec<_>>>()?;
        self.partitions.append(&self.partition, &vectors[..self.partition.len()], rows);
        self.keys.append(&all, &vectors, rows);
        self.rows.append(batch, rows)?;
        let bytes =
            self.rows.memory_bytes() + self.partitions.memory_bytes() + self.keys.memory_bytes();
        self.bytes = bytes + self.rows.rows() * (32 + 16 * self.calls.len());
        Ok(self.held.try_resize(self.bytes, context.memory))
    }

    fn all_keys(&self) -> Vec<SortKey> {
        self.partition.iter().chain(&self.order).cloned().collect()
    }

    fn clear(&mut self) {
        self.rows = RowBuffer::new(&self.types);
        self.partitions = SortKeys::new(&self.partition);
        self.keys = SortKeys::new(&self.all_keys());
        self.held.release();
    }

    /// Writes the collected rows as a sorted run.
    fn spill(&mut self, context: &Context<'_>) -> Result<()> {
        if self.runs.is_none() {
            let file = context.spill_file("window")?;
            self.runs = Some(Runs::new(file, &self.types, &self.all_keys(), usize::MAX));
        }
        if let Some(runs) = &mut self.runs {
            runs.add(&self.rows, &self.keys, context)?;
        }
        self.clear();
        Ok(())
    }

    /// Collects merged rows up to the end of a partition. Returns false at the end.
    fn take_partitions(&mut self, context: &Context<'_>) -> Result<bool> {
        self.clear();
        let Some(mut merge) = self.merge.take() else { return Ok(false) };
        let taken = self.take_from(&mut merge, context);
        self.merge = Some(merge);
        taken
    }

    fn take_from(&mut self, merge: &mut Merge, context: &Context<'_>) -> Result<bool> {
        let mut next = self.ahead.take();
        loop {
            context.check_cancelled()?;
            let batch = match next.take() {
                Some(batch) => batch,
                None => match merge.next(MERGED_ROWS, context)? {
                    Some(batch) => batch,
                    None => return Ok(self.rows.rows() > 0),
                },
            };
            // Find where the batch's last partition begins.
            let vectors =
                self.partition.iter().map(|k| expr::evaluate_shared(&k.expr, &batch, context));
            let mut own = SortKeys::new(&self.partition);
            own.append(
                &self.partition,
                &vectors.collect::<Result<Vec<_>>>()?,
                ActiveRows::all(batch.rows),
            );
            let last = (1..batch.rows)
                .rev()
                .find(|row| !own.same(*row as u32 - 1, *row as u32))
                .unwrap_or(0);
            let known = self.partitions.len();
            let begins =
                last > 0 || (known > 0 && self.partitions.compare_with(known - 1, &own, 0).is_ne());
            let rows = |from: usize, to: usize| -> Vec<u32> { (from as u32..to as u32).collect() };
            let cut = |rows: Vec<u32>| Batch { selection: Some(rows), ..batch.clone() };
            let taken = if begins { cut(rows(0, last)) } else { batch.clone() };
            if taken.selected() > 0 && !self.consume(&taken, context)? {
                return Err(context.over_limit("window"));
            }
            if begins {
                self.ahead = Some(cut(rows(last, batch.rows)).compact());
                return Ok(true);
            }
        }
    }

    /// Computes the calls over the collected rows. Returns `None`, with the rows still collected,
    /// if the results do not fit in memory.
    fn compute(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let count = self.rows.rows();
        let order = self.keys.order(usize::MAX);
        let mut batch = Batch::new(self.rows.take(&order), count);
        self.rows = RowBuffer::new(&self.types);
        let same = |keys: &SortKeys, row: usize| keys.same(order[row - 1], order[row]);
        let mut places = Places { partitions: Vec::new(), peers: Vec::with_capacity(count) };
        let (mut partition, mut peers) = (0, 0);
        for row in 1..=count {
            let ends = row == count || !same(&self.partitions, row);
            if ends || !same(&self.keys, row) {
                (peers..row).for_each(|_| places.peers.push(peers..row));
                peers = row;
            }
            if ends {
                places.partitions.push(partition..row);
                partition = row;
            }
        }
        let mut results = Results::new(&mut self.held, self.bytes);
        let computed = self.calls.iter().map(|call| {
            context.check_cancelled()?;
            results.begin();
            Run { call, order: &self.order, batch: &batch, places: &places, context }
                .run(&mut results)
                .map(Arc::new)
        });
        match computed.collect::<Result<Vec<_>>>() {
            Ok(computed) => batch.columns.extend(computed),
            Err(_) if results.refused => {
                self.clear();
                self.consume(&batch, context)?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        Ok(Some(batch))
    }

    /// Called at the end of the input: computes the calls, or starts merging if rows were spilled.
    fn finish(&mut self, context: &Context<'_>) -> Result<()> {
        if self.runs.is_none() {
            self.result = self.compute(context)?;
        }
        if self.result.is_none() {
            self.spill(context)?;
        }
        self.merge = self.runs.take().map(|runs| runs.merge(context)).transpose()?;
        Ok(())
    }
}

impl Operator for WindowOperator {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        while !self.consumed {
            let Some(batch) = self.input.next(context)? else {
                self.consumed = true;
                self.finish(context)?;
                break;
            };
            context.check_cancelled()?;
            for batch in pieces(batch) {
                if !self.consume(&batch, context)? {
                    self.spill(context)?;
                }
            }
        }
        loop {
            context.check_cancelled()?;
            if let Some(batch) = &self.result {
                let (from, to) =
                    (self.emitted, (self.emitted + limits::VECTOR_ROWS).min(batch.rows));
                if from < to {
                    let rows: Vec<u32> = (from as u32..to as u32).collect();
                    let columns = batch.columns.iter().map(|c| Arc::new(c.take(&rows))).collect();
                    self.emitted = to;
                    return Ok(Some(Batch::new(columns, to - from)));
                }
            }
            self.result = None;
            if !self.take_partitions(context)? {
                return Ok(None);
            }
            let Some(result) = self.compute(context)? else {
                return Err(context.over_limit("window"));
            };
            self.result = Some(result);
            self.emitted = 0;
        }
    }
}

impl Run<'_> {
    fn run(&self, results: &mut Results<'_>) -> Result<Vector> {
        let function = match &self.call.function {
            Windowed::Aggregate(aggregate) => return self.aggregate(aggregate, results),
            Windowed::Function(function) => function,
        };
        let args = self.call.args.iter().map(|e| self.eval(e)).collect::<Result<Vec<_>>>()?;
        let bounds = Bounds::new(self)?;
        let mut out = VectorBuilder::new(self.call.data_type);
        for partition in &self.places.partitions {
            let mut dense = 0;
            for row in partition.clone() {
                self.context.check_cancelled()?;
                let peers = &self.places.peers[row];
                dense += i64::from(peers.start == row);
                let value = (function.value)(&WindowRow {
                    args: &args,
                    row,
                    partition: partition.clone(),
                    peers: peers.clone(),
                    dense_rank: dense,
                    frame: &|| self.frame(&bounds, partition, row),
                })?;
                results.push(&mut out, &value, self.context)?;
            }
        }
        Ok(out.finish())
    }

    /// The range of rows in a row's frame.
    fn frame(&self, bounds: &Bounds, partition: &Range<usize>, row: usize) -> Range<usize> {
        let WindowFrame { unit, start, end } = &self.call.frame;
        let start = match start {
            FrameBound::UnboundedPreceding => partition.start,
            FrameBound::UnboundedFollowing => partition.end,
            FrameBound::CurrentRow if *unit == FrameUnit::Rows => row,
            FrameBound::CurrentRow => self.places.peers[row].start,
            FrameBound::Preceding(_) => {
                self.moved(bounds.start.as_ref(), true, partition, row, false)
            }
            FrameBound::Following(_) => {
                self.moved(bounds.start.as_ref(), false, partition, row, false)
            }
        };
        let end = match end {
            FrameBound::UnboundedPreceding => partition.start,
            FrameBound::UnboundedFollowing => partition.end,
            FrameBound::CurrentRow if *unit == FrameUnit::Rows => row + 1,
            FrameBound::CurrentRow => self.places.peers[row].end,
            FrameBound::Preceding(_) => self.moved(bounds.end.as_ref(), true, partition, row, true),
            FrameBound::Following(_) => {
                self.moved(bounds.end.as_ref(), false, partition, row, true)
            }
        };
        start..end.max(start)
    }

    /// Resolves a bound with an offset: the first row of the frame for a start, the row after the
    /// last for an end.
    fn moved(
        &self,
        bound: Option<&Offset>,
        preceding: bool,
        partition: &Range<usize>,
        row: usize,
        is_end: bool,
    ) -> usize {
        let Some(bound) = bound else { return row };
        let offset = match bound.values.value(row) {
            Value::Int(v) => usize::try_from(v).unwrap_or(usize::MAX),
            _ => 0,
        };
        let peers = &self.places.peers;
        match self.call.frame.unit {
            FrameUnit::Rows => {
                let at = if preceding {
                    (row + usize::from(is_end)).saturating_sub(offset)
                } else {
                    row.saturating_add(offset).saturating_add(usize::from(is_end))
                };
                at.clamp(partition.start, partition.end)
            }
            FrameUnit::Groups => {
                let mut group = peers[row].clone();
                for _ in 0..offset {
                    let next = if preceding { group.start.checked_sub(1) } else { Some(group.end) };
                    match next.filter(|at| partition.contains(at)) {
                        Some(at) => group = peers[at].clone(),
                        // Past the first or the last group.
                        None => return if preceding { partition.start } else { partition.end },
                    }
                }
                if is_end { group.end } else { group.start }
            }
            FrameUnit::Range => self.reached(bound, preceding, partition, row, is_end),
        }
    }

    /// The first row whose key reaches the bound or, for an end, passes it.
    fn reached(
        &self,
        bound: &Offset,
        preceding: bool,
        partition: &Range<usize>,
        row: usize,
        is_end: bool,
    ) -> usize {
        let (Some(key), Some(keys)) = (self.order.first(), &bound.keys) else { return row };
        // A null key has only its peers in the frame.
        if keys.is_null(row) {
            return if is_end { self.places.peers[row].end } else { self.places.peers[row].start };
        }
        let wanted = bound.values.value(row);
        let before = |at: usize| {
            if keys.is_null(at) {
                return key.nulls_first;
            }
            // The bound is out of the type's range: past every key.
            if wanted.is_null() {
                return !preceding;
            }
            let order = compare_values(&keys.value(at), &wanted);
            let order = if key.descending { order.reverse() } else { order };
            if is_end { order.is_le() } else { order.is_lt() }
        };
        let (mut low, mut high) = (partition.start, partition.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn aggregate(&self, spec: &Aggregate, results: &mut Results<'_>) -> Result<Vector> {
        let rows = ActiveRows::all(self.batch.rows);
        let passing = match &spec.filter {
            None => None,
            Some(filter) => {
                let kept = expr::filter_rows(
                    std::slice::from_ref(filter),
                    self.batch,
                    rows,
                    self.context,
                )?;
                let mut passing = vec![false; self.batch.rows];
                kept.iter().for_each(|row| passing[*row as usize] = true);
                Some((kept, passing))
            }
        };
        // The argument must not fail on rows that the filter rejects.
        let counted = passing.as_ref().map_or(rows, |(kept, _)| rows.narrowed(kept));
        let inputs = inputs(spec, &Evaluator::new(self.batch, self.context), counted)?;
        let fresh = || -> Result<Accumulator> {
            let mut accumulator = Accumulator::new(spec)?;
            accumulator.resize(1);
            Ok(accumulator)
        };
        let update = |accumulator: &mut Accumulator, rows: ActiveRows<'_>, groups: Groups<'_>| {
            if rows.is_empty() { Ok(()) } else { accumulator.update(&inputs, rows, groups) }
        };
        let add = |accumulator: &mut Accumulator, range: Range<usize>| {
            let passes = |at: &usize| passing.as_ref().is_none_or(|(_, passing)| passing[*at]);
            let added: Vec<u32> = range.filter(passes).map(|at| at as u32).collect();
            update(accumulator, rows.narrowed(&added), Groups::One)
        };
        // Built for the first wide frame; `Some(None)` if that failed.
        let mut summaries: Option<Option<Summaries>> = None;
        let bounds = Bounds::new(self)?;
        let mut out = VectorBuilder::new(spec.data_type);
        // Frames that end with their partition grow backwards from its last row.
        let backwards = matches!(self.call.frame.end, FrameBound::UnboundedFollowing)
            && !matches!(self.call.frame.start, FrameBound::UnboundedPreceding)
            && fresh()?.is_order_free();
        let in_order = |len: usize, at: usize| if backwards { len - 1 - at } else { at };
        let partitions = &self.places.partitions;
        for partition in (0..partitions.len()).map(|at| &partitions[in_order(partitions.len(), at)])
        {
            let mut accumulator = fresh()?;
            let mut held = partition.start..partition.start;
            let mut value: Option<Value> = None;
            for row in
                (0..partition.len()).map(|at| partition.start + in_order(partition.len(), at))
            {
                self.context.check_cancelled()?;
                let frame = self.frame(&bounds, partition, row);
                let known = frame == held || (frame.is_empty() && held.is_empty());
                if let (true, Some(value)) = (known, &value) {
                    results.push(&mut out, value, self.context)?;
                    continue;
                }
                let grows = if backwards {
                    frame.end == held.end && frame.start <= held.start
                } else {
                    frame.start == held.start && frame.end >= held.end
                };
                let slides = !grows && !held.is_empty();
                if !grows || held.is_empty() {
                    accumulator = fresh()?;
                    let none = if backwards { frame.end } else { frame.start };
                    held = none..none;
                }
                let added = if backwards { frame.start..held.start } else { held.end..frame.end };
                if slides && added.len() >= WIDE && !spec.distinct && may_merge(spec) {
                    let of_all = || {
                        Summaries::new(self.batch.rows, fresh, |level, groups| {
                            update(level, counted, groups)
                        })
                        .ok()
                    };
                    match summaries.get_or_insert_with(of_all) {
                        Some(summaries) => summaries.add(added, &mut accumulator, add)?,
                        None => add(&mut accumulator, added)?,
                    }
                } else {
                    add(&mut accumulator, added)?;
                }
                held = frame;
                let result = accumulator.finish(0..1)?.value(0);
                results.push(&mut out, &result, self.context)?;
                value = Some(result);
            }
        }
        let out = out.finish();
        if !backwards {
            return Ok(out);
        }
        let turned: Vec<u32> = (0..out.len() as u32).rev().collect();
        Ok(out.take(&turned))
    }
}
