//! Short ways to write schemas.

use nacre_types::{Column, ColumnRule, DataType, Value};

/// A column whose default is null.
pub fn column(id: u32, name: &str, data_type: DataType, nullable: bool) -> Column {
    let (name, default) = (name.into(), Value::Null);
    Column { id, name, data_type, nullable, default, rule: ColumnRule::Constant }
}
