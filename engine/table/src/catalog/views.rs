//! `CREATE VIEW` and `DROP VIEW`. A view is a named query text, which this crate does not
//! interpret.

use crate::catalog::registry::Catalog;
use crate::record;
use nacre_types::{Result, ViewSchema};
use std::sync::Arc;

/// Creates a view. `replace` allows it to replace another.
pub(crate) fn create(catalog: &Catalog, view: ViewSchema, replace: bool) -> Result<()> {
    catalog.commits().check_writable()?;
    debug_assert!(!view.statement.is_empty(), "view {} has no statement", view.name);
    let mut payload = record::begin(0);
    record::create_view(&mut payload, &view);
    catalog.commit(payload, |contents, commit| contents.add_view(Arc::new(view), replace, commit))
}

/// Drops a view by name.
pub(crate) fn remove(catalog: &Catalog, name: &str) -> Result<()> {
    catalog.commits().check_writable()?;
    let mut payload = record::begin(0);
    record::drop_view(&mut payload, name);
    catalog.commit(payload, |contents, commit| contents.remove_view(name, commit))
}
