//! Functions that the application created: their names, and how their calls are bound and
//! evaluated.

use super::aggregate::{
    AggregateArguments, AggregateBinding, AggregateCallee, AggregateFunction, CreatedAggregate,
    GroupStates, OverNothing, State,
};
use super::definition::{
    Arguments, Arity, Binding, CreatedScalar, Errors, Nulls, Operand, ScalarCallee, ScalarFunction,
    Surroundings, Volatility,
};
use crate::vector::groups::Groups;
use crate::vector::room::{Room, check_length};
use crate::vector::rows::ActiveRows;
use nacre_column::{Vector, VectorBuilder};
use nacre_types::sorted::SortedMap;
use nacre_types::{DataType, Error, Result, Value};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The functions that the application created, by their lower-case names.
#[derive(Clone, Default)]
pub struct CreatedFunctions(SortedMap<String, Created>);

/// One of them.
#[derive(Clone)]
pub enum Created {
    /// A scalar function.
    Scalar(Arc<CreatedScalar>),
    /// An aggregate.
    Aggregate(Arc<CreatedAggregate>),
}

impl CreatedFunctions {
    /// Adds a function; one of the same name is replaced.
    pub fn add(&mut self, function: Created) {
        let name = match &function {
            Created::Scalar(function) => &function.name,
            Created::Aggregate(function) => &function.name,
        };
        debug_assert!(!name.bytes().any(|b| b.is_ascii_uppercase()), "names are in lower case");
        self.0.insert(name.clone(), function);
    }

    /// Removes a function; returns whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(&name.to_ascii_lowercase()).is_some()
    }

    /// The scalar function with a lower-case name.
    pub fn scalar(&self, name: &str) -> Option<Arc<CreatedScalar>> {
        match self.0.get(name)? {
            Created::Scalar(function) => Some(function.clone()),
            Created::Aggregate(_) => None,
        }
    }

    /// The aggregate with a lower-case name.
    pub fn aggregate(&self, name: &str) -> Option<Arc<CreatedAggregate>> {
        match self.0.get(name)? {
            Created::Aggregate(function) => Some(function.clone()),
            Created::Scalar(_) => None,
        }
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Created)> {
        self.0.iter().map(|(name, function)| (name.as_str(), function))
    }
}

/// Casts the operands of a call to the declared types.
fn cast_all(
    binding: &mut (impl Binding + ?Sized),
    name: &str,
    operands: Vec<Operand>,
    parameters: &[DataType],
) -> Result<Vec<Operand>> {
    Arity::exactly(parameters.len()).check(name, operands.len())?;
    let mut out = Vec::with_capacity(operands.len());
    for (operand, to) in operands.into_iter().zip(parameters) {
        let operand = binding.settle(operand, *to);
        out.push(binding.cast(operand, *to)?);
    }
    Ok(out)
}

/// Checks what the application returned, so that nothing else needs to trust it.
fn checked(
    name: &str,
    result: Vector,
    data_type: DataType,
    rows: usize,
    mut room: Room,
) -> Result<Vector> {
    if result.len() != rows {
        let message = format!("function {name} returned {} values for {rows} rows", result.len());
        return Err(Error::type_error(message));
    }
    if result.data_type() != data_type {
        let returned = result.data_type();
        let message = format!("function {name} returned {returned} instead of {data_type}");
        return Err(Error::type_error(message));
    }
    check_length(result.longest())?;
    room.take(result.flat_bytes())?;
    Ok(result)
}

impl CreatedScalar {
    /// Binds a call.
    pub fn bind(
        self: Arc<Self>,
        binding: &mut dyn Binding,
        arguments: Arguments<'_>,
    ) -> Result<Operand> {
        let operands = cast_all(binding, arguments.name, arguments.operands, &self.parameters)?;
        Ok(binding.call_created(self, operands))
    }

