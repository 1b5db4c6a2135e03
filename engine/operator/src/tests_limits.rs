//! Limits that follow from numbers of 32 bits, which tests reach because they are lower there.

use crate::buffer::RowBuffer;
use crate::buffer::limits::{MAX_GROUPS, MAX_ROWS};
use crate::expr::ActiveRows;
use crate::group::Grouper;

use nacre_column::{Batch, Values, Vector};
use nacre_types::{DataType, Error, ErrorKind, limits};
use std::sync::Arc;

#[track_caller]
fn is_limit(error: &Error, most: usize) {
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(error.message().contains(&format!("more than {most} ")), "{error}");
}

#[test]
fn an_operator_holds_a_limited_number_of_rows() {
    let mut rows = RowBuffer::new(&[DataType::Int64]);
    let batch = |count: usize| {
        let values = Values::I64(vec![7; count]);
        Batch::new(vec![Arc::new(Vector::new(DataType::Int64, values, None))], count)
    };
    let full = batch(limits::VECTOR_ROWS);
    while rows.rows() + full.rows <= MAX_ROWS {
        rows.append(&full, ActiveRows::all(full.rows)).unwrap();
    }
    let rest = MAX_ROWS - rows.rows();
    rows.append(&batch(rest), ActiveRows::all(rest)).unwrap();
    is_limit(&rows.append(&batch(1), ActiveRows::all(1)).unwrap_err(), MAX_ROWS);
    assert_eq!(rows.rows(), MAX_ROWS);
}

#[test]
fn groups_and_their_keys_are_limited_in_number() {
    let narrow = |from: usize, count: usize| Values::I64((from as i64..).take(count).collect());
    let wide = |from: usize, count: usize| Values::I128((from as i128..).take(count).collect());
    type Keys<'k> = &'k dyn Fn(usize, usize) -> Values;
    let cases: [(DataType, Keys<'_>); 2] =
        [(DataType::Int64, &narrow), (DataType::Decimal { precision: 30, scale: 0 }, &wide)];
    for (data_type, keys) in cases {
        let mut grouper = Grouper::new(&[data_type]);
        let mut out = Vec::new();
        let mut assign = |grouper: &mut Grouper, from: usize, count: usize| {
            let vector = Arc::new(Vector::new(data_type, keys(from, count), None));
            grouper.assign(&[vector], ActiveRows::all(count), &mut out)
        };
        for from in (0..MAX_GROUPS).step_by(limits::VECTOR_ROWS) {
            let count = limits::VECTOR_ROWS.min(MAX_GROUPS - from);
            assign(&mut grouper, from, count).unwrap();
        }
        assert_eq!(grouper.groups(), MAX_GROUPS);
        is_limit(&assign(&mut grouper, MAX_GROUPS, 1).unwrap_err(), MAX_GROUPS);
    }
}
