//! The inputs of an operator.

use crate::operator::protocol::Operator;
use nacre_types::invariant::broken;

/// The operators of a plan node's inputs, in the order of the inputs.
pub type Inputs = Vec<Box<dyn Operator>>;

/// The operators of a node with `N` inputs.
pub fn exactly<const N: usize>(inputs: Inputs) -> [Box<dyn Operator>; N] {
    <[Box<dyn Operator>; N]>::try_from(inputs).unwrap_or_else(|inputs| {
        broken(format_args!("an operator of {N} inputs was given {}", inputs.len()))
    })
}
