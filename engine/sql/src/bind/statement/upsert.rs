//! Inserts and their handling of duplicate keys, with the syntax of MySQL, SQLite and PostgreSQL.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::names::{place, unsupported};
use crate::bind::scope::Scope;
use crate::bind::statement::assignment::{column_position, table_fields};
use crate::parse::position;
use crate::plan::{OnDuplicateKey, Plan, Statement, WriteStatement};
use nacre_types::{Error, IndexId, Result, TableSchema};
use sqlparser::ast::{self, ConflictTarget, OnConflictAction, OnInsert, SqliteOnConflict};
use std::sync::Arc;

/// Name of the row to insert in expressions over the old and the new row.
pub(crate) const EXCLUDED: &str = "excluded";

impl<'a> Binder<'a> {
    /// Builds an insert of the rows of `source`, which yields all columns of the table.
    pub(crate) fn written(
        &mut self,
        insert: &'a ast::Insert,
        table: Arc<TableSchema>,
        source: Plan,
    ) -> Result<Statement> {
        let schema = table.clone();
        let write = self.insertion(insert, table, source)?;
        self.with_returning(write, insert.returning.as_ref(), &schema)
    }

    fn insertion(
        &mut self,
        insert: &'a ast::Insert,
        table: Arc<TableSchema>,
        source: Plan,
    ) -> Result<WriteStatement> {
        let alias = insert.table_alias.as_ref().map(|alias| alias.alias.value.as_str());
        let old_row = alias.unwrap_or(&table.name);
        let mut keys = unique_keys(&table).map(|(key, _)| key).collect();
        let on_duplicate = match (&insert.on, &insert.or) {
            (Some(OnInsert::DuplicateKeyUpdate(list)), _) => {
                let new_row = match &insert.insert_alias {
                    None => EXCLUDED.to_string(),
                    Some(alias) if alias.col_aliases.as_ref().is_none_or(Vec::is_empty) => {
                        crate::bind::names::table_name(&alias.row_alias)?.0
                    }
                    Some(_) => return Err(unsupported("a column alias of an inserted row")),
                };
                self.update_of_duplicate(&table, (old_row, &new_row), list, None)?
            }
            (Some(OnInsert::OnConflict(_)), _) if insert.insert_alias.is_some() => {
                return Err(unsupported("an alias of inserted rows with ON CONFLICT"));
            }
            (Some(OnInsert::OnConflict(clause)), _) => {
                if let Some(target) = &clause.conflict_target {
                    keys = vec![key_of_target(&table, target)?];
                }
                match &clause.action {
                    OnConflictAction::DoNothing => OnDuplicateKey::Ignore,
                    OnConflictAction::DoUpdate(update) => self.update_of_duplicate(
                        &table,
                        (old_row, EXCLUDED),
                        &update.assignments,
                        update.selection.as_ref(),
                    )?,
                }
            }
            (Some(_), _) => return Err(unsupported("this form of INSERT")),
            (None, Some(SqliteOnConflict::Ignore)) => OnDuplicateKey::Ignore,
            (None, Some(SqliteOnConflict::Replace)) => OnDuplicateKey::Replace,
            (None, Some(SqliteOnConflict::Abort)) => {
                return Ok(WriteStatement::Insert { table, source });
            }
            (None, Some(SqliteOnConflict::Fail)) => return Err(unsupported("INSERT OR FAIL")),
            (None, Some(SqliteOnConflict::Rollback)) => {
                return Err(unsupported("INSERT OR ROLLBACK"));
            }
            (None, None) if insert.ignore => OnDuplicateKey::Ignore,
            (None, None) if insert.replace_into => OnDuplicateKey::Replace,
            (None, None) => return Ok(WriteStatement::Insert { table, source }),
        };
        Ok(WriteStatement::Upsert { table, source, keys, on_duplicate })
    }

    fn update_of_duplicate(
        &mut self,
        table: &TableSchema,
        (old_row, new_row): (&str, &str),
        list: &'a [ast::Assignment],
        filter: Option<&'a ast::Expr>,
    ) -> Result<OnDuplicateKey> {
        let fields = table_fields(table);
        let mut scope = Scope::of(old_row, &fields);
        scope.qualified_from = Some(fields.len());
        scope.columns.extend(Scope::of(new_row, &fields).columns);
        let assignments = self.assignments(table, &scope, list)?;
        let filter = match filter {
            None => None,
            Some(ast) => {
                let mut env = Env::new(&scope, "WHERE");
                let bound = self.expr(ast, &mut env)?;
                Some(self.condition(bound, "WHERE").map_err(|e| e.at(place(ast)))?)
            }
        };
        if assignments
            .iter()
            .map(|(_, e)| e)
            .chain(&filter)
            .any(crate::analysis::subqueries::has_subquery)
        {
            return Err(unsupported("a subquery in the update of a duplicate"));
        }
        Ok(OnDuplicateKey::Update { assignments, filter })
    }
}

/// Returns the primary key (`None`) and then the unique indexes, with their columns.
fn unique_keys(table: &TableSchema) -> impl Iterator<Item = (Option<IndexId>, Vec<usize>)> {
    let primary = table.primary_key.iter().map(|key| (None, key.columns.clone()));
    let unique = table.indexes.iter().filter(|index| index.unique);
    primary.chain(unique.map(|index| (Some(index.id), table.key_positions(index))))
}

/// Resolves the columns or the constraint after `ON CONFLICT` to a unique key; `None` is the
/// primary key.
fn key_of_target(table: &TableSchema, target: &ConflictTarget) -> Result<Option<IndexId>> {
    let at = match target {
        ConflictTarget::OnConstraint(name) => {
            let (name, at) = crate::bind::names::table_name(name)?;
            if table.primary_key.as_ref().is_some_and(|key| key.name.eq_ignore_ascii_case(&name)) {
                return Ok(None);
            }
            if let Some(index) = table.index_by_name(&name).filter(|index| index.unique) {
                return Ok(Some(index.id));
            }
            at
        }
        ConflictTarget::Columns(columns) => {
            let mut wanted = Vec::with_capacity(columns.len());
            for ident in columns {
                wanted.push(column_position(table, &ast::ObjectName::from(vec![ident.clone()]))?.0);
            }
            wanted.sort_unstable();
            for (key, mut columns) in unique_keys(table) {
                columns.sort_unstable();
                if columns == wanted {
                    return Ok(key);
                }
            }
            columns.first().and_then(|ident| position(ident.span.start))
        }
    };
    let message = format!("ON CONFLICT matches no unique key of table {}", table.name);
    Err(Error::not_found(message).with_sqlstate("42P10").at(at))
}
