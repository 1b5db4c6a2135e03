//! `OPTIMIZE TABLE t WARM BLOB CACHE [FOR INDEX i | FOR COLUMN (a, b)] [WHERE …]`. It reads, so it is bound as a
//! query of one row.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::names::{place, unsupported};
use crate::bind::scope::Scope;
use crate::bind::statement::assignment::table_fields;
use crate::bind::statement::index::no_index;
use crate::expr::ExprKind;
use crate::parse::position;
use crate::plan::node::warm_up::{WarmPart, WarmUp};
use crate::plan::{Plan, Statement};
use nacre_types::{Result, TableSchema};
use sqlparser::ast;
use std::sync::Arc;

impl<'a> Binder<'a> {
    /// Binds the statement. `columns` are all if there are none.
    pub(crate) fn warm_up(
        &mut self,
        name: &'a ast::ObjectName,
        index: Option<&ast::Ident>,
        columns: &'a [ast::Expr],
        filter: Option<&'a ast::Expr>,
    ) -> Result<Statement> {
        debug_assert!(index.is_none() || columns.is_empty(), "an index and columns are warmed");
        let table = self.table(name)?;
        let scope = Scope::of(&table.name, &table_fields(&table));
        let part = match index {
            Some(index) => warm_index(&table, index)?,
            None if columns.is_empty() => WarmPart::Table,
            None => {
                let mut positions = Vec::with_capacity(columns.len());
                for column in columns {
                    let mut env = Env::new(&scope, "FOR COLUMN");
                    match self.expr(column, &mut env)?.kind {
                        ExprKind::Column(at) if !positions.contains(&at) => positions.push(at),
                        ExprKind::Column(_) => {}
                        _ => {
                            let error = unsupported("an expression in FOR COLUMN");
                            return Err(error.at(place(column)));
                        }
                    }
                }
                WarmPart::Columns(positions)
            }
        };
        let scan = Plan::scan(table.clone(), (0..table.columns.len()).collect());
        let input = self.filtered(scan, &scope, filter)?;
        let node = WarmUp { input, table, part, is_filtered: filter.is_some() };
        Ok(Statement::query(Plan::Node(Box::new(node))))
    }
}

fn warm_index(table: &Arc<TableSchema>, name: &ast::Ident) -> Result<WarmPart> {
    if let Some(index) = table.index_by_name(&name.value) {
        return Ok(WarmPart::Index(Some(index.id)));
    }
    let key = table.primary_key.as_ref();
    let is_key = |key: &nacre_types::KeyColumns| {
        key.name.eq_ignore_ascii_case(&name.value) || name.value.eq_ignore_ascii_case("primary")
    };
    if key.is_some_and(is_key) {
        return Ok(WarmPart::Index(None));
    }
    let names = table.declared_indexes().map(|index| index.name.as_str());
    Err(no_index(&name.value, names, position(name.span.start)))
}
