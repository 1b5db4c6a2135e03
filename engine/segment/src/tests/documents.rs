//! JSON columns in files: shredded where that pays, read by row and by block.

use super::{open, pseudo, spec, write};
use crate::{BlockCache, Segment};
use nacre_column::Scalar;
use nacre_column::kernel::{Comparison, Predicate};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{DataType, PhysicalType, Value};

/// Orders with a varying number of lines, some rows null, some documents of other kinds.
fn document(row: usize) -> Value {
    let r = pseudo(row);
    let line = |at: u64| {
        let (sku, odd) = (pseudo(row * 7 + at as usize) % 10_000_000, r.is_multiple_of(5));
        let tags = if odd { ",\"tags\":[\"x\",[1.5,[]]]" } else { "" };
        format!(
            "{{\"line_num\":{at},\"SKU\":{sku},\"description\":\"item {sku:x}\",\"qty\":1{tags}}}"
        )
    };
    let lines: Vec<String> = (0..r % 5).map(line).collect();
    match r % 97 {
        0 => Value::Null,
        1 => Value::Json("null".into()),
        2 => Value::Json("[1,{\"a\":\"b\"},[]]".into()),
        3 => Value::Json(format!("{{\"lineitems\":[],\"rare{r}\":{{}},\"id\":1.50}}")),
        _ => Value::Json(format!(
            "{{\"id\":{row},\"time\":\"2022-11-17 23:03:{:02}\",\"lineitems\":[{}],\"paid\":{}}}",
            r % 60,
            lines.join(","),
            r.is_multiple_of(2)
        )),
    }
}

pub(super) fn specs() -> Vec<crate::ColumnSpec> {
    vec![
        spec(1, DataType::Int64, false),
        spec(2, DataType::Json, true),
        spec(3, DataType::TEXT, true),
        spec(4, DataType::Json, true),
    ]
}

pub(super) fn rows(count: usize) -> Vec<Vec<Value>> {
    let row = |row: usize| {
        let text = Value::Text(format!("t{row}"));
        vec![Value::Int(row as i64), document(row), text, document(row * 3 + 1)]
    };
    (0..count).map(row).collect()
}

fn encoding(segment: &Segment, column: usize) -> &'static str {
    segment.columns().unwrap()[column].encoding
}

