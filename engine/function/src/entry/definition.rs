//! The types an entry of a scalar function is made of. They refer to each other: an entry holds rules, a rule
//! asks the binder, the binder makes calls of entries.

use super::doc::Doc;
use crate::operator::BinaryOp;
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use nacre_column::Vector;
use nacre_types::{DataType, Error, Result, Value};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A scalar function: all that the binder, the evaluator and the reference know of it. Plans refer to
/// the entry itself; two calls are of one function when they refer to one entry.
pub struct ScalarFunction {
    /// Its names in lower case; the first is the one `EXPLAIN` shows.
    pub names: &'static [&'static str],
    /// Reference text.
    pub doc: Doc,
    /// Arguments and result type.
    pub typing: Typing,
    /// Whether the first argument is the name of a date part.
    pub part: BarePart,
    /// What it makes of nulls.
    pub nulls: Nulls,
    /// Whether it may fail.
    pub errors: Errors,
    /// How it is evaluated.
    pub kernel: Kernel,
}

/// A name that stands for an expression over its arguments, so that plans never contain it.
pub struct Expression {
    /// Its names in lower case.
    pub names: &'static [&'static str],
    /// Reference text.
    pub doc: Doc,
    /// How many arguments it takes.
    pub arity: Arity,
    /// Whether the first argument is the name of a date part.
    pub part: BarePart,
    /// The expression.
    pub rule: Rule,
}

/// Turns the arguments of a call into an expression.
pub type Rule = fn(&mut dyn Binding, Arguments<'_>) -> Result<Operand>;

/// How a call gets its types.
pub enum Typing {
    /// Each argument has a kind, and the result a type.
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
    /// A number, as a double.
    Double,
    /// An integer.
    Integer,
    /// An integer, or a decimal literal that is rounded to one.
    RoundedInteger,
    /// Text.
    Text,
    /// Text, or binary when the first argument is. If the result is text, it is binary then, too.
    TextLikeFirst,
    /// Binary values as they are, others as text.
    TextOrBytes,
    /// A timestamp.
    Timestamp,
    /// A date.
    Date,
}

/// Which calls take the name of a date part as their first argument. The name may stand without quotes,
/// as in `timestampdiff(day, a, b)`, and is never a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarePart {
    /// No call.
    Never,
    /// Every call.
    Always,
    /// Calls with this many arguments.
    Among(usize),
}

impl BarePart {
    /// Whether a call with this many arguments takes one.
    pub fn is_taken(self, arguments: usize) -> bool {
        match self {
            BarePart::Never => false,
            BarePart::Always => true,
            BarePart::Among(count) => count == arguments,
        }
    }
}

/// What a function makes of null arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// Null where an argument is null, and nowhere else.
    Strict,
    /// Null where an argument is null, and where there is no answer.
    Partial,
    /// The kernel sees nulls; the result is null at most where an argument is.
    Seen,
    /// The kernel sees nulls, and the result may be null anywhere.
    SeenPartial,
    /// Null only where every argument is.
    AllNull,
}

/// Whether a function may fail on some values of its argument types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// It never fails, so it may run on rows that a later filter removes.
    Never,
    /// It may fail.
    Possible,
}

