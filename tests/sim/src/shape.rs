//! What a table of the simulation is beside its rows: its columns in order, and its indexes.

use crate::condition::Where;
use crate::row::{Column, Row};
use nacredb::Value;
use std::fmt;

/// A secondary index. Its name says what it is, so that two of one name are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    /// Whether no two rows may be alike in all of them.
    pub unique: bool,
}

/// All indexes that a table may have. The first are not unique.
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

impl Index {
    /// The values that no other row may have; none when the row may be like others.
    pub fn unique_key(&self, row: &Row) -> Option<Vec<Value>> {
        let key: Vec<Value> = self.columns.iter().map(|column| column.of(row)).collect();
        (self.unique && key.iter().all(|value| !value.is_null())).then_some(key)
    }

    /// The same after a column that comes and goes has got another name.
    pub fn renamed(self, from: Column, to: Column) -> Index {
        let columns: &'static [Column] = match to {
            Column::Z => &[Column::Z],
            _ => &[Column::W],
        };
        if self.columns == [from] { Index { columns, ..self } } else { self }
    }

    /// The list of its columns.
    pub fn list(&self) -> String {
        self.columns.iter().map(|column| column.name()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Index {
    /// As in `CREATE TABLE` and `ALTER TABLE … ADD`.
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
    /// In order.
    pub columns: Vec<Column>,
    /// What new rows have in `w`.
    pub default_w: Option<i64>,
    /// And in `z`.
    pub default_z: Option<i64>,
    /// In the order in which they were made.
    pub indexes: Vec<Index>,
}

impl Shape {
    /// Of a table that was just made.
    pub fn new(keyed: bool, indexes: &[Index]) -> Shape {
        let columns = vec![Column::K, Column::V, Column::S];
        Shape { keyed, columns, default_w: None, default_z: None, indexes: indexes.to_vec() }
    }

    /// Whether it has a column.
    pub fn has(&self, column: Column) -> bool {
        self.columns.contains(&column)
    }

    /// Whether it has what a condition is about.
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

    /// A row that a statement makes that does not know of `w` and `z`.
    pub fn row(&self, k: i64, row: &Row) -> Row {
        Row { k, v: row.v, s: row.s.clone(), w: self.default_w, z: self.default_z }
    }

    /// Names of its columns and indexes, to be compared with what the engine has.
    pub fn names(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let columns = self.columns.iter().map(|column| column.name()).collect();
        (columns, self.indexes.iter().map(|index| index.name).collect())
    }
}
