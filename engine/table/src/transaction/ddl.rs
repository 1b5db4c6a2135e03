//! Changes of the catalog by a transaction, which others see once it has committed.

use crate::catalog::indexes::without;
use crate::catalog::tables::completed;
use crate::table::version::Table;
use crate::transaction::catalog_changes::{CatalogChange, Named};
use crate::transaction::core::Core;
use nacre_types::{Error, IndexSchema, Result, TableId, TableSchema, ViewSchema};
use std::sync::Arc;

/// What a name stands for, as the transaction sees it. Temporary tables hide others.
fn named(core: &Core, name: &str) -> Named {
    match named_temporary(core, name) {
        Named::Nothing => named_for_all(core, name),
        own => own,
    }
}

/// What a name stands for among the temporary tables.
fn named_temporary(core: &Core, name: &str) -> Named {
    let own = core.writes().catalog().named(name, true);
    own.unwrap_or_else(|| core.temporary().table(name).map_or(Named::Nothing, Named::Table))
}

/// What a name stands for among tables and views that are not temporary.
fn named_for_all(core: &Core, name: &str) -> Named {
    if let Some(own) = core.writes().catalog().named(name, false) {
        return own;
    }
    let (catalog, at) = (core.manager().catalog(), core.at());
    match (catalog.table_at(name, at), catalog.view_at(name, at)) {
        (Some(table), _) => Named::Table(table),
        (None, Some(view)) => Named::View(view),
        (None, None) => Named::Nothing,
    }
}

/// A table by name.
pub(super) fn table(core: &Core, name: &str) -> Option<Arc<Table>> {
    match named(core, name) {
        Named::Table(table) => {
            debug_assert!(
                table.schema().name.eq_ignore_ascii_case(name),
                "the name {name} stands for table {}",
                table.schema().name
            );
            Some(table)
        }
        Named::View(_) | Named::Nothing => None,
    }
}

/// A view by name.
pub(super) fn view(core: &Core, name: &str) -> Option<Arc<ViewSchema>> {
    match named(core, name) {
        Named::View(view) => {
            debug_assert!(
                view.name.eq_ignore_ascii_case(name),
                "the name {name} stands for view {}",
                view.name
            );
            Some(view)
        }
        Named::Table(_) | Named::Nothing => None,
    }
}

/// A table by id.
pub(super) fn table_by_id(core: &Core, id: TableId) -> Option<Arc<Table>> {
    let found = match core.writes().catalog().table_by_id(id) {
        Some(own) => own.cloned(),
        None => core
            .temporary()
            .table_by_id(id)
            .or_else(|| core.manager().catalog().table_by_id_at(id, core.at())),
    };
    debug_assert!(
        found.as_ref().is_none_or(|table| table.id() == id),
        "the id {id} stands for a table of another id"
    );
    found
}

/// The table with this schema. `not_found` if it does not exist, `conflict` if its columns, indexes
/// or name are different.
pub(super) fn table_of(core: &Core, schema: &TableSchema) -> Result<Arc<Table>> {
    let Some(table) = table_by_id(core, schema.id) else {
        return Err(Error::not_found(format!("table {}", schema.name)).with_sqlstate("42P01"));
    };
    // A version of this transaction's cannot be committed once that which it was made from is replaced.
    if let Some(found) = core.writes().catalog().found(schema.id) {
        found.check_newest()?;
    }
    match table.is_of(schema) {
        true => Ok(table),
        false => Err(table.superseded()),
    }
}

/// The names of all tables, in order.
pub(super) fn table_names(core: &Core) -> Vec<String> {
    let mut names = core.manager().catalog().table_names_at(core.at());
    core.writes().catalog().rename_tables(&mut names, false);
    let mut temporary = core.temporary().names();
    core.writes().catalog().rename_tables(&mut temporary, true);
    names.extend(temporary);
    names.sort_unstable();
    names.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
    names
}

/// All views, by name.
pub(super) fn views(core: &Core) -> Vec<Arc<ViewSchema>> {
    let mut views = core.manager().catalog().views_at(core.at());
    core.writes().catalog().change_views(&mut views);
    views
}

/// Fails if a name is taken, among temporary tables or among all others.
fn check_free(core: &Core, name: &str, temporary: bool) -> Result<()> {
    let known = match temporary {
        true => named_temporary(core, name),
        false => named_for_all(core, name),
    };
    let kind = match known {
        Named::Nothing => return Ok(()),
        Named::Table(_) => "table",
        Named::View(_) => "view",
    };
    Err(Error::already_exists(format!("{kind} {name} already exists")).with_sqlstate("42P07"))
}

