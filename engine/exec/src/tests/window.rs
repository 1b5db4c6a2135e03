//! Window results against models, their memory use, and cancellation.

use crate::build;
use crate::testing::*;
use nacre_column::Batch;
use nacre_operator::context::Context;
use nacre_operator::expr::compare_values;
use nacre_operator::operator::protocol::Operator;
use nacre_sql::Aggregate;
use nacre_sql::expr::AggregateFunction;
use nacre_sql::plan::node::window as node;
use nacre_sql::plan::{
    Field, FrameBound, FrameUnit, Plan, SortKey, WindowCall, WindowFrame, Windowed,
};
use nacre_types::{DataType, ErrorKind, Result, Value};
use std::sync::atomic::{AtomicUsize, Ordering};

const I64: DataType = DataType::Int64;

/// A window over `(n, text)`, ordered by `n`.
fn window(rows: Vec<Vec<Value>>, calls: Vec<WindowCall>) -> Plan {
    let field = |data_type| Field { name: "c".into(), data_type, nullable: true };
    let rows = rows
        .into_iter()
        .map(|row| vec![lit(row[0].clone(), I64), lit(row[1].clone(), DataType::TEXT)]);
    let fields = vec![field(I64), field(DataType::TEXT)];
    let input = Plan::Values { fields: fields.clone(), rows: rows.collect() };
    let added = calls.iter().map(|call| field(call.data_type));
    Plan::Node(Box::new(node::Window {
        fields: fields.into_iter().chain(added).collect(),
        input,
        partition: Vec::new(),
        order: vec![SortKey { expr: col(0, I64), descending: false, nulls_first: false }],
        calls,
    }))
}

fn rows_frame(start: FrameBound, end: FrameBound) -> WindowFrame {
    WindowFrame { unit: FrameUnit::Rows, start, end }
}

fn over(
    function: &'static AggregateFunction,
    column: usize,
    data_type: DataType,
    frame: WindowFrame,
) -> WindowCall {
    let arg = Some(col(column, if column == 0 { I64 } else { DataType::TEXT }));
    let aggregate = Aggregate {
        function: function.into(),
        args: arg.into_iter().collect(),
        order: Vec::new(),
        distinct: false,
        filter: None,
        data_type,
    };
    WindowCall {
        function: Windowed::Aggregate(Box::new(aggregate)),
        args: Vec::new(),
        frame,
        data_type,
    }
}

#[test]
fn texts_of_results_are_held() {
    let mut fixture = Fixture::new();
    fixture.memory_limit = 1 << 20;
    let context = fixture.context();
    let growing = rows_frame(FrameBound::UnboundedPreceding, FrameBound::CurrentRow);
    let longest = over(&MAX, 1, DataType::TEXT, growing.clone());
    let first = WindowCall {
        function: Windowed::Function(window_function("first_value")),
        args: vec![col(1, DataType::TEXT)],
        frame: growing,
        data_type: DataType::TEXT,
    };
    // The first row's text is long; the call returns it for every row.
    let rows = |bytes: usize| {
        let text = |n| if n == 0 { "y".repeat(bytes) } else { "x".into() };
        (0..2000).map(|n| vec![int(n), Value::Text(text(n))]).collect()
    };
    for call in [longest, first] {
        let few =
            run(&mut *build(&window(rows(50), vec![call.clone()]), &context).unwrap(), &context)
                .unwrap();
        assert_eq!((few.len(), &few[1999][2]), (2000, &text(&"y".repeat(50))));
        let error = run(&mut *build(&window(rows(5000), vec![call]), &context).unwrap(), &context)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.message().starts_with("window"), "{error}");
    }
}

#[test]
fn calls_over_many_rows_can_be_cancelled() {
    let fixture = Fixture::new();
    let asked = |call: &WindowCall, calls: usize| {
        let rows = (0..9000).map(|n| vec![int(n), text("x")]).collect();
        let asked = AtomicUsize::new(0);
        let count = || asked.fetch_add(1, Ordering::Relaxed) == usize::MAX;
        let mut context = fixture.context();
        context.cancelled = &count;
        let calls = vec![call.clone(); calls];
        run(&mut *build(&window(rows, calls), &context).unwrap(), &context).unwrap();
        asked.load(Ordering::Relaxed)
    };
    let number = WindowCall {
        function: Windowed::Function(window_function("row_number")),
        args: Vec::new(),
        frame: WindowFrame::default(),
        data_type: I64,
    };
    let sliding = rows_frame(FrameBound::Preceding(lit(int(3), I64)), FrameBound::CurrentRow);
    // Each additional call checks for cancellation when it begins and at every row, which may read
    // its whole partition.
    for call in [number, over(&COUNT, 0, I64, sliding)] {
        assert_eq!(asked(&call, 3), asked(&call, 1) + 2 * (1 + 9000));
    }
}

