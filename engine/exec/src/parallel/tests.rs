//! Pipelines and aggregation on several threads compared with one: the same rows in the same order,
//! the same errors, and the same limits.

use crate::build;
use crate::testing::*;
use nacre_column::Batch;
use nacre_host::memory::MemoryStore;
use nacre_host::{Fetch, LocalStore, Parallelism, Resident};
use nacre_operator::{Operator, Threads};
use nacre_sql::expr::{Aggregate, AggregateFunction, BinaryOp, Expr, ExprKind};
use nacre_sql::plan::{Field, JoinKind, Plan, SortKey};
use nacre_table::Table;
use nacre_types::{DataType, ErrorKind, KeyColumns, ShardKey, TableSchema, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs each task on a thread of its own.
pub(crate) struct Spawned;

impl Parallelism for Spawned {
    fn width(&self) -> usize {
        4
    }
    #[allow(clippy::disallowed_methods)]
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| (0..count).for_each(|at| drop(scope.spawn(move || task(at)))));
    }
    fn wait(&self, fetch: Fetch<'_>) -> Option<nacre_types::Result<Resident>> {
        Some(nacre_testing::wait(fetch))
    }
}

const I64: DataType = DataType::Int64;

fn schema(shard_key: Option<ShardKey>) -> TableSchema {
    use nacre_testing::column;
    TableSchema {
        name: "t".into(),
        columns: vec![
            column(1, "id", I64, false),
            column(2, "tag", DataType::TEXT, true),
            column(3, "price", decimal(12, 2), false),
            column(4, "ratio", DataType::Float64, true),
            column(5, "wide", decimal(30, 2), true),
            column(6, "even", DataType::Boolean, false),
        ],
        primary_key: Some(KeyColumns { name: "PRIMARY".into(), columns: vec![0] }),
        shard_key,
        ..TableSchema::default()
    }
}

fn row(id: i64) -> Vec<Value> {
    let some = |null: bool, value| if null { Value::Null } else { value };
    vec![
        int(id),
        some(id % 7 == 0, text(&format!("tag {}", (id * 31) % 50))),
        dec((id as i128 * 37) % 10_007, 2),
        some(id % 5 == 0, Value::Float((id % 1000) as f64)),
        some(id % 3 == 0, dec(id as i128 * 1_000_000_000_000_000_000, 2)),
        Value::Boolean(id % 2 == 0),
    ]
}

/// 30,000 rows in several segments and 700 in the rowstore.
fn fixture(shard_key: Option<ShardKey>) -> (Fixture, Arc<Table>) {
    fixture_in(Arc::new(MemoryStore::new()), shard_key)
}

/// The same table, in these files.
pub(crate) fn fixture_in(
    files: Arc<dyn LocalStore>,
    shard_key: Option<ShardKey>,
) -> (Fixture, Arc<Table>) {
    let mut fixture = Fixture::with(files, Arc::new(Spawned));
    let table = fixture.store.create_table(schema(shard_key)).unwrap();
    let insert = |fixture: &Fixture, ids: std::ops::Range<i64>| {
        let rows: Vec<_> = ids.map(row).collect();
        let mut write = fixture.store.begin().unwrap();
        write.insert(&table, &Batch::from_rows(&table.schema().types(), &rows)).unwrap();
        write.commit().unwrap();
    };
    insert(&fixture, 0..30_000);
    fixture.store.flush(&table).unwrap();
    insert(&fixture, 30_000..30_700);
    fixture.transaction = fixture.store.begin().unwrap();
    (fixture, table)
}

pub(crate) fn scan(table: &Table, filters: Vec<Expr>) -> Plan {
    Plan::Scan {
        table: table.schema().clone(),
        projection: (0..6).collect(),
        paths: Vec::new(),
        keys: Vec::new(),
        filters,
    }
}

pub(crate) fn column(at: usize) -> Expr {
    col(at, schema(None).columns[at].data_type)
}

