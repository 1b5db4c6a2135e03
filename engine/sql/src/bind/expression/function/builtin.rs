//! Calls of the functions in the [`BUILTINS`] table, and of those that are other expressions under a name.

use crate::bind::binder::Binder;
use crate::bind::expression::function::call::call;
use crate::bind::expression::operator::{cast, explicit_cast, is_null};
use crate::bind::names::unsupported;
use crate::builtin::{BUILTINS, Builtin, Signature};
use crate::expr::{BinaryOp, Expr, ExprKind, ScalarFunction as F};
use nacre_types::{DataType, Error, Result, Value};

const TEXT: DataType = DataType::TEXT;

/// Names that are other expressions, with the least and most arguments.
const REWRITTEN: &[(&str, usize, usize)] = &[
    ("nvl2", 3, 3),
    ("isnull", 1, 1),
    ("zeroifnull", 1, 1),
    ("xor", 2, 2),
    ("prefix", 2, 2),
    ("glob", 2, 2),
    ("datediff", 2, 3),
    ("date_add", 2, 2),
    ("date_sub", 2, 2),
    ("adddate", 2, 2),
    ("subdate", 2, 2),
    ("time", 1, 1),
    ("timestamp", 1, 1),
    ("weekofyear", 1, 1),
    ("millisecond", 1, 1),
    ("today", 0, 0),
    ("utc_date", 0, 0),
    ("utc_timestamp", 0, 0),
    ("sysdate", 0, 0),
    ("localtime", 0, 0),
    ("current_time", 0, 0),
    ("curtime", 0, 0),
    ("unix_timestamp", 0, 0),
    ("database", 0, 0),
    ("current_database", 0, 0),
    ("schema", 0, 0),
    ("current_schema", 0, 0),
    ("version", 0, 0),
];

/// Every name, for suggestions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let listed = BUILTINS.iter().flat_map(|s| s.names.iter().copied());
    listed.chain(REWRITTEN.iter().map(|(name, ..)| *name))
}

/// Reserved for when there are JSON functions.
pub(crate) fn is_json(name: &str) -> bool {
    name.starts_with("json_") || name.starts_with("jsonb_") || name == "json" || name == "jsonb"
}

