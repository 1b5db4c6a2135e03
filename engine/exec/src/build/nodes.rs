//! The operators of plan nodes that describe themselves.

use crate::operator::executable::Executable;
use crate::operator::protocol::Operator;
use nacre_sql::plan::{PlanNode, node};
use nacre_types::Result;
use nacre_types::invariant::broken;
use std::any::Any;

/// Recognises one type of node.
type Recognise = fn(&dyn PlanNode) -> Option<&dyn Executable>;

/// Every type of node.
const NODES: &[Recognise] =
    &[recognise::<node::LimitBy>, recognise::<node::SetOperation>, recognise::<node::Window>];

fn recognise<N: PlanNode + Executable>(node: &dyn PlanNode) -> Option<&dyn Executable> {
    (node as &dyn Any).downcast_ref::<N>().map(|node| node as &dyn Executable)
}

/// The operator of a node over the operators of its inputs.
pub(super) fn operator(
    node: &dyn PlanNode,
    inputs: Vec<Box<dyn Operator>>,
) -> Result<Box<dyn Operator>> {
    match NODES.iter().find_map(|recognise| recognise(node)) {
        Some(executable) => executable.operator(inputs),
        None => broken(format_args!("{} has no operator", node.title())),
    }
}
