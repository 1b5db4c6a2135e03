//! A session: one connection with at most one open transaction. Statements run one after another.
//!
//! Without `BEGIN` each statement is a transaction of its own with a fresh snapshot, and is run again
//! by itself when it meets a conflict. Inside a transaction a failed statement is undone, and the
//! transaction stays open.

mod parameters;
mod prepared;
mod stream;
mod transaction;

pub use prepared::PreparedStatement;

use crate::catalog::StoreCatalog;
use crate::engine::Engine;
use crate::point::{Outcome, Point};
use crate::result::{ResultKind, StatementResult, StatementStatistics};
use crate::statement;
use crate::wait;
use nacre_column::{Batch, Vector};
use nacre_exec::{Context, Memory, Statistics, Threads};
use nacre_sql::{Bound, Given, Parsed, SessionOption, Statement};
use nacre_table::{Blocker, Owner, Savepoint, Transaction};
use nacre_types::{Error, ErrorKind, Result, Timestamp, Value};
use parameters::{cast_parameters, named_parameters};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Autocommit statements that meet conflicts are run again so many times.
const CONFLICT_RETRIES: usize = 32;
/// A statement for which there were not enough files is run again so often, with more of them each time.
const SHORTAGES: u32 = 6;

/// Who waits for a lock looks so often whether he is cancelled.
const CANCEL_NS: u64 = 20_000_000;

/// A statement that was to come again gave its locks back without a word; however it ends, those who wait are told then.
#[derive(Default)]
struct Undone(Option<Arc<Owner>>);

impl Drop for Undone {
    fn drop(&mut self) {
        if let Some(owner) = &self.0 {
            owner.gave_back();
        }
    }
}

/// How often a statement may still be bound again, and whether it is one of a transaction that was open before.
struct Rebinding {
    left: usize,
    was_open: bool,
}

/// A connection. Not shared between threads at the same time.
pub struct Connection {
    engine: Arc<Engine>,
    transaction: Option<Transaction>,
    /// Named points of the open transaction, oldest first. A name may be there more than once: the newest counts.
    savepoints: Vec<(String, Savepoint)>,
    cancel: Arc<AtomicBool>,
    threads: Threads,
    memory_limit: usize,
}

/// What to run: a bound statement, and the short way when there is one.
#[derive(Clone, Copy)]
struct Work<'a> {
    statement: &'a Statement,
    point: Option<&'a Point>,
}

/// What a point statement did in the common form; none when it needs the general way.
fn answer(statement: &Statement, outcome: Outcome) -> Option<StatementResult> {
    let query = || StatementResult {
        columns: statement::columns(statement),
        ..StatementResult::new(ResultKind::Query)
    };
    match outcome {
        Outcome::Row(row) => {
            let mut result = query();
            if let Some(row) = row {
                let vectors = result.columns.iter().zip(&row);
                let vectors = vectors
                    .map(|(field, value)| Arc::new(Vector::from_values(field.data_type, [value])));
                result.batches.push(Batch::new(vectors.collect(), 1));
                result.statistics.rows_read = 1;
            }
            result.statistics.point_reads = 1;
            Some(result)
        }
        Outcome::Rows(batches) => {
            let mut result = StatementResult { batches, ..query() };
            result.statistics.rows_read = result.rows() as u64;
            Some(result)
        }
        Outcome::Written(rows) => Some(statement::written(rows)),
        Outcome::General => None,
    }
}

impl Connection {
    /// A new connection without a transaction.
    pub fn new(engine: Arc<Engine>) -> Connection {
        let threads = engine.threads();
        let cancel = Arc::new(AtomicBool::new(false));
        let memory_limit = engine.defaults.memory_limit;
        Connection {
            engine,
            transaction: None,
            savepoints: Vec::new(),
            cancel,
            threads,
            memory_limit,
        }
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// How many threads may work on one statement of this session; 0 for as many as the host has.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads.count = self.engine.threads_of(threads);
    }

    /// Bytes that the operators of one statement of this session may hold together; none for the database's option.
    pub fn set_memory_limit(&mut self, bytes: Option<usize>) {
        self.memory_limit = bytes.unwrap_or(self.engine.defaults.memory_limit);
    }