impl Binder<'_> {
    /// A call of such a function; none when there is none of that name.
    pub(crate) fn builtin(&mut self, name: &str, args: &[Expr]) -> Result<Option<Expr>> {
        let count = args.len();
        let rewritten = REWRITTEN
            .iter()
            .find(|(known, min, max)| *known == name && (*min..=*max).contains(&count));
        if rewritten.is_some() {
            return self.rewritten(name, args.to_vec()).map(Some);
        }
        let Some(signature) = BUILTINS.iter().find(|s| s.names.contains(&name)) else {
            return match REWRITTEN.iter().find(|(known, ..)| *known == name) {
                Some((_, min, max)) => Err(wrong_count(name, *min, *max, count)),
                None => Ok(None),
            };
        };
        let repeats = signature.args.ends_with('*');
        let max = if repeats { usize::MAX } else { signature.args.len() };
        if count < signature.min || count > max {
            return Err(wrong_count(name, signature.min, max, count));
        }
        let mut args = args.to_vec();
        // SQLite writes the format first.
        if signature.function == Builtin::StrFTime
            && matches!(&args[0].kind, ExprKind::Literal(Value::Text(t)) if t.contains('%'))
        {
            args.swap(0, 1);
        }
        if signature.function == Builtin::Hex && args[0].data_type.is_integer() {
            // Of a number its hexadecimal digits, as in MySQL.
            return self.builtin("to_hex", &args);
        }
        let letters = signature.args.trim_end_matches('*').bytes();
        let last = signature.args.bytes().rfind(|b| *b != b'*').unwrap_or(b't');
        let letters = letters.chain(std::iter::repeat(last));
        let bound = args
            .into_iter()
            .zip(letters)
            .map(|(arg, letter)| self.argument(signature, letter, arg));
        let bound = bound.collect::<Result<Vec<_>>>()?;
        Ok(Some(call(F::Builtin(signature.function), bound, signature.result)))
    }

    fn argument(&mut self, signature: &Signature, letter: u8, arg: Expr) -> Result<Expr> {
        let name = signature.names[0];
        match letter {
            b'd' => self.double(arg),
            b'i' => {
                if let (true, ExprKind::Literal(Value::Decimal { .. })) =
                    (arg.data_type.is_decimal(), &arg.kind)
                {
                    return cast(arg, DataType::Int64);
                }
                self.integer(arg, name)
            }
            b's' => cast(self.temporal(arg)?, DataType::Timestamp),
            b'D' => {
                let arg = self.temporal(arg)?;
                cast(cast(arg, DataType::Timestamp)?, DataType::Date)
            }
            b'b' if matches!(arg.data_type, DataType::Binary { .. }) => Ok(arg),
            _ => self.text(arg),
        }
    }

    fn rewritten(&mut self, name: &str, args: Vec<Expr>) -> Result<Expr> {
        let count = args.len();
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_else(|| Expr::literal(Value::Null, DataType::Null));
        let constant = |text: &str| Ok(Expr::literal(Value::Text(text.to_string()), TEXT));
        let now = || call(F::CurrentTimestamp, Vec::new(), DataType::Timestamp);
        match name {
            "nvl2" => {
                let (arg, yes, no) = (next(), next(), next());
                let test = self.null_test(arg, true);
                self.case_of(vec![test], vec![yes, no], true)
            }
            "isnull" => {
                let arg = next();
                Ok(self.null_test(arg, false))
            }
            "zeroifnull" => {
                let zero = Expr::literal(Value::Int(0), DataType::Int32);
                let (args, t) = self.unify_all(vec![next(), zero], name)?;
                Ok(call(F::Coalesce, args, t))
            }
            "xor" => self.binary(BinaryOp::BitXor, next(), next()),
            "prefix" => {
                let args = vec![self.text(next())?, self.text(next())?];
                Ok(call(F::StartsWith, args, DataType::Boolean))
            }
            // SQLite's `glob(pattern, text)`.
            "glob" => {
                let (pattern, arg) = (self.text(next())?, self.text(next())?);
                Ok(call(F::Builtin(Builtin::Glob), vec![arg, pattern], DataType::Boolean))
            }
            // Two dates as MySQL has it, a part and two dates as DuckDB has it.
            "datediff" if count == 2 => {
                let (to, from) = (self.day(next())?, self.day(next())?);
                self.binary(BinaryOp::Subtract, to, from)
            }
            "datediff" => {
                let args = [next(), next(), next()];
                Ok(self
                    .builtin("date_diff", &args)?
                    .unwrap_or_else(|| Expr::literal(Value::Null, DataType::Int64)))
            }
            "date_add" | "adddate" | "date_sub" | "subdate" => {
                let (start, amount) = (self.temporal(next())?, next());
                let op = if name == "date_add" || name == "adddate" {
                    BinaryOp::Add
                } else {
                    BinaryOp::Subtract
                };
                self.binary(op, start, amount)
            }
            "time" => {
                let arg = self.settle(next(), DataType::Time);
                explicit_cast(arg, DataType::Time)
            }
            "timestamp" => {
                let arg = self.settle(next(), DataType::Timestamp);
                explicit_cast(arg, DataType::Timestamp)
            }
            "weekofyear" => self.date_field(F::Extract(crate::DatePart::Week), vec![next()]),
            "millisecond" => {
                self.date_field(F::Extract(crate::DatePart::Millisecond), vec![next()])
            }
            "today" | "utc_date" => Ok(call(F::CurrentDate, Vec::new(), DataType::Date)),
            "utc_timestamp" | "sysdate" | "localtime" => Ok(now()),
            "current_time" | "curtime" => cast(now(), DataType::Time),
            "unix_timestamp" => {
                Ok(call(F::Builtin(Builtin::UnixTimestamp), vec![now()], DataType::Int64))
            }
            "database" | "current_database" => {
                constant(crate::bind::catalog::information_schema::CATALOG)
            }
            "schema" | "current_schema" => {
                constant(crate::bind::catalog::information_schema::SCHEMA)
            }
            "version" => constant(concat!("Nacre ", env!("CARGO_PKG_VERSION"))),
            _ => Err(unsupported(name)),
        }
    }

    fn null_test(&mut self, arg: Expr, negated: bool) -> Expr {
        let arg = self.settle(arg, TEXT);
        if let ExprKind::Literal(_) = arg.kind {
            return Expr::literal(Value::Boolean(is_null(&arg) != negated), DataType::Boolean);
        }
        Expr {
            kind: ExprKind::IsNull { arg: Box::new(arg), negated },
            data_type: DataType::Boolean,
        }
    }

    fn day(&mut self, arg: Expr) -> Result<Expr> {
        let arg = self.temporal(arg)?;
        cast(cast(arg, DataType::Timestamp)?, DataType::Date)
    }

    /// `TRY_CAST`.
    pub(crate) fn try_cast(&mut self, arg: Expr, to: DataType) -> Result<Expr> {
        // A parameter is what it is: cast before, it would fail.
        let arg = self.settle(arg, DataType::TEXT);
        if is_null(&arg) {
            return Ok(Expr::literal(Value::Null, to));
        }
        Ok(call(F::Builtin(Builtin::TryCast), vec![arg], to))
    }

    /// `a GLOB b` and `a REGEXP b`.
    pub(crate) fn matches(
        &mut self,
        function: Builtin,
        args: [Expr; 2],
        negated: bool,
    ) -> Result<Expr> {
        let args = args.into_iter().map(|a| self.text(a)).collect::<Result<Vec<_>>>()?;
        let found = call(F::Builtin(function), args, DataType::Boolean);
        Ok(if negated { crate::bind::expression::operator::not(found) } else { found })
    }
}

fn wrong_count(name: &str, min: usize, max: usize, count: usize) -> Error {
    let takes = match (min, max) {
        (a, b) if a == b => format!("{a}"),
        (a, usize::MAX) => format!("{a} or more"),
        (a, b) => format!("{a} to {b}"),
    };
    Error::type_error(format!("function {name} takes {takes} arguments, not {count}"))
        .with_sqlstate("42883")
}
