//! What every operator is given while it runs, and the protocol operators speak.

pub(crate) mod profile;

use crate::memory::Memory;
use crate::parallel::{Builds, Morsel};
use nacre_column::Batch;
use nacre_sql::plan::Plan;
use nacre_table::{RowLocator, Table, Transaction};
use nacre_types::{Error, Result, TableSchema, Value};
use profile::Profile;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A number that several threads add to.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one statement did. Operators count through a shared reference, on any thread.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Rows decoded from segments or read from the rowstore.
    pub rows_read: Counter,
    /// Of these, rows read from the rowstore.
    pub memory_rows: Counter,
    /// Estimated bytes of the blocks touched.
    pub bytes_read: Counter,
    /// Partitions ruled out by the shard key.
    pub partitions_skipped: Counter,
    /// Segments of which at least one block was read.
    pub segments_read: Counter,
    /// Segments ruled out by their metadata.
    pub segments_skipped: Counter,
    /// Blocks of which rows were looked at.
    pub blocks_read: Counter,
    /// Blocks ruled out by their zone maps.
    pub blocks_skipped: Counter,
    /// Rows looked up by primary key instead of scanning.
    pub point_reads: Counter,
    /// Segments and rowstores read for a scan in key order.
    pub runs: Counter,
    /// Ranges of keys looked up in indexes.
    pub index_probes: Counter,
    /// Hash tables of indexes that were asked for the segments of a key.
    pub tables_probed: Counter,
    /// Of the ranges that were looked up, keys of joins above the scan.
    pub join_keys: Counter,
    /// Rows that joins above a scan told it to leave out.
    pub join_filtered: Counter,
    /// Rows that joins collected of their right sides.
    pub build_rows: Counter,
    /// Bytes of rows written to temporary files, because memory could not hold them.
    pub bytes_spilled: Counter,
    indexes: Mutex<Vec<String>>,
}

impl Statistics {
    /// Adds what another counted.
    pub fn add(&self, other: &Statistics) {
        for (to, from) in self.counters().into_iter().zip(other.counters()) {
            count(to.1, from.1.get() as usize);
        }
        other.indexes().into_iter().for_each(|name| self.note_index(name));
    }

