//! Prepared select of a full row by primary key, rows in segments, warm, against SQLite on the same rows.

use crate::measure::{Folder, Outcome, Random, median, open, open_sqlite, seconds};
use nacre_native::block_on;
use nacredb::{Options, Value};

const ROWS: i64 = 1_000_000;
const READS: usize = 20_000;
const ROUNDS: usize = 7;
const CREATE: &str = "create table t (id bigint primary key, name text, n int, price double, note text)";
const SELECT: &str = "select * from t where id = ?";

pub fn run() -> Outcome<()> {
    let folder = Folder::new("point-select")?;
    let db = open(&folder.join("nacre"), Options::default())?;
    let mut session = db.session();
    let mut sqlite = open_sqlite(&folder.join("sqlite.db"))?;
    block_on(session.execute(CREATE, &[]))?;
    sqlite.execute(CREATE, [])?;
    println!("loading {ROWS} rows into both");
    for chunk in 0..ROWS / 1000 {
        let values: Vec<String> = (chunk * 1000..chunk * 1000 + 1000)
            .map(|id| {
                format!(
                    "({id}, 'name {}', {}, {}.5, 'a note of some length about row {id}')",
                    id % 5000,
                    id % 97,
                    id % 1013
                )
            })
            .collect();
        let sql = format!("insert into t values {}", values.join(","));
        block_on(session.execute(&sql, &[]))?;
        let transaction = sqlite.transaction()?;
        transaction.execute(&sql, [])?;
        transaction.commit()?;
    }
    block_on(session.execute("optimize table t full", &[]))?;
    let select = session.prepare(SELECT)?;
    let mut theirs_select = sqlite.prepare(SELECT)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let mut random = Random(round as u64);
        ours.push(
            READS as f64
                / seconds(|| {
                    for _ in 0..READS {
                        let id = random.below(ROWS as u64) as i64;
                        let result = block_on(session.run(&select, &[Value::Int(id)]))?;
                        if result.row(0).first() != Some(&Value::Int(id)) {
                            return Err(format!("row {id} is not there").into());
                        }
                    }
                    Ok(())
                })?,
        );
        let mut random = Random(round as u64);
        theirs.push(
            READS as f64
                / seconds(|| {
                    for _ in 0..READS {
                        let id = random.below(ROWS as u64) as i64;
                        let row: (i64, String, i64, f64, String) = theirs_select
                            .query_row([id], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)))?;
                        if row.0 != id {
                            return Err(format!("row {id} is not there").into());
                        }
                    }
                    Ok(())
                })?,
        );
    }
    let (ours, theirs) = (median(&mut ours), median(&mut theirs));
    println!("nacre {ours:.0}/s   sqlite {theirs:.0}/s");
    println!("point-select: ratio_sqlite={:.2}", ours / theirs);
    Ok(())
}
