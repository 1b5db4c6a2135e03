//! The rows of a query while it runs: each batch is computed when it is asked for.
//!
//! A stream reads in a transaction of its own, on the snapshot that its query had when it began. So it needs nothing
//! of its session: whatever that one runs, changes, commits or rolls back meanwhile, the stream goes on showing the
//! rows as they were. What it keeps is given back as soon as it has answered its last row or an error, or is dropped:
//! the snapshot, whose segments and versions nobody may remove before, the memory of its operators, and the temporary
//! file of what they could not hold. What it has answered it does not hold: only operators that must see all rows
//! before they answer the first, as a sort does, hold rows, within the statement's memory limit.

use crate::engine::Engine;
use crate::result::{ResultKind, StatementResult, StatementStatistics};
use nacre_column::Batch;
use nacre_exec::{Context, Memory, Operator, Statistics, Threads, pieces};
use nacre_sql::Field;
use nacre_table::{Table, Transaction};
use nacre_types::{Error, Result, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Batches are not gathered beyond so many bytes.
const GATHERED_BYTES: usize = 4 << 20;

/// A query on its way; see the module. After an error it is at its end.
pub struct RowStream {
    engine: Arc<Engine>,
    columns: Vec<Field>,
    kind: ResultKind,
    rows_affected: u64,
    source: Source,
    cancel: Arc<AtomicBool>,
    statistics: StatementStatistics,
}

/// Where the rows come from.
enum Source {
    /// A statement that was run to its end.
    Ready(std::vec::IntoIter<Batch>),
    Running(Box<Running>),
    /// At its end, but for an error that came after rows which were answered together.
    Failed(Error),
    Ended,
}

/// A plan in the middle.
pub(crate) struct Running {
    /// Of a batch whose texts are long when each row has its own: the rows that come next.
    pieces: std::vec::IntoIter<Batch>,
    /// Before what it reads from, so that it is dropped first.
    operator: Box<dyn Operator>,
    settings: OwnSettings,
    /// Of its own: whoever drops this gives the snapshot back.
    transaction: Transaction,
}

/// What a plan runs with, owned.
pub(crate) struct OwnSettings {
    pub parameters: Vec<Value>,
    pub statistics: Statistics,
    pub memory: Memory,
    pub now_us: i64,
    pub threads: Threads,
    /// What the plan reads: they may be dropped while it is on its way.
    pub tables: Vec<Arc<Table>>,
}

impl OwnSettings {
    /// The surroundings of the plan in this transaction.
    pub fn context<'a>(
        &'a self,
        transaction: &'a Transaction,
        cancelled: &'a (dyn Fn() -> bool + Sync),
    ) -> Context<'a> {
        let mut context =
            Context::new(transaction, &self.parameters, &self.statistics, &self.memory, cancelled);
        context.now_us = self.now_us;
        context.threads = self.threads;
        context.tables = &self.tables;
        context
    }
}

impl Running {
    pub fn new(
        operator: Box<dyn Operator>,
        settings: OwnSettings,
        transaction: Transaction,
    ) -> Running {
        Running { pieces: Vec::new().into_iter(), operator, settings, transaction }
    }

    fn next(&mut self, cancel: &AtomicBool) -> Result<Option<Batch>> {
        self.transaction.store().check_open()?;
        let cancelled = || cancel.load(Ordering::Relaxed);
        let context = self.settings.context(&self.transaction, &cancelled);
        loop {
            if let Some(batch) = self.pieces.next() {
                return Ok(Some(batch.compact()));
            }
            match self.operator.next(&context)? {
                Some(batch) => self.pieces = pieces(batch).into_iter(),
                None => return Ok(None),
            }
        }
    }
}

impl RowStream {
    /// What a statement answered.
    pub(crate) fn ready(engine: &Arc<Engine>, result: StatementResult) -> RowStream {
        let StatementResult { kind, columns, batches, rows_affected, statistics } = result;
        let batches: Vec<Batch> =
            batches.into_iter().flat_map(pieces).map(Batch::compact).collect();
        let source = Source::Ready(batches.into_iter());
        RowStream {
            engine: engine.clone(),
            columns,
            kind,
            rows_affected,
            source,
            cancel: Arc::default(),
            statistics,
        }
    }

