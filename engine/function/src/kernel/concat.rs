//! `||` and `CONCAT`.

use crate::vector::map::map_bytes;
use crate::vector::room::{Room, check_length};
use crate::vector::rows::ActiveRows;
use crate::vector::view::Texts;
use nacre_column::Vector;
use nacre_types::{DataType, Error, PhysicalType, Result, Value};

/// Concatenates texts or binary values; null if any argument is null.
pub fn concat(
    args: &[&Vector],
    data_type: DataType,
    rows: ActiveRows<'_>,
    room: Room,
) -> Result<Vector> {
    let is_other = |arg: &&&Vector| arg.data_type().physical() != PhysicalType::Bytes;
    if let Some(other) = args.iter().find(is_other) {
        if other.data_type() == DataType::Null {
            return Ok(Vector::constant(data_type, &Value::Null, rows.len));
        }
        return Err(Error::type_error(format!("cannot concatenate {}", other.data_type())));
    }
    map_bytes(args, data_type, rows, room, &mut |i, out| {
        for arg in args {
            let more = Texts::new(arg).bytes(i);
            check_length(out.len() + more.len())?;
            out.extend_from_slice(more);
        }
        Ok(true)
    })
}
