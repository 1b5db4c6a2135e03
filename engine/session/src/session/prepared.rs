//! PreparedStatement statements: parsed once, bound again when their parameters have other types or the catalog has changed,
//! and the short way to the row that a prepared point read finds.

use super::parameters::{cast_parameters, named_parameters};
use super::{Connection, Work};
use crate::point::{Outcome, Point};
use crate::result::StatementResult;
use crate::statement;
use nacre_sql::{Bound, Field, Given, Parsed, Statement};
use nacre_table::Transaction;
use nacre_types::plant::{self, Bug};
use nacre_types::{DataType, Error, Result, Timestamp, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// A statement parsed and bound once. Cheap to clone.
#[derive(Clone)]
pub struct PreparedStatement(Arc<PreparedInner>);

struct PreparedInner {
    parsed: Parsed,
    /// Whether it was a point read when it was prepared. Values of other types may make it something else.
    point_read: bool,
    binding: Mutex<Arc<Binding>>,
}

/// A statement bound for parameters of certain types under a certain catalog.
pub(super) struct Binding {
    pub bound: Bound,
    pub columns: Vec<Field>,
    given: Vec<Given>,
    catalog_version: u64,
    /// The catalog was seen as it was at this timestamp.
    pub at: Timestamp,
    /// Set when the statement is a point statement.
    pub point: Option<Point>,
}

impl PreparedStatement {
    fn binding(&self) -> Arc<Binding> {
        self.0.binding.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Columns of its result; empty when it is not a query.
    pub fn columns(&self) -> Vec<Field> {
        self.binding().columns.clone()
    }

    /// Types of its parameters, as far as they follow from the statement.
    pub fn parameters(&self) -> Vec<DataType> {
        self.binding().bound.parameters.clone()
    }

    /// Names of its parameters: `None` for `?` and `$n`.
    pub fn parameter_names(&self) -> Vec<Option<String>> {
        self.0.parsed.parameter_names().to_vec()
    }

    /// Parameters given by name (`:name`; without the colon), in its order.
    pub fn named(&self, parameters: &[(String, Value)]) -> Result<Vec<Value>> {
        named_parameters(&self.0.parsed, parameters)
    }
}

fn not_a_point_read() -> Error {
    Error::unsupported("get on a statement that is not a read of one row by a unique key")
}

impl Connection {
    fn bind_prepared(&self, parsed: &Parsed, given: Vec<Given>) -> Result<Arc<Binding>> {
        let catalog_version = self.engine.catalog_version();
        let (bound, at) = self.bind(parsed, &given)?;
        let columns = statement::columns(&bound.statement);
        let point = Point::recognise(&bound.statement, &self.engine.store, at);
        Ok(Arc::new(Binding { bound, columns, given, catalog_version, at, point }))
    }

    /// Parses and binds one statement for repeated use.
    pub fn prepare(&mut self, sql: &str) -> Result<PreparedStatement> {
        let mut statements = nacre_sql::parse(sql)?;
        let parsed = match (statements.pop(), statements.is_empty()) {
            (Some(parsed), true) => parsed,
            _ => return Err(Error::syntax("prepare takes exactly one statement")),
        };
        let binding = self.bind_prepared(&parsed, Vec::new())?;
        let point_read = binding.point.as_ref().is_some_and(Point::reads);
        Ok(PreparedStatement(Arc::new(PreparedInner {
            parsed,
            point_read,
            binding: Mutex::new(binding),
        })))
    }

    /// Runs a prepared statement.
    pub async fn run(
        &mut self,
        prepared: &PreparedStatement,
        parameters: &[Value],
    ) -> Result<StatementResult> {
        let started = self.now_ns();
        let mut again = self.rebinding();
        let mut binding = self.current_binding(prepared, parameters)?;
        let mut result = loop {
            match self.run_bound(&binding.bound, binding.point.as_ref(), parameters).await {
                Err(error)
                    if self.should_bind_again(&error, &binding.bound, binding.at, &mut again) => {}
                other => break other?,
            }
            binding = self.new_binding(prepared, parameters)?;
        };
        result.statistics.elapsed_us = (self.now_ns() - started) / 1_000;
        Ok(result)
    }

    /// The row that a prepared point read finds: `select columns from t where key = ?` over the whole primary key, or
    /// a whole unique key. The shortest way to a row: nothing waits.
    ///
    /// Errors: `unsupported` for any other statement; those take [`Connection::run`].
    pub fn get(
        &mut self,
        prepared: &PreparedStatement,
        parameters: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        let mut binding = self.current_binding(prepared, parameters)?;
        let mut again = self.rebinding();
        loop {
            let cast = cast_parameters(&binding.bound, parameters)?;
            let found = match self.point_read(&binding, &cast) {
                Ok(None) if prepared.0.point_read => {
                    self.general_read(&binding.bound.statement, &cast).map(Some)
                }
                other => other,
            };
            match found {
                Err(error)
                    if self.should_bind_again(&error, &binding.bound, binding.at, &mut again) => {}
                other => return other?.ok_or_else(not_a_point_read),
            }
            binding = self.new_binding(prepared, parameters)?;
        }
    }

    /// A point read whose key is nothing that its column could hold, the general way. Readers wait for nobody.
    fn general_read(
        &mut self,
        statement: &Statement,
        parameters: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        let mut open = self.transaction.take();
        let mut own = if open.is_none() { Some(self.engine.store.begin()?) } else { None };
        let work = Work { statement, point: None };
        let result = match open.as_mut().or(own.as_mut()) {
            Some(transaction) => self.run_once(transaction, work, parameters, false),
            None => return Ok(None),
        };
        self.transaction = open;
        let result = result?;
        match result.rows() {
            0 => Ok(None),
            1 => Ok(Some(result.row(0))),
            // The table is another one by now.
            _ => Err(not_a_point_read()),
        }
    }

    /// Whether [`Connection::get`] can run it.
    pub fn is_point_read(prepared: &PreparedStatement) -> bool {
        prepared.binding().point.as_ref().is_some_and(Point::reads)
    }

    /// A point read in the open transaction, or of what is committed now. `None` when it is not one.
    fn point_read(
        &mut self,
        binding: &Binding,
        parameters: &[Value],
    ) -> Result<Option<Option<Vec<Value>>>> {
        let Some(point) = binding.point.as_ref().filter(|point| point.reads()) else {
            return Ok(None);
        };
        match &mut self.transaction {
            None => point.read_newest(&self.engine.store, parameters).map(Outcome::single),
            Some(transaction) => point.read(transaction, parameters),
        }
    }

    /// The statement bound for such parameters under the catalog that this session sees.
    pub(super) fn current_binding(
        &self,
        prepared: &PreparedStatement,
        parameters: &[Value],
    ) -> Result<Arc<Binding>> {
        let binding = prepared.binding();
        let last_ddl = self.engine.store.last_ddl();
        let sees = self
            .transaction
            .as_ref()
            .map_or_else(|| self.engine.store.visible(), Transaction::snapshot);
        // No change of the catalog lies between what the binding saw and what is seen now.
        let is_current = (last_ddl <= binding.at.min(sees) || binding.at == sees)
            && binding.catalog_version == self.engine.catalog_version();
        let fits = (is_current || plant::is(Bug::PreparedStale))
            && binding.given.len() == parameters.len()
            && binding.given.iter().zip(parameters).all(|(t, v)| *t == Given::of(v));
        if fits { Ok(binding) } else { self.new_binding(prepared, parameters) }
    }

    pub(super) fn new_binding(
        &self,
        prepared: &PreparedStatement,
        parameters: &[Value],
    ) -> Result<Arc<Binding>> {
        let given = parameters.iter().map(Given::of).collect();
        let binding = self.bind_prepared(&prepared.0.parsed, given)?;
        *prepared.0.binding.lock().unwrap_or_else(PoisonError::into_inner) = binding.clone();
        Ok(binding)
    }
}