/// Creates an empty table with a new id. `replace` drops a table that has the name.
pub(super) fn create_table(
    core: &mut Core,
    schema: TableSchema,
    replace: bool,
) -> Result<Arc<Table>> {
    let known = match schema.is_temporary() {
        true => named_temporary(core, &schema.name),
        false => named_for_all(core, &schema.name),
    };
    if let (true, Named::Table(old)) = (replace, known) {
        drop_table(core, &old)?;
    }
    check_free(core, &schema.name, schema.is_temporary())?;
    let table = core.manager().catalog().new_uncommitted(schema)?;
    debug_assert!(
        table.created() == 0 && table.since() == 0,
        "table {} is of a commit before there is one",
        table.schema().name
    );
    core.writes_mut().change_catalog(CatalogChange::CreateTable(table.clone()));
    Ok(table)
}

/// Drops a table.
pub(super) fn drop_table(core: &mut Core, table: &Arc<Table>) -> Result<()> {
    check_changeable(core, table)?;
    core.writes_mut().change_catalog(CatalogChange::DropTable(table.clone()));
    Ok(())
}

/// Creates a view. `replace` allows it to replace another.
pub(super) fn create_view(core: &mut Core, view: ViewSchema, replace: bool) -> Result<()> {
    core.commits().check_writable()?;
    let replaced = match named_for_all(core, &view.name) {
        Named::View(known) if replace => Some(known),
        _ => None,
    };
    if replaced.is_none() {
        check_free(core, &view.name, false)?;
    }
    debug_assert!(!view.statement.is_empty(), "view {} has no statement", view.name);
    let view = Arc::new(view);
    core.writes_mut().change_catalog(CatalogChange::CreateView { view, replaced });
    Ok(())
}

/// Drops a view by name.
pub(super) fn drop_view(core: &mut Core, name: &str) -> Result<()> {
    core.commits().check_writable()?;
    let Some(view) = view(core, name) else {
        return Err(Error::not_found(format!("no view `{name}`")).with_sqlstate("42P01"));
    };
    core.writes_mut().change_catalog(CatalogChange::DropView(view));
    Ok(())
}

/// Removes all rows of a table.
pub(super) fn truncate(core: &mut Core, table: &Arc<Table>) -> Result<()> {
    check_changeable(core, table)?;
    let new = Arc::new(Table::emptied(table, table.since()));
    debug_assert!(
        new.row_count_estimate() == 0,
        "table {} has rows after it was truncated",
        new.schema().name
    );
    core.manager().catalog().compile_rules(&new);
    core.manager().catalog().enlist_uncommitted(&new);
    core.writes_mut().change_catalog(CatalogChange::Truncate { old: table.clone(), new });
    Ok(())
}

/// Fails with a `conflict` if another transaction has changed a table.
fn check_changeable(core: &Core, table: &Arc<Table>) -> Result<()> {
    core.commits().check_writable()?;
    core.writes().catalog().found(table.id()).unwrap_or(table).check_newest()
}

/// Changes the schema of a table.
pub(super) fn alter(
    core: &mut Core,
    table: &Arc<Table>,
    changed: TableSchema,
) -> Result<Arc<Table>> {
    check_changeable(core, table)?;
    if !changed.name.eq_ignore_ascii_case(&table.schema().name) {
        check_free(core, &changed.name, table.is_temporary())?;
    }
    let changed = completed(changed, table)?;
    let new = Arc::new(Table::altered(table, changed, table.since()));
    debug_assert!(
        new.previous().is_none() && new.is_newest(),
        "table {} is in the catalog and altered as an own one",
        new.schema().name
    );
    core.manager().catalog().compile_rules(&new);
    let verified = core.verify(table, &new)?;
    // Others may have changed it meanwhile, or emptied it, so that none of its rows was there to verify.
    check_changeable(core, table)?;
    let change = CatalogChange::AlterTable { old: table.clone(), new: new.clone(), verified };
    core.writes_mut().change_catalog(change);
    Ok(new)
}

/// Creates an index of a table.
pub(super) fn create_index(
    core: &mut Core,
    table: &Arc<Table>,
    mut index: IndexSchema,
) -> Result<Arc<Table>> {
    let mut changed: TableSchema = (**table.schema()).clone();
    index.id = changed.take_index_id();
    debug_assert!(!table.has_index(index.id), "the id of index {} is taken", index.name);
    changed.indexes.push(index);
    alter(core, table, changed)
}

/// Drops an index of a table.
pub(super) fn drop_index(core: &mut Core, table: &Arc<Table>, name: &str) -> Result<Arc<Table>> {
    alter(core, table, without(table.schema(), name)?)
}
