//! Rows that a plan reads but does not compute.

use nacre_column::Batch;

/// The rows of one `Plan::Given`: those of the previous round of a recursion, or those of the table
/// that a statement changes. Nested recursions form a list.
#[derive(Clone, Copy)]
pub struct SuppliedRows<'a> {
    /// The number of the `Plan::Given`.
    pub id: u32,
    /// The rows, without selections.
    pub batches: &'a [Batch],
    /// Rows of further `Plan::Given` nodes.
    pub others: Option<&'a SuppliedRows<'a>>,
}

impl<'a> SuppliedRows<'a> {
    /// The rows of a `Plan::Given`, here or further down the list.
    pub fn find(&self, id: u32) -> Option<&'a [Batch]> {
        let mut at = self;
        loop {
            if at.id == id {
                return Some(at.batches);
            }
            at = at.others?;
        }
    }
}
