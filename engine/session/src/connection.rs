//! A connection: runs statements one after another, with at most one open transaction.

use crate::binding::{Binding, Invocation};
use crate::catalog::StoreCatalog;
use crate::engine::Engine;
use crate::open_stream;
use crate::parameters::named_parameters;
use crate::prepared::PreparedStatement;
use crate::progress::Progress;
use crate::result::{ResultKind, StatementResult};
use crate::retry::Rebindings;
use crate::run;
use crate::settings::Settings;
use crate::statement_cache::TextStatement;
use crate::stream::RowStream;
use crate::text_binding;
use crate::transaction::OpenTransaction;
use crate::transactional;
use nacre_sql::{ControlStatement, Parsed, Statement};
use nacre_table::Fetched;
use nacre_types::invariant::broken;
use nacre_types::{Error, Result, Value};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A connection. Must not be used by several threads at once.
pub struct Connection {
    engine: Arc<Engine>,
    transaction: OpenTransaction,
    settings: Settings,
}

/// Parameters of a text of one or more statements.
#[derive(Clone, Copy)]
enum Parameters<'a> {
    Positional(&'a [Value]),
    Named(&'a [(String, Value)]),
}

/// A statement to bind.
#[derive(Clone, Copy)]
enum Source<'a> {
    Text(&'a TextStatement),
    Prepared(&'a PreparedStatement),
}

impl Source<'_> {
    /// The statement bound for these parameters against the catalog that the session sees.
    fn current(
        self,
        parameters: &[Value],
        engine: &Engine,
        catalog: StoreCatalog<'_>,
    ) -> Result<Arc<Binding>> {
        match self {
            Source::Text(statement) => {
                text_binding::current(statement, parameters, engine, catalog)
            }
            Source::Prepared(prepared) => prepared.current(parameters, engine, catalog),
        }
    }

    /// Binds the statement again.
    fn rebound(
        self,
        parameters: &[Value],
        engine: &Engine,
        catalog: StoreCatalog<'_>,
    ) -> Result<Arc<Binding>> {
        match self {
            Source::Text(statement) => {
                text_binding::rebound(statement, parameters, engine, catalog)
            }
            Source::Prepared(prepared) => prepared.rebound(parameters, engine, catalog),
        }
    }
}

impl<'a> Parameters<'a> {
    /// The values for one statement of a text. Positions are counted over the whole text, so every
    /// statement with parameters receives all values. A statement without parameters receives none,
    /// unless it is the whole text.
    fn of(self, parsed: &Parsed, is_alone: bool) -> Result<Cow<'a, [Value]>> {
        match self {
            Parameters::Positional(_) if parsed.parameter_names().is_empty() && !is_alone => {
                Ok(Cow::Borrowed(&[]))
            }
            Parameters::Positional(values) => Ok(Cow::Borrowed(values)),
            Parameters::Named(values) => named_parameters(parsed, values).map(Cow::Owned),
        }
    }
}

impl Connection {
    /// Creates a connection without a transaction.
    pub fn new(engine: Arc<Engine>) -> Connection {
        let settings = Settings::new(&engine);
        Connection { engine, transaction: OpenTransaction::default(), settings }
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_open()
    }

    /// Sets the maximum threads per statement; 0 for as many as the host has.
    pub fn set_threads(&mut self, threads: usize) {
        self.settings.set_threads(&self.engine, threads);
    }

    /// Sets the bytes that all operators of one statement may hold together; `None` for the
    /// database's default.
    pub fn set_memory_limit(&mut self, bytes: Option<usize>) {
        self.settings.set_memory_limit(&self.engine, bytes);
    }

