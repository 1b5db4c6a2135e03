//! Dispatches a statement to the code that binds it.

use crate::bind::binder::Binder;
use crate::bind::names::{table_name, unsupported};
use crate::bind::statement::prepared::deallocate;
use crate::plan::{CatalogStatement, ControlStatement, RowStatement, Statement};
use nacre_types::{Error, Result};
use sqlparser::ast;

impl<'a> Binder<'a> {
    pub(crate) fn statement(&mut self, statement: &'a ast::Statement) -> Result<Statement> {
        use ast::Statement as S;
        match statement {
            S::Query(query) if !query.locks.is_empty() => self.locking_query(query),
            S::Query(query) if is_write(&query.body) => self.write_with(query),
            S::Query(query) => Ok(Statement::query(self.query(query)?)),
            S::Drop { purge: true, .. } => Err(unsupported("PURGE")),
            S::Insert(insert) => self.insert(insert),
            S::Update(update) => self.update(update),
            S::Delete(delete) => self.delete(delete),
            S::Merge(merge) => self.merge(merge),
            S::CreateTable(create) => self.create_table(create),
            S::Drop {
                object_type: ast::ObjectType::Table,
                if_exists,
                names,
                temporary: false,
                cascade,
                ..
            } => {
                if !if_exists {
                    names.iter().try_for_each(|name| self.table(name).map(|_| ()))?;
                }
                let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
                let names = names.into_iter().map(|n| n.0).collect();
                let (if_exists, cascade) = (*if_exists, *cascade);
                Ok(CatalogStatement::DropTable { names, if_exists, cascade }.into())
            }
            S::CreateView(create) => self.create_view(create),
            S::Drop {
                object_type: ast::ObjectType::View,
                if_exists,
                names,
                temporary: false,
                ..
            } => {
                let names =
                    names.iter().map(|n| Ok(table_name(n)?.0)).collect::<Result<Vec<_>>>()?;
                Ok(CatalogStatement::DropView { names, if_exists: *if_exists }.into())
            }
            S::CreateIndex(create) => self.create_index(create),
            S::Drop { object_type: ast::ObjectType::Index, if_exists, names, table, .. } => {
                self.drop_indexes(names, table.as_ref(), *if_exists)
            }
            S::AlterTable(alter) => self.alter_table(alter),
            S::Truncate(truncate) => self.truncate(truncate),
            S::StartTransaction { modes, .. } => {
                modes.iter().try_for_each(transaction_mode)?;
                Ok(ControlStatement::Begin.into())
            }
            S::Commit { chain: false, .. } => Ok(ControlStatement::Commit.into()),
            S::Rollback { chain: false, savepoint: None } => Ok(ControlStatement::Rollback.into()),
            S::Rollback { chain: false, savepoint: Some(name) } => {
                Ok(ControlStatement::RollbackTo(name.value.clone()).into())
            }
            S::Savepoint { name } => Ok(ControlStatement::Savepoint(name.value.clone()).into()),
            S::ReleaseSavepoint { name } => {
                Ok(ControlStatement::Release(name.value.clone()).into())
            }
            S::Set(set) => self.set_option(set),
            S::LockTables { .. } | S::UnlockTables => Ok(ControlStatement::Nothing.into()),
            S::Pragma { name, value, is_eq } => self.pragma(name, value.as_ref(), *is_eq),
            S::Execute { name, parameters, .. } => self.execute(name.as_ref(), parameters),
            S::Deallocate { name, .. } => Ok(deallocate(name)),
            S::Explain { statement, analyze, .. } => {
                use RowStatement::{Lock, Query, Returning, Write};
                match self.nested(|b| b.statement(statement))? {
                    inner if !analyze => Ok(RowStatement::Explain(Box::new(inner)).into()),
                    Statement::Rows(
                        inner @ (Query(_) | Lock { .. } | Write(_) | Returning { .. }),
                    ) => Ok(RowStatement::Profile(Box::new(inner)).into()),
                    _ => Err(unsupported(
                        "PROFILE of a statement that neither reads nor writes rows",
                    )),
                }
            }
            S::OptimizeTable { name, on_cluster, predicate, zorder: Some(columns), .. } => {
                self.warm_up(name, on_cluster.as_ref(), columns, predicate.as_ref())
            }
            S::OptimizeTable { name, include_final, .. } => {
                let (table, full) = (self.table(name)?, *include_final);
                Ok(CatalogStatement::Optimize { table, full }.into())
            }
            S::ShowTables {
                terse: false,
                history: false,
                extended: false,
                external: false,
                show_options,
                full,
            } => self.show_tables(show_options, *full),
            S::ShowColumns { extended: false, full: false, show_options } => {
                self.show_columns(show_options)
            }
            S::ExplainTable { table_name, .. } => self.describe(table_name),
            S::ShowCreate { obj_type: ast::ShowCreateObject::Table, obj_name } => {
                self.show_create_table(obj_name)
            }
            S::ShowCreate { obj_type: ast::ShowCreateObject::View, obj_name } => {
                self.show_create_view(obj_name)
            }
            S::ShowViews { terse: false, materialized: false, show_options } => {
                self.show_views(show_options)
            }
            S::ShowDatabases { terse: false, history: false, show_options }
            | S::ShowSchemas { terse: false, history: false, show_options } => {
                self.show_schemas(show_options)
            }
            S::ShowFunctions { filter } => self.show_functions(filter.as_ref()),
            S::WaitFor(ast::WaitForStatement { expr: ast::Expr::Tuple(values), .. }) => {
                self.wait_for(values)
            }
            S::ShowVariable { variable } => self.show_words(variable),
            _ => Err(unsupported(statement_name(statement))),
        }
    }

