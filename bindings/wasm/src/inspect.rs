//! Converts `Database::inspect` to plain objects; the shapes are those of
//! `worker/shared/inspect.ts`.

use js_sys::{Array, Object, Reflect};
use nacredb::{ColumnReport, SegmentReport, TableReport};
use wasm_bindgen::JsValue;

fn object(entries: &[(&str, JsValue)]) -> JsValue {
    let out = Object::new();
    for (key, value) in entries {
        // Setting a property of a plain object cannot fail.
        let _ = Reflect::set(&out, &(*key).into(), value);
    }
    out.into()
}

fn number(value: impl TryInto<u64>) -> JsValue {
    JsValue::from_f64(value.try_into().unwrap_or(u64::MAX) as f64)
}

fn list<T>(items: &[T], each: impl Fn(&T) -> JsValue) -> JsValue {
    items.iter().map(each).collect::<Array>().into()
}

/// `TableReport[]`.
pub fn tables(reports: &[TableReport]) -> JsValue {
    list(reports, |table| {
        object(&[
            ("name", (&table.name).into()),
            ("rows", number(table.rows)),
            ("rowstoreRows", number(table.rowstore_rows)),
            ("rowstoreBytes", number(table.rowstore_bytes)),
            ("primaryKey", list(&table.primary_key, |name| name.into())),
            ("columns", list(&table.columns, column)),
            ("segments", list(&table.segments, segment)),
        ])
    })
}

fn column(column: &ColumnReport) -> JsValue {
    object(&[
        ("name", (&column.name).into()),
        ("type", column.data_type.to_string().into()),
        ("nullable", column.nullable.into()),
        ("bytes", number(column.bytes)),
        ("rawBytes", number(column.raw_bytes)),
        (
            "encodings",
            list(&column.encodings, |(name, segments)| {
                object(&[("name", name.into()), ("segments", number(*segments))])
            }),
        ),
    ])
}

fn segment(segment: &SegmentReport) -> JsValue {
    object(&[
        ("id", number(segment.id)),
        ("name", (&segment.name).into()),
        ("run", number(segment.run)),
        ("level", number(segment.level)),
        ("rows", number(segment.rows)),
        ("deleted", number(segment.deleted)),
        ("bytes", number(segment.bytes)),
        ("minKey", (&segment.min_key).into()),
        ("maxKey", (&segment.max_key).into()),
        (
            "columns",
            list(&segment.columns, |column| {
                object(&[
                    ("name", (&column.name).into()),
                    ("encoding", (&column.encoding).into()),
                    ("bytes", number(column.bytes)),
                ])
            }),
        ),
    ])
}
