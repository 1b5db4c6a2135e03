//! Streams the rows of a running query: each batch is computed on demand.
//!
//! A stream reads in its own transaction, on the snapshot at which its query began. It is
//! independent of its connection: the rows do not change, whatever the connection runs, commits or
//! rolls back meanwhile. The stream holds its snapshot (keeping segments and row versions
//! readable), the memory of its operators and their temporary file until it has returned its last
//! row or an error, or is dropped. It does not keep rows it has returned; only an operator that
//! needs all its input first, such as a sort, holds rows, within the statement's memory limit.

use crate::engine::Engine;
use crate::execution::{Execution, ExecutionParts, InsertPath};
use crate::result::{ResultKind, StatementResult, StatementStatistics};
use crate::time_slices::{TimeSlices, is_over};
use nacre_column::Batch;
use nacre_operator::{Memory, Operator, Statistics, Threads, pieces};
use nacre_sql::{Field, ScanStrategy};
use nacre_table::{Fetched, Store, Table, Transaction};
use nacre_types::{Error, Result, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// [`RowStream::next_batches`] stops gathering at this many bytes.
const GATHERED_BYTES: usize = 4 << 20;

/// The rows of a running query. An error ends it.
pub struct RowStream {
    engine: Arc<Engine>,
    columns: Vec<Field>,
    kind: ResultKind,
    rows_affected: u64,
    source: Source,
    cancel: Arc<AtomicBool>,
    slices: TimeSlices,
    statistics: StatementStatistics,
}

/// The source of the rows.
enum Source {
    /// The result of a completed statement.
    Ready(std::vec::IntoIter<Batch>),
    Running(Box<Running>),
    /// At its end, except for an error to report after rows that were returned together.
    Failed(Error),
    Ended,
}

/// A running plan.
pub(crate) struct Running {
    /// The rest of a batch returned in pieces, because its texts are long when repeated per row.
    pieces: std::vec::IntoIter<Batch>,
    /// Declared before the transaction it reads from, so that it is dropped first.
    operator: Box<dyn Operator>,
    execution: OwnedExecution,
    /// The stream's own transaction; dropping it releases the snapshot.
    transaction: Transaction,
}

/// The environment of a plan, owned.
pub(crate) struct OwnedExecution {
    pub store: Arc<Store>,
    pub parameters: Vec<Value>,
    pub statistics: Statistics,
    pub memory: Memory,
    /// Wall clock when the query began, in microseconds since 1970.
    pub now_us: i64,
    pub threads: Threads,
    pub scan_strategy: ScanStrategy,
    /// Tables that the plan reads; they may be dropped while the stream is read.
    pub tables: Vec<Arc<Table>>,
}

impl OwnedExecution {
    pub fn execution<'a>(
        &'a self,
        cancelled: &'a (dyn Fn() -> bool + Sync),
        slices: &'a TimeSlices,
    ) -> Execution<'a> {
        let parts = ExecutionParts {
            store: &self.store,
            parameters: &self.parameters,
            statistics: &self.statistics,
            memory: &self.memory,
            now_us: self.now_us,
            cancelled,
            slices,
            reporting: None,
            // Streams are not profiled.
            uploads: None,
            threads: self.threads,
            scan_strategy: self.scan_strategy,
            load_end: None,
        };
        Execution::new(parts, InsertPath::Rowstore).keeping(&self.tables)
    }
}

impl Running {
    pub fn new(
        operator: Box<dyn Operator>,
        execution: OwnedExecution,
        transaction: Transaction,
    ) -> Running {
        Running { pieces: Vec::new().into_iter(), operator, execution, transaction }
    }

    /// Computes the next rows, fetching what is missed on the way.
    async fn next(
        &mut self,
        cancel: &AtomicBool,
        engine: &Engine,
        slices: &TimeSlices,
    ) -> Result<Option<Batch>> {
        let mut fetched = Fetched::default();
        let cancelled = || cancel.load(Ordering::Relaxed);
        loop {
            let next = {
                let _slot = engine.slot_again(cancel).await?;
                slices.run(|| self.poll_next(&cancelled, slices))
            };
            match next {
                Err(error) if is_over(&error) => {
                    slices.give_way(engine.store().environment(), &cancelled).await?;
                }
                Err(error) if error.missing().is_some() => {
                    engine.fetch(&mut fetched, error, &cancelled).await?;
                }
                next => return next,
            }
        }
    }

