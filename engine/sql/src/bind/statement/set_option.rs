//! `SET name = value`: settings of a session.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::names::{UTC, place, unsupported};
use crate::bind::scope::Scope;
use crate::expr::ExprKind;
use crate::parse::position;
use crate::plan::{ControlStatement, ScanStrategy, SessionOption, Statement};
use nacre_types::{Error, Result, Value};
use sqlparser::ast;

/// Settings of other databases, and the values that ask for what is always so; none: any value does. Drivers and
/// dumps begin with them.
const AS_IT_IS: &[(&str, &[&str])] = &[
    ("autocommit", &["1", "on", "true"]),
    ("character_set_client", UTF8),
    ("check_function_bodies", &[]),
    ("client_encoding", UTF8),
    ("client_min_messages", &[]),
    ("default_tablespace", &[""]),
    ("foreign_key_checks", &[]),
    ("idle_in_transaction_session_timeout", &["0"]),
    ("names", UTF8),
    ("row_security", &["off"]),
    ("search_path", &["main", "nacre", "public"]),
    ("standard_conforming_strings", &["on", "true"]),
    ("statement_timeout", &["0"]),
    ("time_zone", UTC),
    ("timezone", UTC),
    ("transaction_timeout", &["0"]),
    ("xmloption", &["content"]),
];
const UTF8: &[&str] = &["utf8", "utf-8", "utf8mb3", "utf8mb4", "unicode"];

/// Whether a setting of another database asks for what is always so; `None` if its name is not known.
fn is_as_it_is(name: &str, value: &ast::Expr) -> Option<bool> {
    let (_, values) = AS_IT_IS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    let written = value.to_string();
    let written = written.trim_matches(['\'', '"']);
    let is_default = written.eq_ignore_ascii_case("default");
    let is_named = values.iter().any(|value| value.eq_ignore_ascii_case(written));
    Some(is_default || is_named || values.is_empty())
}

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
        match is_as_it_is(&name.value, value) {
            Some(true) => return Ok(ControlStatement::Nothing.into()),
            Some(false) => {
                let what = format!("{} with this value", name.value.to_ascii_lowercase());
                return Err(unsupported(&what).at(place(value)));
            }
            None => {}
        }
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