/// How a function is evaluated.
pub enum Kernel {
    /// Whole vectors at once.
    Vectors(fn(&Call<'_>) -> Result<Vector>),
    /// The values of one row at a time.
    Values(fn(&RowCall<'_>) -> Result<Value>),
    /// The first argument that is not null. The evaluator computes an argument only for rows at which
    /// all before it are null.
    FirstNonNull,
}

impl ScalarFunction {
    /// The name that `EXPLAIN` shows.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

impl Nulls {
    /// Whether the kernel runs for rows with a null argument.
    pub fn are_seen(self) -> bool {
        matches!(self, Nulls::Seen | Nulls::SeenPartial | Nulls::AllNull)
    }

    /// Whether the result may be null where no argument is.
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

/// How many arguments a call may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    least: usize,
    most: usize,
}

impl Arity {
    /// Exactly this many.
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

    /// The error of another number of arguments.
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
    /// The function's name as the statement spells it, for messages.
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

/// A bound expression in the hands of a rule. A rule uses each operand once.
pub struct Operand(usize);

impl Operand {
    /// The operand the binder keeps under a number.
    pub fn new(number: usize) -> Operand {
        Operand(number)
    }

    /// The binder's number.
    pub fn number(&self) -> usize {
        self.0
    }
}

/// The binder, as typing rules see it.
pub trait Binding {
    /// The type of an operand; `Null` for a parameter whose type is open, and for `NULL`.
    fn data_type(&self, operand: &Operand) -> DataType;
    /// The value of an operand that is a literal.
    fn literal(&self, operand: &Operand) -> Option<&Value>;
    /// A literal.
    fn constant(&mut self, value: Value, data_type: DataType) -> Operand;
    /// A second copy of an operand. Copies of one statement are limited.
    fn again(&mut self, operand: &Operand) -> Result<Operand>;
    /// Gives an open parameter a type: that of its value at hand, or `otherwise`.
    fn settle(&mut self, operand: Operand, otherwise: DataType) -> Operand;
    /// Gives an open parameter the type of the other operand.
    fn settle_pair(&mut self, left: Operand, right: Operand) -> (Operand, Operand);
    /// An implied cast; a literal that cannot be converted is an error now.
    fn cast(&mut self, operand: Operand, to: DataType) -> Result<Operand>;
    /// A written cast; a text that does not read as the type is an error when it is evaluated.
    fn explicit_cast(&mut self, operand: Operand, to: DataType) -> Result<Operand>;
    /// Two operands in a type they can be compared in; `what` names the operator in messages.
    fn unify(&mut self, left: Operand, right: Operand, what: &str) -> Result<(Operand, Operand)>;
    /// All operands in one type, and that type; `what` names the function in messages.
    fn unify_all(&mut self, operands: Vec<Operand>, what: &str)
    -> Result<(Vec<Operand>, DataType)>;
    /// A boolean operand; `what` names it in messages.
    fn condition(&mut self, operand: Operand, what: &str) -> Result<Operand>;
    /// A binary operator.
    fn binary(&mut self, op: BinaryOp, left: Operand, right: Operand) -> Result<Operand>;
    /// `CASE WHEN test THEN yes ELSE no END`.
    fn case(&mut self, test: Operand, yes: Operand, no: Operand) -> Result<Operand>;
    /// `operand IS NULL`, or `IS NOT NULL`.
    fn null_test(&mut self, operand: Operand, negated: bool) -> Operand;
    /// A call of a function, on arguments of the types its kernel expects.
    fn call(
        &mut self,
        function: &'static ScalarFunction,
        arguments: Vec<Operand>,
        data_type: DataType,
    ) -> Operand;
}

/// What a kernel knows of the running statement.
#[derive(Clone, Copy)]
pub struct Surroundings {
    /// Bytes of text that one result vector may hold.
    pub most_text_bytes: usize,
    /// The statement's time, in microseconds since 1970-01-01.
    pub now_us: i64,
}

/// A call over vectors.
pub struct Call<'a> {
    /// The function.
    pub function: &'static ScalarFunction,
    /// The arguments, of one length.
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

    /// The error of arguments that do not fit the kernel; the binder rules it out.
    #[cold]
    pub fn wrong_arguments(&self) -> Error {
        Error::type_error(format!("wrong arguments for {}", self.function.name()))
            .with_sqlstate("42883")
    }

    /// The arguments as plain references.
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

/// A call over the values of one row. Arguments are of the types the entry declares; an argument that
/// is missing or null reads as the type's zero.
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

    /// A double computed from the first argument; `22003` if it is infinite and the argument is not.
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

    /// The error of a result that its type cannot hold.
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