    fn poll_next(
        &mut self,
        cancelled: &(dyn Fn() -> bool + Sync),
        slices: &TimeSlices,
    ) -> Result<Option<Batch>> {
        self.transaction.check_open()?;
        let context = self.execution.execution(cancelled, slices).context(&self.transaction);
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
    /// A stream of a completed statement's rows.
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
            slices: TimeSlices::new(engine.store().environment()),
            statistics,
        }
    }

    /// A stream of a query that began at `started_ns` of the monotonic clock.
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

    /// The statement's kind. Statements other than queries have already completed.
    pub fn kind(&self) -> ResultKind {
        self.kind
    }

    /// Columns; empty unless it returns rows.
    pub fn columns(&self) -> &[Field] {
        &self.columns
    }

    /// Rows inserted, updated or deleted.
    pub fn rows_affected(&self) -> u64 {
        self.rows_affected
    }

    /// Statistics so far.
    pub fn statistics(&self) -> StatementStatistics {
        let counted = match &self.source {
            Source::Running(running) => StatementStatistics::of(&running.execution.statistics),
            _ => return self.statistics,
        };
        StatementStatistics { elapsed_us: self.statistics.elapsed_us, ..counted }
    }

    /// A flag that ends the stream with `cancelled` when any thread sets it.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.cancel.clone()
    }

    /// The next rows, without a selection; `None` at the end and after an error.
    pub async fn next(&mut self) -> Result<Option<Batch>> {
        self.slices.begin(self.engine.store().environment());
        self.next_in_slice().await
    }

    /// Like [`RowStream::next`], in the time slice that has begun.
    async fn next_in_slice(&mut self) -> Result<Option<Batch>> {
        let started = self.engine.now_ns();
        let next = match &mut self.source {
            Source::Ended => return Ok(None),
            Source::Failed(error) => {
                let error = error.clone();
                self.source = Source::Ended;
                return Err(error);
            }
            _ if self.cancel.load(Ordering::Relaxed) => Err(Error::cancelled()),
            Source::Ready(batches) => Ok(batches.next()),
            Source::Running(running) => {
                running.next(&self.cancel, &self.engine, &self.slices).await
            }
        };
        self.count_time(started);
        if !matches!(next, Ok(Some(_))) {
            self.end();
        }
        next
    }

    /// At least `rows` of the next rows, in whole batches. Returns fewer at the end or if they take
    /// more than a few megabytes, and none at the end. An error after some of them is returned by
    /// the next call.
    pub async fn next_batches(&mut self, rows: usize) -> Result<Vec<Batch>> {
        let (mut batches, mut have, mut bytes) = (Vec::new(), 0, 0);
        self.slices.begin(self.engine.store().environment());
        while have < rows.max(1) && bytes < GATHERED_BYTES {
            let batch = match self.next_in_slice().await {
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

    /// Whether the end was reached: a call returned no rows or an error.
    pub fn has_ended(&self) -> bool {
        matches!(self.source, Source::Ended)
    }

    /// All remaining rows, as [`crate::Connection::execute`] would return them. They do not count
    /// against the memory limit, because the caller holds them.
    pub async fn collect(mut self) -> Result<StatementResult> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next().await? {
            batches.push(batch);
        }
        let (kind, rows_affected, statistics) = (self.kind, self.rows_affected, self.statistics);
        Ok(StatementResult { kind, columns: self.columns, batches, rows_affected, statistics })
    }

    /// Releases the query's resources.
    fn end(&mut self) {
        self.statistics = self.statistics();
        self.source = Source::Ended;
    }

    fn count_time(&mut self, since_ns: u64) {
        self.statistics.elapsed_us += self.engine.elapsed_us(since_ns);
    }
}
