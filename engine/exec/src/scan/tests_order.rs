//! Ranges of the columns that order a table, in many small segments, against a filter above the scan.

use crate::build;
use crate::testing::*;
use nacre_column::Batch;
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_sql::plan::{Plan, SortKey};
use nacre_table::{Store, StoreOptions, Table};
use nacre_testing::{Random, column};
use nacre_types::{DataType, KeyColumns, TableSchema, Value};

const ROWS: i64 = 2_000;

fn schema(sort: Option<Vec<usize>>, key: Vec<usize>) -> TableSchema {
    let named = |name: &str, columns| KeyColumns { name: name.into(), columns };
    TableSchema {
        name: "t".into(),
        columns: vec![
            column(1, "id", DataType::Int64, false),
            column(2, "tag", DataType::TEXT, true),
            column(3, "n", DataType::Int32, true),
            column(4, "x", DataType::Float64, false),
        ],
        primary_key: Some(named("PRIMARY", key)),
        sort_key: sort.map(|columns| named("SORT", columns)),
        ..TableSchema::default()
    }
}

/// A value of a column, or one near those; sometimes one that the column cannot hold.
fn value(random: &mut Random, column: usize, is_stored: bool) -> Value {
    let null = column == 1 || column == 2;
    if null && random.below(12) == 0 {
        return Value::Null;
    }
    let beyond = !is_stored && random.below(20) == 0;
    match column {
        0 => int(if beyond { i64::MAX } else { random.between(0, ROWS - 1) }),
        1 => text(
            &"abcdefgh".chars().cycle().skip(random.below(8) as usize).take(3).collect::<String>(),
        ),
        2 => int(if beyond { 1 << 40 } else { random.between(-9, 20) }),
        _ => Value::Float([-0.0, 0.0, 0.5, -7.25, f64::INFINITY][random.below(5) as usize]),
    }
}

fn condition(random: &mut Random, schema: &TableSchema, column: usize) -> Expr {
    use BinaryOp::*;
    let data_type = schema.columns[column].data_type;
    let constant = |random: &mut Random| lit(value(random, column, false), data_type);
    let arg = col(column, data_type);
    match random.below(8) {
        0 => {
            let list = (0..random.below(3) + 1).map(|_| constant(random)).collect();
            boolean(ExprKind::InList { arg: Box::new(arg), list, negated: false })
        }
        1 => boolean(ExprKind::IsNull { arg: Box::new(arg), negated: random.below(2) == 0 }),
        _ => {
            let op = [Equal, Equal, Less, LessOrEqual, Greater, GreaterOrEqual, NotEqual];
            compare(op[random.below(7) as usize], arg, constant(random))
        }
    }
}

fn filled(shape: TableSchema, random: &mut Random) -> (Fixture, std::sync::Arc<Table>) {
    let mut fixture = Fixture::new();
    let options = StoreOptions { segment_rows: 40, merge_from: 99, ..StoreOptions::default() };
    fixture.store = Store::open(fixture.host(), options).unwrap();
    let table = fixture.store.create_table(shape).unwrap();
    for part in 0..3 {
        let row = |id| {
            let mut row: Vec<Value> = (0..4).map(|at| value(random, at, true)).collect();
            row[0] = int(id);
            row
        };
        let rows: Vec<_> = (0..ROWS).filter(|id| id % 3 == part).map(row).collect();
        let mut write = fixture.store.begin().unwrap();
        write.insert(&table, &Batch::from_rows(&table.schema().types(), &rows)).unwrap();
        write.commit().unwrap();
        fixture.store.flush(&table).unwrap();
    }
    fixture.transaction = fixture.store.begin().unwrap();
    (fixture, table)
}

#[test]
fn a_range_of_the_order_finds_the_rows_of_a_scan() {
    let mut random = Random::new(20);
    let (mut skipped, mut found) = (0, 0);
    for (sort, key) in [
        (None, vec![0]),
        (None, vec![3, 0]),
        (Some(vec![1, 2]), vec![0]),
        (Some(vec![2]), vec![0]),
        (Some(vec![3, 1]), vec![0]),
    ] {
        let (fixture, table) = filled(schema(sort, key), &mut random);
        let all = |filters: Vec<Expr>| Plan::Scan {
            table: table.schema().clone(),
            projection: vec![0, 1, 2, 3],
            paths: Vec::new(),
            keys: Vec::new(),
            filters,
        };
        let rows = |plan: &Plan| {
            let context = fixture.context();
            let mut operator = build(plan, &context).unwrap();
            let mut rows = run(&mut *operator, &context).unwrap();
            rows.sort_by_key(|row| nacre_types::key::integer(&row[0]));
            rows
        };
        for _ in 0..150 {
            let filters: Vec<Expr> = (0..random.below(3) + 1)
                .map(|_| {
                    let column = random.below(4) as usize;
                    condition(&mut random, table.schema(), column)
                })
                .collect();
            let predicate = boolean(ExprKind::And(filters.clone()));
            let above = Plan::Filter { input: Box::new(all(Vec::new())), predicate };
            let expected = rows(&above);
            let before = fixture.statistics.segments_skipped.get();
            assert!(rows(&all(filters.clone())) == expected, "{filters:?}");
            skipped += fixture.statistics.segments_skipped.get() - before;
            found += expected.len();
        }
    }
    assert!(skipped > 1_000 && found > 10_000, "{skipped} segments skipped, {found} rows found");
}

