//! Function calls: argument counts and types (the names are in `functions`), aggregates.

use crate::analysis::decimal_shape::decimal_shape;
use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::function::aggregate::aggregate_function;
use crate::bind::expression::function::functions::Signature::*;
use crate::bind::expression::function::functions::{Entry, FUNCTIONS, INT, MANY, TEXT, names};
use crate::bind::expression::operator::{aggregates_not_allowed, cast, explicit_cast, is_null};
use crate::bind::expression::types::decimal;
use crate::bind::names::{table_name, unsupported};
use crate::bind::scope::with_suggestion;
use crate::expr::{BinaryOp, DatePart, Expr, ExprKind, ScalarFunction as F};
use crate::parse::position;
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast::{self, Expr as E};

/// Functions whose first argument may be the bare name of a date part.
const TAKES_PART: [&str; 5] = ["timestampdiff", "date_diff", "datediff", "date_part", "date_trunc"];

/// Whether a call's first argument may be the bare name of a date part. `datediff(a, b)` is of two dates.
fn takes_part(name: &str, arguments: usize) -> bool {
    TAKES_PART.contains(&name) && (arguments == 3 || !matches!(name, "date_diff" | "datediff"))
}

pub(crate) fn call(function: F, args: Vec<Expr>, data_type: DataType) -> Expr {
    Expr { kind: ExprKind::Function { function, args }, data_type }
}

fn is_binary(arg: &Expr) -> bool {
    matches!(arg.data_type, DataType::Binary { .. })
}

/// Whether a function of text is one of binary values too.
fn takes_bytes(function: F) -> bool {
    use F::*;
    matches!(
        function,
        Substring | Left | Right | Reverse | Repeat | Replace | LeftPad | RightPad | StartsWith
    )
}

/// A date part by name.
fn date_part(name: &str) -> Result<DatePart> {
    let lower = name.to_ascii_lowercase();
    Ok(match lower.strip_suffix('s').filter(|s| s.len() > 2).unwrap_or(&lower) {
        "year" => DatePart::Year,
        "quarter" => DatePart::Quarter,
        "month" => DatePart::Month,
        "week" => DatePart::Week,
        "day" => DatePart::Day,
        "dow" | "dayofweek" => DatePart::DayOfWeek,
        "doy" | "dayofyear" => DatePart::DayOfYear,
        "hour" => DatePart::Hour,
        "minute" => DatePart::Minute,
        "second" => DatePart::Second,
        "millisecond" => DatePart::Millisecond,
        "microsecond" => DatePart::Microsecond,
        "epoch" => DatePart::Epoch,
        _ => return Err(Error::unsupported(format!("date part {name} is not supported"))),
    })
}

