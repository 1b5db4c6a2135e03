//! What windows hold, and when they stop.

use crate::build;
use crate::testing::*;
use nacre_sql::Aggregate;
use nacre_sql::expr::AggregateFunction;
use nacre_sql::plan::{Bound, Field, Frame, FrameUnit, Plan, SortKey, WindowCall, WindowFunction};
use nacre_types::{DataType, ErrorKind, Value};
use std::sync::atomic::{AtomicUsize, Ordering};

const I64: DataType = DataType::Int64;

/// A window over `(n, text)`, in the order of `n`.
fn window(rows: Vec<Vec<Value>>, calls: Vec<WindowCall>) -> Plan {
    let field = |data_type| Field { name: "c".into(), data_type, nullable: true };
    let rows = rows.into_iter().map(|row| vec![lit(row[0].clone(), I64), lit(row[1].clone(), DataType::TEXT)]);
    let fields = vec![field(I64), field(DataType::TEXT)];
    let input = Plan::Values { fields: fields.clone(), rows: rows.collect() };
    let added = calls.iter().map(|call| field(call.data_type));
    Plan::Window {
        fields: fields.into_iter().chain(added).collect(),
        input: Box::new(input),
        partition: Vec::new(),
        order: vec![SortKey { expr: col(0, I64), descending: false, nulls_first: false }],
        calls,
    }
}

fn rows_frame(start: Bound, end: Bound) -> Frame {
    Frame { unit: FrameUnit::Rows, start, end }
}

fn over(function: AggregateFunction, column: usize, data_type: DataType, frame: Frame) -> WindowCall {
    let arg = Some(col(column, if column == 0 { I64 } else { DataType::TEXT }));
    let aggregate = Aggregate { function, arg, distinct: false, filter: None, data_type };
    WindowCall { function: WindowFunction::Aggregate(Box::new(aggregate)), args: Vec::new(), frame, data_type }
}

#[test]
fn texts_of_results_are_held() {
    let mut fixture = Fixture::new();
    fixture.memory_limit = 1 << 20;
    let context = fixture.context();
    let growing = rows_frame(Bound::UnboundedPreceding, Bound::CurrentRow);
    let longest = over(AggregateFunction::Max, 1, DataType::TEXT, growing.clone());
    let first = WindowCall {
        function: WindowFunction::FirstValue,
        args: vec![col(1, DataType::TEXT)],
        frame: growing,
        data_type: DataType::TEXT,
    };
    // One long text among short ones, which every row answers.
    let rows = |bytes: usize| {
        let text = |n| if n == 0 { "y".repeat(bytes) } else { "x".into() };
        (0..2000).map(|n| vec![int(n), Value::Text(text(n))]).collect()
    };
    for call in [longest, first] {
        let few = run(&mut *build(&window(rows(50), vec![call.clone()]), &context).unwrap(), &context).unwrap();
        assert_eq!((few.len(), &few[1999][2]), (2000, &text(&"y".repeat(50))));
        let error = run(&mut *build(&window(rows(5000), vec![call]), &context).unwrap(), &context).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.message().starts_with("window"), "{error}");
    }
}

#[test]
fn calls_over_many_rows_can_be_cancelled() {
    let fixture = Fixture::new();
    let asked = |calls: usize| {
        let rows = (0..9000).map(|n| vec![int(n), text("x")]).collect();
        let call = WindowCall {
            function: WindowFunction::RowNumber,
            args: Vec::new(),
            frame: Frame::default(),
            data_type: I64,
        };
        let asked = AtomicUsize::new(0);
        let count = || asked.fetch_add(1, Ordering::Relaxed) == usize::MAX;
        let mut context = fixture.context();
        context.cancelled = &count;
        run(&mut *build(&window(rows, vec![call; calls]), &context).unwrap(), &context).unwrap();
        asked.load(Ordering::Relaxed)
    };
    // Each further call asks before it begins, and at every 2,048th row.
    assert_eq!(asked(3), asked(1) + 2 * (1 + 5));
}
