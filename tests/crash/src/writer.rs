//! The process that is killed: writing threads, a reading thread and a maintenance thread.

use crate::many::LARGE;
use crate::model::{ACCOUNTS, BALANCE, Model, Operation, Step, TABLES, text};
use nacre_blobs::FolderBlobs;
use nacre_native::{block_on, open_folder};
use nacredb::{
    Batch, Blobs, Budget, DataType, Database, Durability, Error, ErrorKind, OnDuplicate, Options,
    Result, Session, Value, Vector,
};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Settings that cause frequent flushes, snapshots and full log chunks.
pub fn options() -> Options {
    Options {
        segment_rows: 8_192,
        flush_bytes: 100 << 10,
        snapshot_bytes: 70 << 10,
        lock_timeout_ms: 2_000,
        bulk_rows: 200,
        ..Options::default()
    }
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Acknowledges {
    /// When it is in the local log.
    Local,
    /// Before it is durable anywhere.
    Early,
    /// When it is in the blob store.
    Uploaded,
}

impl Acknowledges {
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Acknowledges::Local => "local",
            Acknowledges::Early => "early",
            Acknowledges::Uploaded => "uploaded",
        }
    }

    /// What a word means.
    pub fn of(word: &str) -> Option<Acknowledges> {
        let all = [Acknowledges::Local, Acknowledges::Early, Acknowledges::Uploaded];
        all.into_iter().find(|one| one.word() == word)
    }
}

/// Blobs in a folder, and how long a commit may wait for its upload.
pub struct Uploading<'a> {
    pub folder: &'a Path,
    pub lag: Duration,
}

/// The options with blobs.
pub fn with_blobs(uploading: &Uploading<'_>, acknowledges: Acknowledges) -> Result<Options> {
    let mut blobs = Blobs::new(Arc::new(FolderBlobs::open(uploading.folder)?));
    blobs.options.lag = uploading.lag;
    blobs.options.holds_commits = acknowledges == Acknowledges::Uploaded;
    Ok(Options { blobs: Some(blobs), ..options() })
}

/// Writes until killed. Returns only with an error.
pub fn write(
    folder: &Path,
    threads: u64,
    acknowledges: Acknowledges,
    blobs: Option<&Uploading<'_>>,
) -> Result<()> {
    let durability = match acknowledges {
        Acknowledges::Early => Durability::Relaxed { interval_ms: 3_600_000 },
        _ => Durability::Strict,
    };
    let options = match blobs {
        Some(blobs) => with_blobs(blobs, acknowledges)?,
        None => options(),
    };
    let db = block_on(Database::open(open_folder(folder)?, Options { durability, ..options }))?;
    prepare(&mut db.session())?;
    say("ready");
    let failed = std::sync::Mutex::new(None);
    std::thread::scope(|scope| {
        let run = |work: &(dyn Fn() -> Result<()> + Sync)| {
            if let Err(error) = work() {
                // Report the first failure and end the process.
                eprintln!("nacre-crash: writer: {error}");
                failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
                std::process::exit(3);
            }
        };
        let db = &db;
        for thread in 0..threads {
            scope.spawn(move || run(&|| commit_forever(db, thread as i64)));
        }
        scope.spawn(move || run(&|| read_forever(db.session())));
        scope.spawn(move || run(&|| keep_house_forever(db)));
        scope.spawn(move || tell_uploads_forever(db));
    });
    match failed.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(()),
    }
}

/// Creates missing tables and accounts.
pub fn prepare(session: &mut Session) -> Result<()> {
    for table in TABLES {
        block_on(session.execute(table, &[]))?;
    }
    if block_on(session.execute("select id from accounts", &[]))?.rows() == 0 {
        let rows: Vec<Vec<Value>> =
            (0..ACCOUNTS).map(|id| vec![Value::Int(id), Value::Int(BALANCE)]).collect();
        insert(session, "accounts", &rows)?;
    }
    Ok(())
}

fn say(line: &str) {
    // One write per line, unbuffered. If the pipe is closed, the driver has ended, which is no
    // error.
    if std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).is_err() {
        std::process::exit(0);
    }
}

fn commit_forever(db: &Database, thread: i64) -> Result<()> {
    let mut session = db.session();
    let mut model = recall(&mut session, thread)?;
    loop {
        let step = model.next_step();
        loop {
            match commit(&mut session, &model, &step) {
                Ok(()) => break,
                Err(error) if error.is_retryable() => {
                    if session.in_transaction() {
                        block_on(session.execute("rollback", &[]))?;
                    }
                }
                Err(error) => {
                    return Err(
                        error.context(format!("thread {thread}, transaction {}", model.seq))
                    );
                }
            }
        }
        // The position is behind the commit, so that its upload is that of the commit.
        say(&format!("committed {thread} {} {}", model.seq, db.log_position()));
        model.apply(&step);
    }
}

