//! `SET name = value`: settings of a session.

use super::scope::Scope;
use super::{Binder, Env, place, position, unsupported};
use crate::expr::ExprKind;
use crate::plan::{SessionOption, Statement};
use nacre_types::{Error, Result, Value};
use sqlparser::ast;

impl<'a> Binder<'a> {
    pub(crate) fn set_option(&mut self, set: &'a ast::Set) -> Result<Statement> {
        let ast::Set::SingleAssignment { scope, variable, values, .. } = set else {
            return Err(unsupported("this form of SET"));
        };
        if matches!(scope, Some(ast::ContextModifier::Global | ast::ContextModifier::Local)) {
            return Err(unsupported("SET GLOBAL and SET LOCAL"));
        }
        let ([ast::ObjectNamePart::Identifier(name)], [value]) = (variable.0.as_slice(), values.as_slice()) else {
            return Err(unsupported("this form of SET"));
        };
        if !name.value.eq_ignore_ascii_case("threads") {
            let error = Error::not_found(format!("no setting {}", name.value)).with_sqlstate("42704");
            return Err(error.at(position(name.span.start)));
        }
        if matches!(value, ast::Expr::Identifier(word) if word.value.eq_ignore_ascii_case("default")) {
            return Ok(Statement::Set(SessionOption::Threads(0)));
        }
        let none = Scope::default();
        let bound = self.expr(value, &mut Env::new(&none, "SET"))?;
        match bound.kind {
            ExprKind::Literal(Value::Int(count)) if (1..=1024).contains(&count) => {
                Ok(Statement::Set(SessionOption::Threads(count as u32)))
            }
            _ => Err(Error::type_error("threads is a whole number from 1 to 1024, or DEFAULT")
                .with_sqlstate("22023")
                .at(place(value))),
        }
    }
}
