//! Short ways to write schemas.

use nacre_types::{Column, DataType, Value};

/// A column whose default is null.
pub fn column(id: u32, name: &str, data_type: DataType, nullable: bool) -> Column {
    Column { id, name: name.into(), data_type, nullable, default: Value::Null }
}
