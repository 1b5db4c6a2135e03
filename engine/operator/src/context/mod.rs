//! What a statement passes to every operator: its snapshot, parameters, memory, counters and
//! threads.
//!
//! A context knows neither plans under construction nor operators. What only part of a plan sees (a
//! morsel, the collected sides of joins) is an argument of the builder.

pub mod fetch_waits;
pub mod profile;
pub mod statistics;
pub mod supplied;
pub mod threads;
pub mod time_slice;

use crate::buffer::limits::MOST_TEXT_BYTES;
use crate::memory::{Memory, Reservation};
use crate::spill::SpillFile;
use fetch_waits::FetchWaits;
use nacre_sql::ScanStrategy;
use nacre_sql::plan::Plan;
use nacre_table::{Table, Transaction};
use nacre_types::{Error, Result, TableSchema, Value, limits};
use profile::Profile;
use statistics::Statistics;
use std::sync::Arc;
use supplied::SuppliedRows;
use threads::Threads;
use time_slice::TimeSlice;

static ENDLESS: TimeSlice = TimeSlice::endless();

/// The context of a running statement.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The transaction whose snapshot is read.
    pub transaction: &'a Transaction,
    /// Parameter values, already cast to the types they were bound as.
    pub parameters: &'a [Value],
    /// Counters of this statement, or of one node of its plan while it is profiled.
    pub statistics: &'a Statistics,
    /// The memory that its operators share.
    pub memory: &'a Memory,
    /// The statement's `now()`, microseconds since 1970-01-01.
    pub now_us: i64,
    /// Whether the caller has cancelled the statement.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    /// When the statement must give way.
    pub time_slice: &'a TimeSlice,
    /// How many threads may work on the statement.
    pub threads: Threads,
    /// How scans filter.
    pub scan_strategy: ScanStrategy,
    /// Rows that the plan reads but does not compute.
    pub supplied: Option<&'a SuppliedRows<'a>>,
    /// Measures each node of the plan, when the statement is profiled.
    pub profile: Option<&'a Profile>,
    /// Tables of the plan in the transaction's snapshot ([`tables_of`]), for a plan that may
    /// outlive them. A table that is not listed is looked up in the transaction.
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

impl<'a> Context<'a> {
    /// The context of a statement on one thread.
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
            time_slice: &ENDLESS,
            threads: Threads::ONE,
            scan_strategy: ScanStrategy::default(),
            supplied: None,
            profile: None,
            tables: &[],
        }
    }

    /// The same statement, with the counters of one node of its plan when it is profiled.
    pub fn of_node(&self, plan: &Plan) -> Context<'a> {
        let measured = self.profile.and_then(|profile| profile.node(profile.number(plan)?));
        Context { statistics: measured.map_or(self.statistics, |m| &m.statistics), ..*self }
    }

    /// The same statement on the calling thread alone.
    pub fn on_one_thread(&self) -> Context<'a> {
        Context { threads: Threads::ONE, ..*self }
    }
}

impl Context<'_> {
    /// The table of a scan. Parts of a plan are built late, when another transaction may have
    /// dropped the table.
    pub fn table_of(&self, schema: &TableSchema) -> Result<Arc<Table>> {
        match self.tables.iter().find(|table| table.schema().id == schema.id) {
            Some(table) => Ok(table.clone()),
            None => self.transaction.table_of(schema),
        }
    }

    /// Does work that reads, and that is repeated if it meets absent bytes: it counts once.
    pub fn counted<T>(&self, work: impl FnOnce(&Context<'_>) -> Result<T>) -> Result<T> {
        let own = Statistics::default();
        let done = work(&Context { statistics: &own, ..*self })?;
        self.statistics.add(&own);
        Ok(done)
    }

    /// The host's monotonic clock, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.transaction.environment().now_ns()
    }

    /// Waits for absent bytes in the middle of a call.
    pub fn fetch_waits(&self) -> FetchWaits<'_> {
        FetchWaits::new(self.transaction.environment(), self.cancelled)
    }

    /// Fails with `cancelled` once the caller has cancelled the statement. Every operator calls it
    /// at least once a batch.
    pub fn check_cancelled(&self) -> Result<()> {
        if (self.cancelled)() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Like [`Context::check_cancelled`], and ends the call when the statement's time slice is over.
    /// Only where the next call goes on as if this one had not been made.
    #[inline(never)]
    pub fn give_way(&self) -> Result<()> {
        self.check_cancelled()?;
        if self.time_slice.is_over(|| self.now_ns()) {
            Err(Error::time_slice_over())
        } else {
            Ok(())
        }
    }

    /// Resizes the reservation of an operator that cannot work with less; `limit` when there is no
    /// room.
    pub fn reserve(
        &self,
        reservation: &mut Reservation,
        operator: &str,
        bytes: usize,
    ) -> Result<()> {
        if reservation.try_resize(bytes, self.memory) {
            Ok(())
        } else {
            Err(self.over_limit(operator))
        }
    }

    /// Bytes of text that one expression may produce for one batch. They are not reserved, so they
    /// must not be many times the limit; a single value always has room.
    pub fn most_text_bytes(&self) -> usize {
        self.memory.limit().clamp(limits::MAX_VALUE_BYTES, MOST_TEXT_BYTES)
    }

    /// The error of an operator that needs more memory than it can have.
    #[cold]
    pub fn over_limit(&self, operator: &str) -> Error {
        let limit = self.memory.limit();
        let (whose, hint) = match self.memory.is_crowded() {
            true => {
                (" than other statements leave of the memory limit", "retry when they have ended")
            }
            false => (" than the memory limit", "raise the memory limit or read fewer rows"),
        };
        Error::limit(format!("{operator} needs more{whose} of {limit} bytes"))
            .with_sqlstate("53200")
            .with_hint(hint)
    }

    /// The statement's file for an operator to spill to; `limit` where there is none.
    pub fn spill_file(&self, operator: &str) -> Result<Arc<SpillFile>> {
        let file = self
            .memory
            .spill_file(self.transaction.environment())
            .map_err(|error| error.context(format!("spilling for {operator}")))?;
        file.ok_or_else(|| self.over_limit(operator))
    }
}
