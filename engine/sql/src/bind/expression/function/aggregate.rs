//! Aggregates: the standard five, and the others: their names, arguments and results. Those of several arguments, or with
//! an order, take them as one [`ScalarFunction::Row`], so that everybody else still sees one argument.

use crate::bind::binder::Binder;
use crate::bind::environment::{AGGREGATE_BASE, Env};
use crate::bind::expression::cast::cast;
use crate::bind::expression::operator::connect;
use crate::bind::names::{place, unsupported};
use crate::expr::{Aggregate, AggregateFunction as A, Expr, ExprKind, Moment};
use nacre_function::decimal_type::{decimal, decimal_shape};
use nacre_function::scalar::any::{COALESCE, ROW};
use nacre_function::scalar::numbers::{EXP, LN};
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast;

/// How an aggregate is made.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Of numbers as doubles, so many of them.
    Doubles(A, usize),
    /// Of integers.
    Integers(A),
    /// Of one value of any type, to that type, in an order.
    Value(A),
    /// Of a value, and the key that decides.
    ByKey(A),
    /// Least or greatest truth value.
    Truth(A),
    Text,
    /// Of a value and a fraction; `WITHIN GROUP` has the fraction first.
    Quantile {
        discrete: bool,
    },
    Median,
    /// Another aggregate, or an expression over one.
    Rewritten,
}

const fn moment(m: Moment, args: usize) -> Form {
    Form::Doubles(A::Moment(m), args)
}

/// Names, and how they are called.
const AGGREGATES: &[(&str, Form)] = &[
    ("stddev", moment(Moment::DeviationSample, 1)),
    ("stddev_samp", moment(Moment::DeviationSample, 1)),
    ("std", moment(Moment::DeviationPopulation, 1)),
    ("stddev_pop", moment(Moment::DeviationPopulation, 1)),
    ("variance", moment(Moment::VarianceSample, 1)),
    ("var_samp", moment(Moment::VarianceSample, 1)),
    ("var_pop", moment(Moment::VariancePopulation, 1)),
    ("covar_pop", moment(Moment::CovariancePopulation, 2)),
    ("covar_samp", moment(Moment::CovarianceSample, 2)),
    ("corr", moment(Moment::Correlation, 2)),
    ("regr_slope", moment(Moment::Slope, 2)),
    ("regr_intercept", moment(Moment::Intercept, 2)),
    ("regr_r2", moment(Moment::R2, 2)),
    ("skewness", moment(Moment::Skewness, 1)),
    ("kurtosis", moment(Moment::Kurtosis, 1)),
    ("product", Form::Doubles(A::Product, 1)),
    ("bit_and", Form::Integers(A::BitAnd)),
    ("bit_or", Form::Integers(A::BitOr)),
    ("bit_xor", Form::Integers(A::BitXor)),
    ("any_value", Form::Value(A::First)),
    ("arbitrary", Form::Value(A::First)),
    ("first", Form::Value(A::First)),
    ("last", Form::Value(A::Last)),
    ("mode", Form::Value(A::Mode)),
    ("arg_min", Form::ByKey(A::ArgMin)),
    ("min_by", Form::ByKey(A::ArgMin)),
    ("arg_max", Form::ByKey(A::ArgMax)),
    ("max_by", Form::ByKey(A::ArgMax)),
    ("bool_and", Form::Truth(A::Min)),
    ("every", Form::Truth(A::Min)),
    ("bool_or", Form::Truth(A::Max)),
    ("group_concat", Form::Text),
    ("string_agg", Form::Text),
    ("listagg", Form::Text),
    ("median", Form::Median),
    ("quantile_cont", Form::Quantile { discrete: false }),
    ("percentile_cont", Form::Quantile { discrete: false }),
    ("quantile_disc", Form::Quantile { discrete: true }),
    ("percentile_disc", Form::Quantile { discrete: true }),
    ("quantile", Form::Quantile { discrete: true }),
    ("total", Form::Rewritten),
    ("count_if", Form::Rewritten),
    ("countif", Form::Rewritten),
    ("approx_count_distinct", Form::Rewritten),
    ("geomean", Form::Rewritten),
    ("geometric_mean", Form::Rewritten),
    ("regr_count", Form::Rewritten),
    ("regr_avgx", Form::Rewritten),
    ("regr_avgy", Form::Rewritten),
];

/// Every name, for suggestions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ["count", "sum", "avg", "mean", "min", "max", "grouping", "grouping_id"]
        .into_iter()
        .chain(AGGREGATES.iter().map(|(name, _)| *name))
}

pub(crate) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.iter().any(|(known, _)| *known == name)
}

