//! The registry entry of an aggregate.

use super::coerce;
use super::definition::Arity;
use super::definition::{Binding, Operand};
use super::doc::Doc;
use crate::vector::groups::Groups;
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use nacre_column::Vector;
use nacre_types::{DataType, Error, Result, Value};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// An aggregate: everything that the binder, the executor and the reference need. Plans refer to
/// the entry itself.
pub struct AggregateFunction {
    /// Its names in lower case; the first is the one `EXPLAIN` shows.
    pub names: &'static [&'static str],
    /// Reference text.
    pub doc: Doc,
    /// Binds a call.
    pub rule: AggregateRule,
    /// Its value without rows.
    pub over_nothing: OverNothing,
    /// Whether it may fail for arguments of these types.
    pub may_fail: fn(&[DataType]) -> bool,
    /// How it is computed.
    pub accumulation: Accumulation,
}

/// An aggregate that the application created.
pub struct CreatedAggregate {
    /// Its name in lower case.
    pub name: String,
    /// Types of the arguments, which are cast to them as if they were inserted.
    pub parameters: Vec<DataType>,
    /// Type of the result.
    pub returns: DataType,
    /// Whether rows with a null argument count.
    pub takes_nulls: bool,
    /// Its value where no row counts, of the type of the result.
    pub over_nothing: Value,
    /// How it is computed.
    pub kernel: Box<dyn AggregateKernel>,
}

/// The computation of an aggregate that the application created.
pub trait AggregateKernel: Send + Sync {
    /// The states of no group yet.
    fn states(&self) -> Box<dyn GroupStates>;
}

/// The states of an aggregate that the application created, for all groups of a query.
pub trait GroupStates: Send + Sync {
    /// Makes room for this number of groups, new ones without rows.
    fn resize(&mut self, groups: usize);
    /// Adds rows, at least one: row `i` of the arguments, which have the declared types, to group
    /// `groups[i]`.
    fn update(&mut self, arguments: &[Arc<Vector>], groups: &[u32]) -> Result<()>;
    /// The results of some groups, of the declared type; those of groups without rows are ignored.
    /// More rows may follow.
    fn finish(&self, groups: Range<usize>) -> Result<Vector>;
    /// Estimated memory in bytes.
    fn memory_bytes(&self) -> usize;
}

/// The aggregate of a call in a plan.
#[derive(Clone)]
pub enum AggregateCallee {
    /// One of the registry.
    Listed(&'static AggregateFunction),
    /// One that the application created.
    Created(Arc<CreatedAggregate>),
}

/// An aggregate defined as an expression over other aggregates.
pub struct AggregateExpression {
    /// Its names in lower case.
    pub names: &'static [&'static str],
    /// Reference text.
    pub doc: Doc,
    /// The expression.
    pub rule: AggregateRule,
}

/// An entry of an aggregate that is null over no rows, and may fail.
pub const fn aggregate(
    names: &'static [&'static str],
    doc: Doc,
    rule: AggregateRule,
    accumulation: Accumulation,
) -> AggregateFunction {
    let (over_nothing, may_fail) = (OverNothing::Null, possibly);
    AggregateFunction { names, doc, rule, over_nothing, may_fail, accumulation }
}

/// Turns a call into an expression over aggregates.
pub type AggregateRule = fn(&mut dyn AggregateBinding, AggregateArguments<'_>) -> Result<Operand>;

/// The value of an aggregate without rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverNothing {
    /// Null.
    Null,
    /// The integer 0.
    Zero,
}

