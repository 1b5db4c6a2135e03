//! The types of a scalar function's registry entry. They refer to each other: an entry holds rules,
//! a rule calls the binder, the binder makes calls of entries.

use super::doc::Doc;
use crate::operator::BinaryOp;
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use nacre_column::Vector;
use nacre_types::{DataType, Error, Result, Value};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A scalar function: everything that the binder, the evaluator and the reference need. Plans refer
/// to the entry itself; two calls are of the same function if they refer to the same entry.
pub struct ScalarFunction {
    /// Its names in lower case; the first is the one `EXPLAIN` shows.
    pub names: &'static [&'static str],
    /// Reference text.
    pub doc: Doc,
    /// Arguments and result type.
    pub typing: Typing,
    /// Whether the first argument is the name of a date part.
    pub part: BarePart,
    /// How it treats null arguments.
    pub nulls: Nulls,
    /// Whether it may fail.
    pub errors: Errors,
    /// What its result depends on besides its arguments.
    pub volatility: Volatility,
    /// How it is evaluated.
    pub kernel: Kernel,
}

/// A scalar function that the application created: its kernel is called for whole vectors.
pub struct CreatedScalar {
    /// Its name in lower case.
    pub name: String,
    /// Types of the arguments, which are cast to them as if they were inserted.
    pub parameters: Vec<DataType>,
    /// Type of the result.
    pub returns: DataType,
    /// What its result depends on besides its arguments.
    pub volatility: Volatility,
    /// Whether the kernel receives nulls; otherwise the result is null where an argument is.
    pub takes_nulls: bool,
    /// How it is computed.
    pub kernel: Box<dyn ScalarKernel>,
}

/// The computation of a scalar function that the application created.
pub trait ScalarKernel: Send + Sync {
    /// Computes `rows` values of the declared type from arguments of the declared types, each with
    /// `rows` values. The time and order of calls, and which rows they have together, are not
    /// specified.
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector>;
}

impl<F: Fn(&[Arc<Vector>], usize) -> Result<Vector> + Send + Sync> ScalarKernel for F {
    fn call(&self, arguments: &[Arc<Vector>], rows: usize) -> Result<Vector> {
        self(arguments, rows)
    }
}

/// The function of a call in a plan.
#[derive(Clone)]
pub enum ScalarCallee {
    /// One of the registry.
    Listed(&'static ScalarFunction),
    /// One that the application created.
    Created(Arc<CreatedScalar>),
}

/// A function defined as an expression over its arguments, so that plans never contain it.
pub struct Expression {
    /// Its names in lower case.
    pub names: &'static [&'static str],
    /// Reference text.
    pub doc: Doc,
    /// Number of arguments.
    pub arity: Arity,
    /// Whether the first argument is the name of a date part.
    pub part: BarePart,
    /// The expression.
    pub rule: Rule,
}

/// Turns the arguments of a call into an expression.
pub type Rule = fn(&mut dyn Binding, Arguments<'_>) -> Result<Operand>;

/// How a call is typed.
pub enum Typing {
    /// Each argument has a kind, and the result a fixed type.
    Declared(Parameters, DataType),
    /// A rule decides.
    Rule(Arity, Rule),
}

/// Kinds of the arguments, in order.
pub struct Parameters {
    pub(super) kinds: &'static [Parameter],
    pub(super) least: usize,
    pub(super) repeats: bool,
}

/// The kind of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A number, converted to a double.
    Double,
    /// An integer.
    Integer,
    /// An integer, or a decimal literal rounded to one.
    RoundedInteger,
    /// Text.
    Text,
    /// Text, or binary if the first argument is binary. A text result is then binary, too.
    TextLikeFirst,
    /// Binary values unchanged, others converted to text.
    TextOrBytes,
    /// A timestamp.
    Timestamp,
    /// A date.
    Date,
    /// JSON, or a text that spells it.
    Json,
    /// A value of any type that becomes JSON.
    JsonValue,
}

/// Which calls take the name of a date part as their first argument. The name may be unquoted, as
/// in `timestampdiff(day, a, b)`, and never refers to a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarePart {
    /// No call.
    Never,
    /// Every call.
    Always,
    /// Calls with this number of arguments.
    Among(usize),
}

impl BarePart {
    /// Whether a call with this number of arguments takes one.
    pub fn is_taken(self, arguments: usize) -> bool {
        match self {
            BarePart::Never => false,
            BarePart::Always => true,
            BarePart::Among(count) => count == arguments,
        }
    }
}

/// How a function treats null arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// Null if and only if an argument is null.
    Strict,
    /// Null if an argument is null, and for arguments without a result.
    Partial,
    /// The kernel receives nulls; the result is null only if an argument is.
    Seen,
    /// The kernel receives nulls, and any result may be null.
    SeenPartial,
    /// Null only if all arguments are null.
    AllNull,
}

/// Whether a function may fail for some values of its argument types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// It never fails, so it may run on rows that a later filter removes.
    Never,
    /// It may fail.
    Possible,
}

