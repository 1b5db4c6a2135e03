//! `OPTIMIZE TABLE … WARM BLOB CACHE`: brings bytes of a table to the local disk, and returns how many.

use crate::plan::tree::{Field, Plan, PlanNode};
use nacre_types::{DataType, IndexId, TableSchema};
use std::sync::Arc;

/// The part of a table that is brought.
#[derive(Clone, Debug, PartialEq)]
pub enum WarmPart {
    /// All of its columns and indexes.
    Table,
    /// An index; the primary key if `None`.
    Index(Option<IndexId>),
    /// Columns, by position in the table.
    Columns(Vec<usize>),
}

/// Brings bytes of a table to the local disk.
#[derive(Clone, Debug, PartialEq)]
pub struct WarmUp {
    /// A scan of all columns of the table, with the filters that choose blocks.
    pub input: Plan,
    /// The table.
    pub table: Arc<TableSchema>,
    /// Which part of it.
    pub part: WarmPart,
    /// Whether there is a `WHERE`.
    pub is_filtered: bool,
}

impl PlanNode for WarmUp {
    fn fields(&self) -> Vec<Field> {
        let field = |name: &str| Field {
            name: name.to_string(),
            data_type: DataType::Int64,
            nullable: false,
        };
        vec![field("fetched_bytes"), field("local_bytes")]
    }

    fn for_each_input<'p>(&'p self, f: &mut dyn FnMut(&'p Plan)) {
        f(&self.input);
    }

    fn for_each_input_mut(&mut self, f: &mut dyn FnMut(&mut Plan)) {
        f(&mut self.input);
    }

    fn title(&self) -> &'static str {
        "OPTIMIZE TABLE … WARM BLOB CACHE"
    }

    fn explain(&self) -> String {
        let name = |at: &usize| self.table.columns[*at].name.as_str();
        let part = match &self.part {
            WarmPart::Table => String::new(),
            WarmPart::Index(None) => " primary key".to_string(),
            WarmPart::Index(Some(id)) => {
                let index = self.table.indexes.iter().find(|index| index.id == *id);
                format!(" index {}", index.map_or("", |index| &index.name))
            }
            WarmPart::Columns(columns) => {
                format!(" columns [{}]", columns.iter().map(name).collect::<Vec<_>>().join(", "))
            }
        };
        format!("WarmUp {}{part}", self.table.name)
    }

    fn estimate_rows(&self, _: &[f64]) -> f64 {
        1.0
    }
}
