//! Upserts, half of them of existing rows, in statements of a thousand rows, each a durable
//! transaction. All three engines run the same statements.

use crate::duckdb::{self, DuckDb};
use crate::measure::{Folder, Outcome, check, open, open_sqlite, seconds};
use crate::options::Options;
use crate::{bulk_insert::shuffled, people};
use nacre_native::block_on;
use nacredb::{OnDuplicate, Value};

const ROWS_A_STATEMENT: usize = 1_000;

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 1_000_000)?;
    println!("{rows} upserts, half of them of rows that exist; DuckDB {}", duckdb::version()?);
    let there: Vec<i64> = (0..rows).step_by(2).collect();
    let statements: Vec<String> =
        shuffled(rows).chunks(ROWS_A_STATEMENT).map(|ids| statement(ids, rows)).collect();

    let folder = Folder::new("upsert")?;
    let db = open(&folder.join("nacre"), nacredb::Options::default())?;
    let mut session = db.session();
    block_on(session.execute(people::CREATE, &[]))?;
    let mut appender = block_on(session.appender("t", OnDuplicate::Error))?;
    let types = appender.schema().types();
    let peer = DuckDb::open(&folder.join("duckdb.db"), 2)?;
    let connection = peer.connect()?;
    connection.execute(people::CREATE)?;
    let mut duck = connection.appender("t", &people::TYPES)?;
    for ids in there.chunks(8_192) {
        let batch = people::batch(ids.iter().copied(), rows, &types);
        appender.append(&batch)?;
        duck.append(&batch)?;
    }
    block_on(appender.finish())?;
    duck.finish()?;
    let mut sqlite = open_sqlite(&folder.join("sqlite.db"))?;
    sqlite.execute(people::CREATE_SQLITE, [])?;
    people::insert_sqlite(&mut sqlite, there.iter().copied(), rows)?;

    // Interleave slices of the work, so that noise affects all three engines.
    let (mut ours, mut theirs, mut lite) = (0.0, 0.0, 0.0);
    for slice in statements.chunks(statements.len().div_ceil(10).max(1)) {
        ours += seconds(|| {
            for sql in slice {
                block_on(session.execute(sql, &[]))?;
            }
            Ok(())
        })?;
        theirs += seconds(|| slice.iter().try_for_each(|sql| connection.execute(sql).map(|_| ())))?;
        lite += seconds(|| slice.iter().try_for_each(|sql| Ok(sqlite.execute_batch(sql)?)))?;
    }
    let query = "select count(*), sum(n) from t";
    let expected = [
        Value::Int(rows).to_string(),
        (rows * 7 + (0..rows).map(|id| id % 97).sum::<i64>()).to_string(),
    ];
    let got: Vec<String> =
        block_on(session.execute(query, &[]))?.row(0).iter().map(Value::to_string).collect();
    let duck: Vec<String> = connection.rows(query)?.concat().into_iter().flatten().collect();
    if got != expected || duck != expected {
        return Err(
            format!("{expected:?} were upserted; Nacre has {got:?}, DuckDB {duck:?}").into()
        );
    }
    check(&db)?;
    let rate = |seconds: f64| rows as f64 / seconds;
    println!(
        "nacre {:.0}/s   duckdb {:.0}/s   sqlite {:.0}/s",
        rate(ours),
        rate(theirs),
        rate(lite)
    );
    println!("upsert: ratio_duckdb={:.2} ratio_sqlite={:.2}", theirs / ours, lite / ours);
    Ok(())
}

fn statement(ids: &[i64], rows: i64) -> String {
    let values: Vec<String> = ids
        .iter()
        .map(|id| {
            let p = people::person(*id, rows);
            format!("({id}, '{}', {}, {:.1}, '{}')", p.name, p.n + 7, p.price, p.note)
        })
        .collect();
    format!(
        "insert into t values {} on conflict (id) do update set n = excluded.n",
        values.join(",")
    )
}
