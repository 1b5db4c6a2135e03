//! Queries whose rows are taken while they run. See [`RowStream`].
//!
//! A query outside a transaction begins one for its stream. Inside a transaction the stream shares its snapshot. What
//! the transaction has changed before, only itself sees, and sees it as it is at the moment: so there the rows are
//! computed when the stream is opened and wait in memory, or in a temporary file when there are many.

use super::Connection;
use super::parameters::{cast_parameters, named_parameters};
use super::prepared::PreparedStatement;
use crate::point::Point;
use crate::result::{ResultKind, StatementResult};
use crate::stream::{OwnSettings, RowStream, Running};
use nacre_exec::{Memory, Statistics, build, build_collected, tables_of};
use nacre_sql::{Bound, Given, Parsed, Plan, Statement};
use nacre_types::plant::{self, Bug};
use nacre_types::{Result, Value};
use std::sync::atomic::Ordering;

impl Connection {
    /// Like [`Connection::execute`], with the rows of the last statement as a stream: nothing of it is computed before
    /// it is asked for, and what was answered is not held. It outlives statements of this session, and its
    /// transaction: it shows the rows as the query found them.
    ///
    /// Statements that write are run to their end first, and so is a query that locks rows, or that runs in a
    /// transaction which has changed or locked some.
    pub async fn stream(&mut self, sql: &str, parameters: &[Value]) -> Result<RowStream> {
        let statements = nacre_sql::parse(sql)?;
        let Some((last, before)) = statements.split_last() else {
            return Ok(RowStream::ready(&self.engine, StatementResult::new(ResultKind::Control)));
        };
        let given = |parsed: &Parsed| match parsed.parameter_names().len() {
            0 if !before.is_empty() => &[],
            _ => parameters,
        };
        for parsed in before {
            self.execute_parsed(parsed, given(parsed)).await?;
        }
        self.stream_parsed(last, given(last)).await
    }

    /// Like [`Connection::stream`] with parameters by name (`:name`; without the colon).
    pub async fn stream_named(
        &mut self,
        sql: &str,
        parameters: &[(String, Value)],
    ) -> Result<RowStream> {
        let statements = nacre_sql::parse(sql)?;
        let Some((last, before)) = statements.split_last() else {
            return Ok(RowStream::ready(&self.engine, StatementResult::new(ResultKind::Control)));
        };
        for parsed in before {
            self.execute_parsed(parsed, &named_parameters(parsed, parameters)?).await?;
        }
        self.stream_parsed(last, &named_parameters(last, parameters)?).await
    }

    /// Runs a prepared statement with its rows as a stream; see [`Connection::stream`].
    pub async fn stream_prepared(
        &mut self,
        prepared: &PreparedStatement,
        parameters: &[Value],
    ) -> Result<RowStream> {
        let mut again = self.rebinding();
        let mut binding = self.current_binding(prepared, parameters)?;
        loop {
            match self.stream_bound(&binding.bound, binding.point.as_ref(), parameters).await {
                Err(error)
                    if self.should_bind_again(&error, &binding.bound, binding.at, &mut again) => {}
                other => return other,
            }
            binding = self.new_binding(prepared, parameters)?;
        }
    }

    async fn stream_parsed(&mut self, parsed: &Parsed, parameters: &[Value]) -> Result<RowStream> {
        let given: Vec<Given> = parameters.iter().map(Given::of).collect();
        let mut again = self.rebinding();
        loop {
            let (bound, at) = self.bind(parsed, &given)?;
            match self.stream_bound(&bound, None, parameters).await {
                Err(error) if self.should_bind_again(&error, &bound, at, &mut again) => {}
                other => return other,
            }
        }
    }

    async fn stream_bound(
        &mut self,
        bound: &Bound,
        point: Option<&Point>,
        parameters: &[Value],
    ) -> Result<RowStream> {
        let started = self.now_ns();
        match &bound.statement {
            Statement::Query(plan) if point.is_none() => {
                let parameters = cast_parameters(bound, parameters)?.into_owned();
                self.cancel.store(false, Ordering::Relaxed);
                let running = self.begin_stream(plan, parameters).await?;
                Ok(RowStream::running(&self.engine, plan.fields(), running, started))
            }
            _ => {
                let mut result = self.run_bound(bound, point, parameters).await?;
                result.statistics.elapsed_us = (self.now_ns() - started) / 1_000;
                Ok(RowStream::ready(&self.engine, result))
            }
        }
    }

    async fn begin_stream(&mut self, plan: &Plan, parameters: Vec<Value>) -> Result<Running> {
        let mut settings = OwnSettings {
            parameters,
            statistics: Statistics::default(),
            memory: Memory::new(self.memory_limit),
            now_us: self.engine.host.clock.wall_us(),
            threads: self.threads,
            tables: Vec::new(),
        };
        let cancel = &self.cancel;
        let cancelled = || cancel.load(Ordering::Relaxed);
        let (operator, transaction) = match &self.transaction {
            None => {
                let transaction = self.engine.store.begin()?;
                settings.tables = tables_of(plan, &transaction)?;
                (build(plan, &settings.context(&transaction, &cancelled))?, transaction)
            }
            Some(open) if !open.has_writes() => {
                let transaction = if plant::is(Bug::StreamNow) {
                    self.engine.store.begin()?
                } else {
                    open.reader()
                };
                settings.tables = tables_of(plan, &transaction)?;
                (build(plan, &settings.context(&transaction, &cancelled))?, transaction)
            }
            Some(open) => {
                (build_collected(plan, &settings.context(open, &cancelled))?, open.reader())
            }
        };
        Ok(Running::new(operator, settings, transaction))
    }
}
