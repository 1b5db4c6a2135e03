//! Adaptive scans against each fixed strategy: for each strategy, order and index decision a query
//! for which it is right. Every strategy runs every query in every round, in random order, on one
//! thread; what counts is the processor time of that thread.

use crate::measure::{Folder, Outcome, check, median, open, thread_time_ns};
use crate::options::Options;
use nacre_native::block_on;
use nacredb::hash::hash_u64;
use nacredb::{Batch, DataType, OnDuplicate, Session, VectorBuilder};
use std::sync::Arc;

/// `a`, `b` and `c` are random below 1,000. One row in 50 of the first half has `early > 0`, and all
/// of the second half; nearly all rows of the first half have `late < 990`, and one row in 50 of the
/// second half. `kind` is one of 20 texts, `word` one of 500, `note` a text of its own. `few` has
/// about ten rows a value, `many` four values; `clustered` has 250,000 rows a value, next to each
/// other.
const CREATE: &str = "create table t (id bigint, a int, b int, c int, early int, late int, \
    kind text, word text, note text, few int, many int, clustered int, \
    key few (few), key many (many), key clustered (clustered))";

/// What is right for a query, and the query.
const QUERIES: [(&str, &str); 17] = [
    ("encoded: packed integers", "select count(*) from t where a < 20 and b < 500"),
    ("encoded: dictionary", "select count(*) from t where kind in ('kind 3', 'kind 11')"),
    ("encoded: entries", "select count(*), sum(c) from t where word like '%77%'"),
    ("regular: decoded anyway", "select max(note) from t where note >= 'note 2'"),
    ("regular: few rows", "select count(*), max(note) from t where a = 7 and note >= 'note 2'"),
    (
        "regular: few rows, all entries",
        "select count(*) from t where a = 7 and b < 100 and word like '%1%2%'",
    ),
    (
        "group: most rows pass",
        "select sum(a + b + c) from t where a <> b and b <> c and a <> c and a <> late",
    ),
    ("order: cheap first", "select count(*) from t where note like '%99%' and a < 10"),
    ("order: selective first", "select count(*) from t where a < 990 and b < 995 and c < 10"),
    (
        "order: drifts",
        "select count(*) from t where early > 0 and late < 990 and a <> early and b <> late",
    ),
    (
        "order: of alternatives",
        "select count(*) from t where note like '%123%' or a < 950 or b < 900",
    ),
    ("index: few rows", "select sum(a) from t where few = 4321"),
    ("index: list", "select sum(a) from t where few in (1, 22, 333, 4444, 5555)"),
    ("index: join", "select sum(t.a) from t join s on t.few = s.id where s.id < 20"),
    ("scan: many rows", "select sum(a) from t where many = 2"),
    ("scan: join", "select sum(t.a) from t join s on t.few = s.id where s.id < 3000"),
    ("scan: clustered", "select sum(a), sum(b) from t where clustered = 3 and a < 900"),
];

/// A query is repeated until it takes about as long, after a run that is not measured: what the run
/// before it left in the processor's caches does not count.
const MEASURED_NS: u64 = 10_000_000;

