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

/// Drops views by name, or none of them. Duplicates are ignored.
pub(crate) fn remove_all(catalog: &Catalog, names: &[String]) -> Result<()> {
    catalog.commits().check_writable()?;
    let mut names: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    debug_assert!(names.is_sorted(), "views are dropped out of order");
    let mut payload = record::begin(0);
    names.iter().for_each(|name| record::drop_view(&mut payload, name));
    catalog.commit(payload, |contents, commit| {
        names.iter().try_for_each(|name| contents.check_view(name))?;
        names.iter().try_for_each(|name| contents.remove_view(name, commit))
    })
}