/// The first rows in the order of a table, forwards and backwards, against sorting all of them.
#[test]
fn the_first_rows_in_order_are_those_of_a_sort() {
    let mut random = Random::new(34);
    let mut found = 0;
    for (sort, key) in [
        (None, vec![0]),
        (None, vec![3, 0]),
        (Some(vec![1, 2]), vec![0]),
        (Some(vec![3, 1]), vec![0]),
    ] {
        let columns = [sort.clone().unwrap_or_default(), key.clone()].concat();
        let (fixture, table) = filled(schema(sort, key), &mut random);
        for round in 0..60 {
            let filters: Vec<Expr> = (0..random.below(3))
                .map(|_| {
                    let column = random.below(4) as usize;
                    condition(&mut random, table.schema(), column)
                })
                .collect();
            let scan = |filters: Vec<Expr>| Plan::Scan {
                table: table.schema().clone(),
                projection: vec![0, 1, 2, 3],
                paths: Vec::new(),
                keys: Vec::new(),
                filters,
            };
            let key = |at: &usize| SortKey {
                expr: col(*at, table.schema().columns[*at].data_type),
                descending: round % 2 == 1,
                nulls_first: round % 2 == 0,
            };
            let keys: Vec<SortKey> = columns.iter().map(key).collect();
            let most = 1 + random.below(30);
            let sorted = |input| Plan::Sort {
                input: Box::new(input),
                keys: keys.clone(),
                limit: Some(most),
            };
            let rows = |plan: &Plan| {
                let context = fixture.context();
                let mut operator = build(plan, &context).unwrap();
                let mut rows = run(&mut *operator, &context).unwrap();
                rows.truncate(most as usize);
                rows
            };
            let predicate = boolean(ExprKind::And(filters.clone()));
            let above = Plan::Filter { input: Box::new(scan(Vec::new())), predicate };
            let expected = rows(&sorted(above));
            assert!(rows(&sorted(scan(filters.clone()))) == expected, "{filters:?} {keys:?}");
            found += expected.len();
        }
    }
    assert!(found > 1_000, "{found} rows found");
}

/// Segments after the first rows are not opened.
#[test]
fn the_first_rows_open_few_segments() {
    let mut fixture = Fixture::new();
    let options = StoreOptions { segment_rows: 40, merge_from: 99, ..StoreOptions::default() };
    fixture.store = Store::open(fixture.host(), options).unwrap();
    let table = fixture.store.create_table(schema(None, vec![0])).unwrap();
    let row = |id: i64| vec![int(id), text("t"), int(1), Value::Float(0.5)];
    let rows: Vec<_> = (0..ROWS * 2).map(row).collect();
    let mut write = fixture.store.begin().unwrap();
    write.insert(&table, &Batch::from_rows(&table.schema().types(), &rows)).unwrap();
    write.commit().unwrap();
    fixture.store.flush(&table).unwrap();
    fixture.transaction = fixture.store.begin().unwrap();
    for (descending, first) in [(false, 1_001), (true, ROWS * 2 - 1)] {
        fixture.statistics = Default::default();
        let plan = Plan::Sort {
            input: Box::new(Plan::Scan {
                table: table.schema().clone(),
                projection: vec![0, 2],
                paths: Vec::new(),
                keys: Vec::new(),
                filters: vec![
                    compare(
                        BinaryOp::Greater,
                        col(0, DataType::Int64),
                        lit(int(1_000), DataType::Int64),
                    ),
                    compare(BinaryOp::Equal, col(1, DataType::Int32), lit(int(1), DataType::Int32)),
                ],
            }),
            keys: vec![SortKey {
                expr: col(0, DataType::Int64),
                descending,
                nulls_first: !descending,
            }],
            limit: Some(60),
        };
        let context = fixture.context();
        let mut operator = build(&plan, &context).unwrap();
        let rows = run(&mut *operator, &context).unwrap();
        assert_eq!((rows[0][0].clone(), rows.len()), (int(first), 60));
        let tested = fixture.statistics.zones_tested.get();
        assert!((1..=8).contains(&tested), "{tested} zones of 100 segments are tested");
    }
}
