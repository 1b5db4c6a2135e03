//! Adaptive filters over a table of many blocks: the rows are those of a check of every row, and a
//! scripted clock fixes what is decided.

use crate::build;
use crate::testing::*;
use nacre_host::Clock;
use nacre_operator::context::Context;
use nacre_operator::context::profile::Profile;
use nacre_operator::context::statistics::Statistics;
use nacre_sql::ScanStrategy;
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_sql::plan::Plan;
use nacre_table::{OnDuplicate, Store, StoreOptions, Table};
use nacre_testing::column;
use nacre_types::{DataType, IndexKind, IndexSchema, TableSchema, Value};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const I64: DataType = DataType::Int64;
const TEXT: DataType = DataType::TEXT;
const ROWS: i64 = 40 * 4_096;

fn schema() -> TableSchema {
    TableSchema {
        id: 0,
        name: "t".into(),
        columns: vec![
            column(1, "id", I64, false),
            column(2, "word", TEXT, true),
            column(3, "long", TEXT, false),
            column(4, "n", I64, true),
        ],
        ..TableSchema::default()
    }
}

fn row(id: i64) -> Vec<Value> {
    let words = ["apple", "apricot", "banana", "blackberry", "cherry"];
    let word = if id % 9 == 0 { Value::Null } else { text(words[(id % 5) as usize]) };
    let n = if id % 8 == 0 { Value::Null } else { int(id * 7_919 % 1_000) };
    vec![int(id), word, text(&format!("{} of {id}", id * 31 % 977)), n]
}

/// One segment of 40 blocks.
fn fill(fixture: &mut Fixture) -> Arc<Table> {
    let options = StoreOptions { segment_rows: 1 << 20, ..StoreOptions::default() };
    fixture.store = Store::open(fixture.host(), options).unwrap();
    let table = fixture.store.create_table(schema()).unwrap();
    let mut load = fixture.store.bulk_load(&table, OnDuplicate::Error);
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    load.append(&nacre_column::Batch::from_rows(&schema().types(), &rows)).unwrap();
    load.finish().unwrap();
    fixture.transaction = fixture.store.begin().unwrap();
    table
}

fn scan(table: &Table, filters: Vec<Expr>) -> Plan {
    Plan::Scan {
        table: table.schema().clone(),
        projection: vec![0, 1, 2, 3],
        paths: Vec::new(),
        keys: Vec::new(),
        filters,
    }
}

fn found(fixture: &Fixture, plan: &Plan, strategy: ScanStrategy) -> Vec<Vec<Value>> {
    let context = Context { scan_strategy: strategy, ..fixture.context() };
    let mut operator = build(plan, &context).unwrap();
    run(&mut *operator, &context).unwrap()
}

/// How the scan filtered.
fn describe(fixture: &Fixture, plan: &Plan, strategy: ScanStrategy) -> String {
    // Of no node: measuring one would look at the clock, too.
    let (profile, statistics) = (Profile::of([].into_iter()), Statistics::default());
    let context = Context {
        scan_strategy: strategy,
        profile: Some(&profile),
        statistics: &statistics,
        ..fixture.context()
    };
    let mut operator = build(plan, &context).unwrap();
    run(&mut *operator, &context).unwrap();
    statistics.filters().concat()
}

fn is(op: BinaryOp, at: usize, value: Value) -> Expr {
    let data_type = schema().columns[at].data_type;
    compare(op, col(at, data_type), lit(value, data_type))
}

fn like(at: usize, pattern: &str) -> Expr {
    like_or_not(at, pattern, false)
}

fn like_or_not(at: usize, pattern: &str, negated: bool) -> Expr {
    let (arg, pattern) = (Box::new(col(at, TEXT)), Box::new(lit(text(pattern), TEXT)));
    boolean(ExprKind::Like { arg, pattern, escape: None, negated, case_insensitive: false })
}

