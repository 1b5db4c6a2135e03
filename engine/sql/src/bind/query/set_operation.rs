//! `UNION`, `INTERSECT` and `EXCEPT`: column types are unified, column names come from the first
//! side.

use crate::bind::binder::Binder;
use crate::bind::expression::cast::cast;
use crate::bind::expression::types::common;
use crate::bind::names::unsupported;
use crate::expr::Expr;
use crate::plan::node::set_operation::SetOperation;
use crate::plan::{Field, Plan};
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier};

/// Maximum number of set operations in a chain.
const MAX_CHAIN: usize = 1_000;

impl<'a> Binder<'a> {
    /// Binds a set operation. Chains are left-deep; a loop takes them apart, so their length does
    /// not cost stack.
    pub(crate) fn set_operation(&mut self, body: &'a SetExpr) -> Result<Plan> {
        let mut steps = Vec::new();
        let mut first = body;
        while let SetExpr::SetOperation { op, set_quantifier, left, right } = first {
            use SetQuantifier as Q;
            let all = matches!(set_quantifier, Q::All | Q::AllByName);
            let by_name = matches!(set_quantifier, Q::ByName | Q::AllByName | Q::DistinctByName);
            if by_name && *op != SetOperator::Union {
                return Err(unsupported("INTERSECT or EXCEPT BY NAME"));
            }
            steps.push((*op, all, by_name, right.as_ref()));
            first = left;
        }
        if steps.len() > MAX_CHAIN {
            return Err(Error::limit(format!("more than {MAX_CHAIN} set operations in a row")));
        }
        let mut plan = self.nested(|b| b.body(first, None))?;
        for (op, all, by_name, right) in steps.into_iter().rev() {
            let mut right = self.nested(|b| b.body(right, None))?;
            if by_name {
                (plan, right) = by_names(plan, right)?;
            }
            plan = combine(op, all, plan, right)?;
        }
        Ok(plan)
    }
}

/// Gives both sides of `UNION BY NAME` the columns of either, those of the left side first. A
/// column that a side lacks is null there.
fn by_names(left: Plan, right: Plan) -> Result<(Plan, Plan)> {
    let find = |fields: &[Field], name: &str| {
        fields.iter().position(|f| f.name.eq_ignore_ascii_case(name))
    };
    let (a, b) = (left.fields(), right.fields());
    for side in [&a, &b] {
        if let Some((_, twice)) =
            side.iter().enumerate().find(|(at, f)| find(side, &f.name) != Some(*at))
        {
            let message = format!("UNION BY NAME with several columns `{}`", twice.name);
            return Err(Error::type_error(message).with_sqlstate("42702"));
        }
    }
    let added = b.iter().filter(|f| find(&a, &f.name).is_none());
    let all: Vec<Field> = a.iter().chain(added).cloned().collect();
    let project = |plan: Plan, own: &[Field]| {
        let column = |field: &Field| match find(own, &field.name) {
            Some(at) => (Expr::column(at, own[at].data_type), own[at].clone()),
            None => {
                let null = Expr::literal(Value::Null, field.data_type);
                (null, Field { nullable: true, ..field.clone() })
            }
        };
        let (exprs, fields) = all.iter().map(column).unzip();
        Plan::Project { input: Box::new(plan), exprs, fields }
    };
    Ok((project(left, &a), project(right, &b)))
}

/// Combines two plans by a set operation.
pub(crate) fn combine(op: SetOperator, all: bool, left: Plan, right: Plan) -> Result<Plan> {
    let word = match op {
        SetOperator::Union => "UNION",
        SetOperator::Intersect => "INTERSECT",
        SetOperator::Except | SetOperator::Minus => "EXCEPT",
    };
    let (a, b) = (left.fields(), right.fields());
    if a.len() != b.len() {
        let message = format!("the sides of {word} have {} and {} columns", a.len(), b.len());
        return Err(Error::syntax(message).with_sqlstate("42601"));
    }
    let mut fields = Vec::with_capacity(a.len());
    for (at, (l, r)) in a.iter().zip(&b).enumerate() {
        let Some(data_type) = common(l.data_type, r.data_type) else {
            let message = format!(
                "{word} cannot mix {} and {} in column {}",
                l.data_type,
                r.data_type,
                at + 1
            );
            return Err(Error::type_error(message).with_sqlstate("42804"));
        };
        let nullable = match word {
            "UNION" => l.nullable || r.nullable,
            "INTERSECT" => l.nullable && r.nullable,
            _ => l.nullable,
        };
        if data_type == DataType::Interval && !(all && op == SetOperator::Union) {
            return Err(unsupported("a set operation on INTERVAL"));
        }
        fields.push(Field { name: l.name.clone(), data_type, nullable });
    }
    let (left, right) = (converted(left, &a, &fields)?, converted(right, &b, &fields)?);
    match op {
        SetOperator::Union => {
            // `a UNION ALL b UNION ALL c` is one node.
            let inputs = match left {
                Plan::Union { mut inputs, .. } => {
                    inputs.push(right);
                    inputs
                }
                left => vec![left, right],
            };
            let union = Plan::Union { inputs, fields };
            Ok(if all { union } else { distinct(union) })
        }
        _ => {
            let except = op != SetOperator::Intersect;
            Ok(Plan::Node(Box::new(SetOperation { left, right, except, all, fields })))
        }
    }
}

/// Removes duplicate rows.
pub(crate) fn distinct(plan: Plan) -> Plan {
    let fields = plan.fields();
    let groups = fields.iter().enumerate().map(|(at, f)| Expr::column(at, f.data_type)).collect();
    Plan::Aggregate { input: Box::new(plan), groups, aggregates: Vec::new(), fields }
}

/// Casts the columns of a plan to the types of `to`.
pub(crate) fn converted(plan: Plan, from: &[Field], to: &[Field]) -> Result<Plan> {
    if from.iter().zip(to).all(|(f, t)| f.data_type == t.data_type) {
        return Ok(plan);
    }
    let column =
        |(at, (f, t)): (usize, (&Field, &Field))| cast(Expr::column(at, f.data_type), t.data_type);
    let exprs = from.iter().zip(to).enumerate().map(column).collect::<Result<Vec<_>>>()?;
    Ok(Plan::Project { input: Box::new(plan), exprs, fields: to.to_vec() })
}
