//! `GROUPING SETS`, `ROLLUP`, `CUBE` and `GROUPING()`: expands them to sets of group expressions,
//! and builds the plan: one aggregation per set over a shared input, and the union of their
//! results.
//!
//! The value of `GROUPING()` is one constant per set.

use crate::bind::binder::Binder;
use crate::bind::environment::{Env, GroupingCall};
use crate::bind::names::{place, unsupported};
use crate::bind::query::volatile_keys;
use crate::bind::scope::Scope;
use crate::explain::expr_text;
use crate::expr::{Aggregate, Expr, ExprKind, Placeholder};
use crate::plan::{Field, Plan};
use nacre_function::entry::grouping::GroupingFunction;
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast;
use std::sync::Arc;

/// Maximum number of grouping sets in one query.
const MAX_SETS: usize = 256;

/// The grouping of a query.
pub(crate) struct Groups {
    /// Distinct group expressions.
    pub exprs: Vec<Expr>,
    /// Grouping sets, each a list of positions in `exprs`.
    pub sets: Vec<Vec<usize>>,
}

impl Groups {
    /// Grouping without group expressions: all rows form one group.
    pub fn one_row() -> Groups {
        Groups { exprs: Vec::new(), sets: vec![Vec::new()] }
    }

    /// Adds the given columns that are functionally dependent on the group expressions, which
    /// include the primary key of their table.
    pub fn add_following(&mut self, columns: &[usize], scope: &Scope) {
        let [set] = self.sets.as_mut_slice() else { return };
        for at in columns {
            let exprs = &self.exprs;
            let is_group = |column| {
                exprs.iter().any(|e| matches!(e.kind, ExprKind::Column(at) if at == column))
            };
            if let Some(column) = scope.columns.get(*at)
                && !is_group(*at)
                && scope.follows(*at, &is_group)
            {
                set.push(self.exprs.len());
                self.exprs.push(Expr::column(*at, column.data_type));
            }
        }
    }

    /// Whether every set contains this group expression.
    pub fn always(&self, at: usize) -> bool {
        self.sets.iter().all(|set| set.contains(&at))
    }
}

/// Expands the elements of `GROUP BY` to grouping sets. `bind` returns the position of a group
/// expression.
pub(crate) fn sets<'a>(
    list: &'a [ast::Expr],
    modifiers: &'a [ast::GroupByWithModifier],
    bind: &mut dyn FnMut(&'a ast::Expr) -> Result<usize>,
) -> Result<Vec<Vec<usize>>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for element in list {
        multiply(&mut all, element_sets(element, bind)?)?;
    }
    for modifier in modifiers {
        let [whole] = all.as_slice() else {
            return Err(unsupported("WITH ROLLUP after grouping sets"));
        };
        let single: Vec<Vec<usize>> = whole.iter().map(|at| vec![*at]).collect();
        all = match modifier {
            ast::GroupByWithModifier::Rollup => prefixes(&single),
            ast::GroupByWithModifier::Cube => subsets(&single)?,
            ast::GroupByWithModifier::Totals => vec![whole.clone(), Vec::new()],
            ast::GroupByWithModifier::GroupingSets(_) => {
                return Err(unsupported("GROUPING SETS after a GROUP BY list"));
            }
        };
    }
    Ok(all)
}

