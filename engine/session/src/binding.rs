//! A statement bound for parameters of certain types under a certain state of the catalog.

use crate::catalog::StoreCatalog;
use crate::engine::Engine;
use crate::parameters::cast_parameters;
use crate::point::{Point, recognise};
use nacre_sql::{Bound, Given, Parsed, Statement};
use nacre_types::plant::{self, Bug};
use nacre_types::{DataType, Result, Timestamp, Value};
use std::borrow::Cow;

/// A bound statement, and the short way to its rows when it is a point statement.
pub(crate) struct Binding {
    bound: Bound,
    point: Option<Point>,
    /// What was known of the parameters.
    given: Vec<Given>,
    catalog_version: u64,
    /// The catalog was seen as it was at this timestamp.
    at: Timestamp,
}

impl Binding {
    /// Binds a statement for these parameters under the catalog as it was at a timestamp.
    pub fn new(
        parsed: &Parsed,
        parameters: &[Value],
        engine: &Engine,
        at: Timestamp,
    ) -> Result<Binding> {
        let (store, catalog_version) = (&**engine.store(), engine.catalog_version());
        let given: Vec<Given> = parameters.iter().map(Given::of).collect();
        let bound = nacre_sql::bind(parsed, &StoreCatalog { store, at }, &given)?;
        let point = recognise(&bound.statement, store, at);
        Ok(Binding { bound, point, given, catalog_version, at })
    }

    /// Whether the binding still holds for these parameters and a session that sees the catalog as it was at `sees`.
    pub fn is_current(&self, parameters: &[Value], engine: &Engine, sees: Timestamp) -> bool {
        // No change of the catalog lies between what the binding saw and what the session sees.
        let same_catalog = (engine.store().last_ddl() <= self.at.min(sees) || self.at == sees)
            && self.catalog_version == engine.catalog_version();
        (same_catalog || plant::is(Bug::PreparedStale))
            && self.given.len() == parameters.len()
            && self.given.iter().zip(parameters).all(|(known, value)| *known == Given::of(value))
    }

    pub fn statement(&self) -> &Statement {
        &self.bound.statement
    }

    pub fn point(&self) -> Option<&Point> {
        self.point.as_ref()
    }

    pub fn bound_at(&self) -> Timestamp {
        self.at
    }

    /// Types of the parameters, as far as they follow from the statement.
    pub fn parameter_types(&self) -> &[DataType] {
        &self.bound.parameters
    }

    /// Gives each parameter the type it was bound as.
    ///
    /// Errors: `type` when their number differs, or a value has no such form.
    pub fn cast<'p>(&self, parameters: &'p [Value]) -> Result<Cow<'p, [Value]>> {
        cast_parameters(&self.bound.parameters, parameters)
    }
}
