//! Updating and deleting one random row by key in a table of a million rows in segments, and the
//! same in a table of a thousand. Both are warm. Durability is relaxed, to measure the engine and
//! not the drive.

use crate::measure::{Folder, Outcome, check, median, open, seconds};
use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::{Database, Durability, Options, Prepared, Session, Value};
use std::time::Duration;

const ROUNDS: usize = 7;
/// Number of rows changed in a round; small enough that most of the small table stays in its
/// segment.
const CHANGES: usize = 100;

pub fn run(_: &crate::options::Options) -> Outcome<()> {
    let folder = Folder::new("update-in-segment")?;
    let options =
        Options { durability: Durability::Relaxed { interval_ms: 1_000 }, ..Options::default() };
    let db = open(&folder.join("nacre"), options)?;
    let mut session = db.session();
    let sizes = [("small", 1_000u64), ("large", 1_000_000)];
    for (name, rows) in sizes {
        block_on(session.execute(
            &format!("create table {name} (id bigint primary key, name text, n int)"),
            &[],
        ))?;
        fill(&mut session, name, rows)?;
    }
    let mut random = Random::new(7);
    let mut medians = Vec::new();
    for kind in ["update", "delete"] {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (at, (name, rows)) in sizes.iter().enumerate() {
                fill_up(&mut session, name, *rows)?;
                let sql = match kind {
                    "update" => format!("update {name} set n = n + 1 where id = ?"),
                    _ => format!("delete from {name} where id = ?"),
                };
                let statement = session.prepare(&sql)?;
                settle(&db)?;
                let keys: Vec<i64> = (0..CHANGES).map(|_| random.below(*rows) as i64).collect();
                times[at].push(
                    seconds(|| change(&mut session, &statement, &keys))? * 1e6 / CHANGES as f64,
                );
            }
        }
        let [small, large] = &mut times;
        let (small, large) = (median(small), median(large));
        println!("{kind}: {small:.1} µs a row in 1,000 rows, {large:.1} µs in 1,000,000");
        medians.push(large / small);
    }
    check(&db)?;
    println!("update-in-segment: ratio={:.2} ratio_delete={:.2}", medians[0], medians[1]);
    Ok(())
}

/// Waits for the work that filling the table leaves behind. Filling takes seconds; a sync that has
/// become due and processor time owed to other threads would otherwise count as part of the
/// changes.
fn settle(db: &Database) -> Outcome<()> {
    db.flush()?;
    std::thread::sleep(Duration::from_millis(100));
    Ok(())
}

fn change(session: &mut Session, statement: &Prepared, keys: &[i64]) -> Outcome<()> {
    for key in keys {
        block_on(session.run(statement, &[Value::Int(*key)]))?;
    }
    Ok(())
}

fn fill(session: &mut Session, name: &str, rows: u64) -> Outcome<()> {
    for start in (0..rows).step_by(1_000) {
        let values: Vec<String> = (start..start + 1_000)
            .map(|id| format!("({id}, 'name {}', {})", id % 500, id % 97))
            .collect();
        block_on(session.execute(&format!("insert into {name} values {}", values.join(",")), &[]))?;
    }
    block_on(session.execute(&format!("optimize table {name} full"), &[]))?;
    Ok(())
}

/// Restores deleted rows, merges everything into one segment and reads it, so that every round
/// starts from the same state.
fn fill_up(session: &mut Session, name: &str, rows: u64) -> Outcome<()> {
    let count = block_on(session.execute(&format!("select count(*) from {name}"), &[]))?.row(0);
    if count != [Value::Int(rows as i64)] {
        let have = block_on(session.execute(&format!("select id from {name}"), &[]))?;
        let mut there = vec![false; rows as usize];
        for row in have.to_rows() {
            if let Some(Value::Int(id)) = row.first() {
                there[*id as usize] = true;
            }
        }
        for id in (0..rows).filter(|id| !there[*id as usize]) {
            let sql = format!("insert into {name} values ({id}, 'name {}', {})", id % 500, id % 97);
            block_on(session.execute(&sql, &[]))?;
        }
    }
    block_on(session.execute(&format!("optimize table {name} full"), &[]))?;
    block_on(session.execute(&format!("select sum(id), max(name), sum(n) from {name}"), &[]))?;
    Ok(())
}
