//! Calls of aggregates: arguments, order and filter. The registry entry of the aggregate types the
//! call.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::function::window;
use crate::bind::expression::operator::nested_aggregates;
use crate::bind::expression::types;
use crate::bind::names::{place, table_name, unsupported};
use crate::bind::placeholder::{has_aggregate, has_window};
use crate::bind::query::query_expression::sort_key;
use crate::expr::Expr;
use crate::plan::SortKey;
use nacre_builtin::registry;
use nacre_types::invariant::broken;
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast;

/// The bound parts of an aggregate call.
pub(crate) struct Parts {
    /// Arguments; empty for `*`.
    pub args: Vec<Expr>,
    /// `ORDER BY` inside the call, or of `WITHIN GROUP`.
    pub order: Vec<SortKey>,
    /// Whether `order` was written as `WITHIN GROUP`.
    pub within_group: bool,
    /// Whether the call has `DISTINCT`.
    pub distinct: bool,
    /// Condition of `FILTER`.
    pub filter: Option<Expr>,
}

/// Aggregates whose order may be written as `WITHIN GROUP`.
const TAKE_ORDER: [&str; 9] = [
    "mode",
    "quantile",
    "quantile_cont",
    "quantile_disc",
    "percentile_cont",
    "percentile_disc",
    "string_agg",
    "group_concat",
    "listagg",
];

impl<'a> Binder<'a> {
    /// Binds a call of an aggregate and adds it to the query it belongs to.
    pub(crate) fn aggregate(
        &mut self,
        entry: registry::AggregateEntry,
        name: &str,
        f: &'a ast::Function,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        self.begin_aggregate(env)?;
        let asked = self.asked();
        env.in_aggregate = true;
        let parts = self.parts(f, env);
        env.in_aggregate = false;
        let mut parts = parts?;
        if parts.within_group && !TAKE_ORDER.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            return Err(unsupported(&format!("WITHIN GROUP of {name}")));
        }
        let keys = parts.order.iter_mut().map(|key| &mut key.expr);
        let mut exprs: Vec<&mut Expr> =
            parts.args.iter_mut().chain(keys).chain(&mut parts.filter).collect();
        let owner = self.owner(&mut exprs, &asked, env)?;
        refuse_nested(&exprs, env)?;
        self.owned(owner, env, |binder, env| {
            let Some(mut aggregates) = env.aggregates.take() else {
                broken(format_args!("{name} is bound in a query that takes no aggregates"))
            };
            let result = binder.by_aggregate_rule(entry, name, parts, &mut aggregates);
            env.aggregates = Some(aggregates);
            result
        })
    }

    fn parts(&mut self, f: &'a ast::Function, env: &mut Env<'_>) -> Result<Parts> {
        let ast::FunctionArguments::List(list) = &f.args else {
            return Err(unsupported("a subquery as an argument"));
        };
        let mut args = Vec::new();
        for arg in &list.args {
            match arg {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => {
                    args.push(self.typed(e, env)?)
                }
                ast::FunctionArg::Unnamed(_) if list.args.len() == 1 => {}
                ast::FunctionArg::Unnamed(_) => {
                    return Err(Error::syntax("* must be the only argument"));
                }
                _ => return Err(unsupported("a named argument")),
            }
        }
        let is_json = table_name(&f.name)?.0.to_ascii_lowercase().starts_with("json");
        let mut items: Vec<&ast::OrderByExpr> = f.within_group.iter().collect();
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::OrderBy(more) => items.extend(more),
                ast::FunctionArgumentClause::Separator(separator) => args.push(text(separator)?),
                // What aggregates of JSON do in any case.
                ast::FunctionArgumentClause::JsonNullClause(ast::JsonNullClause::NullOnNull)
                    if is_json => {}
                ast::FunctionArgumentClause::JsonReturningClause(clause)
                    if is_json && types::data_type(&clause.data_type)? == DataType::Json => {}
                _ => return Err(unsupported("this clause inside an aggregate")),
            }
        }
        let mut order = Vec::new();
        for item in items {
            let expr = self.typed(&item.expr, env)?;
            if expr.data_type == DataType::Interval {
                return Err(unsupported("an aggregate in the order of an INTERVAL"));
            }
            order.push(sort_key(expr, item)?);
        }
        let filter = match f.filter.as_deref() {
            Some(e) => {
                let bound = self.expr(e, env)?;
                Some(self.condition(bound, "FILTER").map_err(|error| error.at(place(e)))?)
            }
            None => None,
        };
        let distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        Ok(Parts { args, order, within_group: !f.within_group.is_empty(), distinct, filter })
    }
}

/// Refuses aggregates and window functions that the name of an output column brought into an
/// aggregate. An aggregate over a window may use the aggregates of its query.
fn refuse_nested(exprs: &[&mut Expr], env: &Env<'_>) -> Result<()> {
    let any = |test: fn(&Expr) -> bool| exprs.iter().any(|e| test(e));
    if env.outer_aggregates.is_none() && any(has_aggregate) {
        return Err(nested_aggregates());
    }
    match any(has_window) {
        true => Err(window::not_allowed(env.clause)),
        false => Ok(()),
    }
}

fn text(value: &ast::ValueWithSpan) -> Result<Expr> {
    match &value.value {
        ast::Value::SingleQuotedString(text) => {
            Ok(Expr::literal(Value::Text(text.clone()), DataType::TEXT))
        }
        _ => Err(Error::syntax("SEPARATOR takes a text literal")),
    }
}
