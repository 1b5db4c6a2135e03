//! The environment of one execution of a statement, apart from its transaction.

use crate::boxed::Boxed;
use crate::progress::Reporting;
use crate::time_slices::{StepEnd, TimeSlices, Waits};
use nacre_host::{BlobReads, Uploads};
use nacre_operator::{Context, Memory, Profile, Statistics, Threads};
use nacre_sql::ScanStrategy;
use nacre_table::{BulkLoad, Fetched, Store, Table, Transaction};
use nacre_types::{Error, Result, Value};
use std::sync::Arc;

/// Whether an `INSERT` may write segments directly, bypassing the rowstore and its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InsertPath {
    /// A large one may: the statement is its own transaction and has met no conflict yet.
    Direct,
    Rowstore,
    /// Rows are written one by one, however many they are: more of them share unique keys than a load
    /// can choose among.
    OneByOne,
    /// Like `Rowstore`, in an open transaction: what the statement creates is visible to others
    /// once that has committed.
    Open,
}

/// Ends the load of a statement.
pub(crate) trait LoadEnd {
    /// Publishes all rows of a load, or none. Returns how many rows the table gained or replaced. Does
    /// not hold the statement's slot while it waits for a row lock.
    ///
    /// Errors: as those of [`finish_load`](crate::finish_load); `cancelled`.
    fn finish(&self, load: Box<BulkLoad>) -> Boxed<'_, u64>;
}

/// Parameters, limits and counters of one execution.
#[derive(Clone, Copy)]
pub(crate) struct Execution<'a> {
    store: &'a Store,
    parameters: &'a [Value],
    statistics: &'a Statistics,
    memory: &'a Memory,
    now_us: i64,
    cancelled: &'a (dyn Fn() -> bool + Sync),
    slices: &'a TimeSlices,
    reporting: Option<Reporting<'a>>,
    uploads: Option<&'a dyn Uploads>,
    threads: Threads,
    scan_strategy: ScanStrategy,
    insert_path: InsertPath,
    load_end: Option<&'a dyn LoadEnd>,
    /// Tables that stay readable for the statement after they are dropped.
    tables: &'a [Arc<Table>],
    /// Measures the statement's plans.
    profile: Option<&'a Profile>,
}

/// The parts of an execution.
pub(crate) struct ExecutionParts<'a> {
    pub store: &'a Store,
    pub parameters: &'a [Value],
    pub statistics: &'a Statistics,
    pub memory: &'a Memory,
    /// Wall clock, in microseconds since 1970.
    pub now_us: i64,
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    pub slices: &'a TimeSlices,
    /// Where the statement's progress is reported.
    pub reporting: Option<Reporting<'a>>,
    /// Of a database whose files are blobs.
    pub uploads: Option<&'a dyn Uploads>,
    pub threads: Threads,
    pub scan_strategy: ScanStrategy,
    /// Ends loads that the statement consists of.
    pub load_end: Option<&'a dyn LoadEnd>,
}

impl<'a> Execution<'a> {
    pub fn new(parts: ExecutionParts<'a>, insert_path: InsertPath) -> Execution<'a> {
        Execution {
            store: parts.store,
            parameters: parts.parameters,
            statistics: parts.statistics,
            memory: parts.memory,
            now_us: parts.now_us,
            cancelled: parts.cancelled,
            slices: parts.slices,
            reporting: parts.reporting,
            uploads: parts.uploads,
            threads: parts.threads,
            scan_strategy: parts.scan_strategy,
            load_end: parts.load_end.filter(|_| insert_path == InsertPath::Direct),
            insert_path,
            tables: &[],
            profile: None,
        }
    }

    /// Keeps tables readable for the statement.
    pub fn keeping(self, tables: &'a [Arc<Table>]) -> Execution<'a> {
        Execution { tables, ..self }
    }

    /// Measures the execution with a profile.
    pub fn measured_by<'b>(self, profile: &'b Profile) -> Execution<'b>
    where
        'a: 'b,
    {
        Execution { profile: Some(profile), ..self }
    }

    /// The storage, for bulk loads, which no transaction can do.
    pub fn store(&self) -> &'a Store {
        self.store
    }

    /// What the database has read of blobs; `None` if its files are none.
    pub fn blob_reads(&self) -> Option<BlobReads> {
        self.uploads.map(|uploads| uploads.reads())
    }

    /// Wall clock, in microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.now_us
    }

    pub fn parameters(&self) -> &'a [Value] {
        self.parameters
    }

    pub fn statistics(&self) -> &'a Statistics {
        self.statistics
    }

    pub fn insert_path(&self) -> InsertPath {
        self.insert_path
    }

    /// Ends the load that a large `INSERT` consists of; `None` if it may not bypass the transaction.
    pub fn load_end(&self) -> Option<&'a dyn LoadEnd> {
        self.load_end
    }

    /// Fails with `cancelled` once the caller cancelled the statement.
    pub fn check_cancelled(&self) -> Result<()> {
        if (self.cancelled)() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Fetches what a call missed; then it can be repeated.
    pub async fn fetch(&self, fetched: &mut Fetched, error: Error) -> Result<()> {
        self.store.environment().fetch(fetched, error, self.cancelled).await
    }

    /// Ends a step of a write: fails with `cancelled` once the caller cancelled the statement, and
    /// gives way if the time slice is over.
    pub fn end_step(&self) -> StepEnd<'a> {
        StepEnd::new(self.slices, self.store.environment(), self.cancelled)
    }

    /// Repeats a step of a write until it answers that nothing is left, and gives way in between.
    pub async fn steps(&self, mut step: impl FnMut() -> Result<bool>) -> Result<()> {
        while self.waits().call(&mut step).await? {
            self.end_step().await?;
        }
        Ok(())
    }

    /// Waits of calls to the statement's operators.
    pub fn waits(&self) -> Waits<'a> {
        let environment = self.store.environment();
        let Execution { slices, cancelled, reporting, .. } = *self;
        Waits { fetched: Fetched::default(), slices, environment, cancelled, reporting }
    }

    /// The context of the statement's plans and expressions.
    pub fn context<'t>(&self, transaction: &'t Transaction) -> Context<'t>
    where
        'a: 't,
    {
        let mut context = Context::new(
            transaction,
            self.parameters,
            self.statistics,
            self.memory,
            self.cancelled,
        );
        context.now_us = self.now_us;
        context.time_slice = self.slices.slice();
        context.threads = self.threads;
        context.scan_strategy = self.scan_strategy;
        context.profile = self.profile;
        context.tables = self.tables;
        context
    }
}
