//! Statements with hardly any memory against the same statements with plenty, on one thread and
//! several; the lifetime of the temporary file; errors while spilling.

use crate::build;
use crate::parallel::tests::{aggregate, column, fixture_in, join, rows_with, scan};
use crate::testing::*;
use nacre_host::memory::MemoryStore;
use nacre_host::{Error, LocalStore};
use nacre_sql::expr::BinaryOp;
use nacre_sql::plan::node;
use nacre_sql::plan::{Field, JoinKind, Plan, SortKey, WindowCall, Windowed};
use nacre_table::Table;
use nacre_testing::{Call, Watched};
use nacre_types::{DataType, ErrorKind, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const I64: DataType = DataType::Int64;

/// Files that behave like a disk with limited space for temporary files.
struct Disk {
    files: Arc<MemoryStore>,
    room: Arc<AtomicUsize>,
}

type Files = (Fixture, Arc<Table>, Arc<Disk>);

fn on_disk(room: usize) -> Files {
    let disk = Arc::new(Disk { files: Arc::default(), room: Arc::new(AtomicUsize::new(room)) });
    let left = disk.room.clone();
    let files = Watched::new(disk.files.clone(), move |name, call| {
        if name.starts_with("tmp-")
            && let Call::Write { bytes } = call
        {
            let rest = left.load(Ordering::Relaxed).checked_sub(bytes);
            left.store(rest.ok_or_else(|| Error::io("no space left"))?, Ordering::Relaxed);
        }
        Ok(())
    });
    let (fixture, table) = fixture_in(files, None);
    (fixture, table, disk)
}

fn temporary(disk: &Disk) -> usize {
    disk.files.list().unwrap().iter().filter(|name| name.starts_with("tmp-")).count()
}

fn sorted(rows: Vec<Vec<Value>>) -> Vec<String> {
    let mut rows: Vec<String> = rows.into_iter().map(|row| format!("{row:?}")).collect();
    rows.sort_unstable();
    rows
}

/// Checks that a plan returns the same rows with little memory, and that it spilled.
fn same_spilled(plan: &Plan, in_order: bool) {
    let (mut fixture, _, disk) = FIXTURE.with(|fixture| fixture.borrow_mut().take().unwrap());
    let expected = rows_with(&fixture, plan, 1).unwrap();
    assert_eq!(fixture.statistics.bytes_spilled.get(), 0);
    for (threads, limit) in [(1, 160_000), (4, 160_000), (1, 400_000)] {
        fixture.memory_limit = limit;
        fixture.memory = nacre_operator::Memory::new(limit);
        let found = rows_with(&fixture, plan, threads).unwrap();
        if in_order {
            assert!(found == expected, "{threads} threads, {limit} bytes: {plan:?}");
        } else {
            assert!(
                sorted(found) == sorted(expected.clone()),
                "{threads} threads, {limit} bytes: {plan:?}"
            );
        }
        assert!(limit > 160_000 || fixture.statistics.bytes_spilled.get() > 0, "{plan:?}");
        fixture.memory = nacre_operator::Memory::new(1 << 30);
        assert_eq!(temporary(&disk), 0);
    }
    fixture.statistics = nacre_operator::Statistics::default();
    fixture.memory_limit = 1 << 30;
    FIXTURE.with(|place| {
        *place.borrow_mut() = Some((fixture, TABLE.with(|t| t.borrow().clone().unwrap()), disk))
    });
}

thread_local! {
    static FIXTURE: std::cell::RefCell<Option<Files>> = const { std::cell::RefCell::new(None) };
    static TABLE: std::cell::RefCell<Option<Arc<Table>>> = const { std::cell::RefCell::new(None) };
}

/// The table that the plans of a test read.
fn begin() -> Arc<Table> {
    let (fixture, table, disk) = on_disk(usize::MAX);
    TABLE.with(|place| *place.borrow_mut() = Some(table.clone()));
    FIXTURE.with(|place| *place.borrow_mut() = Some((fixture, table.clone(), disk)));
    table
}

fn below(table: &Table, id: i64) -> Plan {
    scan(table, vec![compare(BinaryOp::Less, column(0), lit(int(id), I64))])
}

fn all(table: &Table) -> Plan {
    scan(table, Vec::new())
}

#[test]
fn groups() {
    let table = begin();
    let functions = [
        (&COUNT, None, I64),
        (&SUM, Some(3), DataType::Float64),
        (&MIN, Some(1), DataType::TEXT),
        (&MAX, Some(4), decimal(30, 2)),
    ];
    for keys in [&[0][..], &[2, 1], &[4], &[1, 3, 4]] {
        same_spilled(&aggregate(all(&table), keys, &functions), false);
    }
    same_spilled(&aggregate(all(&table), &[0, 1, 2, 3, 4, 5], &[]), false);
}

#[test]
fn joins() {
    use JoinKind::{Anti, Full, Inner, Left, Mark, MarkIn, Right, RightAnti, RightSemi, Semi};
    let table = begin();
    let keys = |at: usize| vec![(column(at), column(at))];
    for kind in [Inner, Left, Right, Full, Semi, Anti, RightSemi, RightAnti, Mark, MarkIn] {
        same_spilled(&join(all(&table), below(&table, 9_000), kind, keys(0), None), false);
        let first_id = if matches!(kind, RightSemi | RightAnti) { 6 } else { 0 };
        let less = compare(BinaryOp::Less, col(first_id, I64), lit(int(20_000), I64));
        same_spilled(&join(below(&table, 25_000), all(&table), kind, keys(2), Some(less)), false);
    }
    // With nulls, and two keys.
    let two = vec![(column(4), column(4)), (column(0), column(0))];
    for kind in [Inner, Full, Anti, MarkIn] {
        same_spilled(&join(below(&table, 20_000), all(&table), kind, two.clone(), None), false);
    }
}

/// All rows have one key, or there is no key: partitioning does not help.
#[test]
fn one_large_key() {
    use JoinKind::{Inner, Left, RightSemi};
    let table = begin();
    let few = below(&table, 20);
    for kind in [Inner, RightSemi] {
        let by_flag = vec![(column(5), column(5))];
        same_spilled(&join(few.clone(), below(&table, 9_000), kind, by_flag, None), false);
        same_spilled(&join(few.clone(), below(&table, 5_000), kind, Vec::new(), None), false);
    }
    let (mut fixture, table, disk) = on_disk(usize::MAX);
    fixture.memory_limit = 160_000;
    let plan = join(few, below(&table, 9_000), Left, vec![(column(5), column(5))], None);
    let error = rows_with(&fixture, &plan, 1).unwrap_err();
    assert_eq!(
        (error.kind(), error.message().starts_with("join")),
        (ErrorKind::Limit, true),
        "{error}"
    );
    fixture.memory = nacre_operator::Memory::new(0);
    assert_eq!(temporary(&disk), 0);
}

/// All right rows have one key, left rows many: most partitions have no right rows.
#[test]
fn partitions_without_right_rows() {
    use JoinKind::{Anti, Inner, Left, Right, Semi};
    let table = begin();
    for kind in [Inner, Left, Right, Semi, Anti] {
        let zero = binary(BinaryOp::Modulo, column(0), lit(int(1), I64), I64);
        let thousand = binary(BinaryOp::Modulo, column(0), lit(int(1_000), I64), I64);
        let keys = vec![(column(0), if kind == Inner || kind == Right { zero } else { thousand })];
        same_spilled(&join(below(&table, 20), below(&table, 9_000), kind, keys, None), false);
    }
}

#[test]
fn sorts_are_stable() {
    let table = begin();
    let key = |at: usize, descending| SortKey { expr: column(at), descending, nulls_first: at > 3 };
    for keys in
        [vec![key(1, true)], vec![key(5, false), key(2, true)], vec![key(4, true), key(1, false)]]
    {
        for limit in [None, Some(9_000)] {
            same_spilled(
                &Plan::Sort { input: Box::new(all(&table)), keys: keys.clone(), limit },
                true,
            );
        }
    }
}

#[test]
fn windows() {
    let table = begin();
    let field = || Field { name: String::new(), data_type: I64, nullable: true };
    let call = |function| WindowCall {
        function,
        args: Vec::new(),
        frame: Default::default(),
        data_type: I64,
    };
    let order = vec![SortKey { expr: column(0), descending: true, nulls_first: false }];
    for partition in [vec![column(2)], vec![column(0)], vec![column(2), column(5)]] {
        let plan = Plan::Node(Box::new(node::window::Window {
            input: all(&table),
            partition,
            order: order.clone(),
            calls: vec![
                call(Windowed::Function(window_function("row_number"))),
                call(Windowed::Function(window_function("rank"))),
            ],
            fields: all(&table).fields().into_iter().chain([field(), field()]).collect(),
        }));
        same_spilled(&plan, true);
    }
}

/// Rows of a number and a text, some of every batch of the table, with the text repeated `times`
/// times.
fn long_texts(table: &Table, rows: i64, times: i64) -> Plan {
    let long = call("repeat", vec![column(1), lit(int(times), I64)], DataType::TEXT);
    let rest = binary(BinaryOp::Modulo, column(0), lit(int(30_000 / rows), I64), I64);
    let predicate = compare(BinaryOp::Equal, rest, lit(int(0), I64));
    let some = Plan::Filter { input: Box::new(below(table, 30_000)), predicate };
    let fields = scan(table, Vec::new()).fields().into_iter().take(2).collect();
    Plan::Project { input: Box::new(some), exprs: vec![column(0), long], fields }
}

#[test]
fn windows_whose_results_are_longer_than_their_rows() {
    let table = begin();
    let input = long_texts(&table, 400, 10);
    let args = vec![col(1, DataType::TEXT)];
    let longest = |function| WindowCall {
        function,
        args: args.clone(),
        frame: Default::default(),
        data_type: DataType::TEXT,
    };
    let plan = Plan::Node(Box::new(node::window::Window {
        fields: input.fields().into_iter().chain(vec![input.fields()[1].clone(); 6]).collect(),
        input,
        partition: vec![column(0)],
        order: Vec::new(),
        calls: vec![longest(Windowed::Function(window_function("first_value"))); 6],
    }));
    same_spilled(&plan, true);
}

#[test]
fn groups_that_keep_long_texts() {
    let table = begin();
    for function in [&MIN, &MAX] {
        let longest = [(function, Some(1), DataType::TEXT)];
        same_spilled(&aggregate(long_texts(&table, 600, 100), &[0], &longest), false);
    }
}

#[test]
fn sets() {
    let table = begin();
    let some =
        |from: i64| scan(&table, vec![compare(BinaryOp::Less, lit(int(from), I64), column(0))]);
    let twice =
        |plan: Plan| Plan::Union { fields: plan.fields(), inputs: vec![plan.clone(), plan] };
    for except in [false, true] {
        for every in [false, true] {
            let plan = Plan::Node(Box::new(node::set_operation::SetOperation {
                left: twice(all(&table)),
                right: some(9_000),
                except,
                all: every,
                fields: all(&table).fields(),
            }));
            same_spilled(&plan, false);
        }
    }
}

#[test]
fn shared_rows() {
    let table = begin();
    let shared = Plan::Shared { id: 1, input: Arc::new(all(&table)) };
    let both = join(shared.clone(), shared, JoinKind::Inner, vec![(column(0), column(0))], None);
    same_spilled(&both, false);
}

fn by_price(table: &Table) -> Plan {
    let keys = vec![SortKey { expr: column(2), descending: false, nulls_first: false }];
    Plan::Sort { input: Box::new(all(table)), keys, limit: None }
}

#[test]
fn a_full_disk_is_an_error_of_its_kind_and_leaves_nothing() {
    for room in [0, 100_000, 400_000] {
        let (mut fixture, table, disk) = on_disk(room);
        fixture.memory_limit = 160_000;
        let grouped = aggregate(all(&table), &[0], &[]);
        let joined =
            join(all(&table), all(&table), JoinKind::Inner, vec![(column(0), column(0))], None);
        for plan in [by_price(&table), grouped, joined] {
            disk.room.store(room, Ordering::Relaxed);
            let error = rows_with(&fixture, &plan, 1).unwrap_err();
            assert_eq!(
                (error.kind(), error.message().contains("spilling")),
                (ErrorKind::Io, true),
                "{error}"
            );
            fixture.memory = nacre_operator::Memory::new(0);
            assert_eq!(temporary(&disk), 0);
        }
    }
}

#[test]
fn cancelling_leaves_nothing() {
    let (mut fixture, table, disk) = on_disk(usize::MAX);
    fixture.memory_limit = 160_000;
    {
        let looks = AtomicUsize::new(0);
        let cancelled = || looks.fetch_add(1, Ordering::Relaxed) >= 40;
        let mut context = fixture.context();
        context.cancelled = &cancelled;
        let mut operator = build(&by_price(&table), &context).unwrap();
        let error = loop {
            match operator.next(&context) {
                Ok(Some(_)) => {}
                Ok(None) => panic!("not cancelled"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert_eq!(temporary(&disk), 1);
    }
    fixture.memory = nacre_operator::Memory::new(0);
    assert_eq!(temporary(&disk), 0);
}

/// Without a disk, nothing can be spilled.
#[test]
fn without_a_disk_the_operator_is_named() {
    let (mut fixture, table) = fixture_in(Arc::new(MemoryStore::new()), None);
    fixture.memory_limit = 160_000;
    let distinct = aggregate(all(&table), &[0], &[]);
    let joined = join(all(&table), all(&table), JoinKind::Left, vec![(column(0), column(0))], None);
    for (name, plan) in [("sort", by_price(&table)), ("aggregate", distinct), ("join", joined)] {
        for threads in [1, 4] {
            let error = rows_with(&fixture, &plan, threads).unwrap_err();
            assert_eq!(
                (error.kind(), error.message().starts_with(name)),
                (ErrorKind::Limit, true),
                "{error}"
            );
        }
    }
}