    /// Names of the indexes that were used.
    pub fn indexes(&self) -> Vec<String> {
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note_index(&self, name: String) {
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if !indexes.contains(&name) {
            indexes.push(name);
        }
    }

    /// All counters by name.
    pub fn counters(&self) -> [(&'static str, &Counter); 16] {
        [
            ("rows_read", &self.rows_read),
            ("memory_rows", &self.memory_rows),
            ("bytes_read", &self.bytes_read),
            ("partitions_skipped", &self.partitions_skipped),
            ("segments_read", &self.segments_read),
            ("segments_skipped", &self.segments_skipped),
            ("blocks_read", &self.blocks_read),
            ("blocks_skipped", &self.blocks_skipped),
            ("point_reads", &self.point_reads),
            ("runs", &self.runs),
            ("index_probes", &self.index_probes),
            ("tables_probed", &self.tables_probed),
            ("join_keys", &self.join_keys),
            ("join_filtered", &self.join_filtered),
            ("build_rows", &self.build_rows),
            ("bytes_spilled", &self.bytes_spilled),
        ]
    }
}

/// Adds to a counter.
pub(crate) fn count(counter: &Counter, n: usize) {
    counter.0.fetch_add(n as u64, Ordering::Relaxed);
}

/// The surroundings of a running statement.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The transaction whose snapshot is read.
    pub transaction: &'a Transaction,
    /// Parameter values, already cast to the types they were bound as.
    pub parameters: &'a [Value],
    /// Counters of this statement.
    pub statistics: &'a Statistics,
    /// What its operators may hold.
    pub memory: &'a Memory,
    /// The statement's `now()`, microseconds since 1970-01-01.
    pub now_us: i64,
    /// Whether the caller has cancelled the statement.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    /// How many threads may work on the statement.
    pub threads: Threads,
    /// Rows that the statement's `Plan::Given` stand for.
    pub supplied: Option<&'a SuppliedRows<'a>>,
    /// On one of several threads: what the scan of the plan has to read, instead of the whole table.
    pub(crate) morsel: Option<&'a Morsel>,
    /// There too: the collected sides of the plan's joins.
    pub(crate) builds: Option<&'a Builds>,
    /// What measures each node of the plan, if somebody asked.
    pub profile: Option<&'a Profile>,
    /// Tables that the plan reads, of the transaction's snapshot, where it may outlive them ([`tables_of`]). Others are
    /// looked for.
    pub tables: &'a [Arc<Table>],
}

/// The tables that a plan reads, as a transaction sees them.
pub fn tables_of(plan: &Plan, transaction: &Transaction) -> Result<Vec<Arc<Table>>> {
    let mut tables: Vec<Arc<Table>> = Vec::new();
    let mut result = Ok(());
    plan.any_node(&mut |node| {
        if let Plan::Scan { table, .. } = node
            && !tables.iter().any(|known| known.schema().id == table.id)
        {
            match transaction.table_of(table) {
                Ok(table) => tables.push(table),
                Err(error) => result = Err(error),
            }
        }
        result.is_err()
    });
    result.map(|()| tables)
}

/// Rows that are given to a plan from outside.
#[derive(Clone, Copy)]
pub struct SuppliedRows<'a> {
    /// Which `Plan::Given` they are for.
    pub id: u32,
    /// The rows, without selections.
    pub batches: &'a [Batch],
    /// Others that are given as well.
    pub others: Option<&'a SuppliedRows<'a>>,
}

/// How a statement is spread over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// So many work at once; 1 for the caller's alone.
    pub count: usize,
    /// About so many rows are given to a thread at a time. Tables of fewer are not worth a second thread, except
    /// that 1, for tests, spreads what there is.
    pub morsel_rows: usize,
}

impl Threads {
    /// The caller's alone.
    pub const ONE: Threads = Threads::new(1);

    /// So many, with morsels of the usual size.
    pub const fn new(count: usize) -> Threads {
        Threads { count, morsel_rows: 16 * nacre_types::limits::BLOCK_ROWS }
    }
}

impl<'a> Context<'a> {
    /// The surroundings of a statement that one thread runs.
    pub fn new(
        transaction: &'a Transaction,
        parameters: &'a [Value],
        statistics: &'a Statistics,
        memory: &'a Memory,
        cancelled: &'a (dyn Fn() -> bool + Sync),
    ) -> Context<'a> {
        Context {
            transaction,
            parameters,
            statistics,
            memory,
            now_us: 0,
            cancelled,
            threads: Threads::ONE,
            supplied: None,
            morsel: None,
            builds: None,
            profile: None,
            tables: &[],
        }
    }
}

impl Context<'_> {
    /// The table of a scan. Parts of a plan are built late, when it may have been dropped for everybody else.
    pub(crate) fn table_of(&self, schema: &TableSchema) -> Result<Arc<Table>> {
        match self.tables.iter().find(|table| table.schema().id == schema.id) {
            Some(table) => Ok(table.clone()),
            None => self.transaction.table_of(schema),
        }
    }

    /// Fails when the statement was cancelled; called once a batch.
    pub(crate) fn check_cancelled(&self) -> Result<()> {
        if (self.cancelled)() { Err(Error::cancelled()) } else { Ok(()) }
    }
}

/// A pull operator.
pub trait Operator {
    /// The next rows: at least one, at most `VECTOR_ROWS`. `None` at the end, and again after it.
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>>;
}

/// A scan that also says where each row lives, for `UPDATE` and `DELETE`.
pub trait LocatingOperator {
    /// The next rows, compact, with one locator a row; `None` at the end.
    fn next(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>>;
}
