//! Stable text of expressions; callers supply the names of columns.

use crate::expr::{Aggregate, BinaryOp, Expr, ExprKind, SubqueryKind};
use crate::plan::tree::{Field, SortKey};
use crate::window::{FrameBound, FrameUnit, WindowCall, WindowFrame, Windowed};
use nacre_types::{DataType, Value};
use std::fmt::Write;

/// Renders a literal in SQL syntax.
pub(crate) fn literal_text(value: &Value, data_type: DataType) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match value {
        Value::Text(text) | Value::Json(text) => quoted(text),
        Value::Binary(_) => format!("X'{}'", value.to_string().trim_start_matches("\\x")),
        Value::Date(_) | Value::Time(_) | Value::Timestamp(_) | Value::Interval(_) => {
            format!("{data_type} '{value}'")
        }
        _ => value.to_string(),
    }
}

pub(crate) fn key_text(key: &SortKey, name: &dyn Fn(usize) -> String) -> String {
    let mut text = expr_text(&key.expr, name, false);
    if key.descending {
        text += " desc";
    }
    if key.nulls_first == key.descending {
        text += if key.nulls_first { " nulls first" } else { " nulls last" };
    }
    text
}

pub(crate) fn window_text(call: &WindowCall, name: &dyn Fn(usize) -> String) -> String {
    let mut out = match &call.function {
        Windowed::Aggregate(aggregate) => aggregate_text(aggregate, name, false),
        Windowed::Function(function) => format!(
            "{}({})",
            function.name(),
            joined(call.args.iter().map(|e| expr_text(e, name, false)))
        ),
    };
    if call.frame != WindowFrame::default() {
        let unit = match call.frame.unit {
            FrameUnit::Rows => "rows",
            FrameUnit::Range => "range",
            FrameUnit::Groups => "groups",
        };
        let bound = |b: &FrameBound| match b {
            FrameBound::UnboundedPreceding => "unbounded preceding".to_string(),
            FrameBound::Preceding(e) => format!("{} preceding", expr_text(e, name, false)),
            FrameBound::CurrentRow => "current row".to_string(),
            FrameBound::Following(e) => format!("{} following", expr_text(e, name, false)),
            FrameBound::UnboundedFollowing => "unbounded following".to_string(),
        };
        let _ = write!(
            out,
            " {unit} between {} and {}",
            bound(&call.frame.start),
            bound(&call.frame.end)
        );
    }
    out
}

/// Renders an aggregate call; `brief` omits casts.
pub(crate) fn aggregate_text(
    aggregate: &Aggregate,
    name: &dyn Fn(usize) -> String,
    brief: bool,
) -> String {
    let function = aggregate.function.name();
    let distinct = if aggregate.distinct { "distinct " } else { "" };
    let mut parts: Vec<String> =
        aggregate.args.iter().map(|arg| expr_text(arg, name, brief)).collect();
    for key in &aggregate.order {
        // Flags: 1 is descending, 2 is nulls first.
        let flags = u8::from(key.descending) | u8::from(key.nulls_first) << 1;
        parts.extend([expr_text(&key.expr, name, brief), flags.to_string()]);
    }
    let arg = if parts.is_empty() { "*".into() } else { joined(parts.into_iter()) };
    let mut out = format!("{function}({distinct}{arg})");
    if let Some(filter) = &aggregate.filter {
        out += " filter (where ";
        out += &expr_text(filter, name, brief);
        out.push(')');
    }
    out
}

/// Precedence of an expression. An operand with a lower precedence than its context requires is
/// parenthesized.
fn strength(expr: &Expr) -> u8 {
    use BinaryOp::*;
    match &expr.kind {
        ExprKind::Or(_) => 1,
        ExprKind::And(_) => 2,
        ExprKind::Not(_) => 3,
        ExprKind::Like { .. }
        | ExprKind::InList { .. }
        | ExprKind::IsNull { .. }
        | ExprKind::IsBoolean { .. } => 4,
        ExprKind::Binary { op, .. } => match op {
            _ if op.is_comparison() => 4,
            Multiply | Divide | IntegerDivide | Modulo => 7,
            Add | Subtract => 6,
            _ => 5,
        },
        ExprKind::Negate(_) => 8,
        _ => 9,
    }
}