pub(crate) fn rows_with(
    fixture: &Fixture,
    plan: &Plan,
    threads: usize,
) -> nacre_types::Result<Vec<Vec<Value>>> {
    let mut context = fixture.context();
    context.threads = Threads { count: threads, morsel_rows: 4096 };
    let mut operator: Box<dyn Operator> = build(plan, &context)?;
    run(&mut *operator, &context)
}

fn same(fixture: &Fixture, plan: &Plan) -> Vec<Vec<Value>> {
    let alone = rows_with(fixture, plan, 1).unwrap();
    for threads in [2, 5] {
        assert!(rows_with(fixture, plan, threads).unwrap() == alone, "{threads} threads: {plan:?}");
    }
    alone
}

pub(crate) fn aggregate(
    input: Plan,
    groups: &[usize],
    functions: &[(&'static AggregateFunction, Option<usize>, DataType)],
) -> Plan {
    let aggregates = functions
        .iter()
        .map(|(function, arg, data_type)| Aggregate {
            function: (*function).into(),
            args: arg.map(column).into_iter().collect(),
            order: Vec::new(),
            distinct: false,
            filter: None,
            data_type: *data_type,
        })
        .collect();
    let groups: Vec<Expr> = groups.iter().map(|at| column(*at)).collect();
    let field = |data_type| Field { name: String::new(), data_type, nullable: true };
    let types = groups.iter().map(|g| g.data_type).chain(functions.iter().map(|f| f.2));
    let fields = types.map(field).collect();
    Plan::Aggregate { input: Box::new(input), groups, aggregates, fields }
}

#[test]
fn rows_come_in_the_order_of_one_thread() {
    for shard_key in [None, Some(ShardKey { columns: vec![0], partitions: 3 })] {
        let (fixture, table) = fixture(shard_key);
        assert_eq!(same(&fixture, &scan(&table, Vec::new())).len(), 30_700);
        let cheap = compare(BinaryOp::Less, column(2), lit(dec(500, 2), decimal(12, 2)));
        let found = same(&fixture, &scan(&table, vec![cheap.clone()]));
        assert!(found.len() > 1_000 && found.len() < 2_000, "{}", found.len());
        let sum = binary(BinaryOp::Add, column(0), lit(int(1), I64), I64);
        let project = Plan::Project {
            input: Box::new(Plan::Filter {
                input: Box::new(scan(&table, Vec::new())),
                predicate: cheap,
            }),
            exprs: vec![sum],
            fields: vec![Field { name: "n".into(), data_type: I64, nullable: false }],
        };
        assert_eq!(same(&fixture, &project).len(), found.len());
        assert!(
            same(&fixture, &scan(&table, vec![lit(Value::Boolean(false), DataType::Boolean)]))
                .is_empty()
        );
    }
}

#[test]
fn groups_and_their_order_are_those_of_one_thread() {
    let functions = [
        (&COUNT, None, I64),
        (&COUNT, Some(1), I64),
        (&SUM, Some(2), decimal(38, 2)),
        (&AVG, Some(2), decimal(38, 8)),
        (&SUM, Some(3), DataType::Float64),
        (&SUM, Some(4), decimal(38, 2)),
        (&MIN, Some(1), DataType::TEXT),
        (&MAX, Some(1), DataType::TEXT),
        (&MIN, Some(3), DataType::Float64),
        (&MAX, Some(4), decimal(30, 2)),
        (&MIN, Some(4), decimal(30, 2)),
        (&MIN, Some(0), I64),
        (&MAX, Some(0), I64),
        (&MIN, Some(5), DataType::Boolean),
        (&MAX, Some(5), DataType::Boolean),
    ];
    for shard_key in [None, Some(ShardKey { columns: vec![0], partitions: 3 })] {
        let (fixture, table) = fixture(shard_key);
        for (groups, expected) in
            [(&[][..], 1), (&[1], 51), (&[1, 5], 52), (&[0], 30_700), (&[4], 20_467)]
        {
            let plan = aggregate(scan(&table, Vec::new()), groups, &functions);
            assert_eq!(same(&fixture, &plan).len(), expected, "{groups:?}");
        }
        let none = compare(BinaryOp::Less, column(0), lit(int(0), I64));
        let plan = aggregate(scan(&table, vec![none.clone()]), &[], &functions);
        assert_eq!(same(&fixture, &plan)[0][0], int(0));
        assert!(same(&fixture, &aggregate(scan(&table, vec![none]), &[1], &functions)).is_empty());
    }
}

#[test]
fn the_first_error_is_that_of_one_thread() {
    let (fixture, table) = fixture(None);
    // Divides by zero at id 20,000, and overflows long after it.
    let shifted = binary(BinaryOp::Subtract, column(0), lit(int(20_000), I64), I64);
    let inverse = binary(BinaryOp::IntegerDivide, lit(int(1), I64), shifted, I64);
    let huge = binary(BinaryOp::Multiply, column(0), lit(int(i64::MAX / 25_000), I64), I64);
    let filters = vec![
        compare(BinaryOp::NotEqual, huge, lit(int(1), I64)),
        compare(BinaryOp::NotEqual, inverse, lit(int(7), I64)),
    ];
    for plan in [scan(&table, filters.clone()), aggregate(scan(&table, filters), &[1], &[])] {
        let alone = rows_with(&fixture, &plan, 1).map(|rows| rows.len());
        for threads in [2, 3, 4] {
            let error = rows_with(&fixture, &plan, threads).map(|rows| rows.len());
            assert_eq!(format!("{error:?}"), format!("{alone:?}"));
        }
    }
}

#[test]
fn too_many_groups_for_several_threads_are_grouped_by_one() {
    let (mut fixture, table) = fixture(None);
    let plan = aggregate(scan(&table, Vec::new()), &[2], &[(&COUNT, None, I64)]);
    let expected = rows_with(&fixture, &plan, 1).unwrap();
    // Enough for all groups on one thread. With four threads, each sees most groups but has a
    // quarter of the memory.
    fixture.memory_limit = 450_000;
    assert!(rows_with(&fixture, &plan, 1).unwrap() == expected);
    assert!(rows_with(&fixture, &plan, 4).unwrap() == expected);
    fixture.memory_limit = 100_000;
    for threads in [1, 4] {
        assert_eq!(rows_with(&fixture, &plan, threads).unwrap_err().kind(), ErrorKind::Limit);
    }
}

#[test]
fn all_threads_are_cancelled() {
    let (fixture, table) = fixture(None);
    let looks = AtomicUsize::new(0);
    let cancelled = || looks.fetch_add(1, Ordering::Relaxed) >= 6;
    let all = lit(Value::Boolean(true), DataType::Boolean);
    let kept =
        boolean(ExprKind::Or(vec![all, compare(BinaryOp::Less, column(0), lit(int(5), I64))]));
    for plan in [scan(&table, vec![kept]), aggregate(scan(&table, Vec::new()), &[1], &[])] {
        looks.store(0, Ordering::Relaxed);
        let mut context = fixture.context();
        context.threads = Threads { count: 3, morsel_rows: 4096 };
        context.cancelled = &cancelled;
        let mut operator = build(&plan, &context).unwrap();
        assert_eq!(run(&mut *operator, &context).unwrap_err().kind(), ErrorKind::Cancelled);
        // Each thread checks at most once more.
        assert!(looks.load(Ordering::Relaxed) < 16, "{looks:?}");
    }
}

pub(crate) fn join(
    left: Plan,
    right: Plan,
    kind: JoinKind,
    keys: Vec<(Expr, Expr)>,
    residual: Option<Expr>,
) -> Plan {
    Plan::Join { left: Box::new(left), right: Box::new(right), kind, keys, residual }
}

#[test]
fn joins_return_the_rows_of_one_thread_in_their_order() {
    use JoinKind::{Anti, Full, Inner, Left, Right, RightAnti, RightSemi, Semi};
    let (fixture, table) = fixture(None);
    let few =
        |below: i64| scan(&table, vec![compare(BinaryOp::Less, column(0), lit(int(below), I64))]);
    let all = || scan(&table, Vec::new());
    // By a text with nulls, where each left row has two or three partners; and by a number that
    // most rows do not have.
    let by_text = vec![(column(1), column(1))];
    let by_number = vec![(column(2), column(2))];
    let residual = || Some(compare(BinaryOp::Less, col(6, I64), lit(int(60), I64)));
    for kind in [Inner, Left, Semi, Anti, Right, Full, RightSemi, RightAnti] {
        for (keys, below) in [(&by_text, 120), (&by_number, 3_000), (&by_text, 0)] {
            let plain = same(&fixture, &join(all(), few(below), kind, keys.clone(), None));
            let less = same(&fixture, &join(all(), few(below), kind, keys.clone(), residual()));
            assert!(below == 0 || plain.len() != less.len() || plain != less, "{kind:?}");
        }
        let grouped = aggregate(
            join(all(), few(120), kind, by_text.clone(), None),
            &[1],
            &[(&COUNT, None, I64), (&MAX, Some(0), I64)],
        );
        same(&fixture, &grouped);
    }
    // A join over a join.
    let inner = join(all(), few(3_000), Inner, by_number.clone(), None);
    let outer = join(inner, few(40), Left, by_text.clone(), None);
    assert!(same(&fixture, &outer).len() > 3_000);
    assert!(!same(&fixture, &aggregate(outer, &[1], &[(&COUNT, None, I64)])).is_empty());
}

#[test]
fn a_scan_reads_the_blocks_that_a_join_above_has_keys_for() {
    let (fixture, table) = fixture(None);
    let few = || scan(&table, vec![compare(BinaryOp::Less, column(0), lit(int(40), I64))]);
    let all = || scan(&table, Vec::new());
    let by_id = || vec![(column(0), column(0))];
    let wanted = same(&fixture, &few()).len();
    let inner = join(all(), few(), JoinKind::Inner, by_id(), None);
    // Through groups, projections and the other side of a join.
    let grouped = join(
        aggregate(all(), &[0], &[(&MAX, Some(0), I64)]),
        few(),
        JoinKind::Inner,
        by_id(),
        None,
    );
    let deep = join(
        join(all(), all(), JoinKind::Inner, by_id(), None),
        few(),
        JoinKind::RightSemi,
        by_id(),
        None,
    );
    for (plan, scans) in [(inner, 1), (grouped, 1), (deep, 2)] {
        let read = || fixture.statistics.rows_read.get();
        for threads in [1, 3] {
            let before = read();
            assert_eq!(rows_with(&fixture, &few(), threads).unwrap().len(), wanted);
            let alone = read() - before;
            assert_eq!(rows_with(&fixture, &plan, threads).unwrap().len(), wanted);
            // One block, and the rows in memory.
            let rows = read() - before - 2 * alone;
            assert!(rows <= scans * (4096 + 1_000), "{rows} rows, {threads} threads: {plan:?}");
        }
    }
}

#[test]
fn a_join_that_multiplies_rows_is_not_held_in_memory() {
    let (mut fixture, table) = fixture(None);
    let few = scan(&table, vec![compare(BinaryOp::Less, column(0), lit(int(2_000), I64))]);
    let plan =
        join(scan(&table, Vec::new()), few, JoinKind::Inner, vec![(column(5), column(5))], None);
    fixture.memory_limit = 1_000_000;
    let mut context = fixture.context();
    context.threads = Threads { count: 3, morsel_rows: 4096 };
    let mut operator = build(&plan, &context).unwrap();
    let mut rows = 0;
    while let Some(batch) = operator.next(&context).unwrap() {
        rows += batch.selected();
    }
    assert_eq!(rows, 30_700 * 1_000);
}

fn field(data_type: DataType) -> Field {
    Field { name: String::new(), data_type, nullable: true }
}

fn shared(id: u32, input: Plan) -> Plan {
    Plan::Shared { id, input: Arc::new(input) }
}

fn project(input: Plan, exprs: Vec<Expr>) -> Plan {
    let fields = exprs.iter().map(|e| field(e.data_type)).collect();
    Plan::Project { input: Box::new(input), exprs, fields }
}

fn union(inputs: Vec<Plan>) -> Plan {
    let fields = inputs[0].fields();
    Plan::Union { inputs, fields }
}

/// The sums of the doubles of each tag.
fn sums(input: Plan) -> Plan {
    aggregate(input, &[1], &[(&SUM, Some(3), DataType::Float64)])
}

/// Joined with another plan whose first column is a tag.
fn with_tags(left: Plan, right: Plan) -> Plan {
    join(left, right, JoinKind::Inner, vec![(column(1), col(0, DataType::TEXT))], None)
}

/// The rows of a plan and how many rows were read for it.
fn counted(
    fixture: &Fixture,
    plan: &Plan,
    threads: usize,
) -> (nacre_types::Result<Vec<Vec<Value>>>, u64) {
    let before = fixture.statistics.rows_read.get();
    let rows = rows_with(fixture, plan, threads);
    (rows, fixture.statistics.rows_read.get() - before)
}

#[test]
fn shared_rows_are_computed_once_for_all_pipelines() {
    let (fixture, table) = fixture(None);
    let all = || scan(&table, Vec::new());
    let once = shared(1, sums(all()));
    let twice = with_tags(with_tags(all(), once.clone()), once.clone());
    let count = |plan| aggregate(plan, &[1], &[(&COUNT, None, I64)]);
    // The table is read three times if each level computes the one below it once, and 2^6 times
    // otherwise.
    let levels = (2..8).fold(once.clone(), |below, id| {
        let both = with_tags(with_tags(all(), below.clone()), below);
        shared(id, sums(both))
    });
    for (plan, scans) in [
        (twice.clone(), 2),
        (count(twice.clone()), 2),
        (union(vec![with_tags(all(), once.clone()), with_tags(all(), once.clone())]), 3),
        (with_tags(with_tags(all(), count(twice)), once), 3),
        (levels, 7),
    ] {
        for threads in [1, 2, 5] {
            let (rows, read) = counted(&fixture, &plan, threads);
            assert!(!rows.unwrap().is_empty());
            assert_eq!(read, scans * 30_700, "{threads} threads: {plan:?}");
        }
    }
}

#[test]
fn shared_rows_are_computed_once_beside_a_limit() {
    let (fixture, table) = fixture(None);
    let all = || scan(&table, Vec::new());
    let once = shared(1, sums(all()));
    let limit = Some(lit(int(10), I64));
    let first =
        Plan::Limit { input: Box::new(with_tags(all(), once.clone())), offset: None, limit };
    let plan = union(vec![first, with_tags(all(), once)]);
    let (expected, read) = counted(&fixture, &plan, 1);
    assert!(read < 3 * 30_700, "{read}");
    for threads in [2, 5] {
        let (rows, again) = counted(&fixture, &plan, threads);
        assert_eq!(
            (rows.unwrap().len(), again),
            (expected.as_ref().unwrap().len(), read),
            "{threads} threads"
        );
    }
}

#[test]
fn rows_shared_within_a_round_of_a_recursion() {
    let (fixture, table) = fixture(None);
    let all = || scan(&table, Vec::new());
    let below = |input, n| Plan::Filter {
        input: Box::new(input),
        predicate: compare(BinaryOp::Less, column(0), lit(int(n), I64)),
    };
    let by_id =
        |left, right| join(left, right, JoinKind::Inner, vec![(column(0), column(0))], None);
    let fields = vec![field(I64)];
    // Each round adds the successors of the previous round's numbers, looked up in the table twice.
    let round = shared(1, below(Plan::Given { id: 9, fields: fields.clone() }, 20));
    let next = binary(BinaryOp::Add, column(0), lit(int(1), I64), I64);
    let step = project(by_id(by_id(all(), round.clone()), round), vec![next]);
    let base = project(
        scan(&table, vec![compare(BinaryOp::Less, column(0), lit(int(3), I64))]),
        vec![column(0)],
    );
    let numbers = Plan::Recursive {
        id: 9,
        base: Box::new(base),
        step: Box::new(step),
        distinct: true,
        fields: fields.clone(),
    };
    assert_eq!(same(&fixture, &numbers).len(), 21);
    // As the right side of a pipeline's join, and shared by two.
    assert_eq!(same(&fixture, &by_id(all(), numbers.clone())).len(), 21);
    let numbers = shared(2, numbers);
    assert_eq!(same(&fixture, &by_id(by_id(all(), numbers.clone()), numbers.clone())).len(), 21);
    // In the step of another recursion, on which it does not depend: its rounds run once.
    let outer = Plan::Given { id: 10, fields: fields.clone() };
    let step = project(by_id(by_id(all(), numbers.clone()), outer), vec![column(0)]);
    let base = project(by_id(all(), numbers.clone()), vec![column(0)]);
    let plan = Plan::Recursive {
        id: 10,
        base: Box::new(base),
        step: Box::new(step),
        distinct: true,
        fields,
    };
    assert_eq!(same(&fixture, &by_id(numbers, plan)).len(), 21);
}

#[test]
fn an_error_of_shared_rows_reaches_every_reader() {
    let (fixture, table) = fixture(None);
    let shifted = binary(BinaryOp::Subtract, column(0), lit(int(20_000), I64), I64);
    let inverse = binary(BinaryOp::IntegerDivide, lit(int(1), I64), shifted, I64);
    // Batch by batch: the batch after the error would have rows again.
    let keys = vec![SortKey { expr: column(2), descending: false, nulls_first: false }];
    let sorted = Plan::Sort { input: Box::new(scan(&table, Vec::new())), keys, limit: None };
    let fails = shared(1, project(sorted, vec![column(0), inverse]));
    let by_id =
        |left| join(left, fails.clone(), JoinKind::Inner, vec![(column(0), column(0))], None);
    let all = || scan(&table, Vec::new());
    for plan in [
        by_id(all()),
        by_id(by_id(all())),
        aggregate(by_id(all()), &[1], &[]),
        union(vec![by_id(all()); 2]),
    ] {
        let alone = rows_with(&fixture, &plan, 1).map(|rows| rows.len());
        assert!(alone.is_err());
        for threads in [2, 5] {
            let error = rows_with(&fixture, &plan, threads).map(|rows| rows.len());
            assert_eq!(format!("{error:?}"), format!("{alone:?}"));
        }
    }
}

#[test]
fn rows_before_an_error_come_first() {
    let (fixture, table) = fixture(None);
    let shifted = binary(BinaryOp::Subtract, column(0), lit(int(20_000), I64), I64);
    let inverse = binary(BinaryOp::IntegerDivide, lit(int(1), I64), shifted, I64);
    let plan = project(scan(&table, Vec::new()), vec![column(0), inverse]);
    let before_error = |threads| {
        let mut context = fixture.context();
        context.threads = Threads { count: threads, morsel_rows: 4096 };
        let mut operator = build(&plan, &context).unwrap();
        let mut ids = Vec::new();
        loop {
            match operator.next(&context) {
                Ok(Some(batch)) => {
                    ids.extend(rows_of(&batch).into_iter().map(|row| row[0].clone()))
                }
                Ok(_) => panic!("no error after {} rows", ids.len()),
                Err(error) => return (ids, error.to_string()),
            }
        }
    };
    let alone = before_error(1);
    assert!(alone.0.len() > 15_000, "{}", alone.0.len());
    for threads in [2, 5] {
        assert!(before_error(threads) == alone, "{threads} threads");
    }
}
