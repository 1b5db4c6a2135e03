//! The operations of sessions, and their SQL.

pub mod condition;
pub mod row;
pub mod shape;

use crate::op::condition::Where;
use crate::op::row::{Column, DOCUMENT, Row};
use crate::op::shape::Index;
use nacredb::OnDuplicate;
use std::fmt;

/// How an insert handles an existing row with the same key, in all syntaxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upsert {
    /// `REPLACE INTO`.
    Replace,
    /// `INSERT IGNORE INTO`.
    Ignore,
    /// `ON CONFLICT DO NOTHING`.
    Nothing,
    /// `ON CONFLICT … DO UPDATE`; adds the numbers.
    Update,
    /// `ON DUPLICATE KEY UPDATE`; adds the numbers.
    Duplicate,
}

/// The position of a new column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// After all others.
    Last,
    /// Before all others.
    First,
    /// After the key.
    AfterKey,
}

/// One operation of a session.
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
    /// The least or greatest numbers of some rows.
    First { table: &'static str, rows: Where, limit: usize, down: bool },
    /// Number of pairs of rows with the same number, and the sums of their keys. The condition is
    /// on the left rows.
    Join { table: &'static str, with: &'static str, rows: Where },
    /// All columns of some rows, which stay locked.
    ForUpdate { table: &'static str, rows: Where },
    /// New rows.
    Insert { table: &'static str, rows: Vec<Row> },
    /// Inserts rows, or changes existing ones with the same keys.
    Upsert { table: &'static str, rows: Vec<Row>, how: Upsert },
    /// Copies rows of a table under other keys.
    Copy { table: &'static str, from: &'static str, rows: Where, by: i64 },
    /// Adds to the numbers of some rows.
    Add { table: &'static str, rows: Where, add: i64 },
    /// Sets the numbers of some rows.
    Number { table: &'static str, rows: Where, v: i64 },
    /// Sets the optional column `w` of some rows.
    Wide { table: &'static str, rows: Where, w: Option<i64> },
    /// Sets the text of some rows.
    Text { table: &'static str, rows: Where, text: Option<String> },
    /// Moves rows to other keys.
    Rekey { table: &'static str, rows: Where, by: i64 },
    /// Deletes some rows.
    Delete { table: &'static str, rows: Where },
    /// Loads rows directly into segments.
    Bulk { table: &'static str, policy: OnDuplicate, batches: Vec<Vec<Row>> },
    /// Inserts this many rows by one `INSERT … SELECT`, which writes segments.
    Fill { table: &'static str, policy: OnDuplicate, rows: i64 },
    /// `CREATE TABLE`, with or without a primary key, with indexes, and with other keys, which do
    /// not affect results.
    Create {
        table: &'static str,
        keyed: bool,
        keys: &'static str,
        indexes: Vec<Index>,
        /// Whether it has the column `d`.
        documents: bool,
        if_missing: bool,
    },
    /// `CREATE TABLE … AS SELECT`.
    CreateAs { table: &'static str, from: &'static str, rows: Where, if_missing: bool },
    /// `CREATE INDEX`, or `ALTER TABLE … ADD`.
    CreateIndex { table: &'static str, index: Index, alter: bool, if_missing: bool },
    /// `DROP INDEX`, or `ALTER TABLE … DROP INDEX`.
    DropIndex { table: &'static str, name: &'static str, alter: bool, if_there: bool },
    /// `ALTER TABLE … ADD COLUMN w`, with a default, at some position.
    AddColumn { table: &'static str, default: Option<i64>, place: Place, if_missing: bool },
    /// `ALTER TABLE … DROP COLUMN` of an optional column.
    DropColumn { table: &'static str, column: Column, if_there: bool },
    /// `ALTER TABLE … RENAME COLUMN` of an optional column.
    RenameColumn { table: &'static str, from: Column, to: Column },
    /// `ALTER TABLE … RENAME TO`.
    Rename { table: &'static str, to: &'static str },
    /// `CREATE VIEW`, over all columns of a table or view, or the three that all have.
    CreateView {
        view: &'static str,
        from: &'static str,
        rows: Where,
        star: bool,
        replace: bool,
        if_missing: bool,
    },
    /// `DROP VIEW`.
    DropView { view: &'static str, if_there: bool },
    /// Opens a stream over all columns of some rows, read by [`Op::Take`].
    Open { table: &'static str, rows: Where },
    /// Reads this many batches from the session's stream.
    Take { batches: usize },
    /// `TRUNCATE`.
    Truncate { table: &'static str },
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
    /// Advances time.
    Sleep { ms: u64 },
    /// Cancels the next operation after this many calls of the disk or polls.
    Cancel { after: u64 },
}

/// [`Op::Fill`] derives rows from pairs of this many numbers.
pub const FILL_SIDE: i64 = 260;

/// Which operations may run while another session is in the middle of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Touches neither the log nor the commit lock.
    Reads,
    /// May append to the log, but does not wait for a sync.
    Writes,
    /// May sync the log.
    Commits,
    /// May run maintenance that excludes other maintenance.
    Maintains,
}

/// The rows that [`Op::Fill`] inserts.
pub fn filled(rows: i64) -> impl Iterator<Item = Row> {
    (0..rows.min(FILL_SIDE * FILL_SIDE)).map(|k| Row {
        k,
        v: k % 1000,
        s: Some("fill".into()),
        w: None,
        z: None,
    })
}

fn text_sql(text: &Option<String>) -> String {
    text.as_ref().map_or("null".into(), |t| format!("'{t}'"))
}

fn rows_sql(rows: &[Row]) -> String {
    let rows: Vec<String> =
        rows.iter().map(|r| format!("({}, {}, {})", r.k, r.v, text_sql(&r.s))).collect();
    rows.join(", ")
}

impl Op {
    /// Whether it may change rows.
    pub fn changes_rows(&self) -> bool {
        use Op::{Add, Copy, Delete, Insert, Number, Rekey, Text, Upsert, Wide};
        let inserts = matches!(self, Insert { .. } | Upsert { .. } | Copy { .. });
        let sets = matches!(self, Add { .. } | Number { .. } | Wide { .. } | Text { .. });
        inserts || sets || matches!(self, Rekey { .. } | Delete { .. })
    }

    /// Whether it changes the catalog.
    pub fn is_ddl(&self) -> bool {
        use Op::{
            AddColumn, Create, CreateAs, CreateIndex, CreateView, Drop, DropColumn, DropIndex,
            DropView,
        };
        use Op::{Rename, RenameColumn, Truncate};
        let tables = matches!(
            self,
            Create { .. } | CreateAs { .. } | Drop { .. } | Truncate { .. } | Rename { .. }
        );
        let columns = matches!(self, AddColumn { .. } | DropColumn { .. } | RenameColumn { .. });
        let others = matches!(
            self,
            CreateIndex { .. } | DropIndex { .. } | CreateView { .. } | DropView { .. }
        );
        tables || columns || others
    }

    /// Whether it loads rows directly into segments.
    pub fn is_load(&self) -> bool {
        matches!(self, Op::Bulk { .. } | Op::Fill { .. })
    }

    /// Whether it locks rows.
    pub fn locks_rows(&self) -> bool {
        self.changes_rows() || matches!(self, Op::ForUpdate { .. })
    }

    /// Whether it is allowed inside a transaction.
    pub fn fits_transaction(&self) -> bool {
        !(self.is_load() || matches!(self, Op::Begin | Op::Optimize { .. }))
    }

    /// Whether it requires a transaction.
    pub fn needs_transaction(&self) -> bool {
        matches!(self, Op::Savepoint(_) | Op::RollbackTo(_) | Op::Release(_))
    }

    /// Its weight.
    pub fn weight(&self, in_transaction: bool) -> Weight {
        match self {
            Op::Begin | Op::Rollback | Op::Savepoint(_) | Op::RollbackTo(_) | Op::Release(_) => {
                Weight::Reads
            }
            Op::Select { .. } | Op::Audit { .. } | Op::First { .. } | Op::Join { .. } => {
                Weight::Reads
            }
            Op::Check | Op::Sleep { .. } | Op::Open { .. } | Op::Take { .. } => Weight::Reads,
            Op::Cancel { .. } => Weight::Reads,
            _ if self.locks_rows() && in_transaction => Weight::Writes,
            Op::Optimize { .. } | Op::Maintain { .. } => Weight::Maintains,
            _ => Weight::Commits,
        }
    }

    /// Its SQL text; empty if it is not a statement.
    pub fn sql(&self) -> String {
        match self {
            Op::Begin => "begin".into(),
            Op::Commit => "commit".into(),
            Op::Rollback => "rollback".into(),
            Op::Savepoint(name) => format!("savepoint {name}"),
            Op::RollbackTo(name) => format!("rollback to {name}"),
            Op::Release(name) => format!("release savepoint {name}"),
            Op::Select { table, rows } | Op::Open { table, rows } => {
                format!("select * from {table}{}", rows.sql())
            }
            Op::Audit { table, rows } => {
                format!("select count(*), sum(v) from {table}{}", rows.sql())
            }
            Op::First { table, rows, limit, down } => {
                let order = if *down { "desc" } else { "asc" };
                format!("select v from {table}{} order by v {order} limit {limit}", rows.sql())
            }
            Op::Join { table, with, rows } => format!(
                "select count(*), sum(l.k), sum(r.k) from (select k, v from {table}{}) l join {with} r on l.v = r.v",
                rows.sql()
            ),
            Op::ForUpdate { table, rows } => {
                format!("select * from {table}{} for update", rows.sql())
            }
            Op::Insert { table, rows } => {
                format!("insert into {table} (k, v, s) values {}", rows_sql(rows))
            }
            Op::Upsert { table, rows, how } => {
                let (word, rest) = match how {
                    Upsert::Replace => ("replace", String::new()),
                    Upsert::Ignore => ("insert ignore", String::new()),
                    Upsert::Nothing => ("insert", " on conflict do nothing".into()),
                    Upsert::Update => (
                        "insert",
                        format!(" on conflict (k) do update set v = {table}.v + excluded.v"),
                    ),
                    Upsert::Duplicate => {
                        ("insert", " on duplicate key update v = v + values(v)".into())
                    }
                };
                format!("{word} into {table} (k, v, s) values {}{rest}", rows_sql(rows))
            }
            Op::Copy { table, from, rows, by } => {
                format!(
                    "insert into {table} (k, v, s) select k + {by}, v, s from {from}{}",
                    rows.sql()
                )
            }
            Op::Add { table, rows, add } => {
                format!("update {table} set v = v + {add}{}", rows.sql())
            }
            Op::Number { table, rows, v } => format!("update {table} set v = {v}{}", rows.sql()),
            Op::Wide { table, rows, w } => {
                let w = w.map_or("null".into(), |w| w.to_string());
                format!("update {table} set w = {w}{}", rows.sql())
            }
            Op::Text { table, rows, text } => {
                format!("update {table} set s = {}{}", text_sql(text), rows.sql())
            }
            Op::Rekey { table, rows, by } => {
                format!("update {table} set k = k + {by}{}", rows.sql())
            }
            Op::Delete { table, rows } => format!("delete from {table}{}", rows.sql()),
            Op::Fill { table, policy, rows } => {
                let verb = match policy {
                    OnDuplicate::Error => "insert",
                    OnDuplicate::Skip => "insert ignore",
                    OnDuplicate::Replace => "replace",
                };
                let digits: Vec<String> = (0..FILL_SIDE).map(|n| format!("({n})")).collect();
                let digits = digits.join(", ");
                format!(
                    "{verb} into {table} (k, v, s) select a.n * {FILL_SIDE} + b.n, (a.n * {FILL_SIDE} + b.n) % 1000, \
                     'fill' from (values {digits}) a (n), (values {digits}) b (n) where a.n * {FILL_SIDE} + b.n < {rows}"
                )
            }
            Op::Create { table, keyed, keys, indexes, documents, if_missing } => {
                let missing = if *if_missing { "if not exists " } else { "" };
                let key = if *keyed { " primary key" } else { "" };
                let indexes: Vec<String> =
                    indexes.iter().map(|index| format!(", {index}")).collect();
                let document = match documents {
                    true => format!(", d json as ({DOCUMENT}) stored"),
                    false => String::new(),
                };
                format!(
                    "create table {missing}{table} (k bigint not null{key}, v bigint, s text{document}{}{keys})",
                    indexes.concat()
                )
            }
            Op::CreateAs { table, from, rows, if_missing } => {
                let missing = if *if_missing { "if not exists " } else { "" };
                format!("create table {missing}{table} as select k, v, s from {from}{}", rows.sql())
            }
            Op::CreateIndex { table, index, alter: true, .. } => {
                format!("alter table {table} add {index}")
            }
            Op::CreateIndex { table, index, if_missing, .. } => {
                let unique = if index.unique { "unique " } else { "" };
                let missing = if *if_missing { "if not exists " } else { "" };
                format!(
                    "create {unique}index {missing}{} on {table} ({})",
                    index.name,
                    index.list()
                )
            }
            Op::DropIndex { table, name, alter: true, .. } => {
                format!("alter table {table} drop index {name}")
            }
            Op::DropIndex { table, name, if_there, .. } => {
                let there = if *if_there { "if exists " } else { "" };
                format!("drop index {there}{name} on {table}")
            }
            Op::AddColumn { table, default, place, if_missing } => {
                let missing = if *if_missing { "if not exists " } else { "" };
                let default = default.map_or(String::new(), |n| format!(" default {n}"));
                let place = match place {
                    Place::Last => "",
                    Place::First => " first",
                    Place::AfterKey => " after k",
                };
                format!("alter table {table} add column {missing}w bigint{default}{place}")
            }
            Op::DropColumn { table, column, if_there } => {
                let there = if *if_there { "if exists " } else { "" };
                format!("alter table {table} drop column {there}{}", column.name())
            }
            Op::RenameColumn { table, from, to } => {
                format!("alter table {table} rename column {} to {}", from.name(), to.name())
            }
            Op::Rename { table, to } => format!("alter table {table} rename to {to}"),
            Op::CreateView { view, from, rows, star, replace, if_missing } => {
                let replace = if *replace { "or replace " } else { "" };
                let missing = if *if_missing { "if not exists " } else { "" };
                let columns = if *star { "*" } else { "k, v, s" };
                format!(
                    "create {replace}view {missing}{view} as select {columns} from {from}{}",
                    rows.sql()
                )
            }
            Op::DropView { view, if_there } => {
                format!("drop view {}{view}", if *if_there { "if exists " } else { "" })
            }
            Op::Truncate { table } => format!("truncate table {table}"),
            Op::Drop { table } => format!("drop table {table}"),
            Op::Optimize { table, full } => {
                format!("optimize table {table} {}", if *full { "full" } else { "flush" })
            }
            Op::Bulk { .. } | Op::Maintain { .. } | Op::SyncLog | Op::Check => String::new(),
            Op::Sleep { .. } | Op::Take { .. } | Op::Cancel { .. } => String::new(),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Op::Bulk { table, policy, batches } => {
                let keys: Vec<Vec<i64>> =
                    batches.iter().map(|b| b.iter().map(|r| r.k).collect()).collect();
                format!("bulk load into {table}, {policy:?}, of keys {keys:?}")
            }
            Op::Maintain { steps } => format!("maintain {steps}"),
            Op::SyncLog => "sync the log".into(),
            Op::Check => "check".into(),
            Op::Sleep { ms } => format!("sleep {ms} ms"),
            Op::Cancel { after } => format!("cancel the next one after {after} calls"),
            Op::Open { .. } => format!("stream {}", self.sql()),
            Op::Take { batches } => format!("take {batches} batches"),
            other => other.sql(),
        };
        if text.chars().count() > 200 {
            write!(f, "{}… ({} bytes)", text.chars().take(200).collect::<String>(), text.len())
        } else {
            f.write_str(&text)
        }
    }
}
