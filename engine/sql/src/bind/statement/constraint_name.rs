//! Names of constraints.

use crate::parse::position;
use nacre_types::{Error, Result, TableSchema};
use sqlparser::ast;

/// Returns the name of a constraint, which must be free, or otherwise a free one like `base`.
pub(super) fn free_name(
    schema: &TableSchema,
    given: Option<&ast::Ident>,
    base: impl FnOnce() -> String,
) -> Result<String> {
    let is_taken = |name: &str| {
        schema.check_by_name(name).is_some()
            || schema.index_by_name(name).is_some()
            || schema.foreign_key(name).is_some()
    };
    match given {
        Some(name) if is_taken(&name.value) => Err(Error::already_exists(format!(
            "constraint {} of table {} already exists",
            name.value, schema.name
        ))
        .with_sqlstate("42710")
        .at(position(name.span.start))),
        Some(name) => Ok(name.value.clone()),
        None => {
            let base = base();
            let numbered = (1..).map(|number| format!("{base}{number}"));
            let mut names = std::iter::once(base.clone()).chain(numbered);
            Ok(names.find(|name| !is_taken(name)).unwrap_or(base))
        }
    }
}
