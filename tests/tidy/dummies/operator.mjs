/**
 * What a new relational operator takes: one entry a place. The dummy yields every second row of its
 * input.
 */
const NODE = `//! Every second row of the input.

use crate::plan::tree::{Field, Plan, PlanNode};

/// Every second row of the input.
#[derive(Clone, Debug, PartialEq)]
pub struct Dummy {
    /// Input.
    pub input: Plan,
}

impl PlanNode for Dummy {
    fn fields(&self) -> Vec<Field> {
        self.input.fields()
    }

    fn for_each_input<'p>(&'p self, f: &mut dyn FnMut(&'p Plan)) {
        f(&self.input);
    }

    fn for_each_input_mut(&mut self, f: &mut dyn FnMut(&mut Plan)) {
        f(&mut self.input);
    }

    fn title(&self) -> &'static str {
        "every second row"
    }

    fn explain(&self) -> String {
        "Dummy".into()
    }
}
`;

const OPERATOR = `//! Every second row of the input.

use super::inputs::{Inputs, exactly};
use super::protocol::Operator;
use super::settle::settle;
use crate::context::Context;
use nacre_column::Batch;
use nacre_sql::plan::node::dummy as node;
use nacre_types::Result;

/// The operator of a node.
pub fn operator(_: &node::Dummy, inputs: Inputs) -> Result<Box<dyn Operator>> {
    let [input] = exactly(inputs);
    Ok(Box::new(Dummy { input, seen: 0 }))
}

struct Dummy {
    input: Box<dyn Operator>,
    /// Rows seen.
    seen: usize,
}

impl Operator for Dummy {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        while let Some(batch) = self.input.next(context)? {
            let mut batch = batch.compact();
            let first = self.seen % 2;
            self.seen += batch.rows;
            let kept: Vec<u32> = (first..batch.rows).step_by(2).map(|row| row as u32).collect();
            if !kept.is_empty() {
                batch.selection = Some(kept);
                return Ok(Some(settle(batch)));
            }
        }
        Ok(None)
    }
}
`;

export default {
  check: ['nacre-sql', 'nacre-operator', 'nacre-exec'],
  places: [
    { create: { 'engine/sql/src/plan/node/dummy.rs': NODE } },
    {
      edit: 'engine/sql/src/plan/node/mod.rs',
      before: 'pub mod limit_by;',
      insert: 'pub mod dummy;',
    },
    { create: { 'engine/operator/src/operator/dummy.rs': OPERATOR } },
    {
      edit: 'engine/operator/src/operator/mod.rs',
      before: 'pub mod inputs;',
      insert: 'pub mod dummy;',
    },
    {
      edit: 'engine/exec/src/build/nodes.rs',
      before: '.or(limit_by::operator)?',
      insert: '        .or(nacre_operator::operator::dummy::operator)?',
    },
  ],
};
