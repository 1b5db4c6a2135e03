//! `PREPARE`, `EXECUTE` and `DEALLOCATE`: statements of a session by name.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::literal;
use crate::bind::names::{place, table_name, unsupported};
use crate::bind::scope::Scope;
use crate::expr::ExprKind;
use crate::plan::{ControlStatement, Statement};
use nacre_types::{Error, Result, Value};
use sqlparser::ast;

/// Binds `PREPARE name AS …`.
pub(crate) fn prepare(name: &str, sql: &str) -> Statement {
    ControlStatement::Prepare { name: name.to_ascii_lowercase(), sql: sql.to_string() }.into()
}

/// Binds `DEALLOCATE name`, or `DEALLOCATE ALL`.
pub(super) fn deallocate(name: &ast::Ident) -> Statement {
    let is_all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
    let name = (!is_all).then(|| name.value.to_ascii_lowercase());
    ControlStatement::Deallocate(name).into()
}

impl<'a> Binder<'a> {
    /// Binds `EXECUTE name (…)`. The arguments are constants.
    pub(super) fn execute(
        &mut self,
        name: Option<&ast::ObjectName>,
        arguments: &'a [ast::Expr],
    ) -> Result<Statement> {
        let Some(name) = name else { return Err(unsupported("this form of EXECUTE")) };
        let name = table_name(name)?.0.to_ascii_lowercase();
        let arguments =
            arguments.iter().map(|ast| self.argument(ast, "EXECUTE")).collect::<Result<_>>()?;
        Ok(ControlStatement::Execute { name, arguments }.into())
    }

    /// Binds a constant of a statement.
    pub(super) fn argument(&mut self, ast: &'a ast::Expr, of: &'static str) -> Result<Value> {
        let scope = Scope::default();
        let expr = self.expr(ast, &mut Env::new(&scope, of))?;
        let to = expr.data_type;
        let not_constant =
            || unsupported(&format!("an argument of {of} that is not a constant")).at(place(ast));
        match expr.kind {
            ExprKind::Literal(value) => Ok(value),
            ExprKind::Cast(inner) => match inner.kind {
                ExprKind::Literal(value) => {
                    let cast = literal::cast_fully(inner.data_type, &value, to);
                    let cast = cast.map_err(|e| e.at(place(ast)))?;
                    let error = || Error::out_of_range(format!("{to} out of range"));
                    cast.ok_or_else(|| error().at(place(ast)))
                }
                _ => Err(not_constant()),
            },
            _ => Err(not_constant()),
        }
    }
}