/// The standard aggregates.
pub(crate) fn aggregate_function(name: &str) -> Option<A> {
    Some(match name {
        "count" => A::Count,
        "sum" => A::Sum,
        "avg" | "mean" => A::Avg,
        "min" => A::Min,
        "max" => A::Max,
        _ => return None,
    })
}

impl<'a> Binder<'a> {
    pub(crate) fn aggregate(
        &mut self,
        function: A,
        name: &str,
        args: Vec<&'a ast::FunctionArgExpr>,
        distinct: bool,
        filter: Option<&'a ast::Expr>,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        self.begin_aggregate(env)?;
        let asked = self.asked();
        env.in_aggregate = true;
        let mut arg = match args.as_slice() {
            [ast::FunctionArgExpr::Wildcard] if function == A::Count && !distinct => None,
            [] if function == A::Count && !distinct => None,
            [ast::FunctionArgExpr::Expr(e)] => Some(self.typed(e, env)?),
            list => {
                let message = format!("{name} takes one argument, not {}", list.len());
                return Err(Error::type_error(message).with_sqlstate("42883"));
            }
        };
        let mut filter = match filter {
            Some(e) => {
                let bound = self.expr(e, env)?;
                Some(self.condition(bound, "FILTER").map_err(|error| error.at(place(e)))?)
            }
            None => None,
        };
        env.in_aggregate = false;
        let mut exprs: Vec<&mut Expr> = arg.iter_mut().chain(&mut filter).collect();
        let owner = self.owner(&mut exprs, &asked, env)?;
        self.owned(owner, env, |_, env| standard(function, name, (arg, distinct, filter), env))
    }

    /// A call of one of the aggregates of this file.
    pub(crate) fn other_aggregate(
        &mut self,
        name: &str,
        f: &'a ast::Function,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        self.begin_aggregate(env)?;
        let asked = self.asked();
        env.in_aggregate = true;
        let parts = self.parts(name, f, env);
        env.in_aggregate = false;
        let mut parts = parts?;
        let form = AGGREGATES
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(Form::Rewritten, |(_, form)| *form);
        let keys = parts.keys.iter_mut().map(|key| &mut key.expr);
        let mut exprs: Vec<&mut Expr> =
            parts.args.iter_mut().chain(keys).chain(&mut parts.filter).collect();
        let owner = self.owner(&mut exprs, &asked, env)?;
        self.owned(owner, env, |b, env| b.make(name, form, parts, env))
    }

