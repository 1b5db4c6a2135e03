//! Builds batches from rows of text, for CSV, TBL and NDJSON.

use crate::convert;
use nacredb::{Batch, Column, Error, Result, TableSchema, Value, Vector, VectorBuilder};
use std::path::Path;
use std::sync::Arc;

/// Collects the values of the columns that the file has.
pub struct RowBuilder {
    schema: Arc<TableSchema>,
    builders: Vec<VectorBuilder>,
    /// For each column of the table, whether the file has it.
    present: Vec<bool>,
    rows: usize,
}

impl RowBuilder {
    /// Creates a builder for the columns of a table that are present in the file. Fails if an
    /// absent column is NOT NULL and has no default.
    pub fn new(schema: &Arc<TableSchema>, present: Vec<bool>, path: &Path) -> Result<RowBuilder> {
        for (column, present) in schema.columns.iter().zip(&present) {
            if !present {
                check_absent(schema, column, path)?;
            }
        }
        let builders = schema.columns.iter().map(|c| VectorBuilder::new(c.data_type)).collect();
        Ok(RowBuilder { schema: schema.clone(), builders, present, rows: 0 })
    }

    /// Returns the schema of the table.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Returns the number of complete rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Parses text as the value of a column in the current row.
    pub fn text(&mut self, column: usize, text: &str) -> Result<()> {
        let definition = &self.schema.columns[column];
        convert::push_text(&mut self.builders[column], definition.data_type, text).map_err(|why| {
            let shown: String = text.chars().take(60).collect();
            let cut = if shown.len() < text.len() { "…" } else { "" };
            Error::type_error(format!("column {}: {shown:?}{cut} {why}", definition.name))
        })
    }

    /// Sets a column of the current row to null. Fails if the column is NOT NULL.
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

    /// Sets a column of the current row to its default.
    pub fn default(&mut self, column: usize) -> Result<()> {
        if self.schema.columns[column].default.is_null() {
            return self.null(column);
        }
        let default = self.schema.columns[column].default.clone();
        self.builders[column].push(&default);
        Ok(())
    }

    /// Ends the current row, in which every present column must have a value.
    pub fn end_row(&mut self) {
        self.rows += 1;
        debug_assert!(
            self.builders
                .iter()
                .zip(&self.present)
                .all(|(b, p)| b.len() == if *p { self.rows } else { 0 }),
            "row {} lacks a value of a present column",
            self.rows
        );
    }

    /// Returns the complete rows as a batch and starts anew; `None` if there are none.
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

/// Checks that a file may lack a column of the table: the column is nullable or has a default.
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

/// Returns the index of the table's column for each name in a file. Unknown and repeated names are
/// errors.
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
                "{}: duplicate column {name:?}",
                path.display()
            )));
        }
        matched.push(at);
    }
    Ok(matched)
}
