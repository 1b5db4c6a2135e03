//! Results as columns for JavaScript: typed arrays for many rows, single values for few. The shapes
//! and the codes are those of `worker/shared/wire.ts`.

use js_sys::{Array, BigInt64Array, Float64Array, Int32Array, Object, Uint8Array, Uint32Array};
use nacredb::{
    DataType, Error, Field, PhysicalType, QueryResult, ResultKind, Value, Values, Vector,
};
use std::cell::RefCell;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

/// Maximum number of rows passed as single values, which are cheaper to create and send than many
/// tiny buffers.
const FEW_ROWS: usize = 16;
/// Maximum size of a text column in bytes: passing it copies it, and all memory is 4 GiB.
const MOST_TEXT_BYTES: usize = 1 << 30;
/// Code of integers that fit in a JavaScript number.
const INT: u8 = 2;

#[wasm_bindgen]
extern "C" {
    type Wire;
    #[wasm_bindgen(method, setter)]
    fn set_name(this: &Wire, name: &str);
    #[wasm_bindgen(method, setter, js_name = type)]
    fn set_type(this: &Wire, name: &str);
    #[wasm_bindgen(method, setter)]
    fn set_code(this: &Wire, code: u8);
    #[wasm_bindgen(method, setter)]
    fn set_scale(this: &Wire, scale: u8);
    #[wasm_bindgen(method, setter)]
    fn set_values(this: &Wire, values: &JsValue);
    #[wasm_bindgen(method, setter)]
    fn set_offsets(this: &Wire, offsets: &Uint32Array);
    #[wasm_bindgen(method, setter)]
    fn set_validity(this: &Wire, validity: &Uint8Array);
}

#[wasm_bindgen(raw_module = "../wire.js")]
extern "C" {
    /// An array of single values.
    type Cells;
    #[wasm_bindgen(js_name = addColumn)]
    fn add_column(columns: &Array) -> Cells;
    #[wasm_bindgen(js_name = makeResult)]
    fn make_result(
        kind: u8,
        fields: Option<Array>,
        columns: &Array,
        rows: f64,
        rows_affected: f64,
        rows_read: f64,
        bytes_read: f64,
        segments_read: f64,
        segments_skipped: f64,
        blocks_read: f64,
        blocks_skipped: f64,
        point_reads: f64,
        elapsed_ms: f64,
    ) -> JsValue;
    #[wasm_bindgen(method, js_name = push)]
    fn push(this: &Cells, value: &JsValue);
    #[wasm_bindgen(method, js_name = push)]
    fn push_number(this: &Cells, value: f64);
    #[wasm_bindgen(method, js_name = push)]
    fn push_integer(this: &Cells, value: i64);
    #[wasm_bindgen(method, js_name = push)]
    fn push_text(this: &Cells, value: &str);
}

fn wire() -> Wire {
    Object::new().unchecked_into()
}

/// `Code` of the protocol.
fn code(data_type: DataType) -> u8 {
    use DataType::*;
    match data_type {
        Null => 0,
        Boolean => 1,
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 => INT,
        Int64 => 3,
        UInt64 => 4,
        Float32 | Float64 => 5,
        Decimal { .. } if data_type.physical() == PhysicalType::I64 => 6,
        Decimal { .. } => 7,
        Text { .. } | Interval | Uuid => 8,
        Binary { .. } => 9,
        Date => 10,
        Time => 11,
        Timestamp => 12,
        Json => 13,
        TimestampTz => 14,
    }
}

/// `WireField[]`.
pub fn fields(fields: &[Field]) -> Array {
    fields
        .iter()
        .map(|field| {
            let out = wire();
            out.set_name(&field.name);
            out.set_type(&field.data_type.to_string());
            out.set_code(code(field.data_type));
            out.set_scale(field.data_type.scale());
            JsValue::from(out)
        })
        .collect()
}

/// The fields of recent results, newest first.
const FIELDS_KEPT: usize = 16;

thread_local! {
    static FIELDS: RefCell<Vec<(Vec<Field>, Array)>> = const { RefCell::new(Vec::new()) };
}

/// Like [`fields`], without making again what a recent result had: for one row, that takes as long
/// as reading it.
fn recent_fields(of: &[Field]) -> Array {
    FIELDS.with_borrow_mut(|kept| {
        if let Some(at) = kept.iter().position(|(known, _)| known == of) {
            kept[..=at].rotate_right(1);
            return kept[0].1.clone();
        }
        let made = fields(of);
        kept.insert(0, (of.to_vec(), made.clone()));
        kept.truncate(FIELDS_KEPT);
        made
    })
}

/// Converts to a `WireResult`, without the fields if they equal `known`.
pub fn result(from: &QueryResult, known: Option<&[Field]>) -> nacredb::Result<JsValue> {
    let rows = from.rows();
    let columns = Array::new();
    for (i, field) in from.columns.iter().enumerate() {
        let parts: Vec<&Vector> = from.batches.iter().map(|batch| &*batch.columns[i]).collect();
        push_column(&columns, field.data_type, &parts, rows)?;
    }
    let kind = match from.kind {
        ResultKind::Query => 0,
        ResultKind::Write => 1,
        ResultKind::Ddl => 2,
        ResultKind::Control => 3,
    };
    let is_known = known == Some(&from.columns[..]);
    let statistics = &from.statistics;
    Ok(make_result(
        kind,
        (!is_known).then(|| recent_fields(&from.columns)),
        &columns,
        rows as f64,
        from.rows_affected as f64,
        statistics.rows_read as f64,
        statistics.bytes_read as f64,
        statistics.segments_read as f64,
        statistics.segments_skipped as f64,
        statistics.blocks_read as f64,
        statistics.blocks_skipped as f64,
        statistics.point_reads as f64,
        statistics.elapsed_us as f64 / 1e3,
    ))
}