impl<'a> Binder<'a> {
    pub(crate) fn function(&mut self, f: &'a ast::Function, env: &mut Env<'_>) -> Result<Expr> {
        let (written, at) = table_name(&f.name)?;
        let name = written.to_ascii_lowercase();
        if f.over.is_some() {
            return self.window(&name, f, env).map_err(|e| e.at(at));
        }
        if crate::bind::expression::function::window::is_window_only(&name) {
            return Err(crate::bind::expression::function::window::needs_over(&name).at(at));
        }
        if let Some(aggregate) = self.aggregate_call(&name, f, env).map_err(|e| e.at(at))? {
            return Ok(aggregate);
        }
        if !f.within_group.is_empty()
            || f.null_treatment.is_some()
            || !matches!(f.parameters, ast::FunctionArguments::None)
        {
            return Err(unsupported("this form of function call").at(at));
        }
        let (args, distinct) = arguments(&f.args).map_err(|e| e.at(at))?;
        // MySQL's name for a column of the row that met a duplicate.
        if name == "values"
            && let (Some(from), [ast::FunctionArgExpr::Expr(ast::Expr::Identifier(column))]) =
                (env.scope.qualified_from, args.as_slice())
            && let Some(new_row) = env.scope.columns.get(from)
            && let Some(expr) = env.scope.resolve(Some(&new_row.table), &column.value)?
        {
            return Ok(expr);
        }
        // With several arguments SQLite's `min` and `max` are `least` and `greatest`.
        let several = args.len() > 1 && matches!(name.as_str(), "min" | "max");
        let name = match name.as_str() {
            "min" if several => "least".to_string(),
            "max" if several => "greatest".to_string(),
            _ => name,
        };
        if distinct || f.filter.is_some() {
            let message = format!("DISTINCT and FILTER are for aggregates; {written} is not one");
            return Err(Error::syntax(message).at(at));
        }
        let count = args.len();
        let mut bound = Vec::with_capacity(count);
        for (index, arg) in args.into_iter().enumerate() {
            match arg {
                // `timestampdiff(day, a, b)` names the part without quotes.
                ast::FunctionArgExpr::Expr(E::Identifier(part))
                    if index == 0 && takes_part(&name, count) =>
                {
                    bound.push(Expr::literal(Value::Text(part.value.clone()), TEXT));
                }
                ast::FunctionArgExpr::Expr(e) => bound.push(self.expr(e, env)?),
                _ => {
                    return Err(Error::syntax(format!("function {written} does not take *")).at(at));
                }
            }
        }
        let Some(entry) = FUNCTIONS.iter().find(|e| e.name == name) else {
            if let Some(call) = self.builtin(&name, &bound).map_err(|e| e.at(at))? {
                return Ok(call);
            }
            if crate::bind::expression::function::builtin::is_json(&name) {
                return Err(unsupported(&format!("function {written}")).at(at));
            }
            let error =
                Error::not_found(format!("no function `{written}`")).with_sqlstate("42883").at(at);
            return Err(with_suggestion(
                error,
                &written,
                names().chain(crate::bind::expression::function::aggregate::names()),
            ));
        };
        if count < entry.min as usize || (entry.max != MANY && count > entry.max as usize) {
            let takes = match (entry.min, entry.max) {
                (a, b) if a == b => format!("{a}"),
                (a, MANY) => format!("{a} or more"),
                (a, b) => format!("{a} to {b}"),
            };
            let message = format!("function {written} takes {takes} arguments, not {count}");
            return Err(Error::type_error(message).with_sqlstate("42883").at(at));
        }
        self.scalar(entry, bound).map_err(|e| e.at(at))
    }

    /// A call of an aggregate; none when it is not one.
    pub(crate) fn aggregate_call(
        &mut self,
        name: &str,
        f: &'a ast::Function,
        env: &mut Env<'_>,
    ) -> Result<Option<Expr>> {
        let known = crate::bind::expression::function::aggregate::is_aggregate(name)
            || aggregate_function(name).is_some();
        if known && env.in_aggregate && env.outer_aggregates.is_some() {
            let own = std::mem::replace(&mut env.aggregates, env.outer_aggregates.take());
            env.in_aggregate = false;
            let result = self.aggregate_call(name, f, env);
            env.in_aggregate = true;
            env.outer_aggregates = std::mem::replace(&mut env.aggregates, own);
            return result;
        }
        if name == "grouping" || name == "grouping_id" {
            let (args, _) = arguments(&f.args)?;
            return match env.in_aggregate || env.aggregates.is_none() {
                true => Err(aggregates_not_allowed(env)),
                false => self.grouping_call(args, env).map(Some),
            };
        }
        if crate::bind::expression::function::aggregate::is_aggregate(name) {
            return self.other_aggregate(name, f, env).map(Some);
        }
        let Some(function) = aggregate_function(name) else { return Ok(None) };
        let (args, distinct) = arguments(&f.args)?;
        // With several arguments SQLite's `min` and `max` are `least` and `greatest`.
        if args.len() > 1 && matches!(name, "min" | "max") {
            return Ok(None);
        }
        self.aggregate(function, name, args, distinct, f.filter.as_deref(), env).map(Some)
    }