/// Expands one element of `GROUP BY` to its grouping sets.
fn element_sets<'a>(
    element: &'a ast::Expr,
    bind: &mut dyn FnMut(&'a ast::Expr) -> Result<usize>,
) -> Result<Vec<Vec<usize>>> {
    let mut tuple =
        |list: &'a [ast::Expr]| list.iter().map(&mut *bind).collect::<Result<Vec<usize>>>();
    Ok(match element {
        ast::Expr::Tuple(list) => vec![tuple(list)?],
        ast::Expr::Rollup(list) => {
            prefixes(&list.iter().map(|t| tuple(t)).collect::<Result<Vec<_>>>()?)
        }
        ast::Expr::Cube(list) => {
            subsets(&list.iter().map(|t| tuple(t)).collect::<Result<Vec<_>>>()?)?
        }
        ast::Expr::GroupingSets(list) => {
            let mut sets = Vec::new();
            for set in list {
                match nested(set) {
                    Some((rollup, parts)) => {
                        let parts = parts
                            .into_iter()
                            .map(tuple_of)
                            .map(&mut tuple)
                            .collect::<Result<Vec<_>>>()?;
                        sets.extend(if rollup { prefixes(&parts) } else { subsets(&parts)? });
                    }
                    None => sets.push(tuple(set)?),
                }
            }
            sets
        }
        one => vec![vec![bind(one)?]],
    })
}

/// Recognises `ROLLUP (…)` or `CUBE (…)` inside `GROUPING SETS`, which parses as a function call.
/// Returns whether it is `ROLLUP`, and its elements.
fn nested(set: &[ast::Expr]) -> Option<(bool, Vec<&ast::Expr>)> {
    let [ast::Expr::Function(call)] = set else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else { return None };
    let rollup = name.value.eq_ignore_ascii_case("rollup");
    if !rollup && !name.value.eq_ignore_ascii_case("cube") {
        return None;
    }
    let ast::FunctionArguments::List(list) = &call.args else { return None };
    let args = list.args.iter().map(|arg| match arg {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => Some(e),
        _ => None,
    });
    args.collect::<Option<Vec<_>>>().map(|args| (rollup, args))
}

/// The expressions of an element; a single expression is a tuple of one.
fn tuple_of(expr: &ast::Expr) -> &[ast::Expr] {
    match expr {
        ast::Expr::Tuple(list) => list,
        one => std::slice::from_ref(one),
    }
}

/// Combines every set so far with every set of the next element.
fn multiply(all: &mut Vec<Vec<usize>>, alternatives: Vec<Vec<usize>>) -> Result<()> {
    if all.len().saturating_mul(alternatives.len()) > MAX_SETS {
        return Err(too_many());
    }
    let old = std::mem::take(all);
    for set in &old {
        for more in &alternatives {
            let mut set = set.clone();
            more.iter().for_each(|at| {
                if !set.contains(at) {
                    set.push(*at);
                }
            });
            all.push(set);
        }
    }
    Ok(())
}

/// Returns the sets of `ROLLUP`: all parts, all but the last, and so on down to none.
fn prefixes(parts: &[Vec<usize>]) -> Vec<Vec<usize>> {
    (0..=parts.len()).rev().map(|n| unique(parts[..n].iter().flatten())).collect()
}

/// Returns the sets of `CUBE`: every subset of the parts, starting with all of them.
fn subsets(parts: &[Vec<usize>]) -> Result<Vec<Vec<usize>>> {
    if parts.len() >= 32 || 1 << parts.len() > MAX_SETS {
        return Err(too_many());
    }
    let chosen = |bits: usize| {
        let parts = parts.iter().enumerate().filter(move |(at, _)| bits >> at & 1 == 0);
        unique(parts.flat_map(|(_, part)| part))
    };
    Ok((0..1usize << parts.len()).map(chosen).collect())
}

fn unique<'s>(positions: impl Iterator<Item = &'s usize>) -> Vec<usize> {
    let mut set = Vec::new();
    positions.for_each(|at| {
        if !set.contains(at) {
            set.push(*at);
        }
    });
    set
}

#[cold]
fn too_many() -> Error {
    Error::limit(format!("GROUP BY expands to more than {MAX_SETS} grouping sets"))
}

