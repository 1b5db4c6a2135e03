//! The first rows of a sort, the least and the greatest values, and values that count once, against
//! plans that take no short cut.

use crate::parallel::tests::Spawned;
use crate::testing::*;
use crate::{build, build_locating};
use nacre_column::Batch;
use nacre_host::memory::MemoryStore;
use nacre_operator::{Context, LocatedColumns, Operator, Threads};
use nacre_sql::ScanStrategy;
use nacre_sql::expr::{Aggregate, AggregateFunction, BinaryOp, Expr};
use nacre_sql::plan::{Field, Plan, SortKey};
use nacre_table::Table;
use nacre_testing::{Watched, column};
use nacre_types::hash::hash_u64;
use nacre_types::{DataType, KeyColumns, TableSchema, Value};
use std::sync::Arc;

const I64: DataType = DataType::Int64;
const ROWS: i64 = 42_000;

fn schema() -> TableSchema {
    TableSchema {
        id: 0,
        name: "t".into(),
        columns: vec![
            column(1, "id", I64, false),
            column(2, "time", DataType::Timestamp, false),
            column(3, "chance", DataType::Int32, true),
            column(4, "name", DataType::TEXT, true),
            column(5, "price", decimal(12, 2), false),
            column(6, "day", DataType::Date, true),
            column(7, "wide", decimal(30, 2), true),
            column(8, "ratio", DataType::Float64, true),
        ],
        primary_key: Some(KeyColumns { name: "PRIMARY".into(), columns: vec![0] }),
        ..TableSchema::default()
    }
}

fn row(id: i64) -> Vec<Value> {
    let chance = hash_u64(id as u64) as i64 & 0xffff;
    let some = |one_in: i64, value: Value| if chance % one_in == 0 { Value::Null } else { value };
    vec![
        int(id),
        Value::Timestamp(id * 1_000),
        some(9, int(chance - 30_000)),
        some(11, text(&format!("name {}", chance % 5_000))),
        dec((chance % 10_007) as i128, 2),
        // Nulls only at the end, and long runs.
        if id > 35_000 { Value::Null } else { Value::Date((id / 6_000) as i32) },
        some(13, dec(chance as i128 * 1_000_000_000_000_000, 2)),
        some(15, Value::Float((chance % 100) as f64)),
    ]
}

/// Rows in segments, of which every seventh and the last thousand are deleted, and 700 rows in the
/// rowstore. `deletes` decides whether any is.
fn fixture(deletes: bool) -> (Fixture, Arc<Table>) {
    // Counts as a disk, so that operators spill.
    let files = Watched::new(Arc::new(MemoryStore::new()), |_, _| Ok(()));
    let mut fixture = Fixture::with(files, Arc::new(Spawned));
    let table = fixture.store.create_table(schema()).unwrap();
    let insert = |fixture: &Fixture, ids: std::ops::Range<i64>| {
        let rows: Vec<_> = ids.map(row).collect();
        let mut write = fixture.store.begin().unwrap();
        write.insert(&table, &Batch::from_rows(&table.schema().types(), &rows)).unwrap();
        write.commit().unwrap();
    };
    insert(&fixture, 0..ROWS);
    fixture.store.flush(&table).unwrap();
    if deletes {
        let mut write = fixture.store.begin().unwrap();
        fixture.transaction = fixture.store.begin().unwrap();
        let mut gone = Vec::new();
        {
            let context = fixture.context();
            let mut scan =
                build_locating(&scan(&table, Vec::new()), LocatedColumns::All, &context).unwrap();
            while let Some((batch, found)) = scan.next(&context).unwrap() {
                for (at, locator) in found.into_iter().enumerate() {
                    let Value::Int(id) = batch.columns[0].value(at) else { panic!("an id") };
                    if id % 7 == 0 || id >= ROWS - 1_000 {
                        gone.push(locator);
                    }
                }
            }
        }
        write.delete(&table, &gone).unwrap();
        write.commit().unwrap();
        insert(&fixture, ROWS..ROWS + 700);
    }
    fixture.transaction = fixture.store.begin().unwrap();
    fixture.statistics = Default::default();
    (fixture, table)
}