    fn scalar(&mut self, entry: &Entry, args: Vec<Expr>) -> Result<Expr> {
        match entry.signature {
            Double => {
                let args = args.into_iter().map(|a| self.double(a)).collect::<Result<Vec<_>>>()?;
                Ok(call(entry.function, args, DataType::Float64))
            }
            Number => {
                let arg = self.number(args, entry.name)?;
                let t = match arg.data_type {
                    _ if entry.function == F::Sign => INT,
                    DataType::UInt64 => DataType::UInt64,
                    DataType::Float32 => DataType::Float64,
                    t if t.is_integer() => INT,
                    t => t,
                };
                Ok(call(entry.function, vec![arg], t))
            }
            Rounded => self.rounded(entry.function, entry.name, args),
            Text(shape, result) => {
                if entry.function == F::Position {
                    return self.position(args);
                }
                let of_bytes = matches!(args.first(), Some(arg) if is_binary(arg))
                    && takes_bytes(entry.function);
                let mut bound = Vec::with_capacity(args.len());
                for (arg, kind) in args.into_iter().zip(shape.bytes()) {
                    bound.push(match kind {
                        b't' if of_bytes => self.bytes(arg)?,
                        b't' => self.text(arg)?,
                        _ => self.integer(arg, entry.name)?,
                    });
                }
                let result = if of_bytes && result == TEXT { DataType::BLOB } else { result };
                Ok(call(entry.function, bound, result))
            }
            Same => {
                let (mut args, t) = self.unify_all(args, entry.name)?;
                if entry.function == F::Coalesce {
                    // What comes after a constant is never looked at, what is null never counts.
                    args.retain(|a| !is_null(a));
                    let constant = args.iter().position(|a| matches!(a.kind, ExprKind::Literal(_)));
                    args.truncate(constant.map_or(args.len(), |at| at + 1));
                    match args.len() {
                        0 => return Ok(Expr::literal(Value::Null, t)),
                        1 if args[0].data_type == t => return Ok(args.swap_remove(0)),
                        _ => {}
                    }
                }
                Ok(call(entry.function, args, t))
            }
            DateField => self.date_field(entry.function, args),
            Special => self.special(entry, args),
        }
    }

    /// `NULLIF` has the type of its first argument, whatever the two are compared as.
    fn null_if(&mut self, value: Expr, other: Expr) -> Result<Expr> {
        let (value, other) = self.settle_pair(value, other);
        if is_null(&value) || is_null(&other) {
            return Ok(value);
        }
        let data_type = value.data_type;
        let first = self.again(&value)?;
        let (left, right) = self.unify(first, other, "nullif")?;
        if left.data_type == data_type {
            return Ok(call(F::NullIf, vec![left, right], data_type));
        }
        let equal = self.comparison(BinaryOp::Equal, left, right)?;
        self.case_of(vec![equal], vec![Expr::literal(Value::Null, data_type), value], true)
    }

    fn special(&mut self, entry: &Entry, args: Vec<Expr>) -> Result<Expr> {
        let count = args.len();
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_else(|| Expr::literal(Value::Null, DataType::Null));
        match entry.name {
            "nullif" => {
                let (value, other) = (next(), next());
                self.null_if(value, other)
            }
            "log" if count == 2 => {
                let (base, x) = (next(), next());
                self.log(base, x)
            }
            "log" => {
                let x = self.double(next())?;
                Ok(call(F::Log10, vec![x], DataType::Float64))
            }
            "log2" => self.log(Expr::literal(Value::Int(2), DataType::Int32), next()),
            "mod" => self.binary(BinaryOp::Modulo, next(), next()),
            "div" => self.binary(BinaryOp::IntegerDivide, next(), next()),
            "if" | "iif" => {
                let test = self.condition(next(), "the condition of IF")?;
                self.case_of(vec![test], vec![next(), next()], true)
            }
            "length" | "len" | "octet_length" => {
                let arg = self.settle(next(), TEXT);
                let binary = is_binary(&arg);
                let function = if binary { F::OctetLength } else { entry.function };
                let arg = if binary { arg } else { self.text(arg)? };
                Ok(call(function, vec![arg], INT))
            }
            "concat" => {
                let args = args.map(|a| self.text(a)).collect::<Result<Vec<_>>>()?;
                Ok(call(F::Concat, args, TEXT))
            }
            "instr" | "strpos" => {
                let (haystack, needle) = (next(), next());
                self.position(vec![needle, haystack])
            }
            "date_part" | "date_trunc" => {
                let part = match next().kind {
                    ExprKind::Literal(Value::Text(name)) => date_part(&name)?,
                    _ => {
                        return Err(Error::type_error(format!(
                            "{} takes the name of a date part first",
                            entry.name
                        )));
                    }
                };
                if entry.name == "date_part" {
                    return self.date_field(F::Extract(part), vec![next()]);
                }
                let arg = self.temporal(next())?;
                let t = arg.data_type;
                if !matches!(t, DataType::Date | DataType::Timestamp) {
                    return Err(Error::type_error(format!(
                        "DATE_TRUNC takes a DATE or TIMESTAMP, not {t}"
                    )));
                }
                Ok(call(F::DateTrunc(part), vec![arg], t))
            }
            "date" => {
                let arg = self.settle(next(), DataType::Timestamp);
                explicit_cast(arg, DataType::Date)
            }
            "typeof" | "pg_typeof" => {
                let arg = self.settle(next(), TEXT);
                Ok(Expr::literal(Value::Text(arg.data_type.to_string()), TEXT))
            }
            "current_date" | "curdate" => Ok(call(F::CurrentDate, Vec::new(), DataType::Date)),
            _ => Ok(call(F::CurrentTimestamp, Vec::new(), DataType::Timestamp)),
        }
    }