impl<'a> Binder<'a> {
    /// Binds `GROUPING (expr, …)`.
    pub(crate) fn grouping_call(
        &mut self,
        function: &'static GroupingFunction,
        args: Vec<&'a ast::FunctionArgExpr>,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let most = function.most_arguments;
        if args.is_empty() || args.len() > most {
            return Err(Error::type_error(format!("GROUPING takes 1 to {most} arguments"))
                .with_sqlstate("42883"));
        }
        let mut bound = Vec::with_capacity(args.len());
        env.in_aggregate = true;
        for arg in args {
            let ast::FunctionArgExpr::Expr(e) = arg else {
                return Err(Error::syntax("GROUPING takes expressions of GROUP BY"));
            };
            bound.push(self.typed(e, env).map_err(|error| error.at(place(e)))?);
        }
        env.in_aggregate = false;
        let call = GroupingCall { function, args: bound };
        let at = env.groupings.iter().position(|known| *known == call).unwrap_or_else(|| {
            env.groupings.push(call);
            env.groupings.len() - 1
        });
        Ok(Expr::placeholder(Placeholder::Grouping(at), DataType::Int64))
    }

    /// Builds the aggregation of a plan. Its output is every group expression, null in the sets
    /// that lack it, followed by the aggregates and the values of `GROUPING`.
    pub(crate) fn grouped(
        &mut self,
        plan: Plan,
        groups: Groups,
        aggregates: Vec<Aggregate>,
        groupings: &[GroupingCall],
        fields: Vec<Field>,
    ) -> Result<Plan> {
        let Groups { exprs: mut groups, sets } = groups;
        let asked = groupings.iter().map(|call| call.positions(&groups));
        let asked = asked.collect::<Result<Vec<_>>>()?;
        let plan = volatile_keys::compute(plan, &mut groups);
        if let ([set], true) = (sets.as_slice(), groupings.is_empty())
            && set.len() == groups.len()
        {
            return Ok(Plan::Aggregate { input: Box::new(plan), groups, aggregates, fields });
        }
        let input = match sets.len() {
            1 => plan,
            _ => Plan::Shared { id: self.fresh(), input: Arc::new(plan) },
        };
        let computed = groups.len()..groups.len() + aggregates.len();
        let mut inputs = Vec::with_capacity(sets.len());
        for set in &sets {
            let own_fields = set.iter().copied().chain(computed.clone());
            let below = Plan::Aggregate {
                input: Box::new(input.clone()),
                groups: set.iter().map(|at| groups[*at].clone()).collect(),
                aggregates: aggregates.clone(),
                fields: own_fields.map(|at| fields[at].clone()).collect(),
            };
            let mut exprs = Vec::with_capacity(fields.len());
            for (at, group) in groups.iter().enumerate() {
                exprs.push(match set.iter().position(|s| *s == at) {
                    Some(column) => Expr::column(column, group.data_type),
                    None => Expr::literal(Value::Null, group.data_type),
                });
            }
            for (at, aggregate) in aggregates.iter().enumerate() {
                exprs.push(Expr::column(set.len() + at, aggregate.data_type));
            }
            for (call, asked) in groupings.iter().zip(&asked) {
                let left_out: Vec<bool> = asked.iter().map(|at| !set.contains(at)).collect();
                let value = Value::Int((call.function.value)(&left_out));
                exprs.push(Expr::literal(value, DataType::Int64));
            }
            inputs.push(Plan::Project { input: Box::new(below), exprs, fields: fields.clone() });
        }
        Ok(match inputs.len() {
            1 => inputs.swap_remove(0),
            _ => Plan::Union { inputs, fields },
        })
    }
}

impl GroupingCall {
    /// Positions of the arguments among the group expressions.
    fn positions(&self, groups: &[Expr]) -> Result<Vec<usize>> {
        let position = |arg: &Expr| {
            groups.iter().position(|group| group == arg).ok_or_else(|| {
                Error::type_error("GROUPING takes expressions of GROUP BY").with_sqlstate("42803")
            })
        };
        self.args.iter().map(position).collect()
    }

    /// Renders the call as the name of an output column.
    pub fn text(&self, name: &dyn Fn(usize) -> String) -> String {
        let args: Vec<String> = self.args.iter().map(|e| expr_text(e, name, true)).collect();
        format!("{}({})", self.function.name(), args.join(", "))
    }
}