fn scan(table: &Table, filters: Vec<Expr>) -> Plan {
    Plan::Scan {
        table: table.schema().clone(),
        projection: (0..8).collect(),
        paths: Vec::new(),
        keys: Vec::new(),
        filters,
    }
}

fn of(at: usize) -> Expr {
    col(at, schema().columns[at].data_type)
}

fn rows(
    fixture: &Fixture,
    plan: &Plan,
    threads: usize,
    scan_strategy: ScanStrategy,
) -> Vec<Vec<Value>> {
    let threads = Threads { count: threads, morsel_rows: 4096 };
    let context = Context { threads, scan_strategy, ..fixture.context() };
    let mut operator: Box<dyn Operator> = build(plan, &context).unwrap();
    run(&mut *operator, &context).unwrap()
}

fn sorted(input: Plan, keys: &[SortKey], limit: Option<u64>) -> Plan {
    Plan::Sort { input: Box::new(input), keys: keys.to_vec(), limit }
}

/// A scan without and with filters, and with a projection that moves columns.
fn inputs(table: &Table) -> Vec<Plan> {
    let rare = compare(BinaryOp::Less, of(2), lit(int(-29_000), DataType::Int32));
    let half = compare(BinaryOp::Less, of(4), lit(dec(5_000, 2), decimal(12, 2)));
    let moved = Plan::Project {
        input: Box::new(scan(table, Vec::new())),
        exprs: (0..8).map(of).collect(),
        fields: schema()
            .columns
            .iter()
            .map(|c| Field { name: c.name.clone(), data_type: c.data_type, nullable: true })
            .collect(),
    };
    let named = compare(BinaryOp::Greater, of(3), lit(text("name 2"), DataType::TEXT));
    vec![
        scan(table, Vec::new()),
        scan(table, vec![rare]),
        scan(table, vec![half]),
        scan(table, vec![named]),
        moved,
    ]
}

