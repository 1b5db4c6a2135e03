//! `UNION ALL`.

use super::protocol::Operator;
use crate::context::Context;
use nacre_column::Batch;
use nacre_types::Result;

/// Rows of all inputs, one input after the other.
pub struct Union {
    inputs: std::vec::IntoIter<Box<dyn Operator>>,
    current: Option<Box<dyn Operator>>,
}

impl Union {
    /// Over inputs of the same types.
    pub fn new(inputs: Vec<Box<dyn Operator>>) -> Union {
        let mut inputs = inputs.into_iter();
        Union { current: inputs.next(), inputs }
    }
}

impl Operator for Union {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        while let Some(input) = &mut self.current {
            if let Some(batch) = input.next(context)? {
                return Ok(Some(batch));
            }
            // Dropping an input at its end releases its memory.
            self.current = self.inputs.next();
        }
        Ok(None)
    }
}