/// How an aggregate is computed.
pub enum Accumulation {
    /// One mergeable state per group: threads accumulate separately, windows combine frames.
    Parts(fn(&Types<'_>) -> Result<Box<dyn State>>),
    /// One state per group, which processes all rows in order.
    Stream(fn(&Types<'_>) -> Result<Box<dyn State>>),
    /// The rows of a group are collected, sorted and processed together.
    Collected {
        /// The argument that must not be null for a row to count.
        deciding: usize,
        /// Computes the result from the rows of one group.
        compute: fn(&Collection<'_>) -> Result<Value>,
    },
}

/// The types of a call.
pub struct Types<'a> {
    /// Types of the arguments.
    pub arguments: &'a [DataType],
    /// Result type.
    pub result: DataType,
}

impl Types<'_> {
    /// The type of the first argument; `BIGINT` without arguments.
    pub fn first(&self) -> DataType {
        self.arguments.first().copied().unwrap_or(DataType::Int64)
    }
}

/// The states of one aggregate for all groups.
pub trait State: Send + Sync + Any {
    /// Makes room for this number of groups.
    fn resize(&mut self, groups: usize);
    /// Estimated memory in bytes.
    fn memory_bytes(&self) -> usize;
    /// Accumulates rows. Arguments are vectors over the same rows.
    fn update(
        &mut self,
        args: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()>;
    /// Merges groups `from..` of states of the same aggregate into the groups `ids`, which must
    /// exist. The other states may have fewer groups if the last ones have no rows.
    fn merge(&mut self, other: &dyn State, from: usize, ids: &[u32]) -> Result<()>;
    /// The results of some groups; texts take at most `room`.
    fn finish(&self, groups: Range<usize>, room: Room) -> Result<Vector>;
    /// Whether the result does not depend on the order of rows.
    fn is_order_free(&self) -> bool;
    /// Whether [`State::finish_as`] gives the results of other states, over the same rows.
    fn has_sums_of(&self, _other: &dyn State) -> bool {
        false
    }
    /// The results of some groups as other states would give them, over the same rows. Errors: `type`
    /// unless [`State::has_sums_of`] them.
    fn finish_as(&self, _other: &dyn State, _groups: Range<usize>, _room: Room) -> Result<Vector> {
        Err(Error::type_error("states of another aggregate"))
    }
}

/// The rows of one group, at least one.
pub struct Collection<'a> {
    /// The arguments, in order of arrival.
    pub args: &'a [Vector],
    /// Row positions in the order required by the call.
    pub order: &'a [u32],
    /// Result type.
    pub data_type: DataType,
}

impl Collection<'_> {
    /// The value of an argument at a row.
    pub fn argument(&self, at: usize, row: u32) -> Value {
        self.args.get(at).map_or(Value::Null, |arg| arg.value(row as usize))
    }

    /// The first argument, row by row, in order.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        self.order.iter().map(|row| self.argument(0, *row))
    }
}

/// A sort key of a call.
pub struct AggregateKey {
    /// The sort expression.
    pub operand: Operand,
    /// Descending order.
    pub descending: bool,
    /// Nulls come first.
    pub nulls_first: bool,
}

/// A call of an aggregate, while it is bound.
pub struct AggregateArguments<'a> {
    /// The name as spelled in the statement, for messages.
    pub name: &'a str,
    /// The bound arguments; none for `*`.
    pub operands: Vec<Operand>,
    /// `ORDER BY` inside the call, or `WITHIN GROUP (ORDER BY …)`.
    pub order: Vec<AggregateKey>,
    /// Whether the order was written as `WITHIN GROUP`.
    pub within_group: bool,
    /// `DISTINCT`.
    pub distinct: bool,
    /// `FILTER (WHERE …)`.
    pub filter: Option<Operand>,
}

/// The interface of the binder for the rules of aggregates.
pub trait AggregateBinding: Binding {
    /// An aggregate over the rows of the query.
    fn aggregate(
        &mut self,
        function: &'static AggregateFunction,
        arguments: AggregateArguments<'_>,
        data_type: DataType,
    ) -> Operand;
    /// An aggregate that the application created, on arguments of its declared types.
    fn aggregate_created(
        &mut self,
        function: Arc<CreatedAggregate>,
        arguments: AggregateArguments<'_>,
    ) -> Operand;
    /// The conjunction of the conditions.
    fn all_of(&mut self, conditions: Vec<Operand>) -> Operand;
}

