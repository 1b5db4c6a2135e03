//! Invariants of every plan, whichever pass built it. With debug assertions on (tests, the
//! simulation, the fuzzers), the optimizer checks them after each of its steps.

use crate::analysis::columns::columns;
use crate::bind::expression::types::meets;
use crate::expr::{Expr, ExprKind};
use crate::plan::{Field, Plan};
use nacre_types::DataType;

/// The first rule that a plan violates, as a sentence.
pub(crate) fn broken_rule(plan: &Plan) -> Option<String> {
    let mut broken = None;
    plan.any_node(&mut |node| {
        broken = node_rule(node);
        broken.is_some()
    });
    broken
}

fn node_rule(node: &Plan) -> Option<String> {
    match node {
        Plan::Scan { table, projection, paths, filters, .. } => {
            let width = table.columns.len();
            if let Some(at) = projection.iter().find(|at| **at >= width) {
                return Some(format!("a scan reads column {at} of {width} in {}", table.name));
            }
            let types: Vec<DataType> = table.columns.iter().map(|c| c.data_type).collect();
            if let Some(rule) = reads(paths, &types, "a path of a scan") {
                return Some(rule);
            }
            conditions(filters, &node.types(), "a scan")
        }
        Plan::Values { fields, rows } => {
            let uneven = rows.iter().find(|row| row.len() != fields.len());
            uneven.map(|row| format!("a row of {} values has {} columns", row.len(), fields.len()))
        }
        Plan::Filter { input, predicate } => {
            conditions(std::slice::from_ref(predicate), &input.types(), "a filter")
        }
        Plan::Project { input, exprs, fields } => reads(exprs, &input.types(), "a projection")
            .or_else(|| yields(exprs.iter().map(|e| e.data_type), fields, "a projection")),
        Plan::Aggregate { input, groups, aggregates, fields } => {
            let types = input.types();
            let args = aggregates.iter().flat_map(crate::expr::Aggregate::exprs);
            let yielded =
                groups.iter().map(|g| g.data_type).chain(aggregates.iter().map(|a| a.data_type));
            reads(groups.iter().chain(args), &types, "an aggregate")
                .or_else(|| yields(yielded, fields, "an aggregate"))
        }
        Plan::Join { left, right, keys, residual, .. } => {
            let (mut left, mut right) = (left.types(), right.types());
            for (l, r) in keys {
                if !meets(l.data_type, r.data_type) {
                    let (l, r) = (l.data_type, r.data_type);
                    return Some(format!(
                        "a join has a key of {l} on the left and {r} on the right"
                    ));
                }
            }
            let of_left = reads(keys.iter().map(|(l, _)| l), &left, "a join's left key");
            let of_right = reads(keys.iter().map(|(_, r)| r), &right, "a join's right key");
            left.append(&mut right);
            of_left.or(of_right).or_else(|| conditions(residual, &left, "a join"))
        }
        Plan::Union { inputs, fields } => {
            inputs.iter().find_map(|input| yields(input.types(), fields, "an input of a union"))
        }
        Plan::Sort { input, keys, .. } => {
            reads(keys.iter().map(|k| &k.expr), &input.types(), "a sort")
        }
        Plan::Recursive { base, step, fields, .. } => [base, step]
            .iter()
            .find_map(|part| yields(part.types(), fields, "a part of a recursion")),
        Plan::Node(node) => {
            let (mut types, mut found) = (Vec::new(), None);
            node.for_each_input(&mut |input| types.append(&mut input.types()));
            node.for_each_expr(&mut |e| {
                found = found.take().or_else(|| reads([e], &types, node.title()));
            });
            found
        }
        Plan::Limit { .. } | Plan::Given { .. } | Plan::Shared { .. } => None,
    }
}

/// Checks that expressions read existing input columns at their types.
fn reads<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    input: &[DataType],
    title: &str,
) -> Option<String> {
    let mut found = None;
    for expr in exprs {
        columns(expr, &mut |at| {
            if at >= input.len() && found.is_none() {
                found = Some(format!("{title} reads column {at} of {}", input.len()));
            }
        });
        if found.is_none() {
            found = wrong_type(expr, input, title);
        }
    }
    found
}