/// What the result of a function depends on besides its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    /// Nothing.
    Immutable,
    /// The statement, such as its time.
    Stable,
    /// Chance: each evaluation has another result, also for equal arguments.
    Volatile,
}

/// How a function is evaluated.
pub enum Kernel {
    /// Whole vectors at once.
    Vectors(fn(&Call<'_>) -> Result<Vector>),
    /// The values of one row at a time.
    Values(fn(&RowCall<'_>) -> Result<Value>),
    /// The first argument that is not null. The evaluator computes an argument only for rows at
    /// which all preceding ones are null.
    FirstNonNull,
}

impl ScalarFunction {
    /// The name that `EXPLAIN` shows.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }
}

impl Nulls {
    /// Whether the kernel runs for rows with a null argument.
    pub fn are_seen(self) -> bool {
        matches!(self, Nulls::Seen | Nulls::SeenPartial | Nulls::AllNull)
    }

    /// Whether the result may be null if no argument is.
    pub fn are_made(self) -> bool {
        matches!(self, Nulls::Partial | Nulls::SeenPartial)
    }
}

impl PartialEq for ScalarFunction {
    fn eq(&self, other: &ScalarFunction) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for ScalarFunction {}

impl fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number of arguments that a call may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    least: usize,
    most: usize,
}

impl Arity {
    /// Exactly this number.
    pub const fn exactly(count: usize) -> Arity {
        Arity { least: count, most: count }
    }

    /// From `least` to `most`.
    pub const fn between(least: usize, most: usize) -> Arity {
        Arity { least, most }
    }

    /// `least` or more.
    pub const fn at_least(least: usize) -> Arity {
        Arity { least, most: usize::MAX }
    }

    /// Fails (`42883`) if a call of `name` has another number of arguments.
    pub fn check(self, name: &str, count: usize) -> Result<()> {
        if (self.least..=self.most).contains(&count) {
            Ok(())
        } else {
            Err(self.wrong(name, count))
        }
    }

    /// The error for a wrong number of arguments.
    #[cold]
    pub fn wrong(self, name: &str, count: usize) -> Error {
        let takes = match (self.least, self.most) {
            (a, b) if a == b => format!("{a}"),
            (a, usize::MAX) => format!("{a} or more"),
            (a, b) => format!("{a} to {b}"),
        };
        Error::type_error(format!("function {name} takes {takes} arguments, not {count}"))
            .with_sqlstate("42883")
    }
}

/// The arguments of a call.
pub struct Arguments<'a> {
    /// The function's name as spelled in the statement, for messages.
    pub name: &'a str,
    /// The bound arguments.
    pub operands: Vec<Operand>,
}

impl Arguments<'_> {
    /// The arguments of a function that takes exactly `N`.
    pub fn exactly<const N: usize>(self) -> Result<[Operand; N]> {
        let count = self.operands.len();
        <[Operand; N]>::try_from(self.operands)
            .map_err(|_| Arity::exactly(N).wrong(self.name, count))
    }
}

/// A handle to a bound expression, for rules. A rule uses each operand once.
pub struct Operand(usize);

impl Operand {
    /// The operand with this number in the binder.
    pub fn new(number: usize) -> Operand {
        Operand(number)
    }

    /// The binder's number.
    pub fn number(&self) -> usize {
        self.0
    }
}

/// The interface of the binder for typing rules.
pub trait Binding {
    /// The type of an operand; `Null` for an untyped parameter, and for `NULL`.
    fn data_type(&self, operand: &Operand) -> DataType;
    /// The value of an operand that is a literal.
    fn literal(&self, operand: &Operand) -> Option<&Value>;
    /// A literal.
    fn constant(&mut self, value: Value, data_type: DataType) -> Operand;
    /// A second copy of an operand. The number of copies per statement is limited.
    fn again(&mut self, operand: &Operand) -> Result<Operand>;
    /// Gives an untyped parameter a type: that of its bound value, or `otherwise`.
    fn settle(&mut self, operand: Operand, otherwise: DataType) -> Operand;
    /// Gives an untyped parameter the type of the other operand.
    fn settle_pair(&mut self, left: Operand, right: Operand) -> (Operand, Operand);
    /// An implicit cast; a literal that cannot be converted fails immediately.
    fn cast(&mut self, operand: Operand, to: DataType) -> Result<Operand>;
    /// An explicit cast; a text that does not parse as the type fails on evaluation.
    fn explicit_cast(&mut self, operand: Operand, to: DataType) -> Result<Operand>;
    /// Converts two operands to a type in which they can be compared; `what` is the operator's name
    /// in messages.
    fn unify(&mut self, left: Operand, right: Operand, what: &str) -> Result<(Operand, Operand)>;
    /// Converts all operands to one type, and returns it; `what` is the function's name in
    /// messages.
    fn unify_all(&mut self, operands: Vec<Operand>, what: &str)
    -> Result<(Vec<Operand>, DataType)>;
    /// Checks for a boolean operand; `what` is its name in messages.
    fn condition(&mut self, operand: Operand, what: &str) -> Result<Operand>;
    /// A binary operator.
    fn binary(&mut self, op: BinaryOp, left: Operand, right: Operand) -> Result<Operand>;
    /// `CASE WHEN test THEN yes ELSE no END`.
    fn case(&mut self, test: Operand, yes: Operand, no: Operand) -> Result<Operand>;
    /// `operand IS NULL`, or `IS NOT NULL`.
    fn null_test(&mut self, operand: Operand, negated: bool) -> Operand;
    /// A call of a function, on arguments of the types that its kernel expects.
    fn call(
        &mut self,
        function: &'static ScalarFunction,
        arguments: Vec<Operand>,
        data_type: DataType,
    ) -> Operand;
    /// A call of a function that the application created, on arguments of its declared types.
    fn call_created(&mut self, function: Arc<CreatedScalar>, arguments: Vec<Operand>) -> Operand;
}

/// The context of the running statement, for kernels.
#[derive(Clone, Copy)]
pub struct Surroundings {
    /// Maximum bytes of text in one result vector.
    pub most_text_bytes: usize,
    /// The statement's time, in microseconds since 1970-01-01.
    pub now_us: i64,
    /// 128 random bits for this call of a volatile function; `None` for any other function, and
    /// where none are to be had.
    pub random: Option<[u64; 2]>,
}

/// A call over vectors.
pub struct Call<'a> {
    /// The function.
    pub function: &'static ScalarFunction,
    /// The arguments, all of the same length.
    pub args: &'a [Arc<Vector>],
    /// Result type.
    pub data_type: DataType,
    /// The rows to compute.
    pub rows: ActiveRows<'a>,
    /// The running statement.
    pub surroundings: Surroundings,
}

impl Call<'_> {
    /// The arguments of a kernel that takes exactly `N`.
    pub fn exactly<const N: usize>(&self) -> Result<[&Vector; N]> {
        self.vectors().try_into().map_err(|_| self.wrong_arguments())
    }