    fn log(&mut self, base: Expr, x: Expr) -> Result<Expr> {
        let base = self.double(base)?;
        let x = self.double(x)?;
        let ln = |e: Expr| call(F::Ln, vec![e], DataType::Float64);
        self.binary(BinaryOp::Divide, ln(x), ln(base))
    }

    pub(crate) fn power_of(&mut self, a: Expr, b: Expr) -> Result<Expr> {
        let args = vec![self.double(a)?, self.double(b)?];
        Ok(call(F::Power, args, DataType::Float64))
    }

    pub(crate) fn double(&mut self, arg: Expr) -> Result<Expr> {
        let arg = self.settle(arg, DataType::Float64);
        match arg.data_type {
            DataType::Float64 => Ok(arg),
            t if t.is_numeric() || t == DataType::Null => cast(arg, DataType::Float64),
            t => Err(Error::type_error(format!("expected a number, not {t}"))),
        }
    }

    pub(crate) fn integer(&mut self, arg: Expr, name: &str) -> Result<Expr> {
        let arg = self.settle(arg, INT);
        match arg.data_type {
            t if t.is_integer() && t != DataType::UInt64 => Ok(arg),
            DataType::Null | DataType::UInt64 => cast(arg, INT),
            t => Err(Error::type_error(format!("{name} expects an integer, not {t}"))),
        }
    }

    pub(crate) fn number(&mut self, args: Vec<Expr>, name: &str) -> Result<Expr> {
        let arg =
            args.into_iter().next().unwrap_or_else(|| Expr::literal(Value::Null, DataType::Null));
        let arg = self.settle(arg, DataType::Float64);
        match arg.data_type {
            DataType::Null => cast(arg, DataType::Float64),
            t if t.is_numeric() => Ok(arg),
            t => Err(Error::type_error(format!("{name} expects a number, not {t}"))),
        }
    }

    /// `ROUND`, `TRUNC`, `CEIL`, `FLOOR`: of integers integers, of decimals decimals of the digits asked for.
    fn rounded(&mut self, function: F, name: &str, mut args: Vec<Expr>) -> Result<Expr> {
        let digits = if args.len() > 1 { args.pop() } else { None };
        let digits = digits.map(|d| self.integer(d, name)).transpose()?;
        let x = self.number(args, name)?;
        let constant = match digits.as_ref().map(|d| &d.kind) {
            None => Some(0),
            Some(ExprKind::Literal(Value::Int(v))) => Some(*v),
            Some(_) => None,
        };
        let t = match x.data_type {
            DataType::UInt64 => DataType::UInt64,
            t if t.is_integer() => INT,
            t => match (decimal_shape(t), constant) {
                (None, _) => DataType::Float64,
                // As many digits as the value has, and one more for what rounds up.
                (Some((precision, scale)), None) => decimal(precision as u32 + 1, scale as u32),
                (Some((_, scale)), Some(n)) if n >= scale as i64 && n > 0 => t,
                (Some((precision, scale)), Some(n)) => {
                    let kept = n.clamp(0, scale as i64) as u32;
                    decimal(precision as u32 - scale as u32 + kept + 1, kept)
                }
            },
        };
        let mut args = vec![x];
        args.extend(digits);
        Ok(call(function, args, t))
    }

    pub(crate) fn temporal(&mut self, arg: Expr) -> Result<Expr> {
        let arg = self.settle(arg, DataType::Timestamp);
        match arg.data_type {
            DataType::Date | DataType::Timestamp | DataType::Time | DataType::Interval => Ok(arg),
            DataType::Null => cast(arg, DataType::Timestamp),
            DataType::Text { .. } if matches!(arg.kind, ExprKind::Literal(_)) => {
                cast(arg, DataType::Timestamp)
            }
            t => Err(Error::type_error(format!("expected a DATE or TIMESTAMP, not {t}"))),
        }
    }