const STRATEGIES: [&str; 5] = ["adaptive", "regular", "encoded", "group", "index"];

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 2_000_000)?;
    let rounds: usize = options.get("rounds", 9)?;
    let folder = Folder::new("adaptive")?;
    let settings = nacredb::Options { cache_bytes: 2 << 30, ..Default::default() };
    let db = open(&folder.join("nacre"), settings)?;
    let mut session = db.session();
    session.set_threads(1);
    println!("loading {rows} rows");
    load(&mut session, rows)?;

    println!("{:34} {}", "ms", STRATEGIES.map(|name| format!("{name:>9}")).join(" "));
    let mut totals = [0.0; STRATEGIES.len()];
    let mut worst: f64 = 0.0;
    let wanted = options.text("queries").unwrap_or_default();
    for (what, sql) in QUERIES.into_iter().filter(|(what, _)| what.contains(wanted)) {
        let mut times: [Vec<f64>; STRATEGIES.len()] = Default::default();
        let mut expected = None;
        let (mut times_each, mut fastest) = (1, u64::MAX);
        // The first round warms up.
        for round in 0..=rounds {
            // In another order each time: a run leaves its own data in the processor's caches.
            let mut order: Vec<usize> = (0..STRATEGIES.len()).collect();
            order.sort_by_key(|at| hash_u64((round * STRATEGIES.len() + at) as u64));
            for at in order {
                let set = format!("set scan_strategy = '{}'", STRATEGIES[at]);
                block_on(session.execute(&set, &[]))?;
                let mut found = block_on(session.execute(sql, &[]))?.to_rows();
                let from = thread_time_ns()?;
                for _ in 0..times_each {
                    found = block_on(session.execute(sql, &[]))?.to_rows();
                }
                let ns = (thread_time_ns()? - from) / times_each;
                fastest = fastest.min(ns);
                if *expected.get_or_insert_with(|| found.clone()) != found {
                    return Err(format!("{what}: {} finds other rows", STRATEGIES[at]).into());
                }
                if round > 0 {
                    times[at].push(ns as f64 / 1e6);
                }
            }
            times_each = (MEASURED_NS / fastest.max(1)).clamp(1, 100);
        }
        let medians = times.each_mut().map(|times| median(times));
        let best = medians[1..].iter().copied().fold(f64::MAX, f64::min);
        worst = worst.max(medians[0] / best);
        totals.iter_mut().zip(medians).for_each(|(total, ms)| *total += ms);
        let cells = medians.map(|ms| format!("{ms:>9.2}")).join(" ");
        println!("{what:34} {cells}   adaptive/best {:.2}", medians[0] / best);
        if options.text("show").is_some() {
            show(&mut session, sql)?;
        }
    }
    println!("{:34} {}", "all", totals.map(|ms| format!("{ms:>9.2}")).join(" "));
    let single = totals[1..].iter().copied().fold(f64::MAX, f64::min);
    check(&db)?;
    println!(
        "adaptive: worst_over_best_fixed={worst:.2} mix_over_best_single={:.2}",
        totals[0] / single
    );
    Ok(())
}

/// Prints what an adaptive scan decides.
fn show(session: &mut Session, sql: &str) -> Outcome<()> {
    block_on(session.execute("set scan_strategy = default", &[]))?;
    for row in block_on(session.execute(&format!("profile {sql}"), &[]))?.to_rows() {
        if let Some(filters) = row.last().filter(|filters| !filters.is_null()) {
            println!("    {filters}");
        }
    }
    Ok(())
}

fn load(session: &mut Session, rows: i64) -> Outcome<()> {
    block_on(session.execute(CREATE, &[]))?;
    block_on(session.execute("create table s (id int primary key)", &[]))?;
    block_on(session.execute("insert into s select * from range(0, 10000)", &[]))?;
    let mut appender = block_on(session.appender("t", OnDuplicate::Error))?;
    let types = appender.schema().types();
    for start in (0..rows).step_by(8_192) {
        appender.append(&batch(start..(start + 8_192).min(rows), rows, &types))?;
    }
    block_on(appender.finish())?;
    for table in ["t", "s"] {
        block_on(session.execute(&format!("optimize table {table} full"), &[]))?;
    }
    Ok(())
}

/// Rows of a range.
fn batch(ids: std::ops::Range<i64>, rows: i64, types: &[DataType]) -> Batch {
    let count = ids.clone().count();
    let mut columns: Vec<VectorBuilder> = types.iter().map(|t| VectorBuilder::new(*t)).collect();
    for id in ids {
        let random =
            |salt: u64, below: i64| (hash_u64(id as u64 * 16 + salt) % below.max(1) as u64) as i64;
        let is_early = id < rows / 2;
        let small = random(5, 1_000);
        let integers = [
            (0, id),
            (1, random(0, 1_000)),
            (2, random(1, 1_000)),
            (3, random(2, 1_000)),
            (4, if is_early && small % 50 < 49 { 0 } else { small + 1 }),
            (5, if is_early || small % 50 == 49 { small % 991 } else { 995 }),
            (9, random(3, rows / 10)),
            (10, random(4, 4)),
            (11, id / 250_000),
        ];
        integers.into_iter().for_each(|(at, value)| columns[at].push_i64(value));
        let texts = [
            (6, format!("kind {}", random(6, 20))),
            (7, format!("word {}", random(7, 500) * 7_919 % 100_003)),
            (8, format!("note {} about {}", random(8, 1 << 40), id)),
        ];
        texts.iter().for_each(|(at, text)| columns[*at].push_bytes(text.as_bytes()));
    }
    Batch::new(columns.into_iter().map(|c| Arc::new(c.finish())).collect(), count)
}
