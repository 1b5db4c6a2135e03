//! The columns of a stream, and those of the table that they are.

use super::flat::Table;
use super::form::{Form, INT32, form_of, int};
use super::values::{Body, coded};
use arrow_ipc::{DictionaryBatch, DictionaryEncoding, Endianness, Field, Schema};
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
pub(super) fn fields_of(schema: Table<'_>, table: &TableSchema) -> Result<Fields> {
    let endianness = schema.integer(Schema::VT_ENDIANNESS, 2, 0)?;
    if endianness != i64::from(Endianness::Little.0) {
        return Err(Error::unsupported("a big-endian Arrow stream"));
    }
    let mut fields: Vec<StreamField> = Vec::new();
    for field in schema.tables(Schema::VT_FIELDS)? {
        let name = field.text(Field::VT_NAME)?.unwrap_or_default();
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
        let coding = match field.table(Field::VT_DICTIONARY)? {
            None => None,
            Some(dictionary) => {
                let index = dictionary.table(DictionaryEncoding::VT_INDEXTYPE)?;
                let index = index.map_or(Ok(INT32), int).map_err(located)?;
                let id = dictionary.integer(DictionaryEncoding::VT_ID, 8, 0)?;
                Some(Coding { id, index, entries: None })
            }
        };
        fields.push(StreamField { column, form, coding });
    }
    Ok(Fields(fields))
}

impl Fields {
    /// The rows of a record batch.
    pub fn batch(&self, batch: Table<'_>, body: &[u8], table: &TableSchema) -> Result<Batch> {
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
        dictionary: Table<'_>,
        body: &[u8],
        table: &TableSchema,
    ) -> Result<()> {
        let data = dictionary.table(DictionaryBatch::VT_DATA)?;
        let data = data.ok_or_else(|| Error::corrupt("an Arrow dictionary without data"))?;
        let id = dictionary.integer(DictionaryBatch::VT_ID, 8, 0)?;
        let is_delta = dictionary.bool(DictionaryBatch::VT_ISDELTA)?;
        for field in &mut self.0 {
            let Some(coding) = field.coding.as_mut().filter(|of| of.id == id) else {
                continue;
            };
            if is_delta && coding.entries.is_some() {
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
