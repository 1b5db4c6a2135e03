//! Hash aggregation: group ids from a [`Grouper`], states from [`super::accumulator`].
//!
//! Once no further group fits in memory, known groups stay and keep accumulating. Rows of other
//! groups are partitioned and spilled (`spill`), and each partition is then aggregated in the same
//! way. So the rows of a group are always accumulated in input order.

use super::accumulator::{Accumulator, inputs};
use crate::buffer::limits::NO_ROW;
use crate::context::Context;
use crate::expr::{self, ActiveRows, Evaluator, Repeated, is_volatile, repeated};
use crate::group::{Grouper, Seen};
use crate::memory::Reservation;
use crate::operator::protocol::Operator;
use crate::spill::{Partitions, SpillScan, SpilledPartition};
use nacre_column::{Batch, Values, Vector};
use nacre_function::vector::groups::Groups;
use nacre_sql::expr::{Aggregate, Expr};
use nacre_types::invariant::broken;
use nacre_types::{DataType, Result, Value, limits};
use std::sync::Arc;

/// Once spilling, states of known groups may grow by this many bytes, or by a quarter, before
/// memory is reserved again.
const GROWTH_BYTES: usize = 64 << 10;

struct State {
    spec: Aggregate,
    accumulator: Accumulator,
    /// For `DISTINCT`: the combinations of group, if there are groups, and arguments already counted.
    distinct: Option<Grouper>,
    /// The state whose sums give the results, of which this one then has none.
    from: Option<usize>,
}

/// Groups and their states.
pub struct Aggregation {
    groups: Vec<Expr>,
    grouper: Grouper,
    states: Vec<State>,
    /// Expressions that occur more than once in the arguments.
    repeated: Vec<Expr>,
}

/// Hash aggregation. Without group keys it returns exactly one row.
pub struct HashAggregate {
    input: Box<dyn Operator>,
    types: Vec<DataType>,
    spec: (Vec<Expr>, Vec<Aggregate>),
    aggregation: Aggregation,
    held: Reservation,
    consumed: bool,
    emitted: usize,
    /// How often these rows were partitioned before.
    level: u32,
    /// Rows of groups that do not fit in memory.
    aside: Option<Partitions>,
    /// Bytes held by the groups when the first row was spilled.
    frozen_bytes: usize,
    seen: Seen,
    rest: Vec<SpilledPartition>,
    /// The aggregation of one spilled partition.
    current: Option<Box<HashAggregate>>,
}

impl HashAggregate {
    /// Aggregates an input with columns of these types.
    pub fn new(
        input: Box<dyn Operator>,
        types: Vec<DataType>,
        groups: Vec<Expr>,
        aggregates: Vec<Aggregate>,
    ) -> Result<HashAggregate> {
        Ok(HashAggregate {
            input,
            types,
            aggregation: Aggregation::new(groups.clone(), aggregates.clone())?,
            spec: (groups, aggregates),
            held: Reservation::default(),
            consumed: false,
            emitted: 0,
            level: 0,
            aside: None,
            frozen_bytes: 0,
            seen: Seen::default(),
            rest: Vec::new(),
            current: None,
        })
    }

    fn consume(&mut self, batch: &Batch, context: &Context<'_>) -> Result<()> {
        if let Some(aside) = &mut self.aside {
            let (keys, unknown) = self.aggregation.consume_known(batch, &mut self.seen, context)?;
            aside.add(&keys, batch, ActiveRows::all(batch.rows).narrowed(&unknown), context)?;
            // The states of known groups may still grow.
            let bytes = self.aggregation.memory_bytes();
            let grown = bytes > self.frozen_bytes + GROWTH_BYTES.max(self.frozen_bytes / 4);
            return if grown {
                context.reserve(&mut self.held, "aggregate", bytes)
            } else {
                Ok(())
            };
        }
        self.aggregation.consume(batch, context)?;
        if !self.held.try_resize(self.aggregation.memory_bytes(), context.memory) {
            if self.spec.0.is_empty() {
                return Err(context.over_limit("aggregate"));
            }
            let file = context.spill_file("aggregate")?;
            self.aside = Some(Partitions::new(&file, &self.types, self.level, context));
            self.frozen_bytes = self.aggregation.memory_bytes();
        }
        Ok(())
    }

