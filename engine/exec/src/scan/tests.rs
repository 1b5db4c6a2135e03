//! Scans over segments, deleted rows and the rowstore, against filtering every row.

use crate::testing::*;
use crate::{build, build_locating};
use nacre_column::Batch;
use nacre_operator::context::Context;
use nacre_operator::{LocatedColumns, Operator};
use nacre_sql::ScanStrategy;
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_sql::plan::Plan;
use nacre_table::{OnDuplicate, Store, StoreOptions, Table};
use nacre_testing::column;
use nacre_types::{DataType, KeyColumns, TableSchema, Value};
use std::sync::Arc;

const I64: DataType = DataType::Int64;

fn schema() -> TableSchema {
    TableSchema {
        id: 0,
        name: "t".into(),
        columns: vec![
            column(1, "id", I64, false),
            column(2, "tag", DataType::TEXT, true),
            column(3, "n", DataType::Int32, true),
            column(4, "price", decimal(12, 2), false),
        ],
        primary_key: Some(KeyColumns { name: "PRIMARY".into(), columns: vec![0] }),
        ..TableSchema::default()
    }
}

fn row(id: i64) -> Vec<Value> {
    let n = if id % 11 == 0 { Value::Null } else { int(id % 97) };
    let tag =
        if id % 7 == 0 { Value::Null } else { text(["red", "green", "blue"][(id % 3) as usize]) };
    vec![int(id), tag, n, dec((id as i128 * 37) % 10_007, 2)]
}

fn rows(ids: impl Iterator<Item = i64>) -> Batch {
    let rows: Vec<_> = ids.map(row).collect();
    Batch::from_rows(&schema().types(), &rows)
}

/// 25,000 rows in segments, of which every 13th and a whole range are deleted, and 500 rows in the
/// rowstore.
fn fixture() -> (Fixture, Arc<Table>, Vec<Vec<Value>>) {
    let mut fixture = Fixture::new();
    let table = fixture.store.create_table(schema()).unwrap();
    let mut write = fixture.store.begin().unwrap();
    write.insert(&table, &rows(0..25_000)).unwrap();
    write.commit().unwrap();
    fixture.store.flush(&table).unwrap();
    let gone = |id: i64| id % 13 == 0 || (4096..8192).contains(&id);
    let mut write = fixture.store.begin().unwrap();
    fixture.transaction = fixture.store.begin().unwrap();
    let mut locators = Vec::new();
    {
        let context = fixture.context();
        let mut scan =
            build_locating(&scan(&table, &[0, 1, 2, 3], Vec::new()), LocatedColumns::All, &context)
                .unwrap();
        while let Some((batch, found)) = scan.next(&context).unwrap() {
            assert_eq!((batch.rows, batch.selection.is_none()), (found.len(), true));
            for (at, locator) in found.into_iter().enumerate() {
                let Value::Int(id) = batch.columns[0].value(at) else { panic!("an id") };
                if gone(id) {
                    locators.push(locator);
                }
            }
        }
    }
    write.delete(&table, &locators).unwrap();
    write.insert(&table, &rows(30_000..30_500)).unwrap();
    write.commit().unwrap();
    fixture.transaction = fixture.store.begin().unwrap();
    fixture.statistics = Default::default();
    let there = (0..25_000).filter(|id| !gone(*id)).chain(30_000..30_500).map(row).collect();
    (fixture, table, there)
}

fn scan(table: &Table, projection: &[usize], filters: Vec<Expr>) -> Plan {
    Plan::Scan {
        table: table.schema().clone(),
        projection: projection.to_vec(),
        paths: Vec::new(),
        keys: Vec::new(),
        filters,
    }
}

fn result(fixture: &Fixture, plan: &Plan) -> Vec<Vec<Value>> {
    result_by(ScanStrategy::Adaptive, fixture, plan)
}

fn result_by(strategy: ScanStrategy, fixture: &Fixture, plan: &Plan) -> Vec<Vec<Value>> {
    let context = Context { scan_strategy: strategy, ..fixture.context() };
    let mut operator: Box<dyn Operator> = build(plan, &context).unwrap();
    let mut rows = run(&mut *operator, &context).unwrap();
    rows.sort_by_key(|r| nacre_types::key::integer(r.first().unwrap_or(&Value::Null)));
    rows
}

/// The rows, which are the same by every strategy.
fn result_by_all(fixture: &Fixture, plan: &Plan) -> Vec<Vec<Value>> {
    let rows = result(fixture, plan);
    for strategy in ScanStrategy::ALL {
        assert!(result_by(strategy, fixture, plan) == rows, "{strategy:?}: {plan:?}");
    }
    rows
}