#[test]
fn frames_that_end_with_the_partition_grow_from_its_end() {
    let fixture = Fixture::new();
    let context = fixture.context();
    // Rows 20 to 29 have a null text. The others have distinct texts on either side.
    let texts =
        |n: i64| if n / 10 == 2 { Value::Null } else { text(&format!("{:02}", n * 37 % 100)) };
    let rows: Vec<Vec<Value>> = (0..50).map(|n| vec![int(n), texts(n)]).collect();
    let ten = || lit(int(10), I64);
    for (start, first) in [
        (FrameBound::CurrentRow, (|n| n) as fn(i64) -> i64),
        (FrameBound::Preceding(ten()), |n| (n - 10).max(0)),
        (FrameBound::Following(ten()), |n| n + 10),
        (FrameBound::UnboundedFollowing, |_| 50),
    ] {
        let frame = || rows_frame(start.clone(), FrameBound::UnboundedFollowing);
        let calls = vec![
            over(&SUM, 0, decimal(38, 0), frame()),
            over(&COUNT, 1, I64, frame()),
            over(&MIN, 1, DataType::TEXT, frame()),
            over(&MAX, 1, DataType::TEXT, frame()),
        ];
        let found =
            run(&mut *build(&window(rows.clone(), calls), &context).unwrap(), &context).unwrap();
        for n in 0..50 {
            let there = first(n)..50;
            let known: Vec<Value> = there.clone().map(texts).filter(|t| !t.is_null()).collect();
            let best = |a: Option<&Value>| a.cloned().unwrap_or(Value::Null);
            let by = |a: &&Value, b: &&Value| compare_values(a, b);
            let expected = [
                if there.is_empty() { Value::Null } else { dec(there.sum::<i64>() as i128, 0) },
                int(known.len() as i64),
                best(known.iter().min_by(by)),
                best(known.iter().max_by(by)),
            ];
            assert_eq!(found[n as usize][2..], expected, "row {n} from {start:?}");
        }
    }
}

#[test]
fn frames_that_slide_are_what_their_rows_are() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let count = 9_000i64;
    let texts =
        |n: i64| if n % 11 < 3 { Value::Null } else { text(&format!("{:04}", n * 7_919 % 10_007)) };
    let rows: Vec<Vec<Value>> = (0..count).map(|n| vec![int(n), texts(n)]).collect();
    let bound = |offset: i64| match offset {
        ..0 => FrameBound::Preceding(lit(int(-offset), I64)),
        _ => FrameBound::Following(lit(int(offset), I64)),
    };
    for (from, to) in
        [(-1, 1), (-63, 64), (-128, -1), (-200, 0), (1, 4_500), (-5_000, 77), (-9_000, 3)]
    {
        let frame = || rows_frame(bound(from), bound(to));
        let mut calls = vec![
            over(&SUM, 0, decimal(38, 0), frame()),
            over(&COUNT, 1, I64, frame()),
            over(&MIN, 1, DataType::TEXT, frame()),
            over(&MAX, 1, DataType::TEXT, frame()),
            over(&COUNT, 0, I64, frame()),
        ];
        if let Some(Windowed::Aggregate(all)) = calls.last_mut().map(|call| &mut call.function) {
            all.args.clear();
        }
        let found =
            run(&mut *build(&window(rows.clone(), calls), &context).unwrap(), &context).unwrap();
        for n in (0..count).filter(|n| n % 97 == 0 || (*n + 300) % count < 600) {
            let there = (n + from).clamp(0, count)..(n + to + 1).clamp(0, count);
            let known: Vec<Value> = there.clone().map(texts).filter(|t| !t.is_null()).collect();
            let best = |a: Option<&Value>| a.cloned().unwrap_or(Value::Null);
            let by = |a: &&Value, b: &&Value| compare_values(a, b);
            let (rows, sum) = (there.clone().count() as i64, there.sum::<i64>());
            let expected = [
                if rows == 0 { Value::Null } else { dec(sum as i128, 0) },
                int(known.len() as i64),
                best(known.iter().min_by(by)),
                best(known.iter().max_by(by)),
                int(rows),
            ];
            assert_eq!(found[n as usize][2..], expected, "row {n}, {from} to {to}");
        }
    }
}

#[test]
fn what_is_left_of_many_rows_is_summed_up_once() {
    let fixture = Fixture::new();
    let context = fixture.context();
    // Recomputing each frame would take 2 * 10^10 additions.
    let count = 200_000;
    let input: Vec<i64> = (0..count).collect();
    let column = |values: &[i64]| (I64, values.iter().map(|n| int(*n)).collect());
    let batches: Vec<_> = input.chunks(2048).map(|part| batch(&[column(part)])).collect();
    let frame = rows_frame(FrameBound::CurrentRow, FrameBound::UnboundedFollowing);
    let order = [SortKey { expr: col(0, I64), descending: false, nulls_first: false }];
    let calls = vec![over(&SUM, 0, decimal(38, 0), frame)];
    let source = Box::new(Batches(batches.into_iter()));
    let mut operator =
        nacre_operator::window::operator::WindowOperator::new(source, &[I64], &[], &order, calls);
    let found = run(&mut operator, &context).unwrap();
    assert_eq!(found[0][1], dec((count as i128 - 1) * count as i128 / 2, 0));
    assert_eq!(found[count as usize - 1][1], dec(count as i128 - 1, 0));
}

/// Returns prepared batches.
struct Batches(std::vec::IntoIter<Batch>);

impl Operator for Batches {
    fn next(&mut self, _: &Context<'_>) -> Result<Option<Batch>> {
        Ok(self.0.next())
    }
}
