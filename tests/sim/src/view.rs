//! Views, by the model.

use crate::condition::Where;
use crate::row::Column;
use std::collections::BTreeMap;

/// A view over a table or another view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// What it reads.
    pub from: &'static str,
    /// Which rows.
    pub rows: Where,
    /// The columns of its creation.
    pub columns: Vec<Column>,
    /// The statement that made it.
    pub text: String,
}

/// Views by name.
pub type Views = BTreeMap<&'static str, View>;
