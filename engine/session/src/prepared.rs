//! Prepared statements: parsed once, and bound again if parameter types or the catalog change.

use crate::binding::Binding;
use crate::catalog::StoreCatalog;
use crate::changes;
use crate::engine::Engine;
use crate::parameters::named_parameters;
use nacre_sql::{Field, Parsed, Statement};
use nacre_types::{DataType, Error, Result, TableId, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A statement parsed and bound once. Cheap to clone; clones share the binding.
#[derive(Clone)]
pub struct PreparedStatement(Arc<Shared>);

struct Shared {
    parsed: Parsed,
    /// Whether it was a point read when prepared. Other parameter types may change that.
    was_point_read: bool,
    binding: Mutex<Arc<Binding>>,
    /// How often it was bound again.
    rebindings: AtomicU64,
}

impl PreparedStatement {
    /// Parses and binds a text of exactly one statement.
    pub(crate) fn new(
        sql: &str,
        engine: &Engine,
        catalog: StoreCatalog<'_>,
    ) -> Result<PreparedStatement> {
        let mut statements = nacre_sql::parse(sql)?;
        let parsed = match (statements.pop(), statements.is_empty()) {
            (Some(parsed), true) => parsed,
            _ => return Err(Error::syntax("prepare takes exactly one statement")),
        };
        let binding = Binding::new(&parsed, &[], engine, catalog)?;
        let was_point_read = binding.point().is_some_and(|point| point.reads_one_row());
        let binding = Mutex::new(Arc::new(binding));
        let rebindings = AtomicU64::new(0);
        Ok(PreparedStatement(Arc::new(Shared { parsed, was_point_read, binding, rebindings })))
    }

    fn binding(&self) -> Arc<Binding> {
        self.0.binding.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Columns of the result; empty if it returns no rows.
    pub fn columns(&self) -> Vec<Field> {
        match self.binding().statement() {
            Statement::Rows(statement) => statement.describe().output.fields(),
            Statement::Catalog(_) | Statement::Control(_) => Vec::new(),
        }
    }

    /// How often it was bound again since it was prepared. As long as this stays, so do its columns.
    pub fn rebindings(&self) -> u64 {
        self.0.rebindings.load(Ordering::Relaxed)
    }

    /// Whether it reads or writes rows.
    pub(crate) fn is_of_rows(&self) -> bool {
        matches!(self.binding().statement(), Statement::Rows(_))
    }

    /// Types of the parameters, as far as the statement determines them.
    pub fn parameters(&self) -> Vec<DataType> {
        self.binding().parameter_types().to_vec()
    }

    /// Names of the parameters: `None` for `?` and `$n`.
    pub fn parameter_names(&self) -> Vec<Option<String>> {
        self.0.parsed.parameter_names().to_vec()
    }

    /// Orders parameters given by name (`:name`, given without the colon) by position.
    pub fn named(&self, parameters: &[(String, Value)]) -> Result<Vec<Value>> {
        named_parameters(&self.0.parsed, parameters)
    }

    /// The tables that a query reads, as it was bound last; `unsupported` for any other statement.
    pub fn tables(&self) -> Result<Vec<TableId>> {
        changes::read(self.binding().statement())
    }

    /// Whether it reads at most one row, by a key.
    pub fn is_point_read(&self) -> bool {
        self.binding().point().is_some_and(|point| point.reads_one_row())
    }

    pub(crate) fn was_point_read(&self) -> bool {
        self.0.was_point_read
    }

    /// The statement bound for these parameters against the catalog that the session sees.
    pub(crate) fn current(
        &self,
        parameters: &[Value],
        engine: &Engine,
        catalog: StoreCatalog<'_>,
    ) -> Result<Arc<Binding>> {
        let binding = self.binding();
        if binding.is_current(parameters, engine, catalog) {
            return Ok(binding);
        }
        self.rebound(parameters, engine, catalog)
    }

    /// Binds the statement again.
    pub(crate) fn rebound(
        &self,
        parameters: &[Value],
        engine: &Engine,
        catalog: StoreCatalog<'_>,
    ) -> Result<Arc<Binding>> {
        let binding = Arc::new(Binding::new(&self.0.parsed, parameters, engine, catalog)?);
        *self.0.binding.lock().unwrap_or_else(PoisonError::into_inner) = binding.clone();
        self.0.rebindings.fetch_add(1, Ordering::Relaxed);
        Ok(binding)
    }
}
