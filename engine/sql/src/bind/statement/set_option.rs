//! `SET name = value`: settings of a session.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::names::{place, unsupported};
use crate::bind::scope::Scope;
use crate::expr::ExprKind;
use crate::parse::position;
use crate::plan::{ControlStatement, ScanStrategy, SessionOption, Statement};
use nacre_types::{Error, Result, Value};
use sqlparser::ast;

impl<'a> Binder<'a> {
    pub(crate) fn set_option(&mut self, set: &'a ast::Set) -> Result<Statement> {
        let ast::Set::SingleAssignment { scope, variable, values, .. } = set else {
            return Err(unsupported("this form of SET"));
        };
        if matches!(scope, Some(ast::ContextModifier::Global | ast::ContextModifier::Local)) {
            return Err(unsupported("SET GLOBAL or SET LOCAL"));
        }
        let ([ast::ObjectNamePart::Identifier(name)], [value]) =
            (variable.0.as_slice(), values.as_slice())
        else {
            return Err(unsupported("this form of SET"));
        };
        let is = |setting: &str| name.value.eq_ignore_ascii_case(setting);
        let option = match () {
            () if is("threads") => SessionOption::Threads(0),
            () if is("memory_limit") => SessionOption::MemoryLimit(None),
            () if is("scan_strategy") => SessionOption::ScanStrategy(ScanStrategy::default()),
            () if is("lock_timeout") => SessionOption::LockTimeout(None),
            () => {
                let error =
                    Error::not_found(format!("no setting {}", name.value)).with_sqlstate("42704");
                return Err(error.at(position(name.span.start)));
            }
        };
        if matches!(value, ast::Expr::Identifier(word) if word.value.eq_ignore_ascii_case("default"))
        {
            return Ok(ControlStatement::Set(option).into());
        }
        let none = Scope::default();
        let bound = self.expr(value, &mut Env::new(&none, "SET"))?;
        let set = match (option, bound.kind) {
            (SessionOption::Threads(_), ExprKind::Literal(Value::Int(count)))
                if (1..=1024).contains(&count) =>
            {
                Some(SessionOption::Threads(count as u32))
            }
            (SessionOption::MemoryLimit(_), ExprKind::Literal(Value::Int(bytes))) if bytes > 0 => {
                Some(SessionOption::MemoryLimit(Some(bytes as u64)))
            }
            (SessionOption::MemoryLimit(_), ExprKind::Literal(Value::Text(size))) => {
                bytes_of(&size).map(|bytes| SessionOption::MemoryLimit(Some(bytes)))
            }
            (SessionOption::ScanStrategy(_), ExprKind::Literal(Value::Text(name))) => {
                let is_named = |one: &ScanStrategy| name.eq_ignore_ascii_case(one.name());
                ScanStrategy::ALL.into_iter().find(is_named).map(SessionOption::ScanStrategy)
            }
            (SessionOption::LockTimeout(_), ExprKind::Literal(Value::Int(ms))) => {
                u64::try_from(ms).ok().map(|ms| SessionOption::LockTimeout(Some(ms)))
            }
            (SessionOption::LockTimeout(_), ExprKind::Literal(Value::Text(time))) => {
                milliseconds_of(&time).map(|ms| SessionOption::LockTimeout(Some(ms)))
            }
            _ => None,
        };
        let wanted = match option {
            SessionOption::Threads(_) => {
                "threads must be a whole number from 1 to 1024, or DEFAULT"
            }
            SessionOption::MemoryLimit(_) => {
                "memory_limit must be a number of bytes, a size like '64MB', or DEFAULT"
            }
            SessionOption::ScanStrategy(_) => {
                "scan_strategy must be 'adaptive', 'regular', 'encoded', 'group', 'index' or DEFAULT"
            }
            SessionOption::LockTimeout(_) => {
                "lock_timeout must be a number of milliseconds, a time like '5s', or DEFAULT"
            }
        };
        set.map(|option| ControlStatement::Set(option).into())
            .ok_or_else(|| Error::type_error(wanted).with_sqlstate("22023").at(place(value)))
    }
}

/// Digits, and the unit after them.
fn number_and_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number, unit.trim())
}

/// Milliseconds of a time like `5s`.
fn milliseconds_of(time: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(time);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Bytes of a size like `64MB`; units are powers of 1024.
fn bytes_of(size: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(size);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "KB" | "KIB" => 10,
        "MB" | "MIB" => 20,
        "GB" | "GIB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}
