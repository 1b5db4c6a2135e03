//! Functions that the application creates.

use crate::Database;
use nacre_column::{Vector, VectorBuilder};
use nacre_operator::cast_value;
use nacre_sql::{
    AggregateKernel, Created, CreatedAggregate, CreatedScalar, GroupStates, ScalarKernel,
    Volatility, created_name, type_named,
};
use nacre_types::{DataType, Error, Result, Value};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;

/// A scalar function for [`Database::create_function`]. It is not stored: create it each time the
/// database is opened.
pub struct ScalarDefinition(CreatedScalar);

/// An aggregate for [`Database::create_aggregate`]. It is not stored, either.
pub struct AggregateDefinition(CreatedAggregate);

fn types(names: &[&str]) -> Result<Vec<DataType>> {
    names.iter().map(|name| type_named(name)).collect()
}

impl ScalarDefinition {
    /// A function with a value for each row, computed by `kernel` from whole vectors. `parameters`
    /// and `returns` are names of types as in `CAST`. By default the result depends on nothing but
    /// the arguments, and is null where one of them is.
    ///
    /// Errors: `already_exists` for a name that the engine uses itself, `syntax` for one that
    /// cannot be called and for a type that does not exist.
    pub fn new(
        name: &str,
        parameters: &[&str],
        returns: &str,
        kernel: impl ScalarKernel + 'static,
    ) -> Result<ScalarDefinition> {
        Ok(ScalarDefinition(CreatedScalar {
            name: created_name(name)?,
            parameters: types(parameters)?,
            returns: type_named(returns)?,
            volatility: Volatility::Immutable,
            takes_nulls: false,
            kernel: Box::new(kernel),
        }))
    }

    /// The same from a function of the values of one row, whose result is cast to the type.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, ScalarDefinition, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// db.create_function(ScalarDefinition::by_row("slug", &["text"], "text", |row| {
    ///     Ok(match row {
    ///         [Value::Text(title)] => Value::Text(title.to_lowercase().replace(' ', "-")),
    ///         _ => Value::Null,
    ///     })
    /// })?);
    /// let result = db.session().execute("select slug('Mother of Pearl')", &[]).await?;
    /// assert_eq!(result.row(0), [Value::Text("mother-of-pearl".into())]);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn by_row(
        name: &str,
        parameters: &[&str],
        returns: &str,
        of_row: impl Fn(&[Value]) -> Result<Value> + Send + Sync + 'static,
    ) -> Result<ScalarDefinition> {
        let kernel = ByRow { of_row, returns: type_named(returns)? };
        ScalarDefinition::new(name, parameters, returns, kernel)
    }

    /// What the result depends on besides the arguments.
    pub fn volatility(mut self, volatility: Volatility) -> ScalarDefinition {
        self.0.volatility = volatility;
        self
    }

    /// Passes nulls to the function, which decides what they give.
    pub fn takes_nulls(mut self) -> ScalarDefinition {
        self.0.takes_nulls = true;
        self
    }

    /// Types of the arguments.
    pub fn parameters(&self) -> &[DataType] {
        &self.0.parameters
    }

    /// Type of the result.
    pub fn returns(&self) -> DataType {
        self.0.returns
    }
}

impl AggregateDefinition {
    /// An aggregate computed by `kernel`. By default rows with a null argument do not count, and the
    /// value is null where no row counts.
    ///
    /// Errors: as [`ScalarDefinition::new`].
    pub fn new(
        name: &str,
        parameters: &[&str],
        returns: &str,
        kernel: impl AggregateKernel + 'static,
    ) -> Result<AggregateDefinition> {
        Ok(AggregateDefinition(CreatedAggregate {
            name: created_name(name)?,
            parameters: types(parameters)?,
            returns: type_named(returns)?,
            takes_nulls: false,
            over_nothing: Value::Null,
            kernel: Box::new(kernel),
        }))
    }

