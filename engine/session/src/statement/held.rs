//! Rows that a statement holds, counted in the memory of statements until they are dropped.

use nacre_column::Batch;
use nacre_operator::{Context, Reservation};
use nacre_table::RowLocator;
use nacre_types::Result;
use std::ops::Deref;

/// Estimated bytes of a [`RowLocator`].
pub(super) const LOCATOR_BYTES: usize = 24;

/// Rows of a target table with their locators.
pub(crate) struct LocatedRows {
    pub rows: Batch,
    pub locators: Vec<RowLocator>,
}

/// Rows of a plan, or rows to be written or returned.
#[derive(Default)]
pub(crate) struct HeldRows {
    batches: Vec<Batch>,
    bytes: usize,
    held: Reservation,
}

impl HeldRows {
    /// Adds rows. `limit` if `what`, as the error calls them, exceed the statement's memory.
    pub fn push(&mut self, rows: Batch, what: &str, context: &Context<'_>) -> Result<()> {
        self.bytes += rows.memory_bytes(self.batches.last());
        context.reserve(&mut self.held, what, self.bytes)?;
        self.batches.push(rows);
        Ok(())
    }

    /// Estimated bytes of the rows.
    pub fn bytes(&self) -> usize {
        debug_assert!(
            self.bytes == 0 || !self.batches.is_empty(),
            "no rows have {} bytes",
            self.bytes
        );
        self.bytes
    }

    /// Takes all rows, which are no longer counted.
    pub fn take(&mut self) -> Vec<Batch> {
        self.bytes = 0;
        self.held.release();
        std::mem::take(&mut self.batches)
    }
}

impl Deref for HeldRows {
    type Target = [Batch];

    fn deref(&self) -> &[Batch] {
        &self.batches
    }
}

/// Rows of a target table.
#[derive(Default)]
pub(crate) struct HeldTargets {
    found: Vec<LocatedRows>,
    bytes: usize,
    held: Reservation,
}

impl HeldTargets {
    /// Adds rows. `limit` if they exceed the statement's memory.
    pub fn push(&mut self, found: LocatedRows, context: &Context<'_>) -> Result<()> {
        let LocatedRows { rows, locators } = &found;
        debug_assert!(rows.rows == locators.len(), "{} rows, {} places", rows.rows, locators.len());
        self.bytes += rows.memory_bytes(self.found.last().map(|found| &found.rows));
        self.bytes += locators.len() * LOCATOR_BYTES;
        context.reserve(&mut self.held, "the statement's rows", self.bytes)?;
        self.found.push(found);
        Ok(())
    }

    /// Takes all rows, which are no longer counted.
    pub fn take(&mut self) -> Vec<LocatedRows> {
        self.bytes = 0;
        self.held.release();
        std::mem::take(&mut self.found)
    }
}

impl Deref for HeldTargets {
    type Target = [LocatedRows];

    fn deref(&self) -> &[LocatedRows] {
        &self.found
    }
}