pub(crate) fn operand(
    expr: &Expr,
    least: u8,
    name: &dyn Fn(usize) -> String,
    brief: bool,
) -> String {
    let mut inner = expr;
    while let (true, ExprKind::Cast(arg)) = (brief, &inner.kind) {
        inner = arg;
    }
    let text = expr_text(inner, name, brief);
    if strength(inner) < least { format!("({text})") } else { text }
}

/// Renders an expression; `name` returns the name of a column, `brief` omits casts.
pub(crate) fn expr_text(expr: &Expr, name: &dyn Fn(usize) -> String, brief: bool) -> String {
    let text = |e: &Expr| expr_text(e, name, brief);
    let list = |l: &[Expr]| joined(l.iter().map(text));
    let not = |negated: &bool| if *negated { "not " } else { "" };
    match &expr.kind {
        ExprKind::Column(at) => name(*at),
        ExprKind::Literal(value) => literal_text(value, expr.data_type),
        ExprKind::Parameter(at) => format!("${}", at + 1),
        ExprKind::Cast(arg) if brief => text(arg),
        ExprKind::Cast(arg) => format!("cast({} as {})", text(arg), expr.data_type),
        ExprKind::Not(arg) => format!("not {}", operand(arg, 4, name, brief)),
        ExprKind::Negate(arg) => format!("-{}", operand(arg, 9, name, brief)),
        ExprKind::IsNull { arg, negated } => {
            format!("{} is {}null", operand(arg, 5, name, brief), not(negated))
        }
        ExprKind::IsBoolean { arg, value, negated } => {
            format!("{} is {}{value}", operand(arg, 5, name, brief), not(negated))
        }
        ExprKind::Binary { op, left, right } => {
            let own = strength(expr);
            let symbol = op.symbol();
            format!(
                "{} {symbol} {}",
                operand(left, own, name, brief),
                operand(right, own + 1, name, brief)
            )
        }
        ExprKind::And(parts) => {
            parts.iter().map(|p| operand(p, 3, name, brief)).collect::<Vec<_>>().join(" and ")
        }
        ExprKind::Or(parts) => {
            parts.iter().map(|p| operand(p, 2, name, brief)).collect::<Vec<_>>().join(" or ")
        }
        ExprKind::Case { branches, otherwise } => {
            let mut out = String::from("case");
            for (condition, result) in branches {
                let _ = write!(out, " when {} then {}", text(condition), text(result));
            }
            if let Some(e) = otherwise {
                let _ = write!(out, " else {}", text(e));
            }
            out + " end"
        }
        ExprKind::InList { arg, list: items, negated } => {
            let shown = if items.len() > 20 { &items[..20] } else { items };
            let more = if items.len() > 20 {
                format!(", … {} more", items.len() - 20)
            } else {
                String::new()
            };
            format!("{} {}in ({}{more})", operand(arg, 5, name, brief), not(negated), list(shown))
        }
        ExprKind::Like { arg, pattern, escape, negated, case_insensitive } => {
            let word = if *case_insensitive { "ilike" } else { "like" };
            let mut out = format!(
                "{} {}{word} {}",
                operand(arg, 5, name, brief),
                not(negated),
                text(pattern)
            );
            if let Some(c) = escape {
                let _ = write!(out, " escape '{c}'");
            }
            out
        }
        ExprKind::Function { function, args } => {
            format!("{}({})", function.name(), list(args))
        }
        ExprKind::Outer { index, .. } => format!("outer.{index}"),
        ExprKind::Subquery(sub) => match sub.kind {
            SubqueryKind::Scalar => "(subquery)".into(),
            SubqueryKind::Exists => "exists (subquery)".into(),
            SubqueryKind::Any(BinaryOp::Equal) => format!("{} in (subquery)", list(&sub.operands)),
            SubqueryKind::Any(op) => {
                format!("{} {} any (subquery)", list(&sub.operands), op.symbol())
            }
        },
    }
}

/// Joins parts with commas.
pub(crate) fn joined(parts: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for part in parts {
        if !out.is_empty() {
            out += ", ";
        }
        out += &part;
    }
    out
}

/// Returns the name of a column, or its position (`#3`) if it has none.
pub(crate) fn field_name(fields: &[Field], at: usize) -> String {
    match fields.get(at) {
        Some(field) if !field.name.is_empty() => field.name.clone(),
        _ => format!("#{at}"),
    }
}