    /// Calls the kernel for the rows to compute, without those that are null anyway.
    fn evaluate(&self, args: &[Arc<Vector>], rows: ActiveRows<'_>, room: Room) -> Result<Vector> {
        let is_asked = |row: &usize| self.takes_nulls || args.iter().all(|arg| !arg.is_null(*row));
        let asked: Vec<u32> = rows.iter().filter(is_asked).map(|row| row as u32).collect();
        let call = |args: &[Arc<Vector>], count: usize| match count {
            0 => Ok(VectorBuilder::new(self.returns).finish()),
            _ => {
                let result = self.kernel.call(args, count)?;
                checked(&self.name, result, self.returns, count, room)
            }
        };
        if asked.len() == rows.len {
            return call(args, rows.len);
        }
        let picked: Vec<Arc<Vector>> = args.iter().map(|arg| Arc::new(arg.take(&asked))).collect();
        let found = call(&picked, asked.len())?;
        let mut out = VectorBuilder::new(self.returns);
        for (at, row) in asked.iter().enumerate() {
            while out.len() < *row as usize {
                out.push_null();
            }
            out.push(&found.value(at));
        }
        while out.len() < rows.len {
            out.push_null();
        }
        Ok(out.finish())
    }
}

impl ScalarCallee {
    /// The name that `EXPLAIN` shows.
    pub fn name(&self) -> &str {
        match self {
            ScalarCallee::Listed(function) => function.name(),
            ScalarCallee::Created(function) => &function.name,
        }
    }

    /// How it treats null arguments.
    pub fn nulls(&self) -> Nulls {
        match self {
            ScalarCallee::Listed(function) => function.nulls,
            ScalarCallee::Created(function) if function.takes_nulls => Nulls::SeenPartial,
            ScalarCallee::Created(_) => Nulls::Partial,
        }
    }

    /// Whether it may fail.
    pub fn errors(&self) -> Errors {
        match self {
            ScalarCallee::Listed(function) => function.errors,
            ScalarCallee::Created(_) => Errors::Possible,
        }
    }

    /// What its result depends on besides its arguments.
    pub fn volatility(&self) -> Volatility {
        match self {
            ScalarCallee::Listed(function) => function.volatility,
            ScalarCallee::Created(function) => function.volatility,
        }
    }

    /// The entry of the registry, unless the application created the function.
    pub fn listed(&self) -> Option<&'static ScalarFunction> {
        match self {
            ScalarCallee::Listed(function) => Some(function),
            ScalarCallee::Created(_) => None,
        }
    }

    /// Evaluates the function over vectors of equal length, which have the types that it was bound
    /// with.
    pub fn evaluate(
        &self,
        args: &[Arc<Vector>],
        data_type: DataType,
        rows: ActiveRows<'_>,
        surroundings: Surroundings,
    ) -> Result<Vector> {
        match self {
            ScalarCallee::Listed(function) => {
                function.evaluate(args, data_type, rows, surroundings)
            }
            ScalarCallee::Created(function) => {
                function.evaluate(args, rows, Room::new(surroundings.most_text_bytes))
            }
        }
    }
}

impl From<&'static ScalarFunction> for ScalarCallee {
    fn from(function: &'static ScalarFunction) -> ScalarCallee {
        ScalarCallee::Listed(function)
    }
}