fn is(op: BinaryOp, column: usize, value: Value) -> Expr {
    let data_type = schema().columns[column].data_type;
    compare(op, col(column, data_type), lit(value, data_type))
}

#[test]
fn filters_agree_with_a_check_of_every_row() {
    use BinaryOp::*;
    let (fixture, table, there) = fixture();
    let all = [0, 1, 2, 3];
    let integer = |v: &Value| nacre_types::key::integer(v);
    type Keep = Box<dyn Fn(&[Value]) -> bool>;
    let null = |column: usize, negated| {
        let arg = Box::new(col(column, schema().columns[column].data_type));
        boolean(ExprKind::IsNull { arg, negated })
    };
    let among = ExprKind::InList {
        arg: Box::new(col(0, I64)),
        list: [5, 20_000, 30_001, 99_999].map(|v| lit(int(v), I64)).to_vec(),
        negated: false,
    };
    let cases: Vec<(Vec<Expr>, Keep)> = vec![
        (vec![], Box::new(|_| true)),
        (vec![is(Less, 0, int(100))], Box::new(move |r| integer(&r[0]) < Some(100))),
        (vec![is(Greater, 0, int(24_990))], Box::new(move |r| integer(&r[0]) > Some(24_990))),
        (
            vec![is(GreaterOrEqual, 0, int(9_000)), is(LessOrEqual, 0, int(9_100))],
            Box::new(move |r| (Some(9_000)..=Some(9_100)).contains(&integer(&r[0]))),
        ),
        (vec![is(Equal, 1, text("green"))], Box::new(|r| r[1] == text("green"))),
        (
            vec![is(Equal, 2, int(5)), is(NotEqual, 1, text("red"))],
            Box::new(|r| r[2] == int(5) && !r[1].is_null() && r[1] != text("red")),
        ),
        (vec![null(2, false)], Box::new(|r| r[2].is_null())),
        (
            vec![null(1, true), is(Less, 3, dec(50, 2))],
            Box::new(move |r| !r[1].is_null() && integer(&r[3]) < Some(50)),
        ),
        (
            vec![boolean(among)],
            Box::new(|r| {
                [5, 20_000, 30_001].contains(&if let Value::Int(v) = r[0] { v } else { 0 })
            }),
        ),
        (
            vec![boolean(ExprKind::Or(vec![is(Equal, 0, int(7)), is(Equal, 0, int(20_001))]))],
            Box::new(|r| r[0] == int(7) || r[0] == int(20_001)),
        ),
        (vec![is(Equal, 1, Value::Null)], Box::new(|_| false)),
    ];
    for (filters, keep) in cases {
        let expected: Vec<_> = there.iter().filter(|r| keep(r)).cloned().collect();
        let found = result_by_all(&fixture, &scan(&table, &all, filters.clone()));
        assert!(
            found == expected,
            "{filters:?}: {} rows, {} expected",
            found.len(),
            expected.len()
        );
        // With the filter above the scan instead of inside; and with some columns in another order.
        let predicate = boolean(ExprKind::And(filters.clone()));
        let outside = Plan::Filter { input: Box::new(scan(&table, &all, Vec::new())), predicate };
        assert!(result(&fixture, &outside) == expected);
    }
    let swapped = vec![compare(Less, col(1, I64), lit(int(3), I64))];
    let expected: Vec<_> = there.iter().take(2).map(|r| vec![r[3].clone(), r[0].clone()]).collect();
    assert_eq!(result(&fixture, &scan(&table, &[3, 0], swapped)), expected);
}

#[test]
fn zone_maps_skip_blocks() {
    let (fixture, table, _) = fixture();
    let plan = scan(&table, &[0, 3], vec![is(BinaryOp::Less, 0, int(100))]);
    result(&fixture, &plan);
    let statistics = &fixture.statistics;
    assert!(statistics.blocks_skipped.get() >= 5, "{statistics:?}");
    assert_eq!(statistics.blocks_read.get(), 1);
    assert!(statistics.segments_skipped.get() >= 1);
    assert_eq!(statistics.segments_read.get(), 1);
    assert!(
        statistics.rows_read.get() <= 4096 + 500 && statistics.bytes_read.get() > 0,
        "{statistics:?}"
    );
}

#[test]
fn counting_decodes_nothing() {
    let (fixture, table, there) = fixture();
    assert_eq!(result(&fixture, &scan(&table, &[], Vec::new())).len(), there.len());
    assert_eq!(fixture.statistics.blocks_read.get(), 0, "rows are counted without reading");
    // The rowstore's rows are counted as read; none of the segments' are.
    assert_eq!((fixture.statistics.rows_read.get(), fixture.statistics.bytes_read.get()), (500, 0));
}