/// Adds a `WireColumn` with the values of all parts.
pub fn push_column(
    columns: &Array,
    data_type: DataType,
    parts: &[&Vector],
    rows: usize,
) -> nacredb::Result<()> {
    if rows <= FEW_ROWS {
        let (cells, code) = (add_column(columns), code(data_type));
        for part in parts {
            (0..part.len()).for_each(|row| push(&cells, part.value(row), code));
        }
    } else {
        let column = wire();
        fill(&column, data_type, parts, rows)?;
        columns.push(&column);
    }
    Ok(())
}

/// The values of a row, each in the raw form prescribed by its column's code.
pub fn cells(row: Vec<Value>, columns: &[Field]) -> JsValue {
    debug_assert!(row.len() == columns.len(), "{} values of {} columns", row.len(), columns.len());
    let cells: Cells = Array::new().unchecked_into();
    for (value, field) in row.into_iter().zip(columns) {
        push(&cells, value, code(field.data_type));
    }
    cells.into()
}

/// Adds a value, in the raw form prescribed by its code.
fn push(cells: &Cells, value: Value, code: u8) {
    match value {
        Value::Null => cells.push(&JsValue::NULL),
        Value::Boolean(v) => cells.push(&v.into()),
        Value::Int(v) if code == INT => cells.push_number(v as f64),
        Value::Int(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => {
            cells.push_integer(v)
        }
        Value::UInt(v) => cells.push(&v.into()),
        Value::Float(v) => cells.push_number(v),
        Value::Decimal { unscaled, .. } => cells.push(&unscaled.into()),
        Value::Text(v) | Value::Json(v) => cells.push_text(&v),
        Value::Binary(v) => cells.push(&Uint8Array::from(&v[..])),
        Value::Date(v) => cells.push_number(f64::from(v)),
        shown @ (Value::Interval(_) | Value::Uuid(_)) => cells.push_text(&shown.to_string()),
    }
}

/// Many values, in typed arrays.
fn fill(out: &Wire, data_type: DataType, parts: &[&Vector], rows: usize) -> nacredb::Result<()> {
    use DataType::*;
    match data_type {
        Null => out.set_values(&Uint8Array::new_with_length(0)),
        Boolean => {
            let values = collect(parts, rows, |values, all: &mut Vec<u8>| {
                if let Values::Bool(v) = values {
                    all.extend(v.iter().map(|b| *b as u8))
                }
            });
            out.set_values(&Uint8Array::from(&values[..]));
        }
        Int8 | Int16 | Int32 | UInt8 | UInt16 | Date => {
            let values = collect(parts, rows, |values, all: &mut Vec<i32>| {
                if let Values::I64(v) = values {
                    all.extend(v.iter().map(|v| *v as i32))
                }
            });
            out.set_values(&Int32Array::from(&values[..]));
        }
        UInt32 | Float32 | Float64 => {
            let values = collect(parts, rows, |values, all: &mut Vec<f64>| match values {
                Values::I64(v) => all.extend(v.iter().map(|v| *v as f64)),
                Values::F64(v) => all.extend(v),
                _ => {}
            });
            out.set_values(&Float64Array::from(&values[..]));
        }
        Int64 | Time | Timestamp | TimestampTz | UInt64 | Decimal { .. } => {
            let values = collect(parts, rows, |values, all: &mut Vec<i64>| match values {
                Values::I64(v) => all.extend(v),
                Values::I128(v) => {
                    all.extend(v.iter().flat_map(|v| [*v as i64, (*v >> 64) as i64]))
                }
                _ => {}
            });
            out.set_values(&BigInt64Array::from(&values[..]));
        }
        Text { .. } | Binary { .. } | Json | Interval | Uuid => bytes(out, parts, rows)?,
    }
    if parts.iter().any(|part| part.validity().is_some()) {
        out.set_validity(&validity(parts, rows));
    }
    Ok(())
}

fn collect<T>(parts: &[&Vector], rows: usize, append: impl Fn(&Values, &mut Vec<T>)) -> Vec<T> {
    let mut all = Vec::with_capacity(rows);
    parts.iter().for_each(|part| append(&part.flat(), &mut all));
    all
}

fn bytes(out: &Wire, parts: &[&Vector], rows: usize) -> nacredb::Result<()> {
    let length = parts.iter().map(|part| part.flat_bytes()).fold(0, usize::saturating_add);
    if length > MOST_TEXT_BYTES {
        return Err(Error::limit(format!(
            "a result column of {length} bytes: {MOST_TEXT_BYTES} at most at once"
        )));
    }
    let mut offsets = Vec::with_capacity(rows + 1);
    let mut data: Vec<u8> = Vec::with_capacity(length);
    offsets.push(0u32);
    for part in parts {
        for row in 0..part.len() {
            match part.bytes(row) {
                Some(bytes) => data.extend_from_slice(bytes),
                None if part.is_null(row) => {}
                None => data.extend_from_slice(part.value(row).to_string().as_bytes()),
            }
            offsets.push(data.len() as u32);
        }
    }
    out.set_values(&Uint8Array::from(&data[..]));
    out.set_offsets(&Uint32Array::from(&offsets[..]));
    Ok(())
}

fn validity(parts: &[&Vector], rows: usize) -> Uint8Array {
    let mut bits = vec![0u8; rows.div_ceil(8)];
    let mut at = 0;
    for part in parts {
        for row in 0..part.len() {
            if !part.is_null(row) {
                bits[at / 8] |= 1 << (at % 8);
            }
            at += 1;
        }
    }
    Uint8Array::from(&bits[..])
}
