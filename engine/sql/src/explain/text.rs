//! Stable text of expressions; callers supply the names of columns.

use crate::expr::{Aggregate, BinaryOp, Expr, ExprKind, Placeholder, SubqueryKind};
use crate::plan::tree::{Field, SortKey};
use crate::window::{FrameBound, FrameUnit, WindowCall, WindowFrame, Windowed};
use nacre_types::invariant::broken;
use nacre_types::{DataType, TableSchema, Value};
use std::fmt::Write;

/// Renders a literal in SQL syntax.
pub(crate) fn literal_text(value: &Value, data_type: DataType) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match value {
        Value::Text(text) | Value::Json(text) => quoted(text),
        Value::Binary(_) => format!("X'{}'", value.to_string().trim_start_matches("\\x")),
        Value::Date(_)
        | Value::Time(_)
        | Value::Timestamp(_)
        | Value::TimestampTz(_)
        | Value::Interval(_)
        | Value::Uuid(_) => format!("{data_type} '{value}'"),
        _ => value.to_string(),
    }
}

/// The text of a part of a document that a scan of a table computes.
pub fn path_text(table: &TableSchema, expr: &Expr) -> String {
    expr_text(expr, &|at| table.columns[at].name.clone(), false)
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

/// A leaf of an expression that needs a name.
pub(crate) enum Leaf {
    /// A column of the input row.
    Column(usize),
    /// A value of the query being bound.
    Placeholder(Placeholder),
}

/// How expressions are rendered.
struct Style<'n> {
    /// Returns the name of a column or placeholder.
    name: &'n dyn Fn(Leaf) -> String,
    /// Omits casts.
    brief: bool,
}

/// Renders an operand of a plan, in parentheses if it binds looser than `least`.
pub(crate) fn operand(
    expr: &Expr,
    least: u8,
    name: &dyn Fn(usize) -> String,
    brief: bool,
) -> String {
    Style { name: &|leaf| column_name(leaf, name), brief }.operand(expr, least)
}

/// Renders an expression of a plan; `name` returns the name of a column, `brief` omits casts.
pub(crate) fn expr_text(expr: &Expr, name: &dyn Fn(usize) -> String, brief: bool) -> String {
    Style { name: &|leaf| column_name(leaf, name), brief }.text(expr)
}

/// Renders an expression that may still have placeholders, without casts; `name` returns the name
/// of a column or placeholder.
pub(crate) fn unresolved_text(expr: &Expr, name: &dyn Fn(Leaf) -> String) -> String {
    Style { name, brief: true }.text(expr)
}

fn column_name(leaf: Leaf, name: &dyn Fn(usize) -> String) -> String {
    match leaf {
        Leaf::Column(at) => name(at),
        Leaf::Placeholder(of) => broken(format_args!("a plan holds the placeholder {of:?}")),
    }
}

impl Style<'_> {
    fn operand(&self, expr: &Expr, least: u8) -> String {
        let mut inner = expr;
        while let (true, ExprKind::Cast(arg)) = (self.brief, &inner.kind) {
            inner = arg;
        }
        let text = self.text(inner);
        if strength(inner) < least { format!("({text})") } else { text }
    }

    fn list(&self, exprs: &[Expr]) -> String {
        joined(exprs.iter().map(|e| self.text(e)))
    }

    fn text(&self, expr: &Expr) -> String {
        let not = |negated: &bool| if *negated { "not " } else { "" };
        match &expr.kind {
            ExprKind::Column(at) => (self.name)(Leaf::Column(*at)),
            ExprKind::Placeholder(of) => (self.name)(Leaf::Placeholder(*of)),
            ExprKind::Literal(value) => literal_text(value, expr.data_type),
            ExprKind::Parameter(at) => format!("${}", at + 1),
            ExprKind::Cast(arg) if self.brief => self.text(arg),
            ExprKind::Cast(arg) => format!("cast({} as {})", self.text(arg), expr.data_type),
            ExprKind::Not(arg) => format!("not {}", self.operand(arg, 4)),
            ExprKind::Negate(arg) => format!("-{}", self.operand(arg, 9)),
            ExprKind::IsNull { arg, negated } => {
                format!("{} is {}null", self.operand(arg, 5), not(negated))
            }
            ExprKind::IsBoolean { arg, value, negated } => {
                format!("{} is {}{value}", self.operand(arg, 5), not(negated))
            }
            ExprKind::Binary { op, left, right } => {
                let own = strength(expr);
                let symbol = op.symbol();
                format!("{} {symbol} {}", self.operand(left, own), self.operand(right, own + 1))
            }
            ExprKind::And(parts) => {
                parts.iter().map(|p| self.operand(p, 3)).collect::<Vec<_>>().join(" and ")
            }
            ExprKind::Or(parts) => {
                parts.iter().map(|p| self.operand(p, 2)).collect::<Vec<_>>().join(" or ")
            }
            ExprKind::Case { branches, otherwise } => {
                let mut out = String::from("case");
                for (condition, result) in branches {
                    let (condition, result) = (self.text(condition), self.text(result));
                    let _ = write!(out, " when {condition} then {result}");
                }
                if let Some(e) = otherwise {
                    let _ = write!(out, " else {}", self.text(e));
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
                let (arg, list) = (self.operand(arg, 5), self.list(shown));
                format!("{arg} {}in ({list}{more})", not(negated))
            }
            ExprKind::Like { arg, pattern, escape, negated, case_insensitive } => {
                let word = if *case_insensitive { "ilike" } else { "like" };
                let (arg, pattern) = (self.operand(arg, 5), self.text(pattern));
                let mut out = format!("{arg} {}{word} {pattern}", not(negated));
                if let Some(c) = escape {
                    let _ = write!(out, " escape '{c}'");
                }
                out
            }
            ExprKind::Function { function, args } => {
                format!("{}({})", function.name(), self.list(args))
            }
            ExprKind::Outer { index, .. } => format!("outer.{index}"),
            ExprKind::Subquery(sub) => match sub.kind {
                SubqueryKind::Scalar => "(subquery)".into(),
                SubqueryKind::Exists => "exists (subquery)".into(),
                SubqueryKind::Any(BinaryOp::Equal) => {
                    format!("{} in (subquery)", self.list(&sub.operands))
                }
                SubqueryKind::Any(op) => {
                    format!("{} {} any (subquery)", self.list(&sub.operands), op.symbol())
                }
            },
        }
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
