//! What is checked when the application creates a function: its name and the names of its types.

use crate::bind::expression::types;
use crate::bind::rule::expression;
use crate::parse::parse;
use nacre_builtin::registry;
use nacre_types::{DataType, Error, ErrorKind, Result};
use sqlparser::ast;

/// Checks the name of a function that the application creates, and returns it in lower case.
///
/// Errors: `syntax` if the name cannot be called without quotes, `already_exists` if the engine has
/// a function with the name.
pub fn created_name(name: &str) -> Result<String> {
    let lower = name.to_ascii_lowercase();
    let is_listed = registry::scalar(&lower).is_some()
        || registry::aggregate(&lower).is_some()
        || registry::grouping(&lower).is_some()
        || registry::window(&lower).is_some();
    if is_listed {
        let message = format!("function {lower} is one of the engine's own");
        return Err(Error::new(ErrorKind::AlreadyExists, message).with_sqlstate("42723"));
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = lower.starts_with(|c: char| c.is_alphabetic() || c == '_');
    // The parser reads some names in a way of their own, whatever is between the parentheses.
    let is_call = |arguments: &str| {
        parse(&format!("SELECT {lower}({arguments})")).is_ok_and(|parsed| {
            let call = parsed.first().and_then(expression);
            matches!(call, Some(ast::Expr::Function(f)) if f.name.to_string() == lower)
        })
    };
    let is_called = starts
        && lower.chars().all(is_word)
        && !["columns", "values"].contains(&lower.as_str())
        && ["", "1", "1, 1"].into_iter().all(is_call);
    match is_called {
        true => Ok(lower),
        false => Err(Error::syntax(format!("`{name}` cannot be the name of a function"))),
    }
}

/// The type with this name, as in `CAST`.
///
/// Errors: `syntax`, and `unsupported` for a type that the engine does not have.
pub fn type_named(name: &str) -> Result<DataType> {
    let parsed = parse(&format!("SELECT CAST(NULL AS {name})"));
    let cast = parsed.as_ref().ok().filter(|parsed| parsed.len() == 1);
    match cast.and_then(|parsed| parsed.first()).and_then(expression) {
        Some(ast::Expr::Cast { data_type, format: None, .. }) => types::data_type(data_type),
        _ => Err(Error::syntax(format!("`{name}` is not the name of a type"))),
    }
}
