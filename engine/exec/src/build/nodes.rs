//! The operators of plan nodes that describe themselves.

use nacre_operator::operator::inputs::Inputs;
use nacre_operator::operator::protocol::Operator;
use nacre_operator::operator::{json_rows, limit_by, series, set_operation};
use nacre_operator::window::operator as window;
use nacre_sql::plan::PlanNode;
use nacre_types::Result;
use nacre_types::invariant::broken;
use std::any::Any;

/// The operator of a node over the operators of its inputs.
pub(super) fn operator(node: &dyn PlanNode, inputs: Inputs) -> Result<Box<dyn Operator>> {
    let search = Search { node, inputs, found: None }
        .or(json_rows::operator)?
        .or(limit_by::operator)?
        .or(series::operator)?
        .or(set_operation::operator)?
        .or(window::operator)?;
    match search.found {
        Some(operator) => Ok(operator),
        None => broken(format_args!("{} has no operator", node.title())),
    }
}

/// A search for the type of a node.
struct Search<'p> {
    node: &'p dyn PlanNode,
    inputs: Inputs,
    found: Option<Box<dyn Operator>>,
}

impl Search<'_> {
    /// Builds the operator if the node has the type that `make` accepts.
    fn or<N: PlanNode>(
        mut self,
        make: fn(&N, Inputs) -> Result<Box<dyn Operator>>,
    ) -> Result<Self> {
        if let Some(node) = (self.node as &dyn Any).downcast_ref() {
            self.found = Some(make(node, std::mem::take(&mut self.inputs))?);
        }
        Ok(self)
    }
}
