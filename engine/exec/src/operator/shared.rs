//! Rows that several places of a plan read: computed when the first of them asks, kept until the last is done. Those
//! that cannot be held are in the statement's temporary file.

use crate::context::Context;
use crate::memory::Reservation;
use crate::operator::protocol::Operator;
use crate::spill::SpilledRows;
use nacre_column::Batch;
use nacre_types::{DataType, Error, Result};
use std::cell::RefCell;
use std::rc::Rc;

/// The rows, computed or not yet.
pub(crate) struct Buffer {
    /// Where they come from; none once all are there.
    input: Option<Box<dyn Operator>>,
    types: Vec<DataType>,
    /// Who holds the rows, for messages.
    holder: &'static str,
    batches: Vec<Batch>,
    bytes: usize,
    held: Reservation,
    /// What comes after the batches.
    spilled: Option<SpilledRows>,
    /// What ended it: whoever asks again, as one thread does after several, must not get the rows after that.
    failed: Option<Error>,
}

impl Buffer {
    /// Of rows that nobody has asked for.
    pub fn new(input: Box<dyn Operator>, types: Vec<DataType>) -> Rc<RefCell<Buffer>> {
        Rc::new(RefCell::new(Buffer::held_by("WITH", input, types)))
    }

    fn held_by(holder: &'static str, input: Box<dyn Operator>, types: Vec<DataType>) -> Buffer {
        let (batches, held) = (Vec::new(), Reservation::default());
        Buffer {
            input: Some(input),
            types,
            holder,
            batches,
            bytes: 0,
            held,
            spilled: None,
            failed: None,
        }
    }

    /// All rows of an operator, taken in now, as an operator that reads nothing any more.
    pub fn all_of(
        input: Box<dyn Operator>,
        types: Vec<DataType>,
        context: &Context<'_>,
    ) -> Result<SharedScan> {
        let mut buffer = Buffer::held_by("the result", input, types);
        buffer.fill(context)?;
        Ok(SharedScan::new(Rc::new(RefCell::new(buffer))))
    }

    /// Takes in all rows, once. An error is kept: a later call returns it again.
    fn fill(&mut self, context: &Context<'_>) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.take_in(context).inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn take_in(&mut self, context: &Context<'_>) -> Result<()> {
        while let Some(input) = &mut self.input {
            context.check_cancelled()?;
            let Some(batch) = input.next(context)? else {
                self.input = None;
                break;
            };
            let batch = batch.compact();
            if let Some(spilled) = &mut self.spilled {
                spilled.push(&batch, context)?;
                continue;
            }
            self.bytes += batch.memory_bytes(self.batches.last());
            if self.held.try_resize(self.bytes, context.memory) {
                self.batches.push(batch);
            } else {
                let file = context.spill_file(self.holder)?;
                let mut spilled = SpilledRows::new(file, self.types[..].into());
                spilled.push(&batch, context)?;
                self.spilled = Some(spilled);
            }
        }
        Ok(())
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
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        context.check_cancelled()?;
        let mut buffer = self.buffer.borrow_mut();
        buffer.fill(context)?;
        let at = self.at;
        self.at += 1;
        match (buffer.batches.get(at), &buffer.spilled) {
            (None, Some(spilled)) => spilled.read(at - buffer.batches.len()),
            (held, _) => Ok(held.cloned()),
        }
    }
}