    /// Binds `WITH … INSERT`, `UPDATE`, `DELETE` or `MERGE`.
    fn write_with(&mut self, query: &'a ast::Query) -> Result<Statement> {
        use ast::SetExpr::{Delete, Insert, Merge, Update};
        let (Insert(statement) | Update(statement) | Delete(statement) | Merge(statement)) =
            query.body.as_ref()
        else {
            return Err(unsupported("a data-modifying statement as a query"));
        };
        self.with(query.with.as_ref(), |b| b.nested(|b| b.statement(statement)))
    }
}

fn is_write(body: &ast::SetExpr) -> bool {
    use ast::SetExpr::{Delete, Insert, Merge, Update};
    matches!(body, Insert(_) | Update(_) | Delete(_) | Merge(_))
}

/// Returns the name of a statement that parses but is not supported.
#[cold]
fn statement_name(statement: &ast::Statement) -> &'static str {
    use ast::Statement as S;
    match statement {
        S::Drop { .. } => "this DROP",
        S::Commit { .. } => "COMMIT AND CHAIN",
        S::Rollback { .. } => "ROLLBACK AND CHAIN",
        S::ShowTables { .. }
        | S::ShowColumns { .. }
        | S::ShowViews { .. }
        | S::ShowDatabases { .. }
        | S::ShowSchemas { .. } => "a word of this SHOW",
        S::ShowVariable { .. } | S::ShowVariables { .. } => "SHOW of a variable",
        _ => "this statement",
    }
}

/// Checks a transaction mode. Transactions read and write under snapshot isolation; other modes are
/// unsupported.
fn transaction_mode(mode: &ast::TransactionMode) -> Result<()> {
    use ast::{
        TransactionAccessMode as Access, TransactionIsolationLevel as Level,
        TransactionMode as Mode,
    };
    match mode {
        Mode::AccessMode(Access::ReadWrite) => Ok(()),
        Mode::IsolationLevel(
            Level::ReadUncommitted | Level::ReadCommitted | Level::RepeatableRead | Level::Snapshot,
        ) => Ok(()),
        other => Err(Error::unsupported(format!("transaction mode {other} is not supported"))),
    }
}