    fn parts(&mut self, name: &str, f: &'a ast::Function, env: &mut Env<'_>) -> Result<Parts> {
        let ast::FunctionArguments::List(list) = &f.args else { return Err(wrong_count(name)) };
        let mut order: Vec<&ast::OrderByExpr> = f.within_group.iter().collect();
        let mut args = Vec::new();
        for arg in &list.args {
            match arg {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => {
                    args.push(self.typed(e, env)?)
                }
                _ => return Err(wrong_count(name)),
            }
        }
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::OrderBy(items) => order.extend(items),
                ast::FunctionArgumentClause::Separator(separator) => {
                    args.push(self.typed_value(separator)?);
                }
                _ => return Err(unsupported("this clause inside an aggregate")),
            }
        }
        let mut keys = Vec::new();
        for item in order {
            let expr = self.typed(&item.expr, env)?;
            keys.push(crate::bind::query::query_expression::sort_key(expr, item)?);
        }
        let filter = match f.filter.as_deref() {
            Some(e) => {
                let bound = self.expr(e, env)?;
                Some(self.condition(bound, "FILTER").map_err(|error| error.at(place(e)))?)
            }
            None => None,
        };
        let distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        Ok(Parts { args, keys, filter, distinct, within: !f.within_group.is_empty() })
    }

    fn typed_value(&mut self, value: &ast::ValueWithSpan) -> Result<Expr> {
        match &value.value {
            ast::Value::SingleQuotedString(text) => {
                Ok(Expr::literal(Value::Text(text.clone()), DataType::TEXT))
            }
            _ => Err(Error::syntax("SEPARATOR takes a text")),
        }
    }

    fn make(
        &mut self,
        name: &str,
        form: Form,
        mut parts: Parts,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let wanted = match form {
            Form::Doubles(_, n) => n..=n,
            Form::ByKey(_) => 2..=2,
            Form::Text => 1..=2,
            Form::Quantile { .. } if !parts.within => 2..=2,
            Form::Rewritten if name.starts_with("regr") => 2..=2,
            _ => 1..=1,
        };
        // `mode() WITHIN GROUP (ORDER BY x)` has its argument there.
        if parts.within && parts.args.is_empty() && matches!(form, Form::Value(A::Mode)) {
            parts.args.extend(parts.keys.drain(..).map(|k| k.expr));
        }
        if !wanted.contains(&parts.args.len()) {
            return Err(wrong_count(name));
        }
        let mut args = std::mem::take(&mut parts.args);
        let second = if args.len() > 1 { args.pop() } else { None };
        let Some(first) = args.pop() else { return Err(wrong_count(name)) };
        if first.data_type == DataType::Interval
            && (parts.distinct || name == "approx_count_distinct")
        {
            return Err(unsupported("DISTINCT of an INTERVAL"));
        }
        match form {
            Form::Doubles(function, _) => {
                let first = self.double(first)?;
                // Dependent first, independent second: `regr_slope(y, x)`.
                let row = match second {
                    Some(x) => vec![self.double(x)?, first],
                    None => vec![first],
                };
                Ok(parts.finish(env, function, row, DataType::Float64))
            }
            Form::Integers(function) => {
                let arg = cast(self.integer(first, name)?, DataType::Int64)?;
                Ok(parts.finish(env, function, vec![arg], DataType::Int64))
            }
            // Any value will do, and the smallest needs no memory.
            Form::Value(A::First) if name != "first" && parts.keys.is_empty() => {
                parts.distinct = false;
                Ok(parts.plain(env, A::Min, Some(first)))
            }
            Form::Value(function) => {
                let t = first.data_type;
                Ok(parts.finish(env, function, vec![first], t))
            }
            Form::ByKey(function) => {
                let (key, t) = (second.unwrap_or_else(|| first.clone()), first.data_type);
                Ok(parts.finish(env, function, vec![first, key], t))
            }
            Form::Truth(function) => {
                let arg = self.condition(first, name)?;
                parts.distinct = false;
                Ok(parts.plain(env, function, Some(arg)))
            }
            Form::Text => {
                let comma = || Expr::literal(Value::Text(",".into()), DataType::TEXT);
                let separator = self.text(second.unwrap_or_else(comma))?;
                let row = vec![self.text(first)?, separator];
                Ok(parts.finish(env, A::StringAgg, row, DataType::TEXT))
            }
            Form::Median => {
                let half = Expr::literal(Value::Float(0.5), DataType::Float64);
                let row = vec![self.number(first, name)?, half];
                let function = A::Quantile { discrete: false, descending: false };
                Ok(parts.finish(env, function, row, DataType::Float64))
            }
            Form::Quantile { discrete } => {
                let (arg, fraction, descending) = match second {
                    Some(fraction) => (first, fraction, false),
                    None => match parts.keys.pop() {
                        Some(key) if parts.keys.is_empty() => (key.expr, first, key.descending),
                        _ => {
                            return Err(Error::syntax(format!(
                                "{name} needs WITHIN GROUP (ORDER BY …)"
                            )));
                        }
                    },
                };
                parts.keys.clear();
                let fraction = self.double(fraction)?;
                let (arg, t) = if discrete {
                    let t = arg.data_type;
                    (arg, t)
                } else {
                    (self.number(arg, name)?, DataType::Float64)
                };
                Ok(parts.finish(env, A::Quantile { discrete, descending }, vec![arg, fraction], t))
            }
            Form::Rewritten => self.rewritten_aggregate(name, first, second, parts, env),
        }
    }

    fn rewritten_aggregate(
        &mut self,
        name: &str,
        first: Expr,
        second: Option<Expr>,
        mut parts: Parts,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if parts.distinct
            && !matches!(name, "total" | "geomean" | "geometric_mean" | "approx_count_distinct")
        {
            return Err(unsupported(&format!("DISTINCT in {name}")));
        }
        let present = |e: &Expr| Expr {
            kind: ExprKind::IsNull { arg: Box::new(e.clone()), negated: true },
            data_type: DataType::Boolean,
        };
        match (name, second) {
            ("total", _) => {
                let arg = self.double(first)?;
                let sum = parts.plain(env, A::Sum, Some(arg));
                let zero = Expr::literal(Value::Float(0.0), DataType::Float64);
                Ok(Expr::call(&COALESCE, vec![sum, zero], DataType::Float64))
            }
            ("count_if" | "countif", _) => {
                let condition = self.condition(first, name)?;
                parts.only(condition);
                Ok(parts.plain(env, A::CountStar, None))
            }
            ("approx_count_distinct", _) => {
                parts.distinct = true;
                Ok(parts.plain(env, A::Count, Some(first)))
            }
            ("geomean" | "geometric_mean", _) => {
                let arg = self.double(first)?;
                let logarithm = Expr::call(&LN, vec![arg], DataType::Float64);
                let mean = parts.plain(env, A::Avg, Some(logarithm));
                Ok(Expr::call(&EXP, vec![mean], DataType::Float64))
            }
            ("regr_count", Some(x)) => {
                parts.only(connect(true, vec![present(&first), present(&x)]));
                Ok(parts.plain(env, A::CountStar, None))
            }
            (_, Some(x)) => {
                let (y, x) = (self.double(first)?, self.double(x)?);
                let (arg, other) = if name == "regr_avgx" { (x, y) } else { (y, x) };
                parts.only(present(&other));
                Ok(parts.plain(env, A::Avg, Some(arg)))
            }
            _ => Err(wrong_count(name)),
        }
    }
}

