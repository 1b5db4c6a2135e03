//! Operators on files that lack parts of their bytes: a call that met absent bytes is repeated once
//! they were fetched, and no row is lost or returned twice.

use crate::parallel::tests::{Spawned, aggregate, column, fixture_in, join, scan};
use crate::testing::*;
use crate::{build, build_locating};
use nacre_host::fetched::Fetched;
use nacre_host::memory::MemoryStore;
use nacre_host::{Host, LocalStore, Parallelism};
use nacre_operator::{LocatedColumns, Operator, Threads};
use nacre_sql::expr::{BinaryOp, Expr};
use nacre_sql::plan::{Field, JoinKind, Plan, SortKey};
use nacre_table::{Store, StoreOptions, Table};
use nacre_testing::{Absent, Fixed, Watched};
use nacre_types::{DataType, IndexKind, IndexSchema, Result, Value};
use std::cell::Cell;
use std::sync::Arc;

const I64: DataType = DataType::Int64;

/// The table of the parallel tests with an index on the text, and a second, loaded part of it.
struct Files {
    store: Arc<MemoryStore>,
}

/// Threads that must not block.
struct Unblocked;

impl Parallelism for Unblocked {
    fn width(&self) -> usize {
        Spawned.width()
    }
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        Spawned.run(count, task);
    }
}

/// A database that lacks bytes, and its files.
struct Lacking {
    fixture: Fixture,
    files: Arc<Absent>,
    /// How often a call was repeated.
    waits: Cell<usize>,
}

impl Files {
    fn new() -> Files {
        let store = Arc::new(MemoryStore::new());
        let (fixture, table) = fixture_in(store.clone(), None);
        let index = IndexSchema {
            id: Default::default(),
            name: "by_tag".into(),
            columns: vec![2],
            unique: false,
            kind: IndexKind::BTree,
        };
        let table = fixture.store.create_index(&table, index).unwrap();
        while fixture.store.maintain().unwrap() {}
        drop((table, fixture));
        Files { store }
    }

    fn open(
        &self,
        files: Arc<dyn LocalStore>,
        parallelism: Arc<dyn Parallelism>,
        cache_bytes: usize,
    ) -> (Fixture, Arc<Table>) {
        let mut fixture = Fixture::new();
        let fixed = Arc::new(Fixed::default());
        let host = Host {
            // Counts as a disk, so that operators spill.
            store: Watched::new(files, |_, _| Ok(())),
            clock: fixed.clone(),
            entropy: fixed,
            parallelism,
        };
        let options = StoreOptions { cache_bytes, ..StoreOptions::default() };
        fixture.store = Store::open(host, options).unwrap();
        fixture.transaction = fixture.store.begin().unwrap();
        let table = fixture.store.table("t").unwrap();
        (fixture, table)
    }

    /// Opens them so that reads miss, by a seed: nothing is resident, and what is fetched stays at
    /// most as long as its guard.
    fn lacking(&self, seed: u64) -> Lacking {
        let files = Absent::new(self.store.clone(), seed, may_lack);
        // With and without a cache of blocks in front of the files.
        let cache_bytes = if seed.is_multiple_of(2) { 0 } else { 1 << 30 };
        // Threads that wait for absent bytes, and threads that cannot.
        let threads: Arc<dyn Parallelism> = match seed < 3 {
            true => Arc::new(Spawned),
            false => Arc::new(Unblocked),
        };
        let (fixture, _) = self.open(files.clone(), threads, cache_bytes);
        files.deny([100, 100, 40][seed as usize % 3], [100, 30][seed as usize / 2 % 2]);
        Lacking { fixture, files, waits: Cell::new(0) }
    }
}

impl Lacking {
    /// Repeats a call until nothing that it reads is absent.
    fn resolved<T>(&self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        let mut fetched = Fetched::default();
        loop {
            match call() {
                Err(error) => fetched.resolve_now(error, &*self.files, &Fixed::default())?,
                done => return done,
            }
            self.waits.set(self.waits.get() + 1);
        }
    }

