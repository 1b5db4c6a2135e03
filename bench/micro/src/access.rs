//! Index access compared with a scan, by selectivity, by number of keys in a list and by number of
//! keys of a join: the same queries on a table with an index and on one without. The ratio is above
//! 1 where the index pays off, and 1 where it is not used.

use crate::measure::{Work, interleaved};
use nacre_native::{block_on, memory_host};
use nacre_testing::Random;
use nacredb::{Database, Options, Session};
use std::cell::RefCell;

const ROWS: u64 = 1_000_000;

fn run(session: &mut Session, sql: &str) -> Vec<Vec<String>> {
    let rows = block_on(session.execute(sql, &[])).expect(sql).to_rows();
    rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect()
}

/// Whether a query on the table with an index used it.
fn uses(session: &mut Session, sql: &str) -> bool {
    run(session, &format!("profile {sql}")).iter().any(|row| row[3].contains("index="))
}

pub fn access() {
    let db =
        block_on(Database::open(memory_host(), Options::default())).expect("a database in memory");
    let mut session = db.session();
    let mut random = Random::new(7);
    for (table, index) in [("t", ", key (k)"), ("p", "")] {
        let columns = "id bigint primary key, k int, a int, b bigint, c varchar(20), d double";
        run(&mut session, &format!("create table {table} ({columns}{index})"));
    }
    for start in (0..ROWS).step_by(20_000) {
        let row = |id: u64, random: &mut Random| {
            let (k, a, b) = (random.below(ROWS), random.below(1000), random.below(1 << 40));
            format!("({id}, {k}, {a}, {b}, 'text {}', {a}.5)", random.below(5_000))
        };
        let rows: Vec<String> = (start..start + 20_000).map(|id| row(id, &mut random)).collect();
        run(&mut session, &format!("insert into t values {}", rows.join(", ")));
    }
    run(&mut session, "insert into p select * from t");
    run(&mut session, "create table s (k int)");
    run(&mut session, "optimize table t full; optimize table p full");
    let session = RefCell::new(session);
    let compare = |name: String, sql: &dyn Fn(&str) -> String| {
        let work = |table: &str| -> Work<'_> {
            let sql = sql(table);
            let session = &session;
            let run = move || {
                run(&mut session.borrow_mut(), &sql);
                1
            };
            (table.to_string(), Box::new(run))
        };
        let times = interleaved(vec![work("t"), work("p")]);
        let used = if uses(&mut session.borrow_mut(), &sql("t")) { "index" } else { "scan" };
        println!(
            "{name:<24} {:>9.0} us {:>9.0} us {:>7.2} {used}",
            times[0].1 / 1e3,
            times[1].1 / 1e3,
            times[1].1 / times[0].1
        );
    };
    println!("{:<24} {:>12} {:>12} {:>7}", "rows of the table", "t", "p", "ratio");
    for one_in in [4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 1024] {
        let most = ROWS / one_in;
        compare(format!("one in {one_in}, 1 column"), &|t| {
            format!("select sum(b) from {t} where k < {most}")
        });
        compare(format!("one in {one_in}, 4 columns"), &|t| {
            format!("select sum(a), sum(b), max(c), sum(d) from {t} where k < {most}")
        });
    }
    for keys in [16u64, 64, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384] {
        let list: Vec<String> = (0..keys).map(|n| (n * (ROWS / keys) + 3).to_string()).collect();
        let list = list.join(", ");
        if keys <= 1_024 {
            compare(format!("{keys} keys in a list"), &|t| {
                format!("select sum(a), sum(b) from {t} where k in ({list})")
            });
        }
        run(&mut session.borrow_mut(), "delete from s");
        let step = ROWS / keys;
        run(
            &mut session.borrow_mut(),
            &format!("insert into s select id * {step} + 3 from p where id < {keys}"),
        );
        compare(format!("{keys} keys of a join"), &|t| {
            format!("select sum(a), sum(b) from {t} join s on s.k = {t}.k")
        });
    }
}
