//! Binds the statements of a text, or takes what was bound before.
//!
//! Only bindings of point statements are kept. They depend on the catalog alone, and on the types
//! of the parameters, which [`Binding::is_current`] compares. Any other plan also depends on
//! estimates, which change with every load, or has rows of `information_schema` in it.

use crate::binding::Binding;
use crate::catalog::StoreCatalog;
use crate::engine::Engine;
use crate::statement_cache::TextStatement;
use nacre_types::{Result, Value};
use std::sync::Arc;

/// The statement bound for these parameters against the catalog that the session sees.
pub(crate) fn current(
    statement: &TextStatement,
    parameters: &[Value],
    engine: &Engine,
    catalog: StoreCatalog<'_>,
) -> Result<Arc<Binding>> {
    let kept = statement.kept().and_then(|kept| kept.downcast::<Binding>().ok());
    match kept.filter(|binding| binding.is_current(parameters, engine, catalog)) {
        Some(binding) => Ok(binding),
        None => rebound(statement, parameters, engine, catalog),
    }
}

/// Binds the statement again.
pub(crate) fn rebound(
    statement: &TextStatement,
    parameters: &[Value],
    engine: &Engine,
    catalog: StoreCatalog<'_>,
) -> Result<Arc<Binding>> {
    let binding = Arc::new(Binding::new(statement.parsed(), parameters, engine, catalog)?);
    if binding.point().is_some() && !binding.is_private() {
        statement.keep(Some(binding.clone()));
    }
    Ok(binding)
}
