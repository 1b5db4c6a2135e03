//! Rows that several places of a plan read: computed when the first of them asks, kept until the last is done.

use crate::context::{Context, Operator, Step};
use nacre_column::Batch;
use nacre_types::Result;
use std::cell::RefCell;
use std::rc::Rc;

/// The rows, computed or not yet.
pub(crate) struct Buffer {
    /// Where they come from; none once all are there.
    input: Option<Box<dyn Operator>>,
    batches: Vec<Batch>,
    bytes: usize,
}

impl Buffer {
    /// Of rows that nobody has asked for.
    pub fn new(input: Box<dyn Operator>) -> Rc<RefCell<Buffer>> {
        Rc::new(RefCell::new(Buffer { input: Some(input), batches: Vec::new(), bytes: 0 }))
    }

    /// Takes in all rows. A step that is neither rows nor their end is answered, to be passed on.
    fn fill(&mut self, context: &Context<'_>) -> Result<Option<Step>> {
        while let Some(input) = &mut self.input {
            context.check_cancelled()?;
            match input.next(context)? {
                Step::Batch(batch) => {
                    let batch = batch.compact();
                    self.bytes += batch.columns.iter().map(|c| c.memory_bytes()).sum::<usize>();
                    context.check_memory("WITH", self.bytes)?;
                    self.batches.push(batch);
                }
                Step::Done => self.input = None,
                #[allow(unreachable_patterns)]
                other => return Ok(Some(other)),
            }
        }
        Ok(None)
    }
}

/// One of the places.
pub(crate) struct SharedScan {
    buffer: Rc<RefCell<Buffer>>,
    at: usize,
}

impl SharedScan {
    pub fn new(buffer: Rc<RefCell<Buffer>>) -> SharedScan {
        SharedScan { buffer, at: 0 }
    }
}

impl Operator for SharedScan {
    fn next(&mut self, context: &Context<'_>) -> Result<Step> {
        context.check_cancelled()?;
        let mut buffer = self.buffer.borrow_mut();
        if let Some(step) = buffer.fill(context)? {
            return Ok(step);
        }
        let Some(batch) = buffer.batches.get(self.at) else { return Ok(Step::Done) };
        self.at += 1;
        Ok(Step::Batch(batch.clone()))
    }
}
