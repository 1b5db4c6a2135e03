//! Functions in `FROM`: `range`, `generate_series`, and those of JSON documents.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::cast::cast;
use crate::bind::names::{place, unsupported};
use crate::bind::query::json_table::json_function;
use crate::bind::scope::Scope;
use crate::expr::{Expr, ExprKind};
use crate::parse::position;
use crate::plan::node::series::Series;
use crate::plan::{Field, Plan};
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr};

impl<'a> Binder<'a> {
    /// Binds a function in `FROM`. Returns its plan, its name, and whether an alias names its
    /// column.
    pub(crate) fn table_function(
        &mut self,
        name: &ast::ObjectName,
        args: &'a [FunctionArg],
        with_ordinality: bool,
    ) -> Result<(Plan, &'static str, bool)> {
        let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
            return Err(unsupported("a qualified name of a table function"));
        };
        let at = position(ident.span.start);
        let names = ["range", "generate_series"];
        let known = names.into_iter().find(|known| ident.value.eq_ignore_ascii_case(known));
        let of_json = json_function(&ident.value);
        let lower = ident.value.to_ascii_lowercase();
        if let Some(pragma) = lower.strip_prefix("pragma_") {
            let plan = match args {
                [] => self.pragma_rows(pragma, None),
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] => {
                    let scope = Scope::default();
                    let mut env = Env::new(&scope, "the arguments of a table function");
                    let of = self.expr(arg, &mut env)?;
                    self.pragma_rows_of(pragma, of)
                }
                _ => Err(unsupported("this form of argument")),
            };
            return Ok((plan.map_err(|e| e.at(at))?, "pragma", false));
        }
        if known.is_none() && of_json.is_none() {
            return Err(unsupported(&format!("the table function {}", ident.value)).at(at));
        }
        let scope = Scope::default();
        let mut env = Env::new(&scope, "the arguments of a table function");
        let mut bound = Vec::with_capacity(3);
        for arg in args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg else {
                return Err(unsupported("this form of argument").at(at));
            };
            let expr = self.expr(arg, &mut env)?;
            if of_json.is_none() && depends(&expr) {
                let what = "an argument of a table function that is not constant";
                return Err(unsupported(what).at(place(arg)));
            }
            bound.push(expr);
        }
        if let Some((function, name)) = of_json {
            let plan = self.json_rows(function, name, bound, with_ordinality);
            return Ok((plan.map_err(|e| e.at(at))?, name, function.is_named_by_alias()));
        }
        if with_ordinality {
            return Err(unsupported("WITH ORDINALITY").at(at));
        }
        let name = known.unwrap_or_default();
        let number = |n| Expr::literal(Value::Int(n), DataType::Int64);
        let mut bound = bound.into_iter();
        let [start, stop, step] = match (bound.next(), bound.next(), bound.next(), bound.next()) {
            (Some(stop), None, ..) => [number(0), stop, number(1)],
            (Some(start), Some(stop), None, _) => [start, stop, number(1)],
            (Some(start), Some(stop), Some(step), None) => [start, stop, step],
            _ => return Err(Error::syntax(format!("{name} takes 1 to 3 arguments")).at(at)),
        };
        let is_time = |e: &Expr| e.data_type.is_moment() && e.data_type != DataType::Time;
        let has_zone = [&start, &stop].iter().any(|e| e.data_type == DataType::TimestampTz);
        let times = is_time(&start) || is_time(&stop) || step.data_type == DataType::Interval;
        let (point, distance) = match times {
            true if has_zone => (DataType::TimestampTz, DataType::Interval),
            true => (DataType::Timestamp, DataType::Interval),
            false => (DataType::Int64, DataType::Int64),
        };
        let mut typed = |e: Expr, to: DataType| {
            let e = self.decide(e, to);
            let fits = match to {
                DataType::Int64 => e.data_type.is_integer(),
                DataType::Interval => e.data_type == to,
                _ => is_time(&e) || e.data_type.is_text(),
            };
            if !fits && e.data_type != DataType::Null {
                let message =
                    format!("{name} takes numbers, or two points in time and an interval");
                return Err(Error::type_error(message).with_sqlstate("42883").at(at));
            }
            cast(e, to)
        };
        let (start, stop) = (typed(start, point)?, typed(stop, point)?);
        let step = typed(step, distance)?;
        let field = Field { name: name.to_string(), data_type: point, nullable: false };
        let inclusive = name == "generate_series";
        Ok((Plan::Node(Box::new(Series { start, stop, step, inclusive, field })), name, true))
    }
}

/// Whether a value depends on a row, of this query or an enclosing one, or on a subquery.
fn depends(expr: &Expr) -> bool {
    if matches!(expr.kind, ExprKind::Outer { .. } | ExprKind::Subquery(_)) {
        return true;
    }
    let mut found = false;
    expr.for_each_child(&mut |e| found |= depends(e));
    found
}