impl<'a> AggregateArguments<'a> {
    /// Takes the operands of a call with exactly `N`; `42883` for any other number.
    pub fn take<const N: usize>(&mut self) -> Result<[Operand; N]> {
        let operands = std::mem::take(&mut self.operands);
        let count = operands.len();
        operands.try_into().map_err(|_| Arity::exactly(N).wrong(self.name, count))
    }

    /// The call with other operands.
    pub fn with(self, operands: Vec<Operand>) -> AggregateArguments<'a> {
        AggregateArguments { operands, ..self }
    }

    /// The call without an order, which does not affect the result.
    pub fn unordered(self) -> AggregateArguments<'a> {
        AggregateArguments { order: Vec::new(), ..self }
    }

    /// The call restricted to rows that satisfy another condition.
    pub fn only(
        mut self,
        binding: &mut dyn AggregateBinding,
        condition: Operand,
    ) -> AggregateArguments<'a> {
        let both = self.filter.take().into_iter().chain([condition]).collect();
        self.filter = Some(binding.all_of(both));
        self
    }

    /// Rejects an order in the call of an aggregate that ignores it.
    pub fn refuse_order(&self) -> Result<()> {
        match self.order.is_empty() {
            true => Ok(()),
            false => Err(Error::unsupported("a clause inside a function call is not supported")),
        }
    }

    /// Rejects `DISTINCT`.
    pub fn refuse_distinct(&self) -> Result<()> {
        match self.distinct {
            true => Err(Error::unsupported(format!("DISTINCT in {} is not supported", self.name))),
            false => Ok(()),
        }
    }

    /// Rejects `DISTINCT` for intervals, which may be equal without being identical.
    pub fn refuse_intervals(&self, binding: &dyn Binding) -> Result<()> {
        let first = self.operands.first().map(|operand| binding.data_type(operand));
        match self.distinct && first == Some(DataType::Interval) {
            true => Err(Error::unsupported("DISTINCT of an INTERVAL is not supported")),
            false => Ok(()),
        }
    }
}

/// A rule: one argument of any type, and a result of the same type.
pub fn same_type(
    function: &'static AggregateFunction,
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_intervals(binding)?;
    let [value] = arguments.take()?;
    let data_type = binding.data_type(&value);
    Ok(binding.aggregate(function, arguments.with(vec![value]), data_type))
}

/// A rule: one double, and a double result.
pub fn double(
    function: &'static AggregateFunction,
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_intervals(binding)?;
    let [x] = arguments.take()?;
    let x = coerce::double(binding, x)?;
    Ok(binding.aggregate(function, arguments.with(vec![x]), DataType::Float64))
}

/// A rule: the dependent double `y` and the independent `x`, in this order, and a double result.
/// Kernels take `x` first.
pub fn double_pair(
    function: &'static AggregateFunction,
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_intervals(binding)?;
    let [y, x] = arguments.take()?;
    let y = coerce::double(binding, y)?;
    let x = coerce::double(binding, x)?;
    Ok(binding.aggregate(function, arguments.with(vec![x, y]), DataType::Float64))
}

/// For aggregates that never fail.
pub fn never(_: &[DataType]) -> bool {
    false
}

fn possibly(_: &[DataType]) -> bool {
    true
}

impl AggregateFunction {
    /// The entry of an aggregate that fails over no arguments.
    pub const fn infallible(self) -> AggregateFunction {
        AggregateFunction { may_fail: never, ..self }
    }

    /// The name that `EXPLAIN` shows.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Whether partial states can be accumulated separately and merged.
    pub fn is_made_of_parts(&self) -> bool {
        matches!(self.accumulation, Accumulation::Parts(_))
    }
}

impl PartialEq for AggregateFunction {
    fn eq(&self, other: &AggregateFunction) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for AggregateFunction {}

impl fmt::Debug for AggregateFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
