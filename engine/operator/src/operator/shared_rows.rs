//! Rows that several places of a plan read: computed when the first of them reads, kept until the
//! last is done. Rows that do not fit in memory are in the statement's temporary file.

use super::protocol::Operator;
use crate::context::Context;
use crate::memory::Reservation;
use crate::spill::SpilledRows;
use nacre_column::Batch;
use nacre_types::{DataType, Error, Result};
use std::cell::RefCell;
use std::rc::Rc;

/// The rows, computed or not yet.
pub struct SharedRows {
    /// Where they come from; `None` once all are here.
    input: Option<Box<dyn Operator>>,
    types: Vec<DataType>,
    /// What holds the rows, for messages.
    holder: &'static str,
    batches: Vec<Batch>,
    bytes: usize,
    held: Reservation,
    /// The rows after `batches`.
    spilled: Option<SpilledRows>,
    /// The error that ended the input. A later read must not find the rows after it: one thread
    /// reads again what several threads failed to read.
    failed: Option<Error>,
}

impl SharedRows {
    /// Rows to be computed when an operator first reads them.
    pub fn new(input: Box<dyn Operator>, types: Vec<DataType>) -> Rc<RefCell<SharedRows>> {
        Rc::new(RefCell::new(SharedRows::held_by("WITH", input, types)))
    }

    fn held_by(holder: &'static str, input: Box<dyn Operator>, types: Vec<DataType>) -> SharedRows {
        SharedRows {
            input: Some(input),
            types,
            holder,
            batches: Vec::new(),
            bytes: 0,
            held: Reservation::default(),
            spilled: None,
            failed: None,
        }
    }

    /// All rows of an operator, computed now.
    pub fn all_of(
        input: Box<dyn Operator>,
        types: Vec<DataType>,
        context: &Context<'_>,
    ) -> Result<SharedScan> {
        let mut rows = SharedRows::held_by("the result", input, types);
        context.fetch_waits().call(|| rows.compute(context))?;
        Ok(SharedScan::new(Rc::new(RefCell::new(rows))))
    }

    /// Computes all rows, once. An error is kept: a later call returns it again, except that of
    /// absent bytes, after which it continues.
    fn compute(&mut self, context: &Context<'_>) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.collect(context).inspect_err(|error| {
            if !error.is_pause() {
                self.failed = Some(error.clone());
            }
        })
    }

    fn collect(&mut self, context: &Context<'_>) -> Result<()> {
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

    /// Batch `at`; `None` past the last.
    fn batch(&self, at: usize) -> Result<Option<Batch>> {
        debug_assert!(self.input.is_none(), "all rows are computed before the first is read");
        match (self.batches.get(at), &self.spilled) {
            (None, Some(spilled)) => spilled.read(at - self.batches.len()),
            (held, _) => Ok(held.cloned()),
        }
    }
}

/// One of the places that read shared rows.
pub struct SharedScan {
    rows: Rc<RefCell<SharedRows>>,
    at: usize,
}

impl SharedScan {
    /// Reads all rows, from the first.
    pub fn new(rows: Rc<RefCell<SharedRows>>) -> SharedScan {
        SharedScan { rows, at: 0 }
    }
}

impl Operator for SharedScan {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        context.check_cancelled()?;
        let mut rows = self.rows.borrow_mut();
        rows.compute(context)?;
        let batch = rows.batch(self.at)?;
        self.at += usize::from(batch.is_some());
        Ok(batch)
    }
}
