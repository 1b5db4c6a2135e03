//! Expression evaluation over batches.
//!
//! A result has one value per row of the batch's vectors, selected or not. Values at unselected
//! rows are unspecified, and such rows raise no error. Strict nodes evaluate their arguments over
//! the same rows; `AND`, `OR`, `CASE` and `COALESCE` narrow the rows first ([`logic`]). A strict
//! node over constants is computed once; over one dictionary-coded argument, once per dictionary
//! entry; but for volatile functions, which are computed for each row.

mod filter;
mod logic;
mod repeated;

pub use filter::filter;
pub use nacre_function::kernel::cast::{cast_value, cast_value_of};

pub use filter::{filter_rows, true_rows, truths};
pub use nacre_function::kernel::cast::cast_vector;
pub use nacre_function::kernel::order::compare_values;
pub use nacre_function::vector::rows::ActiveRows;
use repeated::is_volatile_call;
pub use repeated::{Repeated, is_volatile, repeated};

use crate::Context;
use crate::buffer::fit;
use crate::buffer::limits::MOST_TEXT_BYTES;
use nacre_column::{Batch, Bitmap, Form, Values, Vector};
use nacre_function::entry::definition::Kernel;
use nacre_function::entry::definition::{ScalarCallee, Surroundings, Volatility};
use nacre_function::kernel::{arithmetic, cast, compare, concat, like, truth};
use nacre_function::vector::room::{Room, too_much_text};
use nacre_function::vector::validity;
use nacre_sql::expr::{Expr, ExprKind};
use nacre_table::Environment;
use nacre_types::invariant::broken;
use nacre_types::{DataType, Error, Result, Value};
use std::sync::Arc;

/// The value of an expression for each row of the batch's vectors; unspecified at unselected rows.
pub fn evaluate(expr: &Expr, batch: &Batch, context: &Context<'_>) -> Result<Vector> {
    let shared = evaluate_shared(expr, batch, context)?;
    Ok(Arc::try_unwrap(shared).unwrap_or_else(|shared| (*shared).clone()))
}

/// Like [`evaluate`], without copying if the expression is a column of the batch.
pub fn evaluate_shared(expr: &Expr, batch: &Batch, context: &Context<'_>) -> Result<Arc<Vector>> {
    Evaluator::new(batch, context).eval(expr, rows_of(batch))
}

/// The value of an expression that needs no statement, such as that of a generated column, for each
/// row of the batch. `now_us` is the time, in microseconds since 1970.
pub fn evaluate_alone(expr: &Expr, batch: &Batch, now_us: i64) -> Result<Vector> {
    let surroundings = Surroundings { most_text_bytes: MOST_TEXT_BYTES, now_us, random: None };
    let (parameters, environment, repeated) = (&[], None, None);
    let evaluator = Evaluator { batch, parameters, surroundings, environment, repeated };
    let shared = evaluator.eval(expr, rows_of(batch))?;
    Ok(Arc::try_unwrap(shared).unwrap_or_else(|shared| (*shared).clone()))
}

fn rows_of(batch: &Batch) -> ActiveRows<'_> {
    ActiveRows { len: batch.rows, selection: batch.selection.as_deref() }
}

/// The value of an expression without columns.
pub fn evaluate_constant(expr: &Expr, context: &Context<'_>) -> Result<Value> {
    let batch = Batch::new(Vec::new(), 1);
    Ok(evaluate_shared(expr, &batch, context)?.value(0))
}

/// Evaluation over one batch.
pub struct Evaluator<'a> {
    batch: &'a Batch,
    parameters: &'a [Value],
    surroundings: Surroundings,
    /// The source of random bits.
    environment: Option<&'a Environment>,
    /// What is evaluated once.
    repeated: Option<Repeated<'a>>,
}

impl<'a> Evaluator<'a> {
    /// Evaluation in a statement.
    pub fn new(batch: &'a Batch, context: &Context<'a>) -> Evaluator<'a> {
        let most_text_bytes = context.most_text_bytes();
        let surroundings = Surroundings { most_text_bytes, now_us: context.now_us, random: None };
        let environment = Some(context.transaction.environment());
        let parameters = context.parameters;
        Evaluator { batch, parameters, surroundings, environment, repeated: None }
    }

    /// Evaluates some expressions once.
    pub fn with(self, repeated: Repeated<'a>) -> Evaluator<'a> {
        Evaluator { repeated: Some(repeated), ..self }
    }
}