#[test]
fn shredded_documents_read_like_text() {
    for count in [300, BLOCK_ROWS, BLOCK_ROWS * 2 + 1234] {
        let rows = rows(count);
        let segment = open(write(&specs(), &rows, 1000)).unwrap();
        let ids: Vec<u32> = segment.columns().unwrap().iter().map(|c| c.id).collect();
        assert_eq!(ids, [1, 2, 3, 4]);
        assert_eq!((encoding(&segment, 1), encoding(&segment, 3)), ("shredded", "shredded"));
        let problems: Vec<String> = segment.verify().iter().map(|e| e.to_string()).collect();
        assert_eq!(problems, Vec::<String>::new());
        for column in [1, 3] {
            let meta = &segment.columns().unwrap()[column];
            let nulls = rows.iter().filter(|row| row[column].is_null()).count();
            assert_eq!(meta.null_count as usize, nulls);
            let whole = segment.decode(column, 0, count).unwrap();
            (0..count).for_each(|row| assert_eq!(whole.value(row), rows[row][column], "{row}"));
            for step in [1, 7, 150, 3000] {
                let some: Vec<u32> = (0..count as u32).step_by(step).collect();
                let taken = segment.take(column, &some).unwrap();
                for (at, row) in some.iter().enumerate() {
                    assert_eq!(taken.value(at), rows[*row as usize][column], "{row}");
                }
            }
            let (start, len) = (count / 3, count / 2);
            let mut seen = Vec::new();
            let mut see = |scalar: Scalar<'_>| {
                seen.push(scalar.to_value(DataType::Json));
                Ok(())
            };
            segment.each(column, start, len, &mut see).unwrap();
            assert!(seen.iter().zip(&rows[start..]).all(|(a, row)| *a == row[column]));
            assert_eq!(seen.len(), len);
            let wanted = Value::Json("null".into());
            let is_null =
                Predicate::compare(PhysicalType::Bytes, Comparison::Equal, &wanted).unwrap();
            let passed = segment.filter(column, &is_null, start, len).unwrap();
            let expected = (0..len).map(|at| rows[start + at][column] == wanted);
            assert!(expected.enumerate().all(|(at, passes)| passed.get(at) == passes));
            let mut all: Vec<u32> = (0..count as u32).collect();
            segment.retain_equal(column, &wanted, &mut all).unwrap();
            let expected = (0..count as u32).filter(|row| rows[*row as usize][column] == wanted);
            assert_eq!(all, expected.collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_row_is_read_from_any_cache() {
    let rows = rows(BLOCK_ROWS * 2 + 99);
    let file = write(&specs(), &rows, 1000);
    // The second holds none of the blocks.
    for capacity in [64 << 20, 0] {
        let segment = Segment::open(file.clone(), "s", 1, BlockCache::new(capacity)).unwrap();
        for row in (0..rows.len()).step_by(211).rev() {
            assert_eq!(segment.get(1, row).unwrap(), rows[row][1]);
            let mut values = Vec::new();
            let id = |at: usize| [4, 9, 2, 1, 3][at];
            segment.values(row, 5, &id, &|_| Value::Int(-1), &mut values).unwrap();
            let [one, two, three, four] = &rows[row][..] else { panic!("four columns") };
            assert_eq!(values, [four, &Value::Int(-1), two, one, three].map(Value::clone));
        }
        let error = segment.get(1, rows.len()).unwrap_err();
        assert_eq!(error.kind(), nacre_types::ErrorKind::Corrupt);
    }
}

#[test]
fn text_stays_text_where_documents_differ_or_are_few() {
    let column = [spec(1, DataType::Json, false)];
    let row = |text: String| vec![Value::Json(text)];
    let odd: Vec<Vec<Value>> =
        (0..5000).map(|n| row(format!("{{\"{:x}\":1}}", pseudo(n)))).collect();
    let few: Vec<Vec<Value>> = (0..3).map(|n| row(format!("{{\"a\":{n}}}"))).collect();
    // A program may have stored text that is not in its normal form, and it stays what it is.
    let mut given: Vec<Vec<Value>> = (0..5000).map(|n| row(format!("{{\"a\":{n}}}"))).collect();
    given[4321] = row("{\"a\": 1}".into());
    for rows in [odd, few, given.clone()] {
        let segment = open(write(&column, &rows, 1000)).unwrap();
        assert_ne!(encoding(&segment, 0), "shredded");
        assert!(rows.iter().enumerate().all(|(at, row)| segment.get(0, at).unwrap() == row[0]));
    }
    given[4321] = row("{\"a\":1}".into());
    assert_eq!(encoding(&open(write(&column, &given, 1000)).unwrap(), 0), "shredded");
}

/// Found by the fuzz target `json`: such documents have no sub-column at all.
#[test]
fn documents_may_all_be_null() {
    let column = [spec(1, DataType::Json, true)];
    let row =
        |n: usize| vec![if n.is_multiple_of(9) { Value::Null } else { Value::Json("null".into()) }];
    let rows: Vec<Vec<Value>> = (0..400).map(row).collect();
    let segment = open(write(&column, &rows, 1000)).unwrap();
    assert_eq!(encoding(&segment, 0), "shredded");
    assert_eq!(segment.verify().len(), 0);
    for (at, row) in rows.iter().enumerate() {
        let mut values = Vec::new();
        segment.values(at, 1, &|_| 1, &|_| Value::Int(-1), &mut values).unwrap();
        assert_eq!((&values, segment.get(0, at).unwrap()), (row, row[0].clone()));
    }
}
