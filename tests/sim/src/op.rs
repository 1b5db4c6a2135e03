//! What a session does, one statement at a time, and its SQL.

use nacredb::{OnDuplicate, Value};
use std::fmt;

/// A row of every table of the simulation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The primary key, where the table has one.
    pub k: i64,
    /// A number.
    pub v: i64,
    /// A text, sometimes long.
    pub s: Option<String>,
}

impl Row {
    /// As the engine takes it.
    pub fn values(&self) -> Vec<Value> {
        let text = self.s.as_ref().map_or(Value::Null, |s| Value::Text(s.clone()));
        vec![Value::Int(self.k), Value::Int(self.v), text]
    }

    /// As the engine prints it.
    pub fn printed(&self) -> Vec<String> {
        self.values().iter().map(ToString::to_string).collect()
    }
}

/// Which rows a statement is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// All.
    All,
    /// One key.
    Key(i64),
    /// A range of keys.
    Keys(i64, i64),
    /// Rows whose number has this remainder by seven.
    Remainder(i64),
    /// Rows without a text.
    NoText,
}

impl Where {
    /// Whether a row is meant.
    pub fn holds(&self, row: &Row) -> bool {
        match self {
            Where::All => true,
            Where::Key(k) => row.k == *k,
            Where::Keys(low, high) => (low..=high).contains(&&row.k),
            Where::Remainder(r) => row.v % 7 == *r,
            Where::NoText => row.s.is_none(),
        }
    }

    fn sql(&self) -> String {
        match self {
            Where::All => String::new(),
            Where::Key(k) => format!(" where k = {k}"),
            Where::Keys(low, high) => format!(" where k between {low} and {high}"),
            Where::Remainder(r) => format!(" where v % 7 = {r}"),
            Where::NoText => " where s is null".into(),
        }
    }
}

/// What becomes of a row whose key is taken, in all spellings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upsert {
    /// `REPLACE INTO`.
    Replace,
    /// `INSERT IGNORE INTO`.
    Ignore,
    /// `ON CONFLICT DO NOTHING`.
    Nothing,
    /// `ON CONFLICT … DO UPDATE`: adds the numbers.
    Update,
    /// `ON DUPLICATE KEY UPDATE`: the same.
    Duplicate,
}