#[test]
fn whole_keys_are_point_reads() {
    let (mut fixture, table, _) = fixture();
    fixture.parameters = vec![int(20_001)];
    let parameter = Expr { kind: ExprKind::Parameter(0), data_type: I64 };
    let by_key = |extra: Vec<Expr>| {
        let filters =
            [vec![compare(BinaryOp::Equal, parameter.clone(), col(1, I64))], extra].concat();
        scan(&table, &[1, 0], filters)
    };
    let [_, tag, _, _] = &row(20_001)[..] else { panic!("four columns") };
    let expected = vec![vec![tag.clone(), int(20_001)]];
    assert_eq!(result(&fixture, &by_key(Vec::new())), expected);
    assert_eq!(fixture.statistics.point_reads.get(), 1);
    assert_eq!(fixture.statistics.segments_read.get(), 0);
    let never = compare(BinaryOp::Equal, col(0, DataType::TEXT), lit(text("none"), DataType::TEXT));
    assert!(result(&fixture, &by_key(vec![never])).is_empty());
    for absent in [int(26), int(-1), Value::Null] {
        fixture.parameters = vec![absent];
        assert!(result(&fixture, &by_key(Vec::new())).is_empty());
    }
    for (id, n) in [(1, 1), (30_007, 1), (13, 0)] {
        let plan = scan(&table, &[0, 1, 2, 3], vec![is(BinaryOp::Equal, 0, int(id))]);
        let context = fixture.context();
        let mut operator = build_locating(&plan, LocatedColumns::All, &context).unwrap();
        let mut found = Vec::new();
        while let Some((batch, locators)) = operator.next(&context).unwrap() {
            assert_eq!(locators.len(), batch.rows);
            found.extend(rows_of(&batch));
        }
        assert_eq!(found, vec![row(id); n]);
    }
}

#[test]
fn an_equation_that_no_key_can_meet_leaves_the_point_read_to_the_next() {
    let mut fixture = Fixture::new();
    let short = DataType::Text { max_chars: Some(3) };
    let mut schema = schema();
    schema.columns[1] = column(2, "tag", short, false);
    schema.primary_key = Some(KeyColumns { name: "PRIMARY".into(), columns: vec![1] });
    let table = fixture.store.create_table(schema).unwrap();
    let mut write = fixture.store.begin().unwrap();
    let there = vec![int(1), text("abc"), int(2), dec(3, 2)];
    write.insert_row(&table, &there).unwrap();
    write.commit().unwrap();
    fixture.transaction = fixture.store.begin().unwrap();
    let is =
        |value: &str| compare(BinaryOp::Equal, col(1, short), lit(text(value), DataType::TEXT));
    for (values, found, point_reads) in [
        (&["abc"][..], 1, 1),
        (&["abc", "abc"], 1, 1),
        (&["too long"], 0, 0),
        (&["too long", "abc"], 0, 1),
        (&["abc", "too long"], 0, 1),
    ] {
        fixture.statistics = Default::default();
        let plan = scan(&table, &[0, 1, 2, 3], values.iter().map(|value| is(value)).collect());
        assert_eq!(result(&fixture, &plan).len(), found, "{values:?}");
        assert_eq!(fixture.statistics.point_reads.get(), point_reads, "{values:?}");
    }
}

#[test]
fn deleted_rows_raise_no_errors() {
    let (fixture, table, there) = fixture();
    // Row 0 is deleted: the division by its id must raise no error.
    let inverse = binary(BinaryOp::IntegerDivide, lit(int(1_000_000), I64), col(0, I64), I64);
    let filter = compare(BinaryOp::GreaterOrEqual, inverse, lit(int(0), I64));
    assert_eq!(result(&fixture, &scan(&table, &[0], vec![filter])).len(), there.len());
}

