/**
 * What a new statement takes: its variant, its description, its syntax and what runs it. The dummy
 * is `DROP TABLE t PURGE`, which the parser reads and the engine does not tell from `DROP TABLE`.
 * A statement whose first word is new also takes a line in `engine/sql/src/parse/statement.rs`.
 */
export default {
  check: ['nacre-sql', 'nacre-session'],
  places: [
    {
      edit: 'engine/sql/src/statement/catalog.rs',
      before: '/// `CREATE VIEW`.',
      insert: `    /// \`DROP TABLE … PURGE\`: a dummy.
    Dummy {
        /// The table as it was when the statement was bound.
        table: Arc<TableSchema>,
    },`,
    },
    {
      edit: 'engine/sql/src/statement/catalog.rs',
      before: 'CatalogStatement::CreateView { view, .. } => {',
      insert: `            CatalogStatement::Dummy { table } => {
                ("DROP TABLE", WhenBound, vec![format!("Purge {}", table.name)])
            }`,
    },
    {
      edit: 'engine/sql/src/bind/statement/dispatch.rs',
      before: 'S::CreateTable(create) => self.create_table(create),',
      insert: `            S::Drop { object_type: ast::ObjectType::Table, names, purge: true, .. }
                if names.len() == 1 =>
            {
                Ok(CatalogStatement::Dummy { table: self.table(&names[0])? }.into())
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
