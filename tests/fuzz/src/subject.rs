//! The databases that targets use: small, in memory, and created anew for every input.

use nacre_native::{ThreadPool, block_on, memory_host};
use nacredb::host::LocalStore;
use nacredb::host::memory::MemoryStore;
use nacredb::{Database, Error, ErrorKind, Host, Options, QueryResult, Session};
use std::sync::{Arc, OnceLock};

/// A host with these files and two threads.
pub fn host(store: Arc<MemoryStore>) -> Host {
    static POOL: OnceLock<Arc<ThreadPool>> = OnceLock::new();
    let parallelism = POOL.get_or_init(|| Arc::new(ThreadPool::new(2))).clone();
    Host { store, parallelism, ..memory_host() }
}

/// Settings that keep a case small: 32 MiB per statement, one thread.
pub fn options() -> Options {
    Options {
        memory_limit: 32 << 20,
        threads: 1,
        lock_timeout_ms: 50,
        cache_bytes: 1 << 20,
        ..Options::default()
    }
}

/// A database and a session on it.
pub struct Subject {
    /// The database.
    pub db: Database,
    /// The session.
    pub session: Session,
    /// Its number in the case's transcript.
    number: usize,
}

impl Subject {
    /// Opens an empty database.
    pub fn new(options: Options) -> Subject {
        Subject::open(Arc::new(MemoryStore::new()), options).expect("an empty database opens")
    }

    /// Opens the database in these files.
    pub fn open(store: Arc<MemoryStore>, options: Options) -> Result<Subject, Error> {
        let db = block_on(Database::open(host(store), options))?;
        let session = db.session();
        Ok(Subject { db, session, number: crate::transcript::opened() })
    }

    /// Runs a text. Panics on an error that no statement may return.
    pub fn run(&mut self, sql: &str) -> Result<QueryResult, Error> {
        let flag = self.session.cancel_flag();
        let session = &mut self.session;
        let result = crate::watch::within(flag, sql, || block_on(session.execute(sql, &[])));
        crate::transcript::note(self.number, sql, &result);
        if let Err(error) = &result {
            let kind = error.kind();
            let never = [ErrorKind::Corrupt, ErrorKind::Io, ErrorKind::Closed, ErrorKind::InUse];
            assert!(!never.contains(&kind), "{sql}: {error}");
        }
        result
    }

    /// Runs a text that must not fail.
    pub fn must(&mut self, sql: &str) -> QueryResult {
        self.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Asserts that `check` finds nothing.
    pub fn check(&self) {
        let findings = self.db.check().expect("check runs");
        assert!(findings.is_empty(), "{findings:?}");
    }
}

/// The rows of a result as text, in order.
pub fn printed(result: &QueryResult) -> Vec<Vec<String>> {
    result.to_rows().iter().map(|row| row.iter().map(ToString::to_string).collect()).collect()
}

/// Copies a store with its files.
pub fn copy(store: &MemoryStore) -> Arc<MemoryStore> {
    let new = MemoryStore::new();
    for (name, bytes) in files(store) {
        put(&new, &name, &bytes);
    }
    Arc::new(new)
}

/// All files of a store.
pub fn files(store: &MemoryStore) -> Vec<(String, Vec<u8>)> {
    let mut names = store.list().expect("memory lists");
    names.sort();
    names.into_iter().map(|name| (name.clone(), bytes(store, &name))).collect()
}

/// The bytes of a file.
pub fn bytes(store: &MemoryStore, name: &str) -> Vec<u8> {
    let file = store.open(name).expect("the file is there");
    let mut bytes = vec![0; file.len().expect("memory has lengths") as usize];
    let range = nacredb::host::ReadRange { offset: 0, buffer: &mut bytes };
    file.read(&mut [range]).expect("memory reads");
    bytes
}

/// Creates a file, replacing one with the same name.
pub fn put(store: &MemoryStore, name: &str, bytes: &[u8]) {
    let _ = store.remove(name);
    store.create(name).and_then(|file| file.write(0, bytes)).expect("memory writes");
}