    pub(crate) fn date_field(&mut self, function: F, args: Vec<Expr>) -> Result<Expr> {
        let args = args.into_iter().map(|a| self.temporal(a)).collect::<Result<Vec<_>>>()?;
        let function = match function {
            F::Extract(DatePart::Year) => F::Year,
            F::Extract(DatePart::Month) => F::Month,
            F::Extract(DatePart::Day) => F::Day,
            other => other,
        };
        // The short forms are for the calendar types; the others go the general way.
        let calendar =
            args.iter().all(|a| matches!(a.data_type, DataType::Date | DataType::Timestamp));
        let function = match function {
            F::Year if !calendar => F::Extract(DatePart::Year),
            F::Month if !calendar => F::Extract(DatePart::Month),
            F::Day if !calendar => F::Extract(DatePart::Day),
            other => other,
        };
        Ok(call(function, args, INT))
    }

    pub(crate) fn extract(
        &mut self,
        field: &ast::DateTimeField,
        arg: &'a E,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let part = match field {
            ast::DateTimeField::Custom(ident) => date_part(&ident.value)?,
            other => date_part(&other.to_string())?,
        };
        let arg = self.expr(arg, env)?;
        self.date_field(F::Extract(part), vec![arg])
    }

    pub(crate) fn rounding(
        &mut self,
        up: bool,
        arg: &'a E,
        field: &ast::CeilFloorKind,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if !matches!(field, ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime)) {
            return Err(unsupported("CEIL and FLOOR with a second argument"));
        }
        let arg = self.expr(arg, env)?;
        let (function, name) = if up { (F::Ceil, "ceil") } else { (F::Floor, "floor") };
        self.rounded(function, name, vec![arg])
    }

    pub(crate) fn position_of(
        &mut self,
        needle: &'a E,
        haystack: &'a E,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let args = vec![self.expr(needle, env)?, self.expr(haystack, env)?];
        self.position(args)
    }

    /// Where the first argument is in the second.
    fn position(&mut self, args: Vec<Expr>) -> Result<Expr> {
        let of_bytes = args.iter().all(is_binary);
        let bound = args.into_iter().map(|arg| if of_bytes { Ok(arg) } else { self.text(arg) });
        Ok(call(F::Position, bound.collect::<Result<_>>()?, INT))
    }

    /// An operand that is used as bytes.
    fn bytes(&mut self, arg: Expr) -> Result<Expr> {
        let arg = self.settle(arg, DataType::BLOB);
        if is_binary(&arg) { Ok(arg) } else { cast(arg, DataType::BLOB) }
    }

    pub(crate) fn substring(
        &mut self,
        arg: &'a E,
        from: Option<&'a E>,
        length: Option<&'a E>,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let arg = self.expr(arg, env)?;
        let (arg, result) =
            if is_binary(&arg) { (arg, DataType::BLOB) } else { (self.text(arg)?, TEXT) };
        let mut args = vec![arg];
        match from {
            Some(e) => {
                let e = self.expr(e, env)?;
                args.push(self.integer(e, "substring")?);
            }
            None => args.push(Expr::literal(Value::Int(1), INT)),
        }
        if let Some(e) = length {
            let e = self.expr(e, env)?;
            args.push(self.integer(e, "substring")?);
        }
        Ok(call(F::Substring, args, result))
    }

    pub(crate) fn trim(
        &mut self,
        side: Option<&ast::TrimWhereField>,
        what: Option<&'a E>,
        arg: &'a E,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let function = match side {
            Some(ast::TrimWhereField::Leading) => F::LeftTrim,
            Some(ast::TrimWhereField::Trailing) => F::RightTrim,
            _ => F::Trim,
        };
        let arg = self.expr(arg, env)?;
        let mut args = vec![self.text(arg)?];
        if let Some(what) = what {
            let what = self.expr(what, env)?;
            args.push(self.text(what)?);
        }
        Ok(call(function, args, TEXT))
    }
}

fn arguments(args: &ast::FunctionArguments) -> Result<(Vec<&ast::FunctionArgExpr>, bool)> {
    let list = match args {
        ast::FunctionArguments::None => return Ok((Vec::new(), false)),
        ast::FunctionArguments::Subquery(_) => {
            return Err(unsupported("a subquery as an argument"));
        }
        ast::FunctionArguments::List(list) => list,
    };
    if !list.clauses.is_empty() {
        return Err(unsupported("a clause inside a function call"));
    }
    let mut out = Vec::with_capacity(list.args.len());
    for arg in &list.args {
        match arg {
            ast::FunctionArg::Unnamed(arg) => out.push(arg),
            ast::FunctionArg::Named { name, .. } => {
                return Err(unsupported("a named argument").at(position(name.span.start)));
            }
            _ => return Err(unsupported("a named argument")),
        }
    }
    Ok((out, list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct)))
}