    /// Starts aggregating the next spilled partition. Returns false if there is none.
    fn next_partition(&mut self) -> Result<bool> {
        while let Some(partition) = self.rest.pop() {
            if partition.rows.rows() > 0 {
                let rows = Box::new(SpillScan::new(Arc::new(partition.rows)));
                let (groups, aggregates) = self.spec.clone();
                let mut inner = HashAggregate::new(rows, self.types.clone(), groups, aggregates)?;
                inner.level = self.level + 1;
                self.current = Some(Box::new(inner));
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Aggregation {
    /// Nothing accumulated yet.
    pub fn new(groups: Vec<Expr>, aggregates: Vec<Aggregate>) -> Result<Aggregation> {
        let types: Vec<DataType> = groups.iter().map(|g| g.data_type).collect();
        let group = (!groups.is_empty()).then_some(DataType::UInt32);
        let mut states: Vec<State> = Vec::new();
        for spec in aggregates {
            let accumulator = Accumulator::new(&spec)?;
            let distinct = spec.distinct.then(|| {
                let arguments = spec.args.iter().map(|arg| arg.data_type);
                Grouper::new(&group.into_iter().chain(arguments).collect::<Vec<_>>())
            });
            let has_same = |other: &State| {
                let (own, known) = (&spec, &other.spec);
                let is_same = (&own.args, &own.filter) == (&known.args, &known.filter);
                is_same && other.from.is_none() && other.accumulator.has_sums_of(&accumulator)
            };
            let is_plain = |spec: &Aggregate| !spec.distinct && !spec.args.iter().any(is_volatile);
            let from = states
                .iter()
                .position(|other| is_plain(&spec) && is_plain(&other.spec) && has_same(other));
            states.push(State { spec, accumulator, distinct, from });
        }
        let computed =
            states.iter().filter(|state| state.from.is_none() && state.spec.filter.is_none());
        let repeated = repeated(computed.flat_map(|state| &state.spec.args));
        Ok(Aggregation { grouper: Grouper::new(&types), groups, states, repeated })
    }

    /// Number of groups seen, or one without group keys.
    pub fn groups(&self) -> usize {
        if self.groups.is_empty() { 1 } else { self.grouper.groups() }
    }

    /// Merges groups `from..to` of another aggregation over the same expressions and returns their
    /// numbers in this one. Groups new to this one are appended in order. Values that count once in a
    /// group are left to [`Aggregation::absorb_distinct`].
    pub fn absorb(&mut self, other: &Aggregation, from: usize, to: usize) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        if self.groups.is_empty() {
            ids.push(0);
        } else {
            self.grouper.assign(
                &other.grouper.key_vectors(from, to),
                ActiveRows::all(to - from),
                &mut ids,
            )?;
        }
        let count = self.groups();
        for (state, other) in self.states.iter_mut().zip(&other.states) {
            if state.from.is_some() {
                continue;
            }
            state.accumulator.resize(count);
            if state.distinct.is_none() {
                state.accumulator.merge(&other.accumulator, from, &ids)?;
            }
        }
        Ok(ids)
    }

    /// Merges the values of another aggregation that count once in a group. `ids` are the numbers of
    /// its groups in this one.
    pub fn absorb_distinct(
        &mut self,
        other: &Aggregation,
        ids: &[u32],
        context: &Context<'_>,
    ) -> Result<()> {
        let has_groups = !self.groups.is_empty();
        for (state, other) in self.states.iter_mut().zip(&other.states) {
            let (Some(distinct), Some(seen)) = (&mut state.distinct, &other.distinct) else {
                continue;
            };
            for from in (0..seen.groups()).step_by(limits::VECTOR_ROWS) {
                context.check_cancelled()?;
                let mut args =
                    seen.key_vectors(from, (from + limits::VECTOR_ROWS).min(seen.groups()));
                let groups: Vec<u32> = match has_groups {
                    true => renumbered(&args.remove(0), ids),
                    false => Vec::new(),
                };
                let len = (from + limits::VECTOR_ROWS).min(seen.groups()) - from;
                let groups = if has_groups { Groups::Each(&groups) } else { Groups::One };
                let fresh = first_seen(distinct, &args, ActiveRows::all(len), groups)?;
                let rows = ActiveRows::all(len).narrowed(&fresh);
                state.accumulator.update(&args, rows, groups)?;
            }
        }
        Ok(())
    }

    fn keys(&self, batch: &Batch, context: &Context<'_>) -> Result<Vec<Arc<Vector>>> {
        self.groups.iter().map(|e| expr::evaluate_shared(e, batch, context)).collect()
    }

    /// Adds a batch.
    pub fn consume(&mut self, batch: &Batch, context: &Context<'_>) -> Result<()> {
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        let keys = self.keys(batch, context)?;
        let mut ids = Vec::new();
        if !self.groups.is_empty() {
            self.grouper.assign(&keys, rows, &mut ids)?;
        }
        self.accumulate(batch, rows, ids, context)
    }

    /// Adds the rows of known groups. Returns the keys and which rows belong to other groups.
    pub fn consume_known(
        &mut self,
        batch: &Batch,
        seen: &mut Seen,
        context: &Context<'_>,
    ) -> Result<(Vec<Arc<Vector>>, Vec<u32>)> {
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        let keys = self.keys(batch, context)?;
        let mut ids = Vec::new();
        self.grouper.lookup(&keys, rows, seen, &mut ids)?;
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for (row, id) in rows.iter().zip(&ids) {
            if *id == NO_ROW { unknown.push(row as u32) } else { known.push(row as u32) }
        }
        ids.retain(|id| *id != NO_ROW);
        if !known.is_empty() {
            self.accumulate(batch, rows.narrowed(&known), ids, context)?;
        }
        Ok((keys, unknown))
    }

    /// Accumulates rows into their groups.
    fn accumulate(
        &mut self,
        batch: &Batch,
        rows: ActiveRows<'_>,
        mut ids: Vec<u32>,
        context: &Context<'_>,
    ) -> Result<()> {
        let groups = if self.groups.is_empty() {
            Groups::One
        } else {
            if let Some(selection) = rows.selection {
                let mut by_row = vec![0; rows.len];
                selection.iter().zip(&ids).for_each(|(row, id)| by_row[*row as usize] = *id);
                ids = by_row;
            }
            Groups::Each(&ids)
        };
        let count = self.groups();
        let known = Repeated::new(&self.repeated, rows);
        let evaluator = Evaluator::new(batch, context).with(known);
        for state in self.states.iter_mut().filter(|state| state.from.is_none()) {
            state.accumulator.resize(count);
            update(state, &evaluator, batch, rows, groups, context)?;
        }
        Ok(())
    }

    /// The results of the groups from `from` on, at most a vector of them; `None` at the end.
    pub fn emit(&mut self, from: usize) -> Result<Option<Batch>> {
        let total = self.groups();
        if from >= total {
            return Ok(None);
        }
        let to = (from + limits::VECTOR_ROWS).min(total);
        let mut columns =
            if self.groups.is_empty() { Vec::new() } else { self.grouper.key_vectors(from, to) };
        // Without input rows, the single group has no state yet.
        let computed = self.states.iter_mut().filter(|state| state.from.is_none());
        computed.for_each(|state| state.accumulator.resize(total));
        for state in &self.states {
            let column = match state.from {
                Some(at) => self.states[at].accumulator.finish_as(&state.accumulator, from..to)?,
                None => state.accumulator.finish(from..to)?,
            };
            columns.push(Arc::new(column));
        }
        Ok(Some(Batch::new(columns, to - from)))
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        let states = self.states.iter().map(|s| {
            s.accumulator.memory_bytes() + s.distinct.as_ref().map_or(0, Grouper::memory_bytes)
        });
        self.grouper.memory_bytes() + states.sum::<usize>()
    }
}

fn update(
    state: &mut State,
    evaluator: &Evaluator<'_>,
    batch: &Batch,
    rows: ActiveRows<'_>,
    groups: Groups<'_>,
    context: &Context<'_>,
) -> Result<()> {
    let filtered;
    let mut rows = rows;
    if let Some(filter) = &state.spec.filter {
        filtered = expr::filter_rows(std::slice::from_ref(filter), batch, rows, context)?;
        rows = rows.narrowed(&filtered);
    }
    if rows.is_empty() {
        return Ok(());
    }
    // Only rows that pass the filter: an argument must not fail on the others.
    let inputs = inputs(&state.spec, evaluator, rows)?;
    let Some(distinct) = &mut state.distinct else {
        return state.accumulator.update(&inputs, rows, groups);
    };
    let fresh = first_seen(distinct, &inputs[..state.spec.args.len()], rows, groups)?;
    state.accumulator.update(&inputs, rows.narrowed(&fresh), groups)
}

/// The numbers `ids` of the groups that a column lists.
fn renumbered(groups: &Vector, ids: &[u32]) -> Vec<u32> {
    let integer = |row| match groups.value(row) {
        Value::UInt(group) => group as usize,
        Value::Int(group) => group as usize,
        _ => broken(format_args!("a group has a number")),
    };
    (0..groups.len()).map(|row| ids[integer(row)]).collect()
}

/// The rows whose combination of group and arguments is new. Nulls are treated as equal; the
/// aggregate itself ignores them if it should.
fn first_seen(
    distinct: &mut Grouper,
    args: &[Arc<Vector>],
    rows: ActiveRows<'_>,
    groups: Groups<'_>,
) -> Result<Vec<u32>> {
    let group_column = match groups {
        Groups::One => None,
        Groups::Each(ids) => {
            let ids = Values::I64(ids.iter().map(|id| *id as i64).collect());
            Some(Arc::new(Vector::new(DataType::UInt32, ids, None)))
        }
    };
    let mut next = distinct.groups() as u32;
    let mut ids = Vec::new();
    let keys: Vec<Arc<Vector>> = group_column.into_iter().chain(args.iter().cloned()).collect();
    distinct.assign(&keys, rows, &mut ids)?;
    // New ids are assigned in row order.
    let mut fresh = Vec::new();
    for (row, id) in rows.iter().zip(ids) {
        if id == next {
            fresh.push(row as u32);
            next += 1;
        }
    }
    Ok(fresh)
}

impl Operator for HashAggregate {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        if !self.consumed {
            while let Some(batch) = self.input.next(context)? {
                context.check_cancelled()?;
                self.consume(&batch, context)?;
            }
            self.consumed = true;
            if let Some(aside) = self.aside.take() {
                self.rest = aside.finish(context)?;
            }
        }
        context.check_cancelled()?;
        loop {
            if let Some(current) = &mut self.current {
                if let Some(batch) = current.next(context)? {
                    return Ok(Some(batch));
                }
                self.current = None;
            } else if let Some(batch) = self.aggregation.emit(self.emitted)? {
                self.emitted += batch.rows;
                return Ok(Some(batch));
            } else if !self.rest.is_empty() {
                // The spilled partitions need the memory.
                self.held.release();
                self.aggregation = Aggregation::new(self.spec.0.clone(), self.spec.1.clone())?;
                self.emitted = 0;
            }
            if self.current.is_none() && !self.next_partition()? {
                return Ok(None);
            }
        }
    }
}