#[test]
fn first_rows_are_those_of_a_whole_sort() {
    let (fixture, table) = fixture(true);
    for (input, at) in inputs(&table).iter().flat_map(|input| (1..8).map(move |at| (input, at))) {
        for (descending, nulls_first) in [(false, true), (true, false), (true, true)] {
            let key = |at| SortKey { expr: of(at), descending, nulls_first };
            for keys in [vec![key(at)], vec![key(at), key(3)]] {
                let adaptive = ScanStrategy::Adaptive;
                let all = rows(&fixture, &sorted(input.clone(), &keys, None), 1, adaptive);
                for limit in [1, 10, 3_000] {
                    let plan = sorted(input.clone(), &keys, Some(limit as u64));
                    let expected = &all[..limit.min(all.len())];
                    for (threads, strategy) in [
                        (1, adaptive),
                        (3, adaptive),
                        (1, ScanStrategy::Regular),
                        (1, ScanStrategy::Group),
                    ] {
                        let found = rows(&fixture, &plan, threads, strategy);
                        assert!(found == expected, "{threads} threads, {strategy:?}: {plan:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn blocks_behind_the_first_rows_are_not_read() {
    for (descending, at) in [(false, 1), (true, 1), (true, 5)] {
        let (fixture, table) = fixture(true);
        let key = SortKey { expr: of(at), descending, nulls_first: !descending };
        let plan = sorted(scan(&table, Vec::new()), &[key], Some(10));
        let found = rows(&fixture, &plan, 1, ScanStrategy::Adaptive);
        assert_eq!(found.len(), 10);
        let read = fixture.statistics.rows_read.get();
        // One block ahead, one or two that have the rows, and the rows in memory.
        assert!(read < 16_000, "{read} rows read for column {at}, descending: {descending}");
    }
}

#[test]
fn sorts_that_spill_find_the_same_first_rows() {
    let (mut fixture, table) = fixture(true);
    let keys = [3, 2].map(|at| SortKey { expr: of(at), descending: true, nulls_first: false });
    let all = rows(&fixture, &sorted(scan(&table, vec![]), &keys, None), 1, ScanStrategy::Adaptive);
    fixture.memory_limit = 1 << 20;
    let plan = sorted(scan(&table, Vec::new()), &keys, Some(20_000));
    for threads in [1, 3] {
        let found = rows(&fixture, &plan, threads, ScanStrategy::Adaptive);
        assert!(found == all[..20_000], "{threads} threads");
    }
    assert!(fixture.statistics.bytes_spilled.get() > 0, "nothing was spilled");
}

fn aggregate(
    input: Plan,
    groups: &[usize],
    functions: &[(&'static AggregateFunction, usize, DataType, bool)],
) -> Plan {
    let aggregates: Vec<Aggregate> = functions
        .iter()
        .map(|(function, arg, data_type, distinct)| Aggregate {
            function: (*function).into(),
            args: vec![of(*arg)],
            order: Vec::new(),
            distinct: *distinct,
            filter: None,
            data_type: *data_type,
        })
        .collect();
    let groups: Vec<Expr> = groups.iter().map(|at| of(*at)).collect();
    let field = |data_type| Field { name: String::new(), data_type, nullable: true };
    let types = groups.iter().map(|g| g.data_type).chain(functions.iter().map(|f| f.2));
    let fields = types.map(field).collect();
    Plan::Aggregate { input: Box::new(input), groups, aggregates, fields }
}

#[test]
fn extremes_are_those_of_every_row() {
    for deletes in [false, true] {
        let (mut fixture, table) = fixture(deletes);
        let each = |at: usize| {
            let data_type = schema().columns[at].data_type;
            [(&MIN, at, data_type, false), (&MAX, at, data_type, false)]
        };
        let all: Vec<_> = (0..8).flat_map(each).collect();
        // A test that every row passes: no bound may stand for rows.
        let every = compare(BinaryOp::GreaterOrEqual, of(0), lit(int(0), I64));
        for functions in [&all[..14], &all[..], &all[2..4]] {
            let plan = aggregate(scan(&table, Vec::new()), &[], functions);
            let read = aggregate(scan(&table, vec![every.clone()]), &[], functions);
            let expected = rows(&fixture, &read, 1, ScanStrategy::Adaptive);
            for threads in [1, 3] {
                assert_eq!(rows(&fixture, &plan, threads, ScanStrategy::Adaptive), expected);
            }
        }
        if !deletes {
            fixture.statistics = Default::default();
            let plan = aggregate(scan(&table, Vec::new()), &[], &all[2..4]);
            rows(&fixture, &plan, 3, ScanStrategy::Adaptive);
            assert_eq!(fixture.statistics.rows_read.get(), 0, "bounds were enough");
        }
    }
    let mut fixture = Fixture::new();
    let table = fixture.store.create_table(schema()).unwrap();
    fixture.transaction = fixture.store.begin().unwrap();
    let plan = aggregate(scan(&table, Vec::new()), &[], &[(&MIN, 1, DataType::Timestamp, false)]);
    assert_eq!(rows(&fixture, &plan, 1, ScanStrategy::Adaptive), [[Value::Null]]);
}

#[test]
fn values_count_once_on_several_threads() {
    let (fixture, table) = fixture(true);
    let total = decimal(38, 0);
    let functions = [
        (&COUNT, 2, I64, true),
        (&SUM, 2, total, true),
        (&COUNT, 3, I64, true),
        (&COUNT, 6, I64, true),
        (&COUNT, 7, I64, true),
        (&COUNT, 2, I64, false),
    ];
    for groups in [&[][..], &[5], &[3], &[5, 7]] {
        let plan = aggregate(scan(&table, Vec::new()), groups, &functions);
        let alone = rows(&fixture, &plan, 1, ScanStrategy::Adaptive);
        for threads in [2, 5] {
            let found = rows(&fixture, &plan, threads, ScanStrategy::Adaptive);
            assert!(found == alone, "{threads} threads by {groups:?}");
        }
        if groups.is_empty() {
            let mut once: Vec<Value> =
                rows(&fixture, &scan(&table, vec![]), 1, ScanStrategy::Regular)
                    .into_iter()
                    .map(|row| row[2].clone())
                    .filter(|value| !value.is_null())
                    .collect();
            once.sort_by_key(nacre_types::key::integer);
            once.dedup();
            assert_eq!(alone[0][0], int(once.len() as i64));
        }
    }
}