#[test]
fn tests_of_encoded_columns_combine_with_other_filters() {
    use BinaryOp::*;
    let (fixture, table, there) = fixture();
    let integer = |v: &Value| nacre_types::key::integer(v);
    let list = |negated, values: Vec<Value>| {
        let arg = Box::new(col(2, DataType::Int32));
        let list = values.into_iter().map(|v| lit(v, DataType::Int32)).collect();
        boolean(ExprKind::InList { arg, list, negated })
    };
    // Tests that keep many rows, few rows and none, and filters that are not tests.
    let many = is(GreaterOrEqual, 3, dec(1000, 2));
    let few = is(Less, 3, dec(40, 2));
    let parity = binary(Modulo, col(0, I64), lit(int(2), I64), I64);
    let even = compare(Equal, parity, lit(int(0), I64));
    type Keep = Box<dyn Fn(&[Value]) -> bool>;
    let is_even = move |r: &[Value]| integer(&r[0]).is_some_and(|id| id % 2 == 0);
    let cases: Vec<(Vec<Expr>, Keep)> = vec![
        (vec![many.clone(), is(NotEqual, 1, text("red"))], {
            Box::new(move |r| {
                integer(&r[3]) >= Some(1000) && !r[1].is_null() && r[1] != text("red")
            })
        }),
        (vec![few.clone(), is(Greater, 2, int(40))], {
            Box::new(move |r| integer(&r[3]) < Some(40) && integer(&r[2]).is_some_and(|n| n > 40))
        }),
        (
            vec![even.clone(), few.clone()],
            Box::new(move |r| is_even(r) && integer(&r[3]) < Some(40)),
        ),
        (
            vec![even.clone(), many.clone()],
            Box::new(move |r| is_even(r) && integer(&r[3]) >= Some(1000)),
        ),
        (vec![many.clone(), is(Less, 3, dec(1040, 2)), even], {
            Box::new(move |r| is_even(r) && (Some(1000)..Some(1040)).contains(&integer(&r[3])))
        }),
        (vec![few, many], Box::new(|_| false)),
        (vec![list(true, vec![int(5), int(7)])], {
            Box::new(move |r| !r[2].is_null() && r[2] != int(5) && r[2] != int(7))
        }),
        (vec![list(true, vec![int(5), Value::Null])], Box::new(|_| false)),
        (vec![list(false, vec![int(5), Value::Null])], Box::new(|r| r[2] == int(5))),
        (vec![is(NotDistinct, 1, text("blue"))], Box::new(|r| r[1] == text("blue"))),
        (vec![is(Distinct, 1, text("blue"))], Box::new(|r| r[1] != text("blue"))),
        (vec![is(Less, 2, int(1 << 40))], Box::new(|r| !r[2].is_null())),
    ];
    for (filters, keep) in cases {
        let expected: Vec<_> = there.iter().filter(|r| keep(r)).cloned().collect();
        let found = result_by_all(&fixture, &scan(&table, &[0, 1, 2, 3], filters.clone()));
        assert!(
            found == expected,
            "{filters:?}: {} rows, {} expected",
            found.len(),
            expected.len()
        );
        // Columns that only the filters read are not filled.
        let input = Box::new(scan(&table, &[0, 1, 2, 3], filters.clone()));
        let only_ids = Plan::Project { input, exprs: vec![col(0, I64)], fields: Vec::new() };
        let ids: Vec<_> = expected.iter().map(|r| vec![r[0].clone()]).collect();
        assert!(result_by_all(&fixture, &only_ids) == ids, "{filters:?}");
    }
}

/// Zones of segments and of groups of blocks rule out most blocks without a test of each.
#[test]
fn a_scan_tests_few_zones() {
    const ROWS: i64 = 40 * 4_096;
    let tested = |segment_rows: usize, filters: Vec<Expr>, found: usize| {
        let mut fixture = Fixture::new();
        let options = StoreOptions { segment_rows, ..StoreOptions::default() };
        fixture.store = Store::open(fixture.host(), options).unwrap();
        let table = fixture.store.create_table(schema()).unwrap();
        let mut load = fixture.store.bulk_load(&table, OnDuplicate::Error);
        load.append(&rows(0..ROWS)).unwrap();
        load.finish().unwrap();
        fixture.transaction = fixture.store.begin().unwrap();
        assert_eq!(result(&fixture, &scan(&table, &[0, 3], filters)).len(), found);
        (fixture.statistics.zones_tested.get(), fixture.statistics.blocks_skipped.get())
    };
    let price = |low: i128, high: i128| {
        vec![is(BinaryOp::Greater, 0, int(100_000)), is(BinaryOp::Less, 0, int(100_011))]
            .into_iter()
            .chain([compare(
                BinaryOp::GreaterOrEqual,
                col(1, decimal(12, 2)),
                lit(dec(low, 2), decimal(12, 2)),
            )])
            .chain([compare(
                BinaryOp::LessOrEqual,
                col(1, decimal(12, 2)),
                lit(dec(high, 2), decimal(12, 2)),
            )])
            .collect::<Vec<_>>()
    };
    // One segment: the segment, its three groups, the sixteen blocks of one of them.
    assert_eq!(tested(1 << 20, price(0, 10_007), 10), (1 + 3 + 16, 39));
    // 20 segments, found by their keys: one of them, and its blocks.
    assert_eq!(tested(2 * 4_096, price(0, 10_007), 10), (1 + 2, 39));
    assert_eq!(tested(1 << 20, price(20_000, 30_000), 0), (1, 40));
    assert_eq!(tested(1 << 20, Vec::new(), ROWS as usize), (0, 0));
}