    /// Set this to end the running statement with `cancelled`; it is reset when the next one starts.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.cancel.clone()
    }

    /// Runs one or more statements separated by `;` and answers with the last one's result. Parameters are
    /// counted through the whole text, and each statement is given all of them.
    pub async fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<StatementResult> {
        let started = self.now_ns();
        let statements = nacre_sql::parse(sql)?;
        let mut last = StatementResult::new(ResultKind::Control);
        for parsed in &statements {
            let wanted = parsed.parameter_names().len();
            let given = if wanted == 0 && statements.len() > 1 { &[] } else { parameters };
            last = self.execute_parsed(parsed, given).await?;
        }
        last.statistics.elapsed_us = (self.now_ns() - started) / 1_000;
        Ok(last)
    }

    /// Like [`Connection::execute`] with parameters by name (`:name`; without the colon).
    pub async fn execute_named(
        &mut self,
        sql: &str,
        parameters: &[(String, Value)],
    ) -> Result<StatementResult> {
        let started = self.now_ns();
        let mut last = StatementResult::new(ResultKind::Control);
        for parsed in &nacre_sql::parse(sql)? {
            let values = named_parameters(parsed, parameters)?;
            last = self.execute_parsed(parsed, &values).await?;
        }
        last.statistics.elapsed_us = (self.now_ns() - started) / 1_000;
        Ok(last)
    }

    async fn execute_parsed(
        &mut self,
        parsed: &Parsed,
        parameters: &[Value],
    ) -> Result<StatementResult> {
        let given: Vec<Given> = parameters.iter().map(Given::of).collect();
        let mut again = self.rebinding();
        loop {
            let (bound, at) = self.bind(parsed, &given)?;
            let point = Point::recognise(&bound.statement, &self.engine.store, at);
            match self.run_bound(&bound, point.as_ref(), parameters).await {
                Err(error) if self.should_bind_again(&error, &bound, at, &mut again) => {}
                other => return other,
            }
        }
    }

    /// The catalog is seen as the open transaction sees it, or else as the next one will.
    fn bind(&self, parsed: &Parsed, given: &[Given]) -> Result<(Bound, Timestamp)> {
        let store = &self.engine.store;
        let at = self.transaction.as_ref().map_or_else(|| store.visible(), Transaction::snapshot);
        Ok((nacre_sql::bind(parsed, &StoreCatalog { store, at }, given)?, at))
    }

    /// For the next statement.
    fn rebinding(&self) -> Rebinding {
        Rebinding { left: CONFLICT_RETRIES, was_open: self.transaction.is_some() }
    }

    /// Whether a statement failed because a table changed, or went, after it was bound at `at`: another may have its
    /// name. For a transaction that was open what changed stays as it was.
    fn should_bind_again(
        &self,
        error: &Error,
        bound: &Bound,
        at: Timestamp,
        again: &mut Rebinding,
    ) -> bool {
        let stale = match error.kind() {
            ErrorKind::Conflict => !again.was_open,
            // What ends a transaction has done so; what drops tables looks names up itself.
            ErrorKind::NotFound => !matches!(
                bound.statement,
                Statement::Commit | Statement::DropTable { .. } | Statement::DropView { .. }
            ),
            _ => false,
        };
        if !stale || again.left == 0 || self.engine.store.last_ddl() <= at {
            return false;
        }
        again.left -= 1;
        true
    }

    async fn run_bound(
        &mut self,
        bound: &Bound,
        point: Option<&Point>,
        parameters: &[Value],
    ) -> Result<StatementResult> {
        let parameters = cast_parameters(bound, parameters)?;
        self.cancel.store(false, Ordering::Relaxed);
        match &bound.statement {
            Statement::Begin => self.begin(),
            Statement::Commit => self.commit().await,
            Statement::Rollback => self.rollback(),
            Statement::Savepoint(name) => self.savepoint(name),
            Statement::RollbackTo(name) => self.rollback_to(name),
            Statement::Release(name) => self.release(name),
            Statement::Set(SessionOption::Threads(count)) => {
                self.set_threads(*count as usize);
                Ok(StatementResult::new(ResultKind::Control))
            }
            Statement::Set(SessionOption::MemoryLimit(bytes)) => {
                self.set_memory_limit(
                    bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
                );
                Ok(StatementResult::new(ResultKind::Control))
            }
            statement @ Statement::CreateTableAs { .. } => {
                if self.transaction.is_some() {
                    return Err(Error::unsupported("CREATE TABLE AS inside a transaction"));
                }
                let made =
                    self.run_in_transaction(Work { statement, point: None }, &parameters).await;
                self.engine.catalog_changed();
                made
            }
            Statement::CreateTable { .. }
            | Statement::CreateView { .. }
            | Statement::DropView { .. }
            | Statement::DropTable { .. }
            | Statement::AlterTable { .. }
            | Statement::CreateIndex { .. }
            | Statement::DropIndex { .. }
            | Statement::Truncate { .. }
            | Statement::Optimize { .. } => {
                let name = statement::name(&bound.statement);
                if self.transaction.is_some() {
                    return Err(Error::unsupported(format!("{name} inside a transaction")));
                }
                let mut shortages = 0;
                loop {
                    self.engine.host.store.prepare().await?;
                    match statement::run_ddl(&self.engine, &bound.statement) {
                        Err(error) if self.has_more_files(&error, &mut shortages) => {}
                        other => return other,
                    }
                }
            }
            statement => {
                if let (None, Some(point)) = (&self.transaction, point)
                    && let Some(result) =
                        answer(statement, point.read_newest(&self.engine.store, &parameters)?)
                {
                    return Ok(result);
                }
                self.run_in_transaction(Work { statement, point }, &parameters).await
            }
        }
    }

    async fn run_in_transaction(
        &mut self,
        work: Work<'_>,
        parameters: &[Value],
    ) -> Result<StatementResult> {
        let writes = statement::writes(work.statement);
        if writes {
            self.engine.host.store.prepare().await?;
        }
        let timeout_ns = self.engine.defaults.lock_timeout_ms.saturating_mul(1_000_000);
        let deadline = self.now_ns().saturating_add(timeout_ns);
        let (mut conflicts, mut shortages) = (0, 0);
        let mut undone = Undone::default();
        loop {
            let explicit = self.transaction.take();
            let autocommit = explicit.is_none();
            let mut transaction = match explicit {
                Some(transaction) => transaction,
                None => self.engine.store.begin()?,
            };
            let savepoint = transaction.savepoint();
            let error = match self.run_once(
                &mut transaction,
                work,
                parameters,
                autocommit && conflicts == 0,
            ) {
                Ok(result) if !autocommit => {
                    self.transaction = Some(transaction);
                    return Ok(result);
                }
                Ok(result) => match transaction.commit() {
                    Ok(()) => {
                        if writes {
                            self.engine.housekeeping();
                        }
                        return Ok(result);
                    }
                    Err(error) => error,
                },
                Err(error) => {
                    transaction.rollback_to(savepoint);
                    let blocker = transaction.take_blocker();
                    // What waits holds no locks of this statement; an open transaction keeps its earlier ones. Others
                    // wait only for who holds some.
                    let waiter = if autocommit {
                        drop(transaction);
                        self.engine.store.new_owner()
                    } else {
                        let owner = transaction.owner().clone();
                        self.transaction = Some(transaction);
                        owner
                    };
                    match blocker {
                        None => error,
                        Some(blocker) => {
                            undone.0 = Some(waiter.clone());
                            self.wait_for(&waiter, &blocker, deadline, error).await?;
                            continue;
                        }
                    }
                }
            };
            if autocommit && error.kind() == ErrorKind::Conflict && conflicts < CONFLICT_RETRIES {
                conflicts += 1;
                // What it conflicts with may not be durable yet: then the same snapshot would have the same conflict.
                if writes {
                    self.engine.store.catch_up()?;
                }
                continue;
            }
            if autocommit && writes && self.has_more_files(&error, &mut shortages) {
                self.engine.host.store.prepare().await?;
                continue;
            }
            return Err(error);
        }
    }

    /// Whether what failed for want of files, and has changed nothing, finds more of them when the host is asked.
    fn has_more_files(&self, error: &Error, shortages: &mut u32) -> bool {
        *shortages += 1;
        error.kind() == ErrorKind::Limit
            && *shortages <= SHORTAGES
            && self.engine.host.store.ran_short()
    }

    /// Waits until the lock that a statement met may be free; at the deadline with the error that it met.
    async fn wait_for(
        &self,
        waiter: &Arc<Owner>,
        blocker: &Blocker,
        deadline: u64,
        error: Error,
    ) -> Result<()> {
        let Some(mut waiting) = waiter.wait_for(blocker) else {
            return Err(Error::new(
                ErrorKind::Deadlock,
                "two transactions wait for each other's rows",
            )
            .with_hint("roll back and retry the transaction"));
        };
        let clock = self.engine.host.clock.clone();
        loop {
            // Nobody tells that the flag is set, so it is looked at from time to time.
            let next = self.now_ns().saturating_add(CANCEL_NS).min(deadline);
            if wait::before(&mut waiting, clock.sleep_until(next)).await {
                return Ok(());
            }
            if self.cancel.load(Ordering::Relaxed) {
                return Err(Error::cancelled());
            }
            if next == deadline {
                return Err(error.with_hint("the lock was not free in time; retry"));
            }
        }
    }

    fn run_once(
        &self,
        transaction: &mut Transaction,
        work: Work<'_>,
        parameters: &[Value],
        direct: bool,
    ) -> Result<StatementResult> {
        let statistics = Statistics::default();
        let cancel = self.cancel.clone();
        let cancelled = move || cancel.load(Ordering::Relaxed);
        let settings = statement::Settings {
            parameters,
            statistics: &statistics,
            memory: &Memory::new(self.memory_limit),
            now_us: self.engine.host.clock.wall_us(),
            cancelled: &cancelled,
            threads: self.threads,
            direct,
            profile: None,
        };
        if let Some(point) = work.point
            && let Some(result) = answer(work.statement, point.run(transaction, &settings)?)
        {
            return Ok(result);
        }
        let mut result = statement::run(transaction, work.statement, &settings)?;
        result.statistics = StatementStatistics::of(&statistics);
        Ok(result)
    }

    fn now_ns(&self) -> u64 {
        self.engine.host.clock.monotonic_ns()
    }

    /// The context of a statement, for the parts of this crate that run plans.
    pub(crate) fn context<'a>(
        transaction: &'a Transaction,
        settings: &statement::Settings<'a>,
    ) -> Context<'a> {
        let mut context = Context::new(
            transaction,
            settings.parameters,
            settings.statistics,
            settings.memory,
            settings.cancelled,
        );
        context.now_us = settings.now_us;
        context.threads = settings.threads;
        context.profile = settings.profile;
        context
    }
}