/// What a call consists of.
struct Parts {
    args: Vec<Expr>,
    keys: Vec<crate::SortKey>,
    filter: Option<Expr>,
    distinct: bool,
    /// The order came as `WITHIN GROUP`.
    within: bool,
}

impl Parts {
    /// Only rows for which this holds.
    fn only(&mut self, condition: Expr) {
        let both = self.filter.take().into_iter().chain([condition]).collect();
        self.filter = Some(connect(true, both));
    }

    /// An aggregate of one argument or none.
    fn plain(self, env: &mut Env<'_>, function: A, arg: Option<Expr>) -> Expr {
        let data_type = match (function, &arg) {
            (A::Count | A::CountStar, _) => DataType::Int64,
            (_, Some(arg)) => arg.data_type,
            _ => DataType::Null,
        };
        push(
            env,
            Aggregate { function, arg, distinct: self.distinct, filter: self.filter, data_type },
        )
    }

    /// An aggregate of a row of arguments and sort keys.
    fn finish(
        self,
        env: &mut Env<'_>,
        function: A,
        mut row: Vec<Expr>,
        data_type: DataType,
    ) -> Expr {
        for key in self.keys {
            let flags = i64::from(key.descending) | i64::from(key.nulls_first) << 1;
            row.push(key.expr);
            row.push(Expr::literal(Value::Int(flags), DataType::Int64));
        }
        let first = row.first().map_or(DataType::Null, |e| e.data_type);
        let arg = Some(Expr::call(&ROW, row, first));
        push(
            env,
            Aggregate { function, arg, distinct: self.distinct, filter: self.filter, data_type },
        )
    }
}

/// One of the standard five.
fn standard(
    function: A,
    name: &str,
    (arg, distinct, filter): (Option<Expr>, bool, Option<Expr>),
    env: &mut Env<'_>,
) -> Result<Expr> {
    use A::{Avg, Count, CountStar, Max, Min, Sum};
    let (function, arg) = match arg {
        None => (CountStar, None),
        Some(arg) => (function, Some(arg)),
    };
    let t = arg.as_ref().map_or(DataType::Null, |a| a.data_type);
    let (arg, data_type) = match function {
        CountStar | Count => (arg, DataType::Int64),
        Min | Max => match t {
            DataType::Interval => return Err(unsupported("MIN and MAX of INTERVAL")),
            _ => (arg, t),
        },
        Sum | Avg if t == DataType::Null => {
            let null = arg.map(|a| cast(a, DataType::Float64)).transpose()?;
            (null, DataType::Float64)
        }
        Sum | Avg => {
            let Some((_, scale)) = decimal_shape(t) else {
                if t.is_float() {
                    return Ok(push(
                        env,
                        Aggregate { function, arg, distinct, filter, data_type: DataType::Float64 },
                    ));
                }
                return Err(Error::type_error(format!("no aggregate {name} for {t}"))
                    .with_sqlstate("42883"));
            };
            let digits = if function == Avg { (scale as u32 + 6).min(38) } else { scale as u32 };
            (arg, decimal(38, digits))
        }
        _ => return Err(unsupported(name)),
    };
    // DISTINCT changes nothing for the smallest and the largest.
    let distinct = distinct && !matches!(function, Min | Max);
    if distinct && t == DataType::Interval {
        return Err(unsupported("DISTINCT of an INTERVAL"));
    }
    Ok(push(env, Aggregate { function, arg, distinct, filter, data_type }))
}

fn wrong_count(name: &str) -> Error {
    Error::type_error(format!("wrong number of arguments for aggregate {name}"))
        .with_sqlstate("42883")
}

/// The column an aggregate will be; equal aggregates are computed once.
pub(crate) fn push(env: &mut Env<'_>, aggregate: Aggregate) -> Expr {
    let data_type = aggregate.data_type;
    let list = env.aggregates.get_or_insert_default();
    let at = list.iter().position(|a| *a == aggregate).unwrap_or_else(|| {
        list.push(aggregate);
        list.len() - 1
    });
    Expr::column(AGGREGATE_BASE + at, data_type)
}
