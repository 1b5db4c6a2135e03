//! Log bytes: whatever the files contain, opening returns a database or a typed error. Damage
//! without a repaired checksum loses commits from the end only; changed records with valid
//! checksums never cause a crash.

use crate::edit::damage;
use crate::input::Input;
use crate::subject::{self, Subject, options, printed};
use nacre_log::{Log, LogOptions};
use nacredb::host::LocalStore;
use nacredb::host::memory::MemoryStore;
use nacredb::{ErrorKind, Options};
use std::sync::{Arc, OnceLock};

/// A database's files, and the records of its log.
pub struct Base {
    /// The files.
    pub store: Arc<MemoryStore>,
    /// The payload of the snapshot, if there is one.
    pub snapshot: Option<Vec<u8>>,
    /// The log records after it.
    pub records: Vec<Vec<u8>>,
    /// The identity of the database.
    pub database_id: u64,
}

/// Statements that produce every kind of record. `p` receives one row after each numbered
/// statement.
const STATEMENTS: [&str; 18] = [
    "create table p (n int primary key)",
    "create table t (a bigint primary key, b int, s text default 'x', d double, m decimal(20,2), y date, f boolean)",
    "create table w (k text, n int, primary key (k, n), shard key (k), sort key (n))",
    "insert into t (a, b, s, d, m, y, f) values (1, 1, 'a', 1.5, 2.25, '2024-02-29', true), (2, null, null, null, null, null, null), (3, 3, 'ccc', -0.0, 1, null, false)",
    "insert into w values ('a', 1), ('b', 2), ('', 3)",
    "optimize table t flush",
    "update t set b = b + 1 where a <> 2; delete from t where a = 2",
    "optimize table w flush; delete from w where k = 'b'",
    "alter table t add column g varchar(9) not null default 'new', drop column d",
    "insert into t (a) values (7), (8); optimize table t full",
    "create view v as select a, g from t where b is not null",
    "create table gone (x int); insert into gone values (1); truncate table gone; drop table gone",
    "replace into t (a, b) values (1, 9); insert into w values ('z', 9)",
    "optimize table w full; drop view v; create view v2 as select count(*) as n from w",
    "create table i (k bigint primary key, v int, s text, unique v_once (v), key (s, v)); insert into i values (1, 1, 'a'), (2, 2, null), (3, null, null), (4, 4, 'a'), (5, 5, 'b')",
    "optimize table i flush; create index late on i (s); create index by_b on t (b, s); create unique index by_g on t (g, a)",
    "update i set v = v + 10 where k < 3; insert into i values (6, 6, 'c'); drop index late on i",
    "alter table i add w int default 3, add index w_v (w, v); delete from i where k = 4",
];

/// The database after the statements, created once.
pub fn base(snapshots: bool) -> &'static Base {
    static BASES: [OnceLock<Base>; 2] = [OnceLock::new(), OnceLock::new()];
    BASES[usize::from(snapshots)].get_or_init(|| {
        let store = Arc::new(MemoryStore::new());
        let settings = Options { segment_rows: 2, partitions: 2, ..options() };
        let mut subject =
            Subject::open(store.clone(), settings.clone()).expect("an empty database opens");
        for (number, sql) in STATEMENTS.iter().enumerate() {
            if snapshots && number == 10 {
                let often = Options { snapshot_bytes: 1, ..settings.clone() };
                drop(subject);
                subject = Subject::open(store.clone(), often).expect("it opens again");
                while subject.db.maintain(nacredb::Budget::Steps(1)).expect("house-keeping works") {
                }
                drop(subject);
                subject = Subject::open(store.clone(), settings.clone()).expect("it opens again");
            }
            subject.must(sql);
            if sql.contains("index") {
                // Index parts of existing segments, each with its own record.
                while subject.db.maintain(nacredb::Budget::Steps(1)).expect("house-keeping works") {
                }
            }
            subject.must(&format!("insert into p values ({number})"));
        }
        drop(subject);
        let (mut snapshot, mut records) = (None, Vec::new());
        let copied = subject::copy(&store);
        let found = &mut |payload: &[u8]| {
            snapshot = Some(payload.to_vec());
            Ok(())
        };
        let record = &mut |_, payload: &[u8]| {
            records.push(payload.to_vec());
            Ok(())
        };
        let log =
            Log::open(copied, LogOptions::default(), found, record).expect("the log is sound");
        let database_id = log.database_id();
        assert_eq!(snapshot.is_some(), snapshots, "a snapshot is where it should be");
        Base { store, snapshot, records, database_id }
    })
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let base = base(false);
    match input.below(4) {
        0 => raw(base, "log-0000000000000000", &mut input),
        1 => damaged(base, "log-", &mut input),
        _ => {
            let mut records = base.records.clone();
            for _ in 0..1 + input.below(3) {
                change(&mut records, &mut input);
            }
            rewritten(base, None, &records);
        }
    }
}

/// Adds a file with these bytes to the store.
pub fn raw(base: &Base, name: &str, input: &mut Input<'_>) {
    let store =
        if input.one_in(2) { subject::copy(&base.store) } else { Arc::new(MemoryStore::new()) };
    subject::put(&store, name, input.rest());
    look(store);
}