    /// A query that has begun at this time of the clock.
    pub(crate) fn running(
        engine: &Arc<Engine>,
        columns: Vec<Field>,
        running: Running,
        started_ns: u64,
    ) -> RowStream {
        let empty = StatementResult { columns, ..StatementResult::new(ResultKind::Query) };
        let mut rows = RowStream {
            source: Source::Running(Box::new(running)),
            ..RowStream::ready(engine, empty)
        };
        rows.count_time(started_ns);
        rows
    }

    /// What kind of statement it is. Anything but a query has been run to its end.
    pub fn kind(&self) -> ResultKind {
        self.kind
    }

    /// Columns; empty unless it answers rows.
    pub fn columns(&self) -> &[Field] {
        &self.columns
    }

    /// Rows inserted, updated or deleted.
    pub fn rows_affected(&self) -> u64 {
        self.rows_affected
    }

    /// What it took so far.
    pub fn statistics(&self) -> StatementStatistics {
        let counted = match &self.source {
            Source::Running(running) => StatementStatistics::of(&running.settings.statistics),
            _ => return self.statistics,
        };
        StatementStatistics { elapsed_us: self.statistics.elapsed_us, ..counted }
    }

    /// Set this, from any thread, to end the stream with `cancelled`.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.cancel.clone()
    }

    /// The next rows, without a selection; none at the end, and after an error.
    pub async fn next(&mut self) -> Result<Option<Batch>> {
        let started = self.now_ns();
        let next = match &mut self.source {
            Source::Ended => return Ok(None),
            Source::Failed(error) => {
                let error = error.clone();
                self.source = Source::Ended;
                return Err(error);
            }
            _ if self.cancel.load(Ordering::Relaxed) => Err(Error::cancelled()),
            Source::Ready(batches) => Ok(batches.next()),
            Source::Running(running) => running.next(&self.cancel),
        };
        self.count_time(started);
        if !matches!(next, Ok(Some(_))) {
            self.end();
        }
        next
    }

    /// The next so many rows, or a batch more, as they come; fewer where they take more than a few megabytes; none
    /// at the end. An error that comes after some of them is the answer to the next call.
    pub async fn next_batches(&mut self, rows: usize) -> Result<Vec<Batch>> {
        let (mut batches, mut have, mut bytes) = (Vec::new(), 0, 0);
        while have < rows.max(1) && bytes < GATHERED_BYTES {
            let batch = match self.next().await {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(error) if batches.is_empty() => return Err(error),
                Err(error) => {
                    self.source = Source::Failed(error);
                    break;
                }
            };
            have += batch.rows;
            bytes += batch.flat_bytes();
            batches.push(batch);
        }
        Ok(batches)
    }

    /// Whether the last row has been answered, or an error. Before the end was asked for nobody knows.
    pub fn has_ended(&self) -> bool {
        matches!(self.source, Source::Ended)
    }

    /// All rows that are left, as [`crate::Connection::execute`] would have answered them. They are not counted against
    /// the memory limit: who asks for them holds them.
    pub async fn collect(mut self) -> Result<StatementResult> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next().await? {
            batches.push(batch);
        }
        let (kind, rows_affected, statistics) = (self.kind, self.rows_affected, self.statistics);
        Ok(StatementResult { kind, columns: self.columns, batches, rows_affected, statistics })
    }

    /// Gives back what the query keeps.
    fn end(&mut self) {
        self.statistics = self.statistics();
        self.source = Source::Ended;
    }

    fn now_ns(&self) -> u64 {
        self.engine.host.clock.monotonic_ns()
    }

    fn count_time(&mut self, since_ns: u64) {
        self.statistics.elapsed_us += self.now_ns().saturating_sub(since_ns) / 1_000;
    }
}