fn null(at: usize, negated: bool) -> Expr {
    let arg = Box::new(col(at, schema().columns[at].data_type));
    boolean(ExprKind::IsNull { arg, negated })
}

fn and(list: Vec<Expr>) -> Expr {
    boolean(ExprKind::And(list))
}

fn or(list: Vec<Expr>) -> Expr {
    boolean(ExprKind::Or(list))
}

#[test]
fn every_strategy_finds_the_rows_of_a_check_of_every_row() {
    use BinaryOp::*;
    let mut fixture = Fixture::new();
    let table = fill(&mut fixture);
    type Keep = fn(&[Value]) -> bool;
    fn n(r: &[Value]) -> Option<i128> {
        nacre_types::key::integer(&r[3])
    }
    fn t(v: &Value) -> &str {
        if let Value::Text(text) = v { text } else { "" }
    }
    let odd = binary(Modulo, col(0, I64), lit(int(2), I64), I64);
    let cases: Vec<(Vec<Expr>, Keep)> = vec![
        (vec![like(1, "ap%")], |r| t(&r[1]).starts_with("ap")),
        (vec![like(1, "cherry"), is(Less, 3, int(100))], |r| {
            t(&r[1]) == "cherry" && n(r).is_some_and(|n| n < 100)
        }),
        (vec![like(1, "%an%"), like(2, "%7%")], |r| {
            t(&r[1]).contains("an") && t(&r[2]).contains('7')
        }),
        (vec![like(1, "b%y")], |r| t(&r[1]) == "blackberry"),
        (vec![like_or_not(2, "%1%of%2%", true), like_or_not(1, "%an%", true)], |r| {
            let long = t(&r[2]);
            let of = long.find('1').and_then(|at| long[at..].find("of").map(|of| at + of));
            !of.is_some_and(|at| long[at..].contains('2'))
                && !r[1].is_null()
                && !t(&r[1]).contains("an")
        }),
        (vec![is(Equal, 3, int(5)), like(2, "%7%of%5")], |r| {
            n(r) == Some(5)
                && t(&r[2])
                    .split_once(" of ")
                    .is_some_and(|(a, b)| a.contains('7') && b.ends_with('5'))
        }),
        (vec![null(1, false), null(3, true)], |r| r[1].is_null() && !r[3].is_null()),
        (vec![or(vec![null(3, false), is(Less, 3, int(10)), like(2, "1%")])], |r| {
            r[3].is_null() || n(r).is_some_and(|n| n < 10) || t(&r[2]).starts_with('1')
        }),
        (vec![or(vec![is(Equal, 3, int(5)), is(Greater, 3, int(990))])], |r| {
            n(r).is_some_and(|n| n == 5 || n > 990)
        }),
        (vec![or(vec![null(1, false), like(1, "%rr%")])], |r| {
            r[1].is_null() || t(&r[1]).contains("rr")
        }),
        (
            vec![or(vec![
                and(vec![is(Greater, 3, int(500)), like(2, "%3%")]),
                and(vec![is(Less, 0, int(9_000)), compare(Less, col(0, I64), col(3, I64))]),
            ])],
            |r| {
                let id = nacre_types::key::integer(&r[0]).unwrap();
                n(r).is_some_and(|n| n > 500 && t(&r[2]).contains('3') || id < 9_000 && id < n)
            },
        ),
        (vec![compare(Equal, odd, lit(int(1), I64)), like(2, "%9%"), is(Equal, 3, int(7))], |r| {
            let id = nacre_types::key::integer(&r[0]).unwrap();
            id % 2 == 1 && t(&r[2]).contains('9') && n(r) == Some(7)
        }),
    ];
    for (filters, keep) in cases {
        let expected: Vec<_> = (0..ROWS).map(row).filter(|r| keep(r)).collect();
        assert!(!expected.is_empty(), "{filters:?} finds nothing");
        for strategy in ScanStrategy::ALL {
            let rows = found(&fixture, &scan(&table, filters.clone()), strategy);
            let (some, of) = (rows.len(), expected.len());
            assert!(rows == expected, "{strategy:?} {filters:?}: {some} of {of} rows");
        }
    }
}

