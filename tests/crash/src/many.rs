//! Changes of many rows in one commit: `INSERT … SELECT`, loads that replace rows, updates and
//! deletions. Each leaves a row that marks its commit, so that one that is only partly there shows.

use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::{Batch, DataType, OnDuplicate, Result, Session, Value, Vector};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The table. Rows with an id below zero mark commits.
pub const TABLE: &str = "create table if not exists many (thread bigint not null, id bigint not null, \
     value bigint not null, primary key (thread, id), key by_value (value))";

/// Number of rows of a large statement: more than an `INSERT … SELECT` writes through the rowstore.
pub const LARGE: i64 = 66_000;
/// The same where each write of the disk is simulated.
pub const SMALL: i64 = 400;

/// A change of a thread's own rows.
#[derive(Clone, Copy, Debug)]
pub enum Many {
    /// `INSERT … SELECT` of new ids.
    Insert { from: i64, rows: i64 },
    /// A bulk load that replaces rows, or adds them.
    Replace { from: i64, rows: i64 },
    /// `UPDATE` of all rows, or of those whose id leaves this remainder when divided by three.
    Update { add: i64, remainder: Option<i64> },
    /// `DELETE` of all rows, or of those with a remainder; after a deletion of all that was rolled
    /// back, if so.
    Delete { remainder: Option<i64>, after_rollback: bool },
}

/// The id of the row that marks a commit.
fn mark(seq: i64) -> i64 {
    -1 - seq
}

/// The commits that rows with these ids mark.
pub fn marked(ids: impl Iterator<Item = i64>) -> impl Iterator<Item = i64> {
    ids.filter(|id| *id < 0).map(|id| -1 - id)
}

impl Many {
    /// The next change of a thread with these rows. `large` is the number of rows of a large one.
    pub fn next(rows: &BTreeMap<i64, i64>, large: i64, random: &mut Random) -> Many {
        let there = rows.range(0..).count() as i64;
        let next = rows.last_key_value().map_or(0, |(id, _)| (*id + 1).max(0));
        if there < large / 4 || there < 2 * large && random.below(4) == 0 {
            let rows = if random.below(3) == 0 { large } else { large / 20 };
            return Many::Insert { from: next, rows };
        }
        let remainder = (random.below(2) == 0).then(|| random.below(3) as i64);
        match random.below(5) {
            0 | 1 => Many::Update { add: 1 + random.below(9) as i64, remainder },
            2 | 3 => Many::Delete { remainder, after_rollback: random.below(3) == 0 },
            _ => {
                let rows = 1 + random.below(large as u64) as i64;
                Many::Replace { from: random.below(next.max(1) as u64) as i64, rows }
            }
        }
    }

    /// Changes a thread's expected rows.
    pub fn apply(&self, seq: i64, rows: &mut BTreeMap<i64, i64>) {
        let is_met = |id: i64, remainder: Option<i64>| {
            id >= 0 && remainder.is_none_or(|remainder| id % 3 == remainder)
        };
        match *self {
            Many::Insert { from, rows: count } => {
                rows.extend((from..from + count).map(|id| (id, inserted(id, seq))));
            }
            Many::Replace { from, rows: count } => {
                rows.extend((from..from + count).map(|id| (id, replaced(id, seq))));
            }
            Many::Update { add, remainder } => rows
                .iter_mut()
                .filter(|(id, _)| is_met(**id, remainder))
                .for_each(|(_, value)| *value += add),
            Many::Delete { remainder, .. } => rows.retain(|id, _| !is_met(*id, remainder)),
        }
        rows.insert(mark(seq), seq);
    }

    /// Commits the change. After an error the session may still be in the transaction.
    pub fn commit(&self, session: &mut Session, thread: i64, seq: i64) -> Result<()> {
        let mut run = |sql: &str, values: &[i64]| {
            let values: Vec<Value> = values.iter().copied().map(Value::Int).collect();
            block_on(session.execute(sql, &values)).map(drop)
        };
        let insert_mark = "insert into many values (?, ?, ?)";
        let (sql, mut values, remainder) = match *self {
            Many::Insert { from, rows } => {
                // One statement outside a transaction, the mark among its rows.
                let sql = "insert into many select ?, case when n < 0 then ? else n + ? end, \
                           case when n < 0 then ? else (n + ?) * 7 + ? end \
                           from generate_series(-1, ?) s (n)";
                return run(sql, &[thread, mark(seq), from, seq, from, seq, rows - 1]);
            }
            Many::Replace { from, rows } => return replace(session, thread, seq, from, rows),
            Many::Update { add, remainder } => {
                let sql = "update many set value = value + ? where thread = ? and id >= 0";
                (sql, vec![add, thread], remainder)
            }
            Many::Delete { remainder, after_rollback } => {
                let sql = "delete from many where thread = ? and id >= 0";
                if after_rollback {
                    run("begin", &[])?;
                    run(sql, &[thread])?;
                    run("rollback", &[])?;
                }
                (sql, vec![thread], remainder)
            }
        };
        values.extend(remainder);
        let sql = format!("{sql}{}", if remainder.is_some() { " and id % 3 = ?" } else { "" });
        run("begin", &[])?;
        if seq % 2 == 0 {
            run(insert_mark, &[thread, mark(seq), seq])?;
        }
        run(&sql, &values)?;
        if seq % 2 == 1 {
            run(insert_mark, &[thread, mark(seq), seq])?;
        }
        run("commit", &[])
    }
}

fn inserted(id: i64, seq: i64) -> i64 {
    id * 7 + seq
}

fn replaced(id: i64, seq: i64) -> i64 {
    -id - seq
}

fn replace(session: &mut Session, thread: i64, seq: i64, from: i64, rows: i64) -> Result<()> {
    let mut load = block_on(session.appender("many", OnDuplicate::Replace))?;
    let rows: Vec<(i64, i64)> = std::iter::once((mark(seq), seq))
        .chain((from..from + rows).map(|id| (id, replaced(id, seq))))
        .collect();
    for part in rows.chunks(5_000) {
        let column = |value: &dyn Fn(&(i64, i64)) -> i64| {
            let values: Vec<Value> = part.iter().map(|row| Value::Int(value(row))).collect();
            Arc::new(Vector::from_values(DataType::Int64, &values))
        };
        let columns = vec![column(&|_| thread), column(&|row| row.0), column(&|row| row.1)];
        load.append(&Batch::new(columns, part.len()))?;
    }
    block_on(load.finish()).map(drop)
}