/// Tells up to which position of the log everything is uploaded, when that changes.
fn tell_uploads_forever(db: &Database) {
    let mut last = None;
    while let Some(position) = db.uploaded_position() {
        if last.replace(position) != Some(position) {
            say(&format!("uploaded {position}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Restores the thread's state from the database. The driver checks that it is correct.
fn recall(session: &mut Session, thread: i64) -> Result<Model> {
    let mut last = -1;
    let of = |table| format!("select seq from {table} where thread = ?");
    let marks = "select -1 - id from many where thread = ? and id < 0".to_string();
    for sql in [of("journal"), of("bulk"), marks] {
        for row in block_on(session.execute(&sql, &[Value::Int(thread)]))?.to_rows() {
            if let [Value::Int(seq)] = row[..] {
                last = last.max(seq);
            }
        }
    }
    let mut model = Model::new(thread, LARGE);
    while model.seq <= last {
        let step = model.next_step();
        model.apply(&step);
    }
    Ok(model)
}

/// Commits one step. After an error the session may still be in the transaction.
pub fn commit(session: &mut Session, model: &Model, step: &Step) -> Result<()> {
    let (thread, seq) = (model.thread, model.seq);
    let journal =
        vec![vec![Value::Int(thread), Value::Int(seq), Value::Text(text(thread, seq, 0))]];
    match step {
        Step::Single => insert(session, "journal", &journal),
        Step::Many(many) => many.commit(session, thread, seq),
        Step::Bulk { rows } => {
            let column = |value: &dyn Fn(i64) -> Value, data_type| {
                Arc::new(Vector::from_values(data_type, &(0..*rows).map(value).collect::<Vec<_>>()))
            };
            let columns = vec![
                column(&|_| Value::Int(thread), DataType::Int64),
                column(&|_| Value::Int(seq), DataType::Int64),
                column(&|n| Value::Int(n), DataType::Int64),
                column(&|n| Value::Text(text(thread, seq, n)), DataType::TEXT),
            ];
            let mut appender = block_on(session.appender("bulk", OnDuplicate::Error))?;
            appender.append(&Batch::new(columns, *rows as usize))?;
            block_on(appender.finish())?;
            Ok(())
        }
        Step::Transaction { abandoned, operations } => {
            if !abandoned.is_empty() {
                block_on(session.execute("begin", &[]))?;
                abandoned
                    .iter()
                    .try_for_each(|operation| operate(session, thread, seq, operation))?;
                block_on(session.execute("rollback", &[]))?;
            }
            block_on(session.execute("begin", &[]))?;
            // Half of the transactions write the journal row first, half last: a torn transaction
            // must not hide behind it.
            if seq % 2 == 0 {
                insert(session, "journal", &journal)?;
            }
            operations.iter().try_for_each(|operation| operate(session, thread, seq, operation))?;
            if seq % 2 == 1 {
                insert(session, "journal", &journal)?;
            }
            block_on(session.execute("commit", &[]))?;
            Ok(())
        }
    }
}

fn operate(session: &mut Session, thread: i64, seq: i64, operation: &Operation) -> Result<()> {
    let int = Value::Int;
    let (sql, parameters) = match operation {
        Operation::Insert(rows) => {
            let row = |(id, item): &(i64, crate::model::Item)| {
                vec![int(thread), int(*id), int(item.value), Value::Text(item.note.clone())]
            };
            return insert(session, "items", &rows.iter().map(row).collect::<Vec<_>>());
        }
        Operation::UpdateOne { id, item } => (
            "update items set value = ?, note = ? where thread = ? and id = ?",
            vec![int(item.value), Value::Text(item.note.clone()), int(thread), int(*id)],
        ),
        Operation::UpdateRange { from, to, add } => (
            "update items set value = value + ? where thread = ? and id >= ? and id <= ?",
            vec![int(*add), int(thread), int(*from), int(*to)],
        ),
        Operation::DeleteOne { id } => {
            ("delete from items where thread = ? and id = ?", vec![int(thread), int(*id)])
        }
        Operation::DeleteRange { from, to } => (
            "delete from items where thread = ? and id >= ? and id <= ?",
            vec![int(thread), int(*from), int(*to)],
        ),
        Operation::Transfer(transfer) => {
            for (id, add) in
                [(transfer.source, -transfer.amount), (transfer.target, transfer.amount)]
            {
                let sql = "update accounts set balance = balance + ? where id = ?";
                let changed = block_on(session.execute(sql, &[int(add), int(id)]))?.rows_affected;
                if changed != 1 {
                    return Err(Error::corrupt(format!(
                        "an update of account {id} changed {changed} rows"
                    )));
                }
            }
            let row = [thread, seq, transfer.source, transfer.target, transfer.amount];
            return insert(session, "transfers", &[row.map(int).to_vec()]);
        }
    };
    block_on(session.execute(sql, &parameters))?;
    Ok(())
}

fn insert(session: &mut Session, table: &str, rows: &[Vec<Value>]) -> Result<()> {
    let row = format!("({})", vec!["?"; rows[0].len()].join(", "));
    let sql = format!("insert into {table} values {}", vec![row; rows.len()].join(", "));
    let inserted = block_on(session.execute(&sql, &rows.concat()))?.rows_affected;
    if inserted != rows.len() as u64 {
        return Err(Error::corrupt(format!(
            "an insert of {} rows into {table} says {inserted}",
            rows.len()
        )));
    }
    Ok(())
}

/// Checks continuously that the total balance never changes.
fn read_forever(mut session: Session) -> Result<()> {
    loop {
        let rows = block_on(session.execute("select balance from accounts", &[]))?.to_rows();
        let sum: i64 = rows
            .iter()
            .map(|row| if let [Value::Int(balance)] = row[..] { balance } else { 0 })
            .sum();
        if (rows.len() as i64, sum) != (ACCOUNTS, ACCOUNTS * BALANCE) {
            return Err(Error::corrupt(format!(
                "a reader saw {} accounts with {sum} in total",
                rows.len()
            )));
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

fn keep_house_forever(db: &Database) -> Result<()> {
    let mut session = db.session();
    for round in 1u64.. {
        if round.is_multiple_of(60) {
            // Rows that are about to be deleted are in the way of it.
            match block_on(session.execute("optimize table many full", &[])) {
                Err(error) if !error.is_retryable() => return Err(error.context("optimizing")),
                _ => {}
            }
        }
        match db.maintain(Budget::Steps(1)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error.context("house-keeping")),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
