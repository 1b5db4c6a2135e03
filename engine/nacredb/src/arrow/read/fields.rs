//! The columns of a stream, and those of the table that they are.

use super::form::{Form, INT32, form_of, int};
use super::values::{Body, coded};
use arrow_ipc::{DictionaryBatch, Endianness, RecordBatch, Schema};
use nacre_column::{Batch, Vector};
use nacre_types::{Error, Result, TableSchema, invariant};
use std::sync::Arc;

/// A column of a stream.
struct StreamField {
    /// The position of the table's column.
    column: usize,
    form: Form,
    coding: Option<Coding>,
}

/// The dictionary of a column.
struct Coding {
    id: i64,
    index: Form,
    /// The values of the last dictionary, in the type of the table's column.
    entries: Option<Vector>,
}

/// The columns of a stream.
pub(super) struct Fields(Vec<StreamField>);

/// Finds the table's columns of a stream.
pub(super) fn fields_of(schema: Schema<'_>, table: &TableSchema) -> Result<Fields> {
    if schema.endianness() != Endianness::Little {
        return Err(Error::unsupported("a big-endian Arrow stream"));
    }
    let mut fields: Vec<StreamField> = Vec::new();
    for field in schema.fields().into_iter().flatten() {
        let name = field.name().unwrap_or_default();
        let column = table.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name));
        let column = column.ok_or_else(|| {
            Error::not_found(format!("table {} has no column `{name}`", table.name))
                .with_sqlstate("42703")
        })?;
        if fields.iter().any(|other| other.column == column) {
            return Err(Error::type_error(format!("column {name} is in the Arrow stream twice")));
        }
        let located = |error: Error| error.context(format!("column {name}"));
        let form = form_of(field).map_err(located)?;
        let coding = match field.dictionary() {
            None => None,
            Some(dictionary) => {
                let index = dictionary.indexType().map_or(Ok(INT32), int).map_err(located)?;
                Some(Coding { id: dictionary.id(), index, entries: None })
            }
        };
        fields.push(StreamField { column, form, coding });
    }
    Ok(Fields(fields))
}

impl Fields {
    /// The rows of a record batch.
    pub fn batch(&self, batch: RecordBatch<'_>, body: &[u8], table: &TableSchema) -> Result<Batch> {
        let mut body = Body::new(batch, body)?;
        let rows = body.rows();
        let mut columns: Vec<Option<Arc<Vector>>> = vec![None; table.columns.len()];
        for field in &self.0 {
            let column = &table.columns[field.column];
            let vector = match &field.coding {
                None => body.vector(field.form, column.data_type),
                Some(Coding { index, entries, .. }) => body
                    .indices(*index)
                    .and_then(|(keys, validity)| coded(entries.as_ref(), keys, validity, column)),
            };
            let vector = vector.map_err(|e| e.context(format!("column {}", column.name)))?;
            invariant!(vector.len() == rows, "{} values of {rows} rows", vector.len());
            columns[field.column] = Some(Arc::new(vector));
        }
        let defaults = columns.into_iter().zip(&table.columns).map(|(vector, column)| {
            let default = || Vector::constant(column.data_type, &column.default, rows);
            vector.unwrap_or_else(|| Arc::new(default()))
        });
        Ok(Batch::new(defaults.collect(), rows))
    }

    /// Keeps a dictionary for the record batches that follow.
    pub fn keep_dictionary(
        &mut self,
        dictionary: DictionaryBatch<'_>,
        body: &[u8],
        table: &TableSchema,
    ) -> Result<()> {
        let data =
            dictionary.data().ok_or_else(|| Error::corrupt("an Arrow dictionary without data"))?;
        for field in &mut self.0 {
            let Some(coding) = field.coding.as_mut().filter(|of| of.id == dictionary.id()) else {
                continue;
            };
            if dictionary.isDelta() && coding.entries.is_some() {
                return Err(Error::unsupported("an Arrow dictionary in several parts"));
            }
            let column = &table.columns[field.column];
            let entries = Body::new(data, body)?
                .vector(field.form, column.data_type)
                .map_err(|e| e.context(format!("column {}", column.name)))?;
            coding.entries = Some(entries);
        }
        Ok(())
    }
}
