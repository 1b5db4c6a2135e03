//! A catalog without storage, for tests of syntax.

use nacre_sql::{Catalog, CatalogStatement, Statement, bind, parse};
use nacre_types::{Result, TableSchema, ViewSchema};
use std::sync::Arc;

/// Tables and views that statements have created.
#[derive(Default)]
pub struct Tables {
    tables: Vec<Arc<TableSchema>>,
    views: Vec<Arc<ViewSchema>>,
}

impl Tables {
    /// The catalog after some `CREATE TABLE` and `CREATE VIEW` statements.
    ///
    /// Errors: those of a statement that does not bind.
    pub fn of(statements: &[&str]) -> Result<Tables> {
        let mut catalog = Tables::default();
        for text in statements {
            for parsed in parse(text)? {
                match bind(&parsed, &catalog, &[])?.statement {
                    Statement::Catalog(CatalogStatement::CreateTable { schema, .. }) => {
                        catalog.tables.push(Arc::new(schema));
                    }
                    Statement::Catalog(CatalogStatement::CreateView { view, .. }) => {
                        catalog.views.push(Arc::new(view));
                    }
                    _ => {}
                }
            }
        }
        Ok(catalog)
    }
}

impl Catalog for Tables {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name)).cloned()
    }

    fn view(&self, name: &str) -> Option<Arc<ViewSchema>> {
        self.views.iter().find(|view| view.name.eq_ignore_ascii_case(name)).cloned()
    }

    fn view_names(&self) -> Vec<String> {
        self.views.iter().map(|view| view.name.clone()).collect()
    }

    fn table_names(&self) -> Vec<String> {
        self.tables.iter().map(|table| table.name.clone()).collect()
    }

    fn row_count(&self, _table: &TableSchema) -> u64 {
        1_000
    }
}
