//! `COLUMNS(*)`, `COLUMNS(t.*)` and `COLUMNS('regex')`: an item of a `SELECT` list that has one is
//! bound once for each column that it stands for.

use crate::bind::environment::{ColumnsCall, Env};
use crate::bind::names::{table_name, unsupported};
use crate::expr::Expr;
use nacre_builtin::scalar::pattern::names_matching;
use nacre_types::{Error, Result};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr};

/// Returns the column that the call stands for now.
#[cold]
pub(super) fn columns(f: &ast::Function, env: &mut Env<'_>) -> Result<Expr> {
    let plain = f.over.is_none() && f.filter.is_none() && f.within_group.is_empty();
    let argument = match &f.args {
        ast::FunctionArguments::List(list) if plain && list.clauses.is_empty() => &list.args,
        _ => return Err(unsupported("this form of COLUMNS")),
    };
    let [FunctionArg::Unnamed(argument)] = argument.as_slice() else {
        return Err(unsupported("COLUMNS of anything but *, t.* or a text"));
    };
    let found = matching(argument, env)?;
    let clause = env.clause;
    let Some(call) = &mut env.columns else {
        return Err(unsupported(&format!("COLUMNS in {clause}")));
    };
    let ColumnsCall { matched, current } = call;
    if matched.as_ref().is_some_and(|known| *known != found) {
        return Err(unsupported("two different COLUMNS in an item"));
    }
    let Some(at) = found.get(*current).copied() else {
        return Err(Error::not_found("COLUMNS matches no column").with_sqlstate("42703"));
    };
    *matched = Some(found);
    env.seen.push((at, None));
    Ok(Expr::column(at, env.scope.columns[at].data_type))
}

/// The positions of the columns that an argument names.
fn matching(argument: &FunctionArgExpr, env: &Env<'_>) -> Result<Vec<usize>> {
    let scope = env.scope;
    let all = (0..scope.columns.len()).filter(|at| !scope.is_hidden(*at));
    match argument {
        FunctionArgExpr::Wildcard => Ok(all.collect()),
        FunctionArgExpr::QualifiedWildcard(name) => {
            let (table, at) = table_name(name)?;
            if !scope.has_table(&table) {
                return Err(scope.unknown_column(Some(&table), "*", &[]).at(at));
            }
            let is_of = |at: &usize| scope.columns[*at].table.eq_ignore_ascii_case(&table);
            Ok((0..scope.columns.len()).filter(is_of).collect())
        }
        FunctionArgExpr::Expr(ast::Expr::Value(value)) => {
            let ast::Value::SingleQuotedString(pattern) = &value.value else {
                return Err(unsupported("COLUMNS of anything but *, t.* or a text"));
            };
            let all: Vec<usize> = all.collect();
            let names = all.iter().map(|at| scope.columns[*at].name.as_str());
            let matches = names_matching(pattern, names)?;
            Ok(all.into_iter().zip(matches).filter(|(_, is)| *is).map(|(at, _)| at).collect())
        }
        _ => Err(unsupported("COLUMNS of anything but *, t.* or a text")),
    }
}
