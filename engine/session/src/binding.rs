//! A statement bound for parameters of certain types and a version of the catalog.

use crate::catalog::StoreCatalog;
use crate::engine::Engine;
use crate::parameters::cast_parameters;
use crate::point::{Point, recognise};
use nacre_host::waits;
use nacre_sql::{BoundStatement, Given, Parsed, Statement};
use nacre_types::plant::{self, Bug};
use nacre_types::{DataType, Result, Timestamp, Value};
use std::borrow::Cow;

/// A bound statement, with a point plan if it is a point statement.
pub(crate) struct Binding {
    bound: BoundStatement,
    point: Option<Point>,
    /// What was known about the parameters.
    given: Vec<Given>,
    catalog_version: u64,
    /// The snapshot timestamp of the catalog it was bound against.
    at: Timestamp,
    /// Whether that catalog had changes of an open transaction.
    is_private: bool,
}

/// A bound statement with the parameters of one execution.
pub(crate) struct Invocation<'a> {
    pub statement: &'a Statement,
    /// The direct way to its rows, if it is a point statement.
    pub point: Option<&'a Point>,
    /// Values of the types that the parameters were bound as.
    pub parameters: Cow<'a, [Value]>,
}

impl Binding {
    /// Binds a statement for these parameters against the catalog that a session sees.
    pub fn new(
        parsed: &Parsed,
        parameters: &[Value],
        engine: &Engine,
        catalog: StoreCatalog<'_>,
    ) -> Result<Binding> {
        let catalog_version = engine.catalog_version();
        let given: Vec<Given> = parameters.iter().map(Given::of).collect();
        let functions = &*engine.functions();
        // Estimates read footers.
        let host = engine.host();
        let bound = waits::waiting(&host.store, &host.parallelism, || {
            nacre_sql::bind(parsed, &catalog.with(functions), &given)
        })?;
        let point = recognise(&bound.statement, &catalog);
        let (at, is_private) = (catalog.at(), catalog.is_private());
        Ok(Binding { bound, point, given, catalog_version, at, is_private })
    }

    /// Whether the binding is still valid for these parameters and a session that sees this
    /// catalog.
    pub fn is_current(
        &self,
        parameters: &[Value],
        engine: &Engine,
        catalog: StoreCatalog<'_>,
    ) -> bool {
        let sees = catalog.at();
        // The catalog did not change between the binding's snapshot and the session's.
        let same_catalog = (engine.store().last_ddl() <= self.at.min(sees) || self.at == sees)
            && self.catalog_version == engine.catalog_version()
            && !self.is_private
            && !catalog.is_private();
        (same_catalog || plant::is(Bug::PreparedStale))
            && self.given.len() == parameters.len()
            && self.given.iter().zip(parameters).all(|(known, value)| *known == Given::of(value))
    }

    pub fn statement(&self) -> &Statement {
        &self.bound.statement
    }

    /// Whether it is a statement that ends or changes a transaction or a setting.
    pub fn is_control(&self) -> bool {
        matches!(self.bound.statement, Statement::Control(_))
    }

    pub fn point(&self) -> Option<&Point> {
        self.point.as_ref()
    }

    /// Whether it depends on changes of an open transaction.
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    pub fn bound_at(&self) -> Timestamp {
        self.at
    }

    /// Types of the parameters, as far as the statement determines them.
    pub fn parameter_types(&self) -> &[DataType] {
        &self.bound.parameters
    }

    /// Returns what one execution with these parameters runs.
    ///
    /// Errors: `type` if their number differs or a value cannot be cast.
    pub fn invocation<'a>(&'a self, parameters: &'a [Value]) -> Result<Invocation<'a>> {
        let parameters = cast_parameters(&self.bound.parameters, parameters)?;
        Ok(Invocation { statement: &self.bound.statement, point: self.point(), parameters })
    }
}
