//! Floats that are equal as keys but not in IEEE comparison or representation: NaN, and zeros of
//! either sign.

use super::*;
use nacre_types::ColumnRule;

fn float(name: &str, id: u32, default: Value) -> Column {
    let (data_type, rule) = (DataType::Float64, ColumnRule::Constant);
    Column { id, name: name.into(), data_type, nullable: false, default, rule }
}

/// Lookups by the first column of a two-column key, in segments with a different sort order.
#[test]
fn keys_that_begin_with_nan_are_found() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options()).unwrap();
    let number =
        |id, name: &str| Column { data_type: DataType::Int64, ..float(name, id, Value::Null) };
    let shape = TableSchema {
        name: "f".into(),
        columns: vec![float("d", 1, Value::Null), number(2, "id"), number(3, "n")],
        primary_key: Some(KeyColumns { name: "PRIMARY".into(), columns: vec![0, 1] }),
        sort_key: Some(KeyColumns { name: "SORT".into(), columns: vec![2] }),
        ..TableSchema::default()
    };
    let table = store.create_table(shape).unwrap();
    let doubles = [f64::NAN, 0.0, -0.0, 1.5, -f64::NAN];
    let mut t = store.begin().unwrap();
    for (id, d) in doubles.iter().enumerate() {
        let row = [Value::Float(*d), Value::Int(id as i64), Value::Int(9 - id as i64)];
        t.insert_row(&table, &row).unwrap();
    }
    t.commit().unwrap();
    for flush in [false, true] {
        if flush {
            store.flush(&table).unwrap();
        }
        let t = store.begin().unwrap();
        let view = t.view(&table);
        for (wanted, expected) in [(f64::NAN, 2), (0.0, 2), (-0.0, 2), (1.5, 1), (2.5, 0)] {
            let probe = view.probe_key(&[Value::Float(wanted)]).unwrap();
            assert_eq!(probe.len(), expected, "{wanted}, flushed: {flush}");
        }
    }
}

/// Rows of a segment older than a column have its default.
#[test]
fn a_default_that_is_nan_is_found() {
    let (_, store, table) = open(schema(true));
    insert(&store, &[item(1, 1, "a", 3), item(2, 2, "b", 3), item(3, 3, "c", 4)]).unwrap();
    store.flush(&table).unwrap();
    let mut changed = (**table.schema()).clone();
    for (name, default) in [("nan", f64::NAN), ("zero", -0.0)] {
        let id = changed.take_column_id();
        let at = changed.columns.len();
        changed.insert_column(at, float(name, id, Value::Float(default)));
    }
    let table = store.alter_table(&table, changed).unwrap();
    let by_n = table.schema().index_by_name("by_n").unwrap().id;
    let t = store.begin().unwrap();
    for (nan, zero, expected) in
        [(f64::NAN, 0.0, 2), (f64::NAN, -0.0, 2), (1.0, 0.0, 0), (f64::NAN, 1.0, 0)]
    {
        let values = [(3, Value::Int(3)), (4, Value::Float(nan)), (5, Value::Float(zero))];
        let equal = Equal { values: &values, indexes: &[(by_n, 1)], unique: false, most: 100 };
        let found = t.equal(&table, &equal).unwrap().unwrap();
        assert_eq!(found.iter().map(FoundRows::count).sum::<usize>(), expected, "{nan}, {zero}");
    }
}