    /// The error for arguments that do not fit the kernel; the binder rules it out.
    #[cold]
    pub fn wrong_arguments(&self) -> Error {
        Error::type_error(format!("wrong arguments for {}", self.function.name()))
            .with_sqlstate("42883")
    }

    /// The arguments as references.
    pub fn vectors(&self) -> Vec<&Vector> {
        self.args.iter().map(|arg| &**arg).collect()
    }

    /// Room for the texts of the result.
    pub fn room(&self) -> Room {
        Room::new(self.surroundings.most_text_bytes)
    }

    /// The same value for every row.
    pub fn constant(&self, value: &Value) -> Vector {
        Vector::constant(self.data_type, value, self.rows.len)
    }
}

/// A call over the values of one row. Arguments have the types declared by the entry; a missing or
/// null argument reads as the zero value of the type.
pub struct RowCall<'a> {
    /// The function, for messages.
    pub function: &'static ScalarFunction,
    /// Result type.
    pub data_type: DataType,
    /// The arguments.
    pub args: &'a [Value],
}

impl RowCall<'_> {
    /// An argument.
    pub fn value(&self, at: usize) -> &Value {
        self.args.get(at).unwrap_or(&Value::Null)
    }

    /// An argument that is a double or an integer.
    pub fn double(&self, at: usize) -> f64 {
        match self.value(at) {
            Value::Float(v) => *v,
            Value::Int(v) => *v as f64,
            _ => 0.0,
        }
    }

    /// An integer argument.
    pub fn int(&self, at: usize) -> i64 {
        match self.value(at) {
            Value::Int(v) => *v,
            _ => 0,
        }
    }

    /// A text argument.
    pub fn text(&self, at: usize) -> Cow<'_, str> {
        match self.value(at) {
            Value::Text(text) | Value::Json(text) => Cow::Borrowed(text),
            Value::Null => Cow::Borrowed(""),
            other => Cow::Owned(other.to_string()),
        }
    }

    /// The bytes of a text or binary argument.
    pub fn bytes(&self, at: usize) -> &[u8] {
        match self.value(at) {
            Value::Text(text) | Value::Json(text) => text.as_bytes(),
            Value::Binary(bytes) => bytes,
            _ => &[],
        }
    }

    /// A double computed from the first argument; `22003` if it is infinite but the argument is
    /// not.
    pub fn float(&self, v: f64) -> Result<Value> {
        if v.is_infinite() && self.double(0).is_finite() {
            return Err(self.out_of_range());
        }
        Ok(Value::Float(v))
    }

    /// An error that names the function.
    pub fn error(&self, what: &str, sqlstate: &'static str) -> Error {
        Error::type_error(format!("{}: {what}", self.function.name())).with_sqlstate(sqlstate)
    }

    /// The error for a result out of range of its type.
    pub fn out_of_range(&self) -> Error {
        Error::out_of_range(format!("{} out of range", self.function.name()))
    }
}

/// A text result.
pub fn text(text: impl Into<String>) -> Result<Value> {
    Ok(Value::Text(text.into()))
}

/// An integer result.
pub fn int(v: i64) -> Result<Value> {
    Ok(Value::Int(v))
}

/// A boolean result.
pub fn boolean(v: bool) -> Result<Value> {
    Ok(Value::Boolean(v))
}
