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
    /// `d json`, a document of the other columns, in tables that are created with it.
    D,
    /// A number of the document, computed for indexes. No table has it.
    DNumber,
    /// A text of the document, computed for indexes.
    DText,
}

/// The expression of the column `d`.
pub const DOCUMENT: &str = "json_object('key', k, 'number', v, 'text', s, 'list', json_array(v, json_object('text', s), k))";

/// The expressions of columns that indexes compute from the document: numbers of it equal `v`, texts
/// equal `s`.
pub const NUMBER_IN_DOCUMENT: &str = "((d->>'number')::bigint)";
/// Like [`NUMBER_IN_DOCUMENT`].
pub const TEXT_IN_DOCUMENT: &str = "(d->>'list[1].text')";

/// The document of a row, in its normal form. The texts of the simulation need no escapes.
fn document(row: &Row) -> String {
    let Row { k, v, s, .. } = row;
    let text = s.as_ref().map_or("null".to_string(), |s| format!("\"{s}\""));
    format!(r#"{{"key":{k},"number":{v},"text":{text},"list":[{v},{{"text":{text}}},{k}]}}"#)
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
            Column::D => "d",
            Column::DNumber => NUMBER_IN_DOCUMENT,
            Column::DText => TEXT_IN_DOCUMENT,
        }
    }

    /// The value in a row.
    pub fn of(self, row: &Row) -> Value {
        match self {
            Column::K => Value::Int(row.k),
            Column::V | Column::DNumber => Value::Int(row.v),
            Column::S | Column::DText => {
                row.s.as_ref().map_or(Value::Null, |s| Value::Text(s.clone()))
            }
            Column::W => row.w.map_or(Value::Null, Value::Int),
            Column::Z => row.z.map_or(Value::Null, Value::Int),
            Column::D => Value::Json(document(row)),
        }
    }

    /// Its type.
    pub fn data_type(self) -> DataType {
        match self {
            Column::S | Column::DText => DataType::TEXT,
            Column::D => DataType::Json,
            _ => DataType::Int64,
        }
    }
}
