//! The schema of a table in the simulation: its columns in order, and its indexes.

use crate::op::condition::Where;
use crate::op::row::{Column, Row};
use nacredb::Value;
use std::fmt;

/// A secondary index. Its name determines its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    /// Whether it is unique.
    pub unique: bool,
}

/// All indexes that a table may have. The first ones are not unique.
pub const INDEXES: [Index; 9] = [
    Index { name: "i_v", columns: &[Column::V], unique: false },
    Index { name: "i_s", columns: &[Column::S], unique: false },
    Index { name: "i_vs", columns: &[Column::V, Column::S], unique: false },
    Index { name: "i_sv", columns: &[Column::S, Column::V], unique: false },
    Index { name: "i_w", columns: &[Column::W], unique: false },
    Index { name: "u_v", columns: &[Column::V], unique: true },
    Index { name: "u_s", columns: &[Column::S], unique: true },
    Index { name: "u_sv", columns: &[Column::S, Column::V], unique: true },
    Index { name: "u_w", columns: &[Column::W], unique: true },
];

/// Indexes of tables with documents, on what the documents contain.
pub const PATH_INDEXES: [Index; 4] = [
    Index { name: "i_dn", columns: &[Column::DNumber], unique: false },
    Index { name: "i_dt", columns: &[Column::DText], unique: false },
    Index { name: "i_dtv", columns: &[Column::DText, Column::V], unique: false },
    Index { name: "u_dn", columns: &[Column::DNumber], unique: true },
];

impl Index {
    /// The values that no other row may have; `None` if duplicates are allowed.
    pub fn unique_key(&self, row: &Row) -> Option<Vec<Value>> {
        let key: Vec<Value> = self.columns.iter().map(|column| column.of(row)).collect();
        (self.unique && key.iter().all(|value| !value.is_null())).then_some(key)
    }

    /// The index after an optional column was renamed.
    pub fn renamed(self, from: Column, to: Column) -> Index {
        let columns: &'static [Column] = match to {
            Column::Z => &[Column::Z],
            _ => &[Column::W],
        };
        if self.columns == [from] { Index { columns, ..self } } else { self }
    }

    /// The list of its columns, as SQL.
    pub fn list(&self) -> String {
        self.columns.iter().map(|column| column.name()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Index {
    /// Formats the index as in `CREATE TABLE` and `ALTER TABLE … ADD`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.unique { "unique" } else { "index" };
        write!(f, "{word} {} ({})", self.name, self.list())
    }
}

/// Columns and indexes of one version of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Whether `k` is its primary key.
    pub keyed: bool,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// Default of `w`.
    pub default_w: Option<i64>,
    /// Default of `z`.
    pub default_z: Option<i64>,
    /// Its indexes, in order of creation.
    pub indexes: Vec<Index>,
}

impl Shape {
    /// The schema of a new table.
    pub fn new(keyed: bool, indexes: &[Index]) -> Shape {
        let columns = vec![Column::K, Column::V, Column::S];
        Shape { keyed, columns, default_w: None, default_z: None, indexes: indexes.to_vec() }
    }

    /// With the column `d`.
    pub fn with_documents(mut self) -> Shape {
        self.columns.push(Column::D);
        self
    }

    /// Whether it has a column, or the one that it is computed from.
    pub fn has(&self, column: Column) -> bool {
        let column = match column {
            Column::DNumber | Column::DText => Column::D,
            stored => stored,
        };
        self.columns.contains(&column)
    }

    /// Whether it has the columns that a condition needs.
    pub fn knows(&self, rows: &Where) -> bool {
        rows.needs().is_none_or(|column| self.has(column))
    }

    /// The unique indexes.
    pub fn unique(&self) -> impl Iterator<Item = &Index> {
        self.indexes.iter().filter(|index| index.unique)
    }

    /// A row as the engine prints it.
    pub fn printed(&self, row: &Row) -> Vec<String> {
        self.columns.iter().map(|column| column.of(row).to_string()).collect()
    }

    /// The row that a statement inserts if it does not mention `w` and `z`.
    pub fn row(&self, k: i64, row: &Row) -> Row {
        Row { k, v: row.v, s: row.s.clone(), w: self.default_w, z: self.default_z }
    }

    /// Names of its columns and indexes, for comparison with the engine.
    pub fn names(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let columns = self.columns.iter().map(|column| column.name()).collect();
        (columns, self.indexes.iter().map(|index| index.name).collect())
    }
}
