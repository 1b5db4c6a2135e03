//! `GROUPING SETS`, `ROLLUP`, `CUBE` and `GROUPING()`: expands them to sets of group expressions,
//! and builds the plan: one aggregation per set over a shared input, and the union of their
//! results.
//!
//! `GROUPING()` is bound as an aggregate, so that it is allowed wherever aggregates are; here it
//! becomes one constant per set.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::names::{place, unsupported};
use crate::bind::scope::Scope;
use crate::expr::{Aggregate, Expr, ExprKind};
use crate::plan::{Field, Plan};
use nacre_function::aggregate::count::GROUPING;
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast;
use std::sync::Arc;

/// Maximum number of grouping sets in one query.
const MAX_SETS: usize = 256;
/// Maximum number of arguments of `GROUPING`: its result has one bit per argument and is a
/// `BIGINT`.
const MAX_GROUPING: usize = 62;

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
        args: Vec<&'a ast::FunctionArgExpr>,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if args.is_empty() || args.len() > MAX_GROUPING {
            return Err(Error::type_error(format!("GROUPING takes 1 to {MAX_GROUPING} arguments"))
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
        Ok(crate::bind::expression::function::operands::push(
            env.aggregates.get_or_insert_default(),
            Aggregate {
                function: &GROUPING,
                args: bound,
                order: Vec::new(),
                distinct: false,
                filter: None,
                data_type: DataType::Int64,
            },
        ))
    }

    /// Builds the aggregation of a plan. Its output is every group expression, null in the sets
    /// that lack it, followed by the aggregates.
    pub(crate) fn grouped(
        &mut self,
        plan: Plan,
        groups: Groups,
        aggregates: Vec<Aggregate>,
        fields: Vec<Field>,
    ) -> Result<Plan> {
        let Groups { exprs: groups, sets } = groups;
        let is_plain = |a: &Aggregate| a.function != &GROUPING;
        let all_plain = aggregates.iter().all(is_plain);
        if let ([set], true) = (sets.as_slice(), all_plain)
            && set.len() == groups.len()
        {
            return Ok(Plan::Aggregate { input: Box::new(plan), groups, aggregates, fields });
        }
        let input = match sets.len() {
            1 => plan,
            _ => Plan::Shared { id: self.fresh(), input: Arc::new(plan) },
        };
        let field = |at: usize| fields.get(at).cloned().unwrap_or_else(|| unnamed(DataType::Null));
        let mut inputs = Vec::with_capacity(sets.len());
        for set in &sets {
            let own: Vec<Aggregate> = aggregates.iter().filter(|a| is_plain(a)).cloned().collect();
            let own_groups: Vec<Expr> =
                set.iter().filter_map(|at| groups.get(*at).cloned()).collect();
            let own_fields = set.iter().map(|at| field(*at));
            let numbered = aggregates.iter().enumerate().filter(|(_, a)| is_plain(a));
            let own_fields =
                own_fields.chain(numbered.map(|(at, _)| field(groups.len() + at))).collect();
            let below = Plan::Aggregate {
                input: Box::new(input.clone()),
                groups: own_groups,
                aggregates: own,
                fields: own_fields,
            };
            let mut exprs = Vec::with_capacity(fields.len());
            for (at, group) in groups.iter().enumerate() {
                exprs.push(match set.iter().position(|s| *s == at) {
                    Some(column) => Expr::column(column, group.data_type),
                    None => Expr::literal(Value::Null, group.data_type),
                });
            }
            let mut next = set.len();
            for aggregate in &aggregates {
                exprs.push(if is_plain(aggregate) {
                    next += 1;
                    Expr::column(next - 1, aggregate.data_type)
                } else {
                    Expr::literal(Value::Int(bits(aggregate, &groups, set)?), DataType::Int64)
                });
            }
            inputs.push(Plan::Project { input: Box::new(below), exprs, fields: fields.clone() });
        }
        Ok(match inputs.len() {
            1 => inputs.swap_remove(0),
            _ => Plan::Union { inputs, fields },
        })
    }
}

fn unnamed(data_type: DataType) -> Field {
    Field { name: String::new(), data_type, nullable: true }
}

/// Value of `GROUPING` for one set: one bit per argument, the last argument lowest, set if the set
/// lacks it.
fn bits(grouping: &Aggregate, groups: &[Expr], set: &[usize]) -> Result<i64> {
    let mut bits = 0;
    for arg in &grouping.args {
        let Some(at) = groups.iter().position(|g| g == arg) else {
            return Err(
                Error::type_error("GROUPING takes expressions of GROUP BY").with_sqlstate("42803")
            );
        };
        bits = bits << 1 | i64::from(!set.contains(&at));
    }
    Ok(bits)
}
