//! One notation of paths, so that equal parts of documents are equal expressions.

use crate::expr::{Expr, ExprKind, ScalarCallee};
use nacre_builtin::scalar::json::get::{
    JSON_EXTRACT, JSON_EXTRACT_STRING, JSON_NO_DOUBLE, JSON_NO_INTEGER, JSON_NUMBER, JSON_QUERY,
    JSON_VALUE,
};
use nacre_builtin::scalar::json::inspect::JSON_EXISTS;
use nacre_function::json::path::JsonPath;
use nacre_types::Value;

/// Functions of a document and one path.
fn reads_path(function: &ScalarCallee) -> bool {
    let of_one = [
        &JSON_EXTRACT,
        &JSON_EXTRACT_STRING,
        &JSON_VALUE,
        &JSON_QUERY,
        &JSON_EXISTS,
        &JSON_NUMBER,
        &JSON_NO_INTEGER,
        &JSON_NO_DOUBLE,
    ];
    of_one.into_iter().any(|known| *function == *known)
}

/// Writes the literal paths in an expression in one notation. Their meaning stays.
pub(crate) fn normalise(expr: &mut Expr) {
    if let ExprKind::Function { function, args } = &mut expr.kind
        && reads_path(function)
        && let [_, path] = &mut args[..]
        && let ExprKind::Literal(Value::Text(text)) = &mut path.kind
        && let Ok(parsed) = JsonPath::parse(text)
        && let Some(normal) = JsonPath::text_of(&parsed.steps)
    {
        debug_assert!(
            JsonPath::parse(&normal).is_ok_and(|again| again.steps == parsed.steps),
            "path {text} means something else as {normal}"
        );
        *text = normal;
    }
    expr.for_each_child_mut(&mut normalise);
}

/// An expression with its literal paths in one notation.
pub(crate) fn normal(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    normalise(&mut expr);
    expr
}