/// Damage that checksums detect: the database does not open, or is in the state after some commit.
pub fn damaged(base: &Base, prefix: &str, input: &mut Input<'_>) {
    let store = subject::copy(&base.store);
    let names: Vec<String> =
        store.list().expect("memory lists").into_iter().filter(|n| n.starts_with(prefix)).collect();
    let name = &names[input.below(names.len())];
    let mut bytes = subject::bytes(&store, name);
    // Most of the file is zeros reserved for later records.
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    let mut head = bytes[..used].to_vec();
    damage(&mut head, input);
    bytes.splice(..used, head);
    subject::put(&store, name, &bytes);
    let settings = Options { segment_rows: 2, partitions: 2, ..options() };
    let mut subject = match Subject::open(store, settings) {
        Ok(subject) => subject,
        Err(error) => return allowed(&error),
    };
    match subject.run("select n from p order by n") {
        Ok(result) => {
            let rows = printed(&result);
            let numbers: Vec<Vec<String>> = (0..rows.len()).map(|n| vec![n.to_string()]).collect();
            assert_eq!(rows, numbers, "commits are missing in the midst");
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
    }
    subject.check();
}

/// Changes the records themselves: bytes, order, number.
pub fn change(records: &mut Vec<Vec<u8>>, input: &mut Input<'_>) {
    let at = input.below(records.len());
    match input.below(8) {
        0 => drop(records.remove(at)),
        1 => {
            let to = input.below(records.len());
            records.swap(at, to);
        }
        2 => {
            // Operations of another record under this record's commit.
            let other = records[input.below(records.len())].clone();
            records[at].extend_from_slice(other.get(8..).unwrap_or_default());
        }
        _ => drop(damage(&mut records[at], input)),
    }
    if records.is_empty() {
        records.push(Vec::new());
    }
}

/// The base's segments with a log of these records and valid checksums.
pub fn rewritten(base: &Base, snapshot: Option<&[u8]>, records: &[Vec<u8>]) {
    let store = MemoryStore::new();
    let is_part = |name: &str| name.starts_with("seg-") || name.starts_with("idx-");
    for (name, bytes) in subject::files(&base.store).into_iter().filter(|(name, _)| is_part(name)) {
        subject::put(&store, &name, &bytes);
    }
    let store = Arc::new(store);
    let nothing: &mut dyn FnMut(&[u8]) -> nacredb::Result<()> = &mut |_| Ok(());
    let log = Log::open(
        store.clone(),
        LogOptions { database_id: base.database_id, ..LogOptions::default() },
        nothing,
        &mut |_, _| Ok(()),
    );
    let log = log.expect("an empty log opens");
    if let Some(payload) = snapshot {
        // A snapshot covers at least one record.
        let at = log.append(&[0; 8]).expect("memory appends");
        log.write_snapshot(at, payload).expect("memory writes");
    }
    for record in records {
        log.append(record).expect("memory appends");
    }
    log.close().expect("memory syncs");
    drop(log);
    look(store);
}

/// Opens the database and, if that succeeds, reads everything.
pub fn look(store: Arc<MemoryStore>) {
    let settings = Options { segment_rows: 2, partitions: 2, ..options() };
    let mut subject = match Subject::open(store, settings) {
        Ok(subject) => subject,
        Err(error) => return allowed(&error),
    };
    // Damage that no checksum detects may go unnoticed, but must not cause a crash.
    let _ = subject.db.check();
    let Ok(tables) = read(&mut subject, "show full tables") else { return };
    for row in tables {
        let name = row[0].replace('"', "\"\"");
        let _ = read(&mut subject, &format!("select * from \"{name}\""));
        let _ = read(&mut subject, &format!("optimize table \"{name}\" full"));
        let _ = read(&mut subject, &format!("describe \"{name}\""));
    }
    for sql in [
        "select * from i where v = 5",
        "select * from i where s = 'a' and v > 0",
        "select a from t where b = 3",
    ] {
        let _ = read(&mut subject, sql);
    }
    let _ = read(&mut subject, "replace into i (k, v, s) values (9, 12, 'a'), (1, 5, null)");
    let _ = read(&mut subject, "insert into t (a) values (100), (1)");
    let _ = read(&mut subject, "update t set b = 5");
    while subject.db.maintain(nacredb::Budget::Steps(4)).unwrap_or(false) {}
}

/// Like [`Subject::run`], but tolerates `corrupt`.
fn read(subject: &mut Subject, sql: &str) -> Result<Vec<Vec<String>>, nacredb::Error> {
    let flag = subject.session.cancel_flag();
    let session = &mut subject.session;
    let result =
        crate::watch::within(flag, sql, || nacre_native::block_on(session.execute(sql, &[])));
    result.map(|result| printed(&result))
}

fn allowed(error: &nacredb::Error) {
    let kinds = [
        ErrorKind::Corrupt,
        ErrorKind::Unsupported,
        ErrorKind::Limit,
        ErrorKind::NotFound,
        ErrorKind::Type,
    ];
    assert!(kinds.contains(&error.kind()), "opening: {}: {error}", error.kind().name());
}