impl Evaluator<'_> {
    /// Evaluates over some rows.
    pub fn eval(&self, expr: &Expr, rows: ActiveRows<'_>) -> Result<Arc<Vector>> {
        if rows.is_empty() {
            return Ok(Arc::new(Vector::constant(expr.data_type, &Value::Null, rows.len)));
        }
        match &expr.kind {
            ExprKind::Column(index) => match self.batch.columns.get(*index) {
                Some(column) => Ok(column.clone()),
                None => Err(Error::type_error(format!("no column {index} in the input"))),
            },
            ExprKind::Literal(value) => {
                Ok(Arc::new(Vector::constant(expr.data_type, value, rows.len)))
            }
            ExprKind::Parameter(index) => self.parameter(*index, expr.data_type, rows.len),
            ExprKind::And(list) => self.junction(list, rows, false),
            ExprKind::Or(list) => self.junction(list, rows, true),
            ExprKind::Case { branches, otherwise } => {
                self.case(branches, otherwise.as_deref(), expr.data_type, rows)
            }
            ExprKind::Function { function, args }
                if function.listed().is_some_and(|f| matches!(f.kernel, Kernel::FirstNonNull)) =>
            {
                self.coalesce(args, expr.data_type, rows)
            }
            ExprKind::Placeholder(of) => {
                broken(format_args!("a plan holds the placeholder {of:?}"))
            }
            _ => match &self.repeated {
                None => self.strict(expr, rows),
                Some(repeated) => repeated.whole(expr, rows, || self.strict(expr, rows)),
            },
        }
    }

    /// Evaluates an exact number over some rows. If all values fit, the vector is of a decimal of 18 digits with
    /// the scale of the expression's type: half as wide, and computed faster.
    pub fn eval_short(&self, expr: &Expr, rows: ActiveRows<'_>) -> Result<Arc<Vector>> {
        let is_wide = matches!(expr.data_type, DataType::Decimal { precision: 19.., .. });
        match is_wide && rows.is_dense() && !rows.is_empty() {
            true => self.short(expr, rows).map_or_else(|| self.eval(expr, rows), Ok),
            false => self.eval(expr, rows),
        }
    }

    /// The value if it fits.
    fn short(&self, expr: &Expr, rows: ActiveRows<'_>) -> Option<Arc<Vector>> {
        if expr.data_type.is_integer()
            || matches!(expr.data_type, DataType::Decimal { precision: ..=18, .. })
        {
            // An error comes again where the whole expression is evaluated.
            return self.eval(expr, rows).ok();
        }
        let (op, left, right) = match &expr.kind {
            // What fits in 18 digits fits in more.
            ExprKind::Cast(inner) if inner.data_type.scale() == expr.data_type.scale() => {
                let is_exact = inner.data_type.is_integer() || inner.data_type.is_decimal();
                return if is_exact { self.short(inner, rows) } else { None };
            }
            ExprKind::Binary { op, left, right } => (*op, left, right),
            _ => return None,
        };
        let compute = || {
            let (left, right) = (self.short(left, rows)?, self.short(right, rows)?);
            arithmetic::short(op, &left, &right, expr.data_type.scale()).map(Arc::new)
        };
        match &self.repeated {
            None => compute(),
            Some(repeated) => repeated.short(expr, rows, compute),
        }
    }

    fn parameter(&self, index: usize, data_type: DataType, len: usize) -> Result<Arc<Vector>> {
        let Some(value) = self.parameters.get(index) else {
            return Err(Error::type_error(format!("no value for parameter {}", index + 1))
                .with_sqlstate("07001"));
        };
        // Callers have already cast parameters; this cast is a safeguard.
        let constant = if value.is_null() || cast::is_of_type(value, data_type) {
            Vector::constant(data_type, value, len)
        } else {
            Vector::constant(data_type, &cast_value(value, data_type)?, len)
        };
        Ok(Arc::new(constant))
    }

    fn strict(&self, expr: &Expr, rows: ActiveRows<'_>) -> Result<Arc<Vector>> {
        let mut children = Vec::new();
        expr.for_each_child(&mut |child| children.push(child));
        let args =
            children.into_iter().map(|child| self.eval(child, rows)).collect::<Result<Vec<_>>>()?;
        let mut dictionary = None;
        let mut flat = false;
        for (at, arg) in args.iter().enumerate() {
            match arg.form() {
                Form::Constant(_) => {}
                Form::Dictionary { codes, values } if dictionary.is_none() => {
                    dictionary = Some((at, codes, values))
                }
                _ => flat = true,
            }
        }
        // A volatile function has a value of its own for each row, whatever its arguments are.
        if flat || is_volatile_call(expr) {
            return self.apply(expr, &args, rows).map(Arc::new);
        }
        match dictionary {
            None => {
                let ones: Vec<_> = args.iter().map(|arg| Arc::new(arg.take(&[0]))).collect();
                let one = self.apply(expr, &ones, ActiveRows::all(1))?;
                Ok(Arc::new(Vector::constant(expr.data_type, &one.value(0), rows.len)))
            }
            Some((at, codes, values)) if values.len() <= rows.count() && !values.is_empty() => {
                match self.once_an_entry(expr, &args, at, values) {
                    Some(result) => self.spread(&result, codes, args[at].validity()).map(Arc::new),
                    None => self.apply(expr, &args, rows).map(Arc::new),
                }
            }
            Some(_) => self.apply(expr, &args, rows).map(Arc::new),
        }
    }

    /// Random bits for a call of a volatile function.
    fn random(&self, function: &ScalarCallee) -> Option<[u64; 2]> {
        match function.volatility() {
            Volatility::Volatile => self.environment.map(Environment::random_bits),
            Volatility::Immutable | Volatility::Stable => None,
        }
    }

    /// Evaluates once per dictionary entry. `None` if that fails, because the failing entry may
    /// belong to no selected row, or if null input may give a non-null result.
    fn once_an_entry(
        &self,
        expr: &Expr,
        args: &[Arc<Vector>],
        at: usize,
        values: &Arc<Values>,
    ) -> Option<Vector> {
        let len = values.len();
        let entries: Vec<_> = args
            .iter()
            .enumerate()
            .map(|(index, arg)| {
                let one = if index == at {
                    Vector::new(arg.data_type(), (**values).clone(), None)
                } else {
                    arg.take(&vec![0; len])
                };
                Arc::new(one)
            })
            .collect();
        let has_nulls = args[at].validity().is_some();
        if has_nulls && !null_in_null_out(expr, at) {
            return None;
        }
        self.apply(expr, &entries, ActiveRows::all(len)).ok()
    }

    /// Expands values computed per dictionary entry to one per row.
    fn spread(&self, entries: &Vector, codes: &[u32], validity: Option<&Bitmap>) -> Result<Vector> {
        let most = self.surroundings.most_text_bytes;
        if let Form::Flat(Values::Bytes(texts)) = entries.form()
            && !fit(texts, codes.iter().copied(), most)
        {
            return Err(too_much_text(most));
        }
        let row_values = entries.take(codes);
        Ok(match validity {
            None => row_values,
            Some(validity) => validity::mask(row_values, validity),
        })
    }

    /// Computes a strict node from its arguments, which all have `rows.len` values.
    fn apply(&self, expr: &Expr, args: &[Arc<Vector>], rows: ActiveRows<'_>) -> Result<Vector> {
        match (&expr.kind, args) {
            (ExprKind::Cast(_), [arg]) => cast::cast_vector(arg, expr.data_type, rows),
            (ExprKind::Not(_), [arg]) => Ok(truth::not(arg)),
            (ExprKind::Negate(_), [arg]) => arithmetic::negate(arg, expr.data_type, rows),
            (ExprKind::IsNull { negated, .. }, [arg]) => Ok(truth::is_null(arg, *negated)),
            (ExprKind::IsBoolean { value, negated, .. }, [arg]) => {
                Ok(truth::is_boolean(arg, *value, *negated))
            }
            (ExprKind::Binary { op, .. }, [left, right]) => {
                if op.is_comparison() {
                    compare::compare(*op, left, right, rows)
                } else if *op == nacre_sql::expr::BinaryOp::Concat {
                    let room = Room::new(self.surroundings.most_text_bytes);
                    concat::concat(&[&**left, &**right], expr.data_type, rows, room)
                } else {
                    arithmetic::binary(*op, left, right, expr.data_type, rows)
                }
            }
            (ExprKind::InList { negated, .. }, [arg, list @ ..]) => {
                compare::in_list(arg, list, *negated, rows)
            }
            (ExprKind::Like { escape, negated, case_insensitive, .. }, [arg, pattern]) => {
                like::like(arg, pattern, *escape, *negated, *case_insensitive, rows)
            }
            (ExprKind::Function { function, .. }, _) => {
                let random = self.random(function);
                let surroundings = Surroundings { random, ..self.surroundings };
                function.evaluate(args, expr.data_type, rows, surroundings)
            }
            _ => Err(Error::unsupported("this expression")),
        }
    }
}

/// Whether a strict node is null where its argument `at` is.
fn null_in_null_out(expr: &Expr, at: usize) -> bool {
    use nacre_sql::expr::BinaryOp;
    match &expr.kind {
        ExprKind::IsNull { .. } | ExprKind::IsBoolean { .. } => false,
        // A null candidate does not decide: another one may match.
        ExprKind::InList { .. } => at == 0,
        ExprKind::Binary { op, .. } => !matches!(op, BinaryOp::NotDistinct | BinaryOp::Distinct),
        ExprKind::Function { function, .. } => !function.nulls().are_seen(),
        _ => true,
    }
}
