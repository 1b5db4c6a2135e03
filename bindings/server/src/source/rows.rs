//! Rows of text on their way into batches: the part that CSV, TBL and NDJSON share.

use crate::convert;
use nacredb::{Batch, Column, Error, Result, TableSchema, Value, Vector, VectorBuilder};
use std::path::Path;
use std::sync::Arc;

/// Collects values column by column, for the columns that the file has.
pub struct RowBuilder {
    schema: Arc<TableSchema>,
    builders: Vec<VectorBuilder>,
    /// Whether the file has the table's column.
    present: Vec<bool>,
    rows: usize,
}

impl RowBuilder {
    /// For these columns of a table. A column that must not be null, has no default and is not
    /// in the file is an error.
    pub fn new(schema: &Arc<TableSchema>, present: Vec<bool>, path: &Path) -> Result<RowBuilder> {
        for (column, present) in schema.columns.iter().zip(&present) {
            if !present {
                check_absent(schema, column, path)?;
            }
        }
        let builders = schema.columns.iter().map(|c| VectorBuilder::new(c.data_type)).collect();
        Ok(RowBuilder { schema: schema.clone(), builders, present, rows: 0 })
    }

    /// The table.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A text for a column of the current row.
    pub fn text(&mut self, column: usize, text: &str) -> Result<()> {
        let definition = &self.schema.columns[column];
        convert::push_text(&mut self.builders[column], definition.data_type, text).map_err(|why| {
            let shown: String = text.chars().take(60).collect();
            let cut = if shown.len() < text.len() { "…" } else { "" };
            Error::type_error(format!("column {}: {shown:?}{cut} {why}", definition.name))
        })
    }

    /// A null for a column of the current row.
    pub fn null(&mut self, column: usize) -> Result<()> {
        let definition = &self.schema.columns[column];
        if !definition.nullable {
            return definition
                .check(&Value::Null)
                .map_err(|e| e.with_table(self.schema.name.clone()));
        }
        self.builders[column].push_null();
        Ok(())
    }

    /// The default of a column of the current row.
    pub fn default(&mut self, column: usize) -> Result<()> {
        if self.schema.columns[column].default.is_null() {
            return self.null(column);
        }
        let default = self.schema.columns[column].default.clone();
        self.builders[column].push(&default);
        Ok(())
    }

    /// Ends the current row; every present column has got a value.
    pub fn end_row(&mut self) {
        self.rows += 1;
        debug_assert!(
            self.builders
                .iter()
                .zip(&self.present)
                .all(|(b, p)| b.len() == if *p { self.rows } else { 0 })
        );
    }

    /// The rows so far as a batch; `None` when there are none.
    pub fn take(&mut self) -> Option<Batch> {
        if self.rows == 0 {
            return None;
        }
        let rows = std::mem::take(&mut self.rows);
        let columns = self.schema.columns.iter().zip(&mut self.builders).zip(&self.present).map(
            |((column, builder), present)| {
                let full = std::mem::replace(builder, VectorBuilder::new(column.data_type));
                Arc::new(match present {
                    true => full.finish(),
                    false => Vector::constant(column.data_type, &column.default, rows),
                })
            },
        );
        Some(Batch::new(columns.collect(), rows))
    }
}

/// Whether a column of the table may be missing in the file: when it has a default or may be null.
pub fn check_absent(schema: &TableSchema, column: &Column, path: &Path) -> Result<()> {
    if column.nullable || !column.default.is_null() {
        return Ok(());
    }
    let message = format!(
        "{}: the file has no column {}, which must not be null",
        path.display(),
        column.name
    );
    Err(Error::constraint(message).with_table(schema.name.clone()).with_key(column.name.clone()))
}

/// For each name of a file, the table's column. Unknown and repeated names are errors.
pub fn match_names(schema: &TableSchema, names: &[String], path: &Path) -> Result<Vec<usize>> {
    let mut matched = Vec::with_capacity(names.len());
    for name in names {
        let Some(at) = schema.column_index(name) else {
            let columns: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
            let message =
                format!("{}: table {} has no column {name:?}", path.display(), schema.name);
            return Err(Error::not_found(message)
                .with_hint(format!("its columns are {}", columns.join(", "))));
        };
        if matched.contains(&at) {
            return Err(Error::already_exists(format!(
                "{}: column {name:?} is there twice",
                path.display()
            )));
        }
        matched.push(at);
    }
    Ok(matched)
}