/// A filter that may fail runs on the rows that all other clauses keep, whatever the order.
#[test]
fn no_order_makes_a_filter_fail() {
    let mut fixture = Fixture::new();
    let table = fill(&mut fixture);
    let inverse = binary(BinaryOp::IntegerDivide, lit(int(1_000), I64), col(0, I64), I64);
    let fails = compare(BinaryOp::GreaterOrEqual, inverse, lit(int(0), I64));
    // The division fails for the row that the last clause drops.
    let all = vec![fails.clone(), like(2, "%7%"), is(BinaryOp::Greater, 0, int(0))];
    for strategy in ScanStrategy::ALL {
        let rows = found(&fixture, &scan(&table, all.clone()), strategy);
        assert!(!rows.is_empty(), "{strategy:?}");
        let context = Context { scan_strategy: strategy, ..fixture.context() };
        let mut operator = build(&scan(&table, vec![fails.clone()]), &context).unwrap();
        assert!(run(&mut *operator, &context).is_err(), "{strategy:?}");
    }
}

/// A clock that only advances inside chosen measurements: each pair of looks is one measurement,
/// and the script says how long each takes, again and again.
struct Scripted {
    looks: AtomicU64,
    now: AtomicU64,
    takes: Vec<u64>,
}

impl Clock for Scripted {
    fn monotonic_ns(&self) -> u64 {
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        if look.is_multiple_of(2) {
            return self.now.load(Ordering::Relaxed);
        }
        let takes = self.takes[(look / 2) as usize % self.takes.len()];
        self.now.fetch_add(takes, Ordering::Relaxed) + takes
    }
    fn wall_us(&self) -> i64 {
        0
    }
    fn sleep_until(&self, _: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

/// The decisions of a scan whose measurements take these times: decoding, encoded and regular
/// evaluation of each of two clauses; then ranges clause by clause, and as a group.
fn decided(leaves: [[u64; 3]; 2], by_clause: u64, as_group: u64) -> String {
    let two_ranges = [leaves.concat(), leaves.concat()].concat();
    let whole = [by_clause, by_clause, as_group, as_group];
    let takes = two_ranges.into_iter().chain(whole).collect();
    let clock = Arc::new(Scripted { looks: 0.into(), now: 1.into(), takes });
    let mut fixture = Fixture::with_clock(clock.clone());
    let table = fill(&mut fixture);
    let filters = vec![is(BinaryOp::Less, 3, int(700)), is(BinaryOp::Less, 1, text("banana"))];
    let plan = scan(&table, filters);
    clock.looks.store(0, Ordering::Relaxed);
    describe(&fixture, &plan, ScanStrategy::Adaptive)
}

#[test]
fn the_clock_decides() {
    let (fast, slow) = ([2_000, 400, 800], [2_000, 90_000, 180_000]);
    let text = decided([fast, slow], 5_000, 9_000);
    assert!(text.starts_with("[n: encoded ") && text.contains(" and [word: "), "{text}");
    let text = decided([slow, fast], 5_000, 9_000);
    assert!(text.starts_with("[word: encoded ") && text.contains(" and [n: "), "{text}");
    // Decoded values are compared faster, and rows that pass are decoded anyway.
    let regular = [100, 9_000, 100];
    let text = decided([regular, regular], 5_000, 9_000);
    assert!(text.contains("[n: regular ") && text.contains("[word: regular "), "{text}");
    assert!(text.contains(" group=1 measured=3 "), "{text}");
    let text = decided([regular, regular], 9_000, 5_000);
    assert!(text.contains("[n: group ") && text.contains(" group=37 measured=3 "), "{text}");
    // A clock that sees no time pass decides nothing.
    let text = decided([[0; 3]; 2], 0, 0);
    assert!(text.contains("[n: encoded ") && text.contains(" group=0 measured=1 "), "{text}");
}

#[test]
fn a_setting_fixes_the_strategy_and_the_order() {
    let mut fixture = Fixture::new();
    let table = fill(&mut fixture);
    let plan = scan(&table, vec![like(2, "%9%"), is(BinaryOp::Less, 3, int(100))]);
    for (strategy, name, group) in [
        (ScanStrategy::Regular, "regular", 0),
        (ScanStrategy::Encoded, "encoded", 0),
        (ScanStrategy::Group, "group", 40),
        (ScanStrategy::Index, "encoded", 0),
    ] {
        let text = describe(&fixture, &plan, strategy);
        assert!(text.starts_with(&format!("[long: {name} ")), "{text}");
        assert!(text.contains(&format!(" and [n: {name} ")), "{text}");
        let counts = format!("; blocks=40 group={group} measured=0 reordered=0");
        assert!(text.ends_with(&counts), "{text}");
    }
    let text = describe(&fixture, &plan, ScanStrategy::Adaptive);
    assert!(text.starts_with("[n: "), "the cheaper and more selective one first: {text}");
}

/// A key whose rows are all in few of the segments: those are scanned, and the others skipped,
/// although their zones would allow the key.
#[test]
fn an_index_is_used_for_some_segments_and_not_for_others() {
    let mut fixture = Fixture::new();
    let options = StoreOptions { segment_rows: 4_096, ..StoreOptions::default() };
    fixture.store = Store::open(fixture.host(), options).unwrap();
    let indexes = vec![IndexSchema {
        id: Default::default(),
        name: "by_n".into(),
        columns: vec![4],
        unique: false,
        kind: IndexKind::BTree,
    }];
    let table = fixture.store.create_table(TableSchema { indexes, ..schema() }).unwrap();
    // 1,000 in half of the fourth segment and in ten rows of the eighth; 0 and 2,000 everywhere.
    let n = |id: i64| match id {
        id if id % 2 == 0 => 0,
        12_289..16_382 | 28_672..28_692 => 1_000,
        _ => 2_000,
    };
    let row = |id: i64| [&row(id)[..3], &[int(n(id))]].concat();
    let mut load = fixture.store.bulk_load(&table, OnDuplicate::Error);
    let rows: Vec<_> = (0..10 * 4_096).map(row).collect();
    load.append(&nacre_column::Batch::from_rows(&schema().types(), &rows)).unwrap();
    load.finish().unwrap();
    let mut write = fixture.store.begin().unwrap();
    write.insert_row(&table, &row(12_301)).unwrap();
    write.commit().unwrap();
    fixture.transaction = fixture.store.begin().unwrap();
    let mut expected: Vec<_> = rows.iter().filter(|r| r[3] == int(1_000)).cloned().collect();
    expected.push(row(12_301));
    let plan = scan(&table, vec![is(BinaryOp::Equal, 3, int(1_000))]);
    for strategy in ScanStrategy::ALL {
        fixture.statistics = Statistics::default();
        assert!(found(&fixture, &plan, strategy) == expected, "{strategy:?}");
        let statistics = &fixture.statistics;
        let counts = (statistics.segments_read.get(), statistics.blocks_read.get());
        let wanted = match strategy {
            ScanStrategy::Adaptive => (2, 1),
            ScanStrategy::Index => (2, 0),
            _ => (10, 10),
        };
        assert_eq!(counts, wanted, "{strategy:?}: {statistics:?}");
    }
    // Half of the rows of all segments: no index.
    fixture.statistics = Statistics::default();
    let plan = scan(&table, vec![is(BinaryOp::Equal, 3, int(0))]);
    assert!(found(&fixture, &plan, ScanStrategy::Adaptive).len() > 18_000);
    assert_eq!(fixture.statistics.segments_read.get(), 10);
    assert!(fixture.statistics.indexes().is_empty());
}
