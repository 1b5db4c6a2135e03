//! Plan nodes that have an operator.

use crate::operator::protocol::Operator;
use nacre_types::Result;
use nacre_types::invariant::broken;

/// A plan node that an operator executes.
pub(crate) trait Executable {
    /// The operator over the operators of the node's inputs, which come in the order of the node's inputs.
    fn operator(&self, inputs: Vec<Box<dyn Operator>>) -> Result<Box<dyn Operator>>;
}

/// The operators of a node with `N` inputs.
pub(crate) fn inputs<const N: usize>(inputs: Vec<Box<dyn Operator>>) -> [Box<dyn Operator>; N] {
    <[Box<dyn Operator>; N]>::try_from(inputs).unwrap_or_else(|inputs| {
        broken(format_args!("a node of {N} inputs was given {}", inputs.len()))
    })
}