    /// The same from a state of each group: `S::default()` before the first row, changed by `step`
    /// for each row, and turned into the value by `finish`, which is cast to the type. The memory
    /// that a state refers to is not counted.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{AggregateDefinition, Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// db.create_aggregate(AggregateDefinition::by_row(
    ///     "range_of",
    ///     &["double"],
    ///     "double",
    ///     |range: &mut Option<(f64, f64)>, row| {
    ///         if let [Value::Float(x)] = row {
    ///             let (least, most) = range.unwrap_or((*x, *x));
    ///             *range = Some((least.min(*x), most.max(*x)));
    ///         }
    ///         Ok(())
    ///     },
    ///     |range| Ok(range.map_or(Value::Null, |(least, most)| Value::Float(most - least))),
    /// )?);
    /// let sql = "select range_of(x) from (values (1), (4.5), (null)) as t(x)";
    /// let result = db.session().execute(sql, &[]).await?;
    /// assert_eq!(result.row(0), [Value::Float(3.5)]);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn by_row<S: Default + Clone + Send + Sync + 'static>(
        name: &str,
        parameters: &[&str],
        returns: &str,
        step: impl Fn(&mut S, &[Value]) -> Result<()> + Send + Sync + 'static,
        finish: impl Fn(&S) -> Result<Value> + Send + Sync + 'static,
    ) -> Result<AggregateDefinition> {
        let returns_type = type_named(returns)?;
        let steps = Arc::new(Steps { step, finish, returns: returns_type, state: PhantomData });
        AggregateDefinition::new(name, parameters, returns, StepKernel(steps))
    }

    /// Counts rows with null arguments, too.
    pub fn takes_nulls(mut self) -> AggregateDefinition {
        self.0.takes_nulls = true;
        self
    }

    /// Types of the arguments.
    pub fn parameters(&self) -> &[DataType] {
        &self.0.parameters
    }

    /// The value where no row counts.
    ///
    /// Errors: `type` if it cannot be cast to the type of the result.
    pub fn over_nothing(mut self, value: &Value) -> Result<AggregateDefinition> {
        self.0.over_nothing = cast_value(value, self.0.returns)?;
        Ok(self)
    }

    /// Type of the result.
    pub fn returns(&self) -> DataType {
        self.0.returns
    }
}

impl Database {
    /// Creates a scalar function for all sessions, or replaces one that the application created
    /// before. It can be called wherever a scalar function can, except in rules that are stored
    /// with a table (`DEFAULT`, `CHECK`, `GENERATED`), which are refused as `unsupported`. A view
    /// that calls it needs it to be there when it is queried. The kernel must not use the database.
    pub fn create_function(&self, definition: ScalarDefinition) {
        self.0.create_function(Created::Scalar(Arc::new(definition.0)));
    }

    /// Creates an aggregate for all sessions, which is also one over windows, or replaces one.
    pub fn create_aggregate(&self, definition: AggregateDefinition) {
        self.0.create_function(Created::Aggregate(Arc::new(definition.0)));
    }

    /// Removes a function that the application created; returns whether there was one. Statements
    /// that run go on with it.
    pub fn drop_function(&self, name: &str) -> bool {
        self.0.drop_function(name)
    }
}

/// Calls a function of the values of one row.
struct ByRow<F> {
    of_row: F,
    returns: DataType,
}

fn row(arguments: &[Arc<Vector>], at: usize, values: &mut Vec<Value>) {
    values.clear();
    values.extend(arguments.iter().map(|argument| argument.value(at)));
}

impl<F: Fn(&[Value]) -> Result<Value> + Send + Sync> ScalarKernel for ByRow<F> {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        let mut out = VectorBuilder::new(self.returns);
        let mut values = Vec::with_capacity(arguments.len());
        for at in 0..rows {
            row(arguments, at, &mut values);
            out.push(&cast_value(&(self.of_row)(&values)?, self.returns)?);
        }
        Ok(out.finish())
    }
}

/// The functions of an aggregate by rows.
struct Steps<S, T, F> {
    step: T,
    finish: F,
    returns: DataType,
    state: PhantomData<fn() -> S>,
}

struct StepKernel<S, T, F>(Arc<Steps<S, T, F>>);

struct StepStates<S, T, F> {
    steps: Arc<Steps<S, T, F>>,
    states: Vec<S>,
}

impl<S, T, F> AggregateKernel for StepKernel<S, T, F>
where
    S: Default + Clone + Send + Sync + 'static,
    T: Fn(&mut S, &[Value]) -> Result<()> + Send + Sync + 'static,
    F: Fn(&S) -> Result<Value> + Send + Sync + 'static,
{
    fn states(&self) -> Box<dyn GroupStates> {
        Box::new(StepStates { steps: self.0.clone(), states: Vec::new() })
    }
}

impl<S, T, F> GroupStates for StepStates<S, T, F>
where
    S: Default + Clone + Send + Sync + 'static,
    T: Fn(&mut S, &[Value]) -> Result<()> + Send + Sync + 'static,
    F: Fn(&S) -> Result<Value> + Send + Sync + 'static,
{
    fn resize(&mut self, groups: usize) {
        self.states.resize(groups, S::default());
    }

    fn update(&mut self, arguments: &[Arc<Vector>], groups: &[u32]) -> Result<()> {
        let mut values = Vec::with_capacity(arguments.len());
        for (at, group) in groups.iter().enumerate() {
            row(arguments, at, &mut values);
            let state = self.states.get_mut(*group as usize);
            let state = state.ok_or_else(|| Error::type_error("there is no such group"))?;
            (self.steps.step)(state, &values)?;
        }
        Ok(())
    }

    fn finish(&self, groups: Range<usize>) -> Result<Vector> {
        let mut out = VectorBuilder::new(self.steps.returns);
        for state in self.states.get(groups).unwrap_or_default() {
            out.push(&cast_value(&(self.steps.finish)(state)?, self.steps.returns)?);
        }
        Ok(out.finish())
    }

    fn memory_bytes(&self) -> usize {
        self.states.capacity() * size_of::<S>()
    }
}
