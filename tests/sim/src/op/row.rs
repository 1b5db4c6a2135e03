//! Rows of the simulation and their columns, some of which are optional.

use nacredb::{DataType, Value};

/// A row of every table of the simulation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The primary key, if the table has one.
    pub k: i64,
    /// A number.
    pub v: i64,
    /// A text, sometimes long.
    pub s: Option<String>,
    /// A number, in tables with the optional column `w`.
    pub w: Option<i64>,
    /// A number, in tables with the optional column `z`.
    pub z: Option<i64>,
}

/// A column. Every table has the first three; the others are added, dropped and renamed by `ALTER
/// TABLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// `k bigint not null`.
    K,
    /// `v bigint`.
    V,
    /// `s text`.
    S,
    /// `w bigint`.
    W,
    /// `z bigint`.
    Z,
}

impl Column {
    /// Its name in statements.
    pub fn name(self) -> &'static str {
        match self {
            Column::K => "k",
            Column::V => "v",
            Column::S => "s",
            Column::W => "w",
            Column::Z => "z",
        }
    }

    /// The value in a row.
    pub fn of(self, row: &Row) -> Value {
        match self {
            Column::K => Value::Int(row.k),
            Column::V => Value::Int(row.v),
            Column::S => row.s.as_ref().map_or(Value::Null, |s| Value::Text(s.clone())),
            Column::W => row.w.map_or(Value::Null, Value::Int),
            Column::Z => row.z.map_or(Value::Null, Value::Int),
        }
    }

    /// Its type.
    pub fn data_type(self) -> DataType {
        if self == Column::S { DataType::TEXT } else { DataType::Int64 }
    }
}