/// One thing that a session does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// `BEGIN`.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
    /// `SAVEPOINT`.
    Savepoint(&'static str),
    /// `ROLLBACK TO`.
    RollbackTo(&'static str),
    /// `RELEASE`.
    Release(&'static str),
    /// All columns of some rows.
    Select { table: &'static str, rows: Where },
    /// Number of rows and the sum of their numbers.
    Audit { table: &'static str, rows: Where },
    /// All columns of some rows, which stay locked.
    ForUpdate { table: &'static str, rows: Where },
    /// New rows.
    Insert { table: &'static str, rows: Vec<Row> },
    /// New rows, or changes of those that have their keys.
    Upsert { table: &'static str, rows: Vec<Row>, how: Upsert },
    /// Copies of rows of a table, under other keys.
    Copy { table: &'static str, from: &'static str, rows: Where, by: i64 },
    /// Adds to the numbers of some rows.
    Add { table: &'static str, rows: Where, add: i64 },
    /// Sets the text of some rows.
    Text { table: &'static str, rows: Where, text: Option<String> },
    /// Moves rows to other keys.
    Rekey { table: &'static str, rows: Where, by: i64 },
    /// Deletes some rows.
    Delete { table: &'static str, rows: Where },
    /// Rows straight into segments.
    Bulk { table: &'static str, policy: OnDuplicate, batches: Vec<Vec<Row>> },
    /// `CREATE TABLE`, with a primary key or without, and other keys, which change no answer.
    Create { table: &'static str, keyed: bool, keys: &'static str, if_missing: bool },
    /// `DROP TABLE`.
    Drop { table: &'static str },
    /// `OPTIMIZE TABLE`.
    Optimize { table: &'static str, full: bool },
    /// `Database::maintain`.
    Maintain { steps: usize },
    /// `Database::flush`.
    SyncLog,
    /// `Database::check`.
    Check,
    /// Lets time pass.
    Sleep { ms: u64 },
}

/// What may run while another session is in the midst of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Touches neither the log nor the commit lock.
    Reads,
    /// May append to the log, but waits for no sync.
    Writes,
    /// May sync the log.
    Commits,
    /// May do house-keeping that excludes other house-keeping.
    Maintains,
}

fn text_sql(text: &Option<String>) -> String {
    text.as_ref().map_or("null".into(), |t| format!("'{t}'"))
}

fn rows_sql(rows: &[Row]) -> String {
    let rows: Vec<String> = rows.iter().map(|r| format!("({}, {}, {})", r.k, r.v, text_sql(&r.s))).collect();
    rows.join(", ")
}

impl Op {
    /// Whether it would change rows.
    pub fn changes_rows(&self) -> bool {
        use Op::{Add, Copy, Delete, Insert, Rekey, Text, Upsert};
        let inserts = matches!(self, Insert { .. } | Upsert { .. } | Copy { .. });
        inserts || matches!(self, Add { .. } | Text { .. } | Rekey { .. } | Delete { .. })
    }

    /// Whether it locks rows.
    pub fn locks_rows(&self) -> bool {
        self.changes_rows() || matches!(self, Op::ForUpdate { .. })
    }

    /// Whether it is possible inside a transaction.
    pub fn fits_transaction(&self) -> bool {
        use Op::{Begin, Bulk, Create, Drop, Optimize};
        !matches!(self, Begin | Bulk { .. } | Create { .. } | Drop { .. } | Optimize { .. })
    }

    /// Whether it is possible only there.
    pub fn needs_transaction(&self) -> bool {
        matches!(self, Op::Savepoint(_) | Op::RollbackTo(_) | Op::Release(_))
    }

    /// See [`Weight`].
    pub fn weight(&self, in_transaction: bool) -> Weight {
        match self {
            Op::Begin | Op::Rollback | Op::Savepoint(_) | Op::RollbackTo(_) | Op::Release(_) => Weight::Reads,
            Op::Select { .. } | Op::Audit { .. } | Op::Check | Op::Sleep { .. } => Weight::Reads,
            _ if self.locks_rows() && in_transaction => Weight::Writes,
            Op::Optimize { .. } | Op::Maintain { .. } => Weight::Maintains,
            _ => Weight::Commits,
        }
    }

    /// The statement; empty when it is none.
    pub fn sql(&self) -> String {
        match self {
            Op::Begin => "begin".into(),
            Op::Commit => "commit".into(),
            Op::Rollback => "rollback".into(),
            Op::Savepoint(name) => format!("savepoint {name}"),
            Op::RollbackTo(name) => format!("rollback to {name}"),
            Op::Release(name) => format!("release savepoint {name}"),
            Op::Select { table, rows } => format!("select k, v, s from {table}{}", rows.sql()),
            Op::Audit { table, rows } => format!("select count(*), sum(v) from {table}{}", rows.sql()),
            Op::ForUpdate { table, rows } => format!("select k, v, s from {table}{} for update", rows.sql()),
            Op::Insert { table, rows } => format!("insert into {table} (k, v, s) values {}", rows_sql(rows)),
            Op::Upsert { table, rows, how } => {
                let (word, rest) = match how {
                    Upsert::Replace => ("replace", String::new()),
                    Upsert::Ignore => ("insert ignore", String::new()),
                    Upsert::Nothing => ("insert", " on conflict do nothing".into()),
                    Upsert::Update => ("insert", format!(" on conflict (k) do update set v = {table}.v + excluded.v")),
                    Upsert::Duplicate => ("insert", " on duplicate key update v = v + values(v)".into()),
                };
                format!("{word} into {table} (k, v, s) values {}{rest}", rows_sql(rows))
            }
            Op::Copy { table, from, rows, by } => {
                format!("insert into {table} (k, v, s) select k + {by}, v, s from {from}{}", rows.sql())
            }
            Op::Add { table, rows, add } => format!("update {table} set v = v + {add}{}", rows.sql()),
            Op::Text { table, rows, text } => format!("update {table} set s = {}{}", text_sql(text), rows.sql()),
            Op::Rekey { table, rows, by } => format!("update {table} set k = k + {by}{}", rows.sql()),
            Op::Delete { table, rows } => format!("delete from {table}{}", rows.sql()),
            Op::Create { table, keyed, keys, if_missing } => {
                let missing = if *if_missing { "if not exists " } else { "" };
                let key = if *keyed { " primary key" } else { "" };
                format!("create table {missing}{table} (k bigint not null{key}, v bigint, s text{keys})")
            }
            Op::Drop { table } => format!("drop table {table}"),
            Op::Optimize { table, full } => format!("optimize table {table} {}", if *full { "full" } else { "flush" }),
            Op::Bulk { .. } | Op::Maintain { .. } | Op::SyncLog | Op::Check | Op::Sleep { .. } => String::new(),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Op::Bulk { table, policy, batches } => {
                let keys: Vec<Vec<i64>> = batches.iter().map(|b| b.iter().map(|r| r.k).collect()).collect();
                format!("bulk load into {table}, {policy:?}, of keys {keys:?}")
            }
            Op::Maintain { steps } => format!("maintain {steps}"),
            Op::SyncLog => "sync the log".into(),
            Op::Check => "check".into(),
            Op::Sleep { ms } => format!("sleep {ms} ms"),
            other => other.sql(),
        };
        if text.chars().count() > 200 {
            write!(f, "{}… ({} bytes)", text.chars().take(200).collect::<String>(), text.len())
        } else {
            f.write_str(&text)
        }
    }
}
