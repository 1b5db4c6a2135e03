//! Binder: turns syntax trees into typed plans in one pass. Every expression leaves here with a
//! type, every cast is explicit, every name is a position.
//!
//! Invariants: recursion is bounded by [`limits::Limits`]; nothing here reads data; errors that
//! depend on data (overflow, length) are left to run time.

mod binder;
mod catalog;
mod created;
mod environment;
pub(crate) mod expression;
mod given;
mod limits;
mod names;
mod placeholder;
mod query;
mod rule;
mod scope;
mod statement;

pub use created::{created_name, type_named};
pub use given::Given;
pub(crate) use rule::key_of;
pub use rule::{Computed, TableRules, table_rules};

use crate::parse::Parsed;
use crate::plan::{Catalog, Statement};
use binder::Binder;
use nacre_types::{DataType, Result};

pub(crate) fn bind_statement(
    parsed: &Parsed,
    catalog: &dyn Catalog,
    given: &[Given],
) -> Result<(Statement, Vec<DataType>)> {
    let mut binder = Binder::new(catalog, given, parsed.parameter_names().len(), parsed.text());
    binder.literal_rows = parsed.literal_rows();
    let statement = match parsed.named_statement() {
        Some((name, sql)) => statement::prepared::prepare(name, sql),
        None => binder.statement(parsed.statement()?)?,
    };
    let statement = crate::unnest::statement(statement, &mut binder.numbers, binder.is_volatile)?;
    let mut parameters = binder.parameters;
    for (at, t) in parameters.iter_mut().enumerate() {
        if *t == DataType::Null {
            *t = given
                .get(at)
                .map(|g| g.natural)
                .filter(|t| *t != DataType::Null)
                .unwrap_or(DataType::TEXT);
        }
    }
    Ok((statement, parameters))
}
