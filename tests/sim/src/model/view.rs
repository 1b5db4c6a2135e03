//! Views in the model.

use crate::op::condition::Where;
use crate::op::row::Column;
use std::collections::BTreeMap;

/// A view over a table or another view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The table or view it reads.
    pub from: &'static str,
    /// The rows it selects.
    pub rows: Where,
    /// Its columns, fixed when it was created.
    pub columns: Vec<Column>,
    /// The statement that created it.
    pub text: String,
    /// The commit that created it.
    pub since: u64,
}

/// Views by name.
pub type Views = BTreeMap<&'static str, View>;
