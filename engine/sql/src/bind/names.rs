//! Names and source positions in syntax trees, for error messages and look-ups.

use crate::parse::position;
use nacre_types::{Error, Position, Result};
use sqlparser::ast;

/// Names of the time zone that sessions are in.
pub(super) const UTC: &[&str] = &["utc", "gmt", "+00:00", "z", "etc/utc"];

/// Collations of other databases that compare texts by their bytes, as is done here.
const BY_BYTES: &[&str] = &[
    "binary",
    "c",
    "c.utf8",
    "c.utf-8",
    "posix",
    "ucs_basic",
    "utf8_bin",
    "utf8mb3_bin",
    "utf8mb4_bin",
    "utf8mb4_0900_bin",
];

/// Fails for a collation that does not compare texts by their bytes.
pub(super) fn check_collation(written: &str) -> Result<()> {
    let name = written.trim_matches(['\'', '"', '`']);
    match BY_BYTES.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        true => Ok(()),
        false => Err(unsupported(&format!("COLLATE {name}"))),
    }
}

/// Fails for a character set other than UTF-8.
pub(super) fn check_character_set(written: &str) -> Result<()> {
    let name = written.trim_matches(['\'', '"', '`']);
    match ["utf8", "utf8mb3", "utf8mb4"].iter().any(|known| known.eq_ignore_ascii_case(name)) {
        true => Ok(()),
        false => Err(unsupported(&format!("CHARACTER SET {name}"))),
    }
}

#[cold]
pub(super) fn unsupported(feature: &str) -> Error {
    Error::unsupported(format!("{feature} is not supported"))
}

/// Returns the last part of a table's name and its position. The only schemas are `main` and
/// `public`.
pub(super) fn table_name(name: &ast::ObjectName) -> Result<(String, Option<Position>)> {
    let part = |at: usize| match name.0.get(at) {
        Some(ast::ObjectNamePart::Identifier(ident)) => Some(ident),
        _ => None,
    };
    let ident = match (name.0.len(), part(0), part(1)) {
        (1, Some(ident), _) => ident,
        (2, Some(schema), Some(ident))
            if schema.value.eq_ignore_ascii_case("main")
                || schema.value.eq_ignore_ascii_case("public") =>
        {
            ident
        }
        (_, Some(first), _) => {
            return Err(unsupported("a qualified table name").at(position(first.span.start)));
        }
        _ => return Err(unsupported("this form of name")),
    };
    if ident.value.is_empty() {
        return Err(Error::syntax("a name must not be empty").at(position(ident.span.start)));
    }
    Ok((ident.value.clone(), position(ident.span.start)))
}

/// Returns the position at which an expression starts, if the syntax tree records one.
pub(super) fn place(mut expr: &ast::Expr) -> Option<Position> {
    use ast::Expr as E;
    loop {
        let span = match expr {
            E::Identifier(ident) => ident.span,
            E::CompoundIdentifier(parts) => parts.first()?.span,
            E::Value(value) => value.span,
            E::TypedString(typed) => typed.value.span,
            E::Interval(interval) => {
                expr = &interval.value;
                continue;
            }
            E::Function(function) => match function.name.0.first()? {
                ast::ObjectNamePart::Identifier(ident) => ident.span,
                _ => return None,
            },
            E::Case { case_token, .. } => case_token.0.span,
            E::BinaryOp { left, .. } => {
                expr = left;
                continue;
            }
            E::IsDistinctFrom(inner, _) | E::IsNotDistinctFrom(inner, _) => {
                expr = inner;
                continue;
            }
            E::Nested(inner)
            | E::UnaryOp { expr: inner, .. }
            | E::Cast { expr: inner, .. }
            | E::Between { expr: inner, .. }
            | E::InList { expr: inner, .. }
            | E::InSubquery { expr: inner, .. }
            | E::Like { expr: inner, .. }
            | E::ILike { expr: inner, .. }
            | E::IsNull(inner)
            | E::IsNotNull(inner)
            | E::IsTrue(inner)
            | E::IsNotTrue(inner)
            | E::IsFalse(inner)
            | E::IsNotFalse(inner)
            | E::Extract { expr: inner, .. }
            | E::Substring { expr: inner, .. }
            | E::Ceil { expr: inner, .. }
            | E::Floor { expr: inner, .. }
            | E::Trim { expr: inner, .. }
            | E::Collate { expr: inner, .. } => {
                expr = inner;
                continue;
            }
            E::Subquery(query) | E::Exists { subquery: query, .. } => match query.body.as_ref() {
                ast::SetExpr::Select(select) => select.select_token.0.span,
                _ => return None,
            },
            _ => return None,
        };
        return position(span.start);
    }
}