/// Columns have the type of the input, and no placeholder is left.
fn wrong_type(expr: &Expr, input: &[DataType], title: &str) -> Option<String> {
    if let ExprKind::Column(at) = expr.kind
        && let Some(is) = input.get(at)
        && *is != expr.data_type
    {
        return Some(format!("{title} reads column {at} as {}, which is {is}", expr.data_type));
    }
    if let ExprKind::Placeholder(of) = expr.kind {
        return Some(format!("{title} holds the placeholder {of:?}"));
    }
    let mut found = None;
    expr.for_each_child(&mut |e| found = found.take().or_else(|| wrong_type(e, input, title)));
    found
}

/// Checks that conditions read existing input columns and are boolean.
fn conditions<'e>(
    exprs: impl IntoIterator<Item = &'e Expr> + Clone,
    input: &[DataType],
    title: &str,
) -> Option<String> {
    let is_boolean = |e: &Expr| matches!(e.data_type, DataType::Boolean | DataType::Null);
    let other = exprs.clone().into_iter().find(|e| !is_boolean(e));
    let other = other.map(|e| format!("{title} has a condition of type {}", e.data_type));
    other.or_else(|| reads(exprs, input, title))
}

/// Checks that a node yields one value per field, of the field's type.
fn yields(
    types: impl IntoIterator<Item = DataType>,
    fields: &[Field],
    title: &str,
) -> Option<String> {
    let types: Vec<DataType> = types.into_iter().collect();
    if types.len() != fields.len() {
        return Some(format!("{title} yields {} values for {} fields", types.len(), fields.len()));
    }
    let mut pairs = types.iter().zip(fields);
    let other = pairs.find(|(t, f)| **t != f.data_type);
    other.map(|(t, f)| format!("{title} yields {t} for a field of {}", f.data_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Placeholder;
    use crate::plan::JoinKind;
    use nacre_types::Value;

    fn numbers() -> Plan {
        let field = Field { name: "n".into(), data_type: DataType::Int64, nullable: false };
        let row = vec![Expr::literal(Value::Int(1), DataType::Int64)];
        Plan::Values { fields: vec![field], rows: vec![row] }
    }

    fn project(expr: Expr) -> Plan {
        let fields = numbers().fields();
        Plan::Project { input: Box::new(numbers()), exprs: vec![expr], fields }
    }

    #[test]
    fn a_correct_plan_breaks_no_rule() {
        assert_eq!(broken_rule(&project(Expr::column(0, DataType::Int64))), None);
    }

    #[test]
    fn a_column_outside_the_input_is_found() {
        let plan = project(Expr::column(7, DataType::Int64));
        assert_eq!(broken_rule(&plan).as_deref(), Some("a projection reads column 7 of 1"));
    }

    #[test]
    fn a_column_of_another_type_is_found() {
        let rule = broken_rule(&project(Expr::column(0, DataType::Float64)));
        assert_eq!(rule.as_deref(), Some("a projection reads column 0 as DOUBLE, which is BIGINT"));
    }

    #[test]
    fn a_placeholder_that_the_binder_left_is_found() {
        let aggregate = Expr::placeholder(Placeholder::Aggregate(0), DataType::Int64);
        let kind = ExprKind::Negate(Box::new(aggregate));
        let rule = broken_rule(&project(Expr { kind, data_type: DataType::Int64 }));
        assert_eq!(rule.as_deref(), Some("a projection holds the placeholder Aggregate(0)"));
    }

    #[test]
    fn a_missing_field_is_found() {
        let mut plan = project(Expr::column(0, DataType::Int64));
        if let Plan::Project { fields, .. } = &mut plan {
            fields.clear();
        }
        let rule = broken_rule(&plan);
        assert_eq!(rule.as_deref(), Some("a projection yields 1 values for 0 fields"));
    }

    #[test]
    fn join_keys_of_two_types_are_found() {
        let keys = vec![(Expr::column(0, DataType::Int64), Expr::column(0, DataType::Float64))];
        let (left, right) = (Box::new(numbers()), Box::new(numbers()));
        let plan = Plan::Join { left, right, kind: JoinKind::Inner, keys, residual: None };
        let rule = broken_rule(&plan);
        let expected = "a join has a key of BIGINT on the left and DOUBLE on the right";
        assert_eq!(rule.as_deref(), Some(expected));
    }
}
