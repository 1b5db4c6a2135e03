//! Select by a string key that about ten rows share, and by two indexed columns together, rows in
//! segments, warm, against SQLite with the same indexes on the same rows.

use crate::measure::{Folder, Outcome, check, median, open, open_sqlite, seconds};
use crate::options::Options;
use crate::people;
use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::{OnDuplicate, Value};

const READS: usize = 5_000;
const CREATE: &str = "create table t (id bigint primary key, name text, n int, price double, note text, key (name), key (n), key (price))";
const BY_NAME: &str = "select * from t where name = ?";
const BY_TWO: &str = "select * from t where n = ? and price = ?";

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 1_000_000)?;
    let rounds: usize = options.get("rounds", 7)?;
    let folder = Folder::new("secondary-select")?;
    let db = open(
        &folder.join("nacre"),
        nacredb::Options { cache_bytes: 2 << 30, ..Default::default() },
    )?;
    let mut session = db.session();
    block_on(session.execute(CREATE, &[]))?;
    println!("loading {rows} rows into both");
    let mut appender = block_on(session.appender("t", OnDuplicate::Error))?;
    let types = appender.schema().types();
    for start in (0..rows).step_by(8_192) {
        let ids: Vec<i64> = (start..(start + 8_192).min(rows)).collect();
        appender.append(&people::batch(ids.into_iter(), rows, &types))?;
    }
    block_on(appender.finish())?;
    block_on(session.execute("optimize table t full", &[]))?;
    let mut sqlite = open_sqlite(&folder.join("sqlite.db"))?;
    sqlite.execute(people::CREATE_SQLITE, [])?;
    people::insert_sqlite(&mut sqlite, 0..rows, rows)?;
    sqlite.execute_batch(
        "create index a on t (name); create index b on t (n); create index c on t (price); analyze",
    )?;
    sqlite.pragma_update(None, "cache_size", -2_000_000)?;

    let mut ratios = Vec::new();
    for (what, sql) in [("by name", BY_NAME), ("by two columns", BY_TWO)] {
        let ours_select = session.prepare(sql)?;
        let mut theirs_select = sqlite.prepare(sql)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=rounds as u64 {
            let keys = |random: &mut Random| {
                let person = people::person(random.below(rows as u64) as i64, rows);
                match sql {
                    BY_NAME => vec![Value::Text(person.name)],
                    _ => vec![Value::Int(person.n), Value::Float(person.price)],
                }
            };
            let (mut found, mut expected) = (0, 0);
            let mut random = Random::new(round);
            let our_seconds = seconds(|| {
                for _ in 0..READS {
                    let result = block_on(session.run(&ours_select, &keys(&mut random)))?;
                    found += result.to_rows().len();
                }
                Ok(())
            })?;
            let mut random = Random::new(round);
            let their_seconds = seconds(|| {
                for _ in 0..READS {
                    let keys = keys(&mut random).into_iter().map(|value| match value {
                        Value::Int(v) => rusqlite::types::Value::Integer(v),
                        Value::Float(v) => rusqlite::types::Value::Real(v),
                        other => rusqlite::types::Value::Text(other.to_string()),
                    });
                    let rows = theirs_select.query_map(rusqlite::params_from_iter(keys), |r| {
                        Ok((
                            r.get::<_, i64>(0)?,
                            r.get::<_, String>(1)?,
                            r.get::<_, i64>(2)?,
                            r.get::<_, f64>(3)?,
                            r.get::<_, String>(4)?,
                        ))
                    })?;
                    expected += rows.collect::<Result<Vec<_>, _>>()?.len();
                }
                Ok(())
            })?;
            if found != expected {
                return Err(format!("{what}: {found} rows, SQLite has {expected}").into());
            }
            if round > 0 {
                ours.push(READS as f64 / our_seconds);
                theirs.push(READS as f64 / their_seconds);
            }
        }
        let (ours, theirs) = (median(&mut ours), median(&mut theirs));
        println!(
            "{what:15} nacre {ours:>9.0}/s   sqlite {theirs:>9.0}/s   ratio {:.2}",
            ours / theirs
        );
        ratios.push(ours / theirs);
    }
    check(&db)?;
    println!("secondary-select: ratio_sqlite={:.2} ratio_sqlite_two={:.2}", ratios[0], ratios[1]);
    Ok(())
}