    /// A flag that ends the running statement with `cancelled` when set. Reset when the next
    /// statement starts.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.settings.cancel_flag().clone()
    }

    /// How far the running statement is, on a host where statements give way.
    pub fn progress(&self) -> Arc<Progress> {
        self.settings.progress().clone()
    }

    /// Runs the statements of a text and returns the result of the last.
    pub async fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<StatementResult> {
        self.execute_text(sql, Parameters::Positional(parameters)).await
    }

    /// Like [`Connection::execute`], with parameters by name (`:name`, given without the colon).
    pub async fn execute_named(
        &mut self,
        sql: &str,
        parameters: &[(String, Value)],
    ) -> Result<StatementResult> {
        self.execute_text(sql, Parameters::Named(parameters)).await
    }

    /// Parses and binds one statement for repeated use.
    pub fn prepare(&mut self, sql: &str) -> Result<PreparedStatement> {
        PreparedStatement::new(sql, &self.engine, self.transaction.catalog(&self.engine))
    }

    /// Runs a prepared statement.
    pub async fn run(
        &mut self,
        prepared: &PreparedStatement,
        parameters: &[Value],
    ) -> Result<StatementResult> {
        let started_ns = self.engine.now_ns();
        let mut result = self.run_source(Source::Prepared(prepared), parameters).await?;
        result.statistics.elapsed_us = self.engine.elapsed_us(started_ns);
        Ok(result)
    }

    /// Runs a prepared point read and returns its row, without waiting.
    ///
    /// Errors: `unsupported` for any other statement; `io` if the row has absent bytes and the host's
    /// threads cannot wait for them, where [`Connection::get_async`] does.
    pub fn get(
        &mut self,
        prepared: &PreparedStatement,
        parameters: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        self.settings.begin_statement();
        let mut fetched = Fetched::default();
        loop {
            match self.get_resident(prepared, parameters) {
                Err(error) if error.missing().is_some() => {
                    self.engine.fetch_now(&mut fetched, error)?;
                }
                done => return done,
            }
        }
    }

    /// Like [`Connection::get`], but awaits absent bytes.
    pub async fn get_async(
        &mut self,
        prepared: &PreparedStatement,
        parameters: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        self.settings.begin_statement();
        let mut fetched = Fetched::default();
        loop {
            match self.get_resident(prepared, parameters) {
                Err(error) if error.missing().is_some() => {
                    let is_cancelled = || self.settings.is_cancelled();
                    self.engine.fetch(&mut fetched, error, &is_cancelled).await?;
                }
                done => return done,
            }
        }
    }

    /// Runs a prepared point read on bytes that are there.
    fn get_resident(
        &mut self,
        prepared: &PreparedStatement,
        parameters: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        let catalog = self.transaction.catalog(&self.engine);
        let mut binding = prepared.current(parameters, &self.engine, catalog)?;
        let mut rebindings = Rebindings::new(self.transaction.is_open());
        loop {
            match self.get_bound(&binding, parameters, prepared.was_point_read()) {
                Err(error) if rebindings.should_rebind(&error, &binding, &self.engine) => {}
                other => return other?.ok_or_else(not_a_point_read),
            }
            let catalog = self.transaction.catalog(&self.engine);
            binding = prepared.rebound(parameters, &self.engine, catalog)?;
        }
    }

    /// Like [`Connection::execute`], but streams the rows of the last statement.
    pub async fn stream(&mut self, sql: &str, parameters: &[Value]) -> Result<RowStream> {
        self.stream_text(sql, Parameters::Positional(parameters)).await
    }

    /// Like [`Connection::stream`], with parameters by name (`:name`, given without the colon).
    pub async fn stream_named(
        &mut self,
        sql: &str,
        parameters: &[(String, Value)],
    ) -> Result<RowStream> {
        self.stream_text(sql, Parameters::Named(parameters)).await
    }

    /// Runs a prepared statement and streams its rows.
    pub async fn stream_prepared(
        &mut self,
        prepared: &PreparedStatement,
        parameters: &[Value],
    ) -> Result<RowStream> {
        self.stream_source(Source::Prepared(prepared), parameters).await
    }

    async fn execute_text(
        &mut self,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<StatementResult> {
        let started_ns = self.engine.now_ns();
        let text = self.engine.statements().parse(sql)?;
        let mut last = StatementResult::new(ResultKind::Control);
        for (at, statement) in text.statements.iter().enumerate() {
            self.check_next(at)?;
            let values = parameters.of(statement.parsed(), text.statements.len() == 1)?;
            last = match self.named(statement, &values)? {
                None => self.run_source(Source::Text(statement), &values).await?,
                Some((named, values)) => self.run_source(Source::Prepared(&named), &values).await?,
            };
        }
        last.statistics.elapsed_us = self.engine.elapsed_us(started_ns);
        Ok(last)
    }

    async fn stream_text(&mut self, sql: &str, parameters: Parameters<'_>) -> Result<RowStream> {
        let text = self.engine.statements().parse(sql)?;
        let Some((last, before)) = text.statements.split_last() else {
            let nothing = StatementResult::new(ResultKind::Control);
            return Ok(RowStream::ready(&self.engine, nothing));
        };
        for (at, statement) in before.iter().enumerate() {
            self.check_next(at)?;
            let values = parameters.of(statement.parsed(), false)?;
            match self.named(statement, &values)? {
                None => self.run_source(Source::Text(statement), &values).await?,
                Some((named, values)) => self.run_source(Source::Prepared(&named), &values).await?,
            };
        }
        self.check_next(before.len())?;
        let values = parameters.of(last.parsed(), before.is_empty())?;
        match self.named(last, &values)? {
            None => self.stream_source(Source::Text(last), &values).await,
            Some((named, values)) => self.stream_source(Source::Prepared(&named), &values).await,
        }
    }

    /// The statement that an `EXECUTE` runs, with its parameters; `None` for any other statement.
    fn named(
        &mut self,
        statement: &TextStatement,
        parameters: &[Value],
    ) -> Result<Option<(PreparedStatement, Vec<Value>)>> {
        if !statement.parsed().is_execute() {
            return Ok(None);
        }
        let catalog = self.transaction.catalog(&self.engine);
        let binding = text_binding::current(statement, parameters, &self.engine, catalog)?;
        let Statement::Control(ControlStatement::Execute { name, arguments }) = binding.statement()
        else {
            broken(format_args!("EXECUTE is bound as another statement"))
        };
        Ok(Some((self.settings.named().get(name)?, arguments.clone())))
    }

    /// Fails with `cancelled` if the text was cancelled while an earlier statement of it ended.
    fn check_next(&self, at: usize) -> Result<()> {
        if at > 0 && self.settings.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    async fn run_source(
        &mut self,
        source: Source<'_>,
        parameters: &[Value],
    ) -> Result<StatementResult> {
        self.rebinding(
            source,
            parameters,
            async |connection: &mut Connection, invocation: Invocation<'_>| {
                let Connection { engine, transaction, settings } = connection;
                run::run(invocation, engine, transaction, settings).await
            },
        )
        .await
    }

    async fn stream_source(
        &mut self,
        source: Source<'_>,
        parameters: &[Value],
    ) -> Result<RowStream> {
        self.rebinding(
            source,
            parameters,
            async |connection: &mut Connection, invocation: Invocation<'_>| {
                let Connection { engine, transaction, settings } = connection;
                // A prepared point statement runs immediately: a stream is not worthwhile for one
                // row.
                let at_once = matches!(source, Source::Prepared(_)) && invocation.point.is_some();
                if let Some(plan) = open_stream::plan_of(invocation.statement).filter(|_| !at_once)
                {
                    let parameters = invocation.parameters.into_owned();
                    return open_stream::open(plan, parameters, engine, transaction, settings)
                        .await;
                }
                let started_ns = engine.now_ns();
                let mut result = run::run(invocation, engine, transaction, settings).await?;
                result.statistics.elapsed_us = engine.elapsed_us(started_ns);
                Ok(RowStream::ready(engine, result))
            },
        )
        .await
    }

    /// Binds and runs a statement, repeating both while its tables change in between.
    async fn rebinding<T>(
        &mut self,
        source: Source<'_>,
        parameters: &[Value],
        mut run: impl AsyncFnMut(&mut Connection, Invocation<'_>) -> Result<T>,
    ) -> Result<T> {
        // Once: a statement that runs again stays cancelled.
        self.settings.begin_statement();
        let mut rebindings = Rebindings::new(self.transaction.is_open());
        let catalog = self.transaction.catalog(&self.engine);
        let mut binding = source.current(parameters, &self.engine, catalog)?;
        let mut fetched = Fetched::default();
        loop {
            match run(self, binding.invocation(parameters)?).await {
                // The statement was undone, as for a lock. A COMMIT has ended its transaction.
                Err(error) if error.missing().is_some() && !binding.is_control() => {
                    let is_cancelled = || self.settings.is_cancelled();
                    self.engine.fetch(&mut fetched, error, &is_cancelled).await?;
                    // It takes another snapshot when it runs again. Views may be others by then, which fails nothing.
                    let catalog = self.transaction.catalog(&self.engine);
                    if binding.is_current(parameters, &self.engine, catalog) {
                        continue;
                    }
                }
                Err(error) if rebindings.should_rebind(&error, &binding, &self.engine) => {}
                other => return other,
            }
            let catalog = self.transaction.catalog(&self.engine);
            binding = source.rebound(parameters, &self.engine, catalog)?;
        }
    }

    /// Runs a point read in the open transaction, or on the newest committed data. `None` if the
    /// statement is not a point read.
    fn get_bound(
        &mut self,
        binding: &Binding,
        parameters: &[Value],
        was_point_read: bool,
    ) -> Result<Option<Option<Vec<Value>>>> {
        let Invocation { statement, point, parameters } = binding.invocation(parameters)?;
        if let Some(point) = point.filter(|point| point.reads_one_row()) {
            let found = match self.transaction.get() {
                None => point.read_newest(self.engine.store(), &parameters)?.into_single_row(),
                Some(transaction) => point.read(transaction, &parameters)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        let (true, Statement::Rows(statement)) = (was_point_read, statement) else {
            return Ok(None);
        };
        // The key value is out of range, or the table has changed: the plan has the answer.
        let Connection { engine, transaction, settings } = self;
        let work = transactional::Work { statement, point: None, parameters: &parameters };
        let result = transactional::read(work, engine, transaction, settings)?;
        let batches = result.batches.iter();
        let mut rows = batches.flat_map(|batch| (0..batch.rows).map(|row| batch.row(row)));
        match (rows.next(), rows.next()) {
            (row, None) => Ok(Some(row)),
            _ => Err(not_a_point_read()),
        }
    }
}

fn not_a_point_read() -> Error {
    Error::unsupported("get on a statement that is not a read of one row by a unique key")
}