    fn rows(&self, plan: &Plan, threads: usize) -> Result<Vec<Vec<Value>>> {
        let mut context = self.fixture.context();
        context.threads = Threads { count: threads, morsel_rows: 4096 };
        let mut operator: Box<dyn Operator> = self.resolved(|| build(plan, &context))?;
        let mut rows = Vec::new();
        while let Some(batch) = self.resolved(|| operator.next(&context))? {
            rows.extend(rows_of(&batch));
        }
        assert!(self.resolved(|| operator.next(&context))?.is_none(), "rows after the end");
        Ok(rows)
    }
}

/// Segments, hash tables and index parts. The log and temporary files are always there.
fn may_lack(name: &str) -> bool {
    ["seg-", "hsh-", "idx-"].iter().any(|prefix| name.starts_with(prefix))
}

/// Runs plans with bytes that are there, and with absent ones.
fn check(plans: impl Fn(&Table) -> Vec<(&'static str, Plan)>, threads: &[usize]) {
    check_with(1 << 30, plans, threads);
}

/// Like [`check`], with this much memory for each statement.
fn check_with(
    memory: usize,
    plans: impl Fn(&Table) -> Vec<(&'static str, Plan)>,
    threads: &[usize],
) {
    let files = Files::new();
    let (mut fixture, table) = files.open(files.store.clone(), Arc::new(Spawned), 1 << 30);
    fixture.memory_limit = memory;
    let mut lost: Vec<String> = Vec::new();
    for (name, plan) in plans(&table) {
        let expected = crate::parallel::tests::rows_with(&fixture, &plan, 1).unwrap();
        assert!(!expected.is_empty(), "{name} returns no row");
        for seed in 0..6 {
            for &threads in threads {
                let mut lacking = files.lacking(seed);
                lacking.fixture.memory_limit = memory;
                let rows = lacking.rows(&plan, threads);
                assert!(lacking.files.misses() > 0, "{name}: nothing was absent");
                match rows {
                    Ok(rows) if rows == expected => {}
                    Ok(rows) => lost.push(format!(
                        "{name}, seed {seed}, {threads} threads: {} rows of {}",
                        rows.len(),
                        expected.len()
                    )),
                    Err(error) => {
                        lost.push(format!("{name}, seed {seed}, {threads} threads: {error}"));
                    }
                }
            }
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

fn is(op: BinaryOp, at: usize, value: i64) -> Expr {
    compare(op, column(at), lit(int(value), I64))
}

fn tag_is(tag: &str) -> Expr {
    compare(BinaryOp::Equal, column(1), lit(text(tag), DataType::TEXT))
}

fn below(table: &Table, id: i64) -> Plan {
    scan(table, vec![is(BinaryOp::Less, 0, id)])
}

fn all(table: &Table) -> Plan {
    scan(table, Vec::new())
}

fn by_id() -> Vec<(Expr, Expr)> {
    vec![(column(0), column(0))]
}

fn sorted(input: Plan, at: usize, descending: bool, limit: Option<i64>) -> Plan {
    let keys = vec![SortKey { expr: column(at), descending, nulls_first: !descending }];
    let limit = limit.map(|rows| rows as u64);
    Plan::Sort { input: Box::new(input), keys, limit }
}

#[test]
fn scans_continue_after_absent_bytes() {
    check(
        |table| {
            let cheap = compare(BinaryOp::Less, column(2), lit(dec(500, 2), decimal(12, 2)));
            let odd =
                compare(BinaryOp::Equal, column(5), lit(Value::Boolean(false), DataType::Boolean));
            vec![
                ("all rows", all(table)),
                ("a test of a column", scan(table, vec![cheap.clone()])),
                ("two tests", scan(table, vec![cheap, odd])),
                ("a range of keys", scan(table, vec![is(BinaryOp::Greater, 0, 29_000)])),
            ]
        },
        &[1, 2, 5],
    );
}

#[test]
fn rows_found_by_indexes_continue_after_absent_bytes() {
    check(
        |table| {
            vec![
                ("one text", scan(table, vec![tag_is("tag 31")])),
                ("a key", scan(table, vec![is(BinaryOp::Equal, 0, 12_345)])),
                (
                    "a key and a test",
                    scan(table, vec![is(BinaryOp::Equal, 0, 7), is(BinaryOp::Less, 0, 9)]),
                ),
            ]
        },
        &[1, 3],
    );
}

#[test]
fn first_rows_and_extremes_continue_after_absent_bytes() {
    let extremes = [(&MIN, Some(1), DataType::TEXT), (&MAX, Some(2), decimal(12, 2))];
    check(
        |table| {
            vec![
                ("the last prices", sorted(all(table), 2, true, Some(5))),
                ("the first texts", sorted(scan(table, vec![tag_is("tag 31")]), 1, false, Some(7))),
                ("bounds", aggregate(all(table), &[], &extremes)),
            ]
        },
        &[1, 3],
    );
}

#[test]
fn joins_continue_after_absent_bytes() {
    use JoinKind::{Anti, Inner, Left, RightSemi, Semi};
    check(
        |table| {
            let keys = || vec![(column(1), column(1))];
            let mut plans = Vec::new();
            for (name, kind) in [
                ("inner", Inner),
                ("left", Left),
                ("semi", Semi),
                ("anti", Anti),
                ("right semi", RightSemi),
            ] {
                plans.push((name, join(all(table), below(table, 100), kind, keys(), None)));
            }
            // The keys of the right side are looked up in indexes of the left one.
            let few = scan(table, vec![is(BinaryOp::Less, 0, 3)]);
            plans.push(("by index", join(all(table), few, Inner, keys(), None)));
            plans.push(("by key", join(all(table), below(table, 40), Inner, by_id(), None)));
            // No right row: whether a left row needs one is asked first.
            let none = scan(table, vec![is(BinaryOp::Greater, 0, 1 << 40)]);
            plans.push(("anti of nothing", join(all(table), none, Anti, by_id(), None)));
            plans
        },
        &[1, 2, 5],
    );
}

#[test]
fn ordered_scans_continue_after_absent_bytes() {
    check(
        |table| {
            vec![
                ("the first by key", sorted(all(table), 0, false, Some(9_000))),
                ("the last by key", sorted(all(table), 0, true, Some(9_000))),
                ("the first by index", sorted(all(table), 1, false, Some(40))),
                ("the last by index", sorted(all(table), 1, true, Some(40))),
                ("by a column", sorted(all(table), 2, false, None)),
            ]
        },
        &[1, 2],
    );
}

#[test]
fn recursions_and_shared_rows_continue_after_absent_bytes() {
    check(
        |table| {
            let field = || Field { name: "n".into(), data_type: I64, nullable: true };
            let project = |input: Plan, exprs: Vec<Expr>| Plan::Project {
                input: Box::new(input),
                fields: exprs.iter().map(|_| field()).collect(),
                exprs,
            };
            // Each round looks up the successors of the previous round's numbers.
            let given = Plan::Given { id: 9, fields: vec![field()] };
            let found =
                join(all(table), given, JoinKind::Inner, vec![(column(0), col(0, I64))], None);
            let low = Plan::Filter { input: Box::new(found), predicate: is(BinaryOp::Less, 0, 20) };
            let next = binary(BinaryOp::Add, column(0), lit(int(1), I64), I64);
            let recursion = Plan::Recursive {
                id: 9,
                base: Box::new(project(below(table, 3), vec![column(0)])),
                step: Box::new(project(low, vec![next])),
                distinct: true,
                fields: vec![field()],
            };
            // Every round builds a lookup in the index.
            let given = Plan::Given { id: 8, fields: vec![field()] };
            let one = scan(table, vec![tag_is("tag 31")]);
            let step = join(one, given, JoinKind::Semi, vec![(column(0), col(0, I64))], None);
            let looked_up = Plan::Recursive {
                id: 8,
                base: Box::new(project(below(table, 3), vec![column(0)])),
                step: Box::new(project(step, vec![next_of(0)])),
                distinct: true,
                fields: vec![field()],
            };
            let counts = aggregate(all(table), &[1], &[(&COUNT, None, I64)]);
            let shared = Plan::Shared { id: 1, input: Arc::new(counts) };
            let tags = |left, right| {
                join(left, right, JoinKind::Inner, vec![(column(1), col(0, DataType::TEXT))], None)
            };
            let twice = tags(tags(below(table, 5_000), shared.clone()), shared);
            vec![
                ("a recursion", recursion),
                ("a recursion by index", looked_up),
                ("shared rows", twice),
            ]
        },
        &[1, 2, 5],
    );
}

fn next_of(at: usize) -> Expr {
    binary(BinaryOp::Add, column(at), lit(int(1), I64), I64)
}

#[test]
fn aggregates_continue_after_absent_bytes() {
    check(
        |table| {
            let functions = [(&COUNT, None, I64), (&SUM, Some(2), decimal(38, 2))];
            let joined = join(all(table), below(table, 100), JoinKind::Inner, by_id(), None);
            vec![
                ("no group", aggregate(all(table), &[], &functions)),
                ("groups", aggregate(all(table), &[1], &functions)),
                ("groups of a join", aggregate(joined, &[1], &functions)),
            ]
        },
        &[1, 2, 5],
    );
}

#[test]
fn operators_with_little_memory_continue_after_absent_bytes() {
    check_with(
        600_000,
        |table| {
            let keys = || vec![(column(1), column(1))];
            let few = scan(table, vec![is(BinaryOp::Less, 0, 5_000)]);
            let joined = join(few, below(table, 9_000), JoinKind::Inner, by_id(), None);
            vec![
                // Of several threads one goes on alone, because a morsel's rows do not fit.
                (
                    "wide rows",
                    join(below(table, 3_000), below(table, 300), JoinKind::Inner, keys(), None),
                ),
                ("a spilled join", joined),
                ("a spilled sort", sorted(below(table, 20_000), 2, false, None)),
                ("too many places", sorted(all(table), 1, false, Some(9_000))),
                ("spilled groups", aggregate(all(table), &[0], &[(&COUNT, None, I64)])),
            ]
        },
        &[1, 3],
    );
}

#[test]
fn located_rows_continue_after_absent_bytes() {
    let files = Files::new();
    let (fixture, table) = files.open(files.store.clone(), Arc::new(Spawned), 1 << 30);
    for (plan, name) in [
        (below(&table, 12_000), "a range"),
        (scan(&table, vec![is(BinaryOp::Equal, 0, 77)]), "a key"),
        (scan(&table, vec![tag_is("tag 31")]), "a text"),
    ] {
        let context = fixture.context();
        let mut expected = Vec::new();
        let mut operator = build_locating(&plan, LocatedColumns::All, &context).unwrap();
        while let Some((batch, _)) = operator.next(&context).unwrap() {
            expected.extend(rows_of(&batch));
        }
        for seed in 0..6 {
            let lacking = files.lacking(seed);
            let context = lacking.fixture.context();
            let mut operator =
                lacking.resolved(|| build_locating(&plan, LocatedColumns::All, &context)).unwrap();
            let mut rows = Vec::new();
            while let Some((batch, locators)) =
                lacking.resolved(|| operator.next(&context)).unwrap()
            {
                assert_eq!(batch.rows, locators.len());
                rows.extend(rows_of(&batch));
            }
            assert!(lacking.files.misses() > 0 && rows == expected, "{name}, seed {seed}");
        }
    }
}

#[test]
fn columns_of_the_first_rows_are_fetched_at_once() {
    let files = Files::new();
    let (fixture, table) = files.open(files.store.clone(), Arc::new(Spawned), 1 << 30);
    let filtered = scan(&table, vec![is(BinaryOp::GreaterOrEqual, 0, 12_345)]);
    let plan = sorted(filtered, 0, false, Some(40));
    let expected = crate::parallel::tests::rows_with(&fixture, &plan, 1).unwrap();
    // No block is there, and what is fetched stays in the cache.
    let lacking = files.lacking(3);
    assert_eq!(lacking.rows(&plan, 1).unwrap(), expected);
    // For the keys, and for the other columns.
    assert_eq!(lacking.waits.get(), 2);
}