impl PartialEq for ScalarCallee {
    fn eq(&self, other: &ScalarCallee) -> bool {
        match (self, other) {
            (ScalarCallee::Listed(a), ScalarCallee::Listed(b)) => a == b,
            (ScalarCallee::Created(a), ScalarCallee::Created(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl PartialEq<ScalarFunction> for ScalarCallee {
    fn eq(&self, other: &ScalarFunction) -> bool {
        self.listed().is_some_and(|function| function == other)
    }
}

impl fmt::Debug for ScalarCallee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl CreatedAggregate {
    /// Binds a call.
    pub fn bind(
        self: Arc<Self>,
        binding: &mut dyn AggregateBinding,
        mut arguments: AggregateArguments<'_>,
    ) -> Result<Operand> {
        if !arguments.order.is_empty() {
            return Err(Error::unsupported(format!("ORDER BY in {} is not supported", self.name)));
        }
        arguments.refuse_intervals(binding)?;
        let operands = std::mem::take(&mut arguments.operands);
        let operands = cast_all(binding, arguments.name, operands, &self.parameters)?;
        Ok(binding.aggregate_created(self, arguments.with(operands)))
    }

    /// The states of all groups.
    pub fn states(self: &Arc<Self>) -> Box<dyn State> {
        let states = self.kernel.states();
        Box::new(CreatedStates { of: self.clone(), states, has_rows: Vec::new() })
    }
}

/// The states of an aggregate that the application created.
struct CreatedStates {
    of: Arc<CreatedAggregate>,
    states: Box<dyn GroupStates>,
    /// By group.
    has_rows: Vec<bool>,
}

impl State for CreatedStates {
    fn resize(&mut self, groups: usize) {
        self.states.resize(groups);
        self.has_rows.resize(groups, false);
    }

    fn memory_bytes(&self) -> usize {
        self.states.memory_bytes() + self.has_rows.capacity()
    }

    fn update(
        &mut self,
        args: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()> {
        let takes_nulls = self.of.takes_nulls;
        let is_asked = |row: &usize| takes_nulls || args.iter().all(|arg| !arg.is_null(*row));
        let asked: Vec<u32> = rows.iter().filter(is_asked).map(|row| row as u32).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let groups: Vec<u32> = asked.iter().map(|row| groups.of(*row as usize) as u32).collect();
        groups.iter().for_each(|group| self.has_rows[*group as usize] = true);
        if asked.len() == rows.len {
            return self.states.update(args, &groups);
        }
        let picked: Vec<Arc<Vector>> = args.iter().map(|arg| Arc::new(arg.take(&asked))).collect();
        self.states.update(&picked, &groups)
    }

    fn merge(&mut self, _: &dyn State, _: usize, _: &[u32]) -> Result<()> {
        Err(Error::unsupported(format!("merging states of {}", self.of.name)))
    }

    fn finish(&self, groups: Range<usize>, room: Room) -> Result<Vector> {
        let has_rows = &self.has_rows[groups.clone()];
        let of_rows = self.states.finish(groups)?;
        let of_rows = checked(&self.of.name, of_rows, self.of.returns, has_rows.len(), room)?;
        if has_rows.iter().all(|has| *has) {
            return Ok(of_rows);
        }
        let mut out = VectorBuilder::new(self.of.returns);
        for (at, has) in has_rows.iter().enumerate() {
            match has {
                true => out.push(&of_rows.value(at)),
                false => out.push(&self.of.over_nothing),
            }
        }
        Ok(out.finish())
    }

    fn is_order_free(&self) -> bool {
        false
    }
}

impl AggregateCallee {
    /// The name that `EXPLAIN` shows.
    pub fn name(&self) -> &str {
        match self {
            AggregateCallee::Listed(function) => function.name(),
            AggregateCallee::Created(function) => &function.name,
        }
    }

    /// Its value without rows.
    pub fn over_nothing(&self) -> Value {
        match self {
            AggregateCallee::Listed(function) => match function.over_nothing {
                OverNothing::Null => Value::Null,
                OverNothing::Zero => Value::Int(0),
            },
            AggregateCallee::Created(function) => function.over_nothing.clone(),
        }
    }

    /// Whether it may be null.
    pub fn may_be_null(&self) -> bool {
        self.listed().is_none_or(|function| function.over_nothing == OverNothing::Null)
    }

    /// Whether it may fail for arguments of these types.
    pub fn may_fail(&self, types: &[DataType]) -> bool {
        match self {
            AggregateCallee::Listed(function) => (function.may_fail)(types),
            AggregateCallee::Created(_) => true,
        }
    }

    /// Whether partial states can be accumulated separately and merged.
    pub fn is_made_of_parts(&self) -> bool {
        self.listed().is_some_and(AggregateFunction::is_made_of_parts)
    }

    /// The entry of the registry, unless the application created the function.
    pub fn listed(&self) -> Option<&'static AggregateFunction> {
        match self {
            AggregateCallee::Listed(function) => Some(function),
            AggregateCallee::Created(_) => None,
        }
    }
}

impl From<&'static AggregateFunction> for AggregateCallee {
    fn from(function: &'static AggregateFunction) -> AggregateCallee {
        AggregateCallee::Listed(function)
    }
}

impl PartialEq for AggregateCallee {
    fn eq(&self, other: &AggregateCallee) -> bool {
        match (self, other) {
            (AggregateCallee::Listed(a), AggregateCallee::Listed(b)) => a == b,
            (AggregateCallee::Created(a), AggregateCallee::Created(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for AggregateCallee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
