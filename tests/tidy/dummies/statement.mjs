/**
 * What a new statement takes: its variant, its description, its syntax and what runs it. The dummy
 * is `ANALYZE TABLE t`, which the parser knows and the engine does not have.
 */
export default {
  check: ['nacre-sql', 'nacre-session'],
  places: [
    {
      edit: 'engine/sql/src/statement/catalog.rs',
      before: '/// `CREATE VIEW`.',
      insert: `    /// \`ANALYZE TABLE\`: a dummy.
    Dummy {
        /// The table as it was when the statement was bound.
        table: Arc<TableSchema>,
    },`,
    },
    {
      edit: 'engine/sql/src/statement/catalog.rs',
      before: 'CatalogStatement::CreateView { view, .. } => {',
      insert: `            CatalogStatement::Dummy { table } => {
                ("ANALYZE TABLE", WhenBound, vec![format!("Analyze {}", table.name)])
            }`,
    },
    {
      edit: 'engine/sql/src/bind/statement/dispatch.rs',
      before: 'S::Truncate(truncate) => self.truncate(truncate),',
      insert: `            S::Analyze(ast::Analyze { table_name: Some(name), columns, .. })
                if columns.is_empty() =>
            {
                Ok(CatalogStatement::Dummy { table: self.table(name)? }.into())
            }`,
      test: ['nacre-sql', 'every_statement_can_be_written'],
    },
    {
      edit: 'engine/session/src/catalog_change.rs',
      before: 'CatalogStatement::Optimize { table, full } => {',
      insert: `        CatalogStatement::Dummy { table } => {
            let target = bound_table(store, table)?;
            store.flush(&target)?;
            store.merge_all(&target)?;
        }`,
    },
  ],
};
