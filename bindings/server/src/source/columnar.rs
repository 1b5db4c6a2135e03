//! Reads Parquet and Arrow IPC. Both yield Arrow record batches, whose columns are matched to the
//! columns of the table by name.

use super::definition::{BATCH_ROWS, FileColumn, Source, Tick};
use super::guard::guarded;
use super::input::Input;
use super::rows::{check_absent, match_names};
use crate::convert;
use crate::output::Cell;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, Field, SchemaRef};
use arrow_select::take::take;
use nacredb::{
    Batch, Column, DataType, Error, Result, TableSchema, Value, Vector, VectorBuilder, arrow,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Source of a file of record batches.
pub struct ColumnarSource {
    path: PathBuf,
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>>>,
    /// Total number of rows; 0 if the file does not state it.
    total: u64,
    done: u64,
    target: Option<Target>,
}

/// Table that the rows are for.
struct Target {
    schema: Arc<TableSchema>,
    /// For each column of the table, the index of the file's column.
    file_columns: Vec<Option<usize>>,
}

impl ColumnarSource {
    /// Opens a Parquet file.
    pub fn parquet(input: &Input) -> Result<ColumnarSource> {
        let (path, file) = (input.path(), input.file()?);
        let broken = |e: &dyn std::fmt::Display| {
            at_row(path, 1, Error::corrupt(format!("not a Parquet file: {e}")))
        };
        let builder = guarded(|| ParquetRecordBatchReaderBuilder::try_new(file))
            .map_err(|e| broken(&e))?
            .map_err(|e| broken(&e))?;
        let total = builder.metadata().file_metadata().num_rows().max(0) as u64;
        let schema = builder.schema().clone();
        let reader = guarded(|| builder.with_batch_size(BATCH_ROWS).build())
            .map_err(|e| broken(&e))?
            .map_err(|e| broken(&e))?;
        Ok(ColumnarSource {
            path: path.to_owned(),
            schema,
            batches: Box::new(reader),
            total,
            done: 0,
            target: None,
        })
    }

    /// Opens Arrow IPC data, either a file (`is_file`) or a stream.
    pub fn arrow(input: &Input, is_file: bool) -> Result<ColumnarSource> {
        let path = input.path();
        let reader = BufReader::with_capacity(256 << 10, input.reader());
        let broken = |e: &dyn std::fmt::Display| {
            at_row(path, 1, Error::corrupt(format!("not Arrow IPC data: {e}")))
        };
        let (schema, batches): (_, Box<dyn Iterator<Item = _>>) = if is_file {
            let reader = guarded(|| FileReader::try_new(reader, None))
                .map_err(|e| broken(&e))?
                .map_err(|e| broken(&e))?;
            (reader.schema(), Box::new(reader))
        } else {
            let reader = guarded(|| StreamReader::try_new(reader, None))
                .map_err(|e| broken(&e))?
                .map_err(|e| broken(&e))?;
            (reader.schema(), Box::new(reader))
        };
        Ok(ColumnarSource {
            path: path.to_owned(),
            schema,
            batches,
            total: 0,
            done: 0,
            target: None,
        })
    }
}

fn at_row(path: &Path, row: u64, error: Error) -> Error {
    error.context(format!("{}: row {row}", path.display()))
}

/// Converts an Arrow column to a vector of the table's type. Values of any type other than that
/// type or a narrower one are converted by way of their text, which checks each of them. An error
/// comes with its row in the batch.
fn convert_column(
    field: &Field,
    array: &ArrayRef,
    column: &Column,
) -> Result<Vector, (u64, Error)> {
    let whole = |error| (0, error);
    let array = match array.as_any_dictionary_opt() {
        Some(dictionary) => &take(dictionary.values(), dictionary.keys(), None)
            .map_err(|e| whole(Error::corrupt(e.to_string())))?,
        None => array,
    };
    let own = arrow::type_from_arrow(field).map_err(whole)?;
    let wanted = column.data_type;
    let fits = |inner: (i128, i128), outer: (i128, i128)| outer.0 <= inner.0 && inner.1 <= outer.1;
    let narrower = match (own.integer_range(), wanted.integer_range()) {
        (Some(inner), Some(outer)) => own.physical() == wanted.physical() && fits(inner, outer),
        _ => own == DataType::Float32 && wanted == DataType::Float64,
    };
    if own == wanted || narrower {
        let vector = arrow::vector_from_arrow(array, wanted).map_err(whole)?;
        return check_nulls(&vector, column).map(|()| vector);
    }
    let vector = arrow::vector_from_arrow(array, own).map_err(whole)?;
    check_nulls(&vector, column)?;
    let mut builder = VectorBuilder::new(wanted);
    let mut text = String::new();
    for row in 0..vector.len() {
        if vector.is_null(row) {
            builder.push_null();
            continue;
        }
        text.clear();
        Cell::of(&vector, row).push_text(&mut text);
        convert::push_text(&mut builder, wanted, &text)
            .map_err(|why| (row as u64, Error::type_error(format!("{text:?} {why}"))))?;
    }
    Ok(builder.finish())
}

fn check_nulls(vector: &Vector, column: &Column) -> Result<(), (u64, Error)> {
    if column.nullable || vector.null_count() == 0 {
        return Ok(());
    }
    let row = (0..vector.len()).find(|row| vector.is_null(*row)).unwrap_or(0);
    column.check(&Value::Null).map_err(|e| (row as u64, e))
}

impl Source for ColumnarSource {
    fn describe(&mut self, _tick: Tick<'_>) -> Result<Vec<FileColumn>> {
        let columns = self.schema.fields().iter().map(|field| {
            let data_type =
                arrow::type_from_arrow(field).map_err(|e| e.context(self.path.display()))?;
            Ok(FileColumn { name: field.name().clone(), data_type })
        });
        columns.collect()
    }

    fn bind(&mut self, schema: &Arc<TableSchema>) -> Result<()> {
        let names: Vec<String> = self.schema.fields().iter().map(|f| f.name().clone()).collect();
        let columns = match_names(schema, &names, &self.path)?;
        let mut file_columns = Vec::new();
        for (at, column) in schema.columns.iter().enumerate() {
            let file_column = columns.iter().position(|c| *c == at);
            if file_column.is_none() {
                check_absent(schema, column, &self.path)?;
            }
            file_columns.push(file_column);
        }
        self.target = Some(Target { schema: schema.clone(), file_columns });
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(target) = &self.target else { return Ok(None) };
        let row = self.done + 1;
        let next = guarded(|| self.batches.next()).map_err(|e| at_row(&self.path, row, e))?;
        let Some(batch) = next else { return Ok(None) };
        let batch = batch.map_err(|e| at_row(&self.path, row, Error::corrupt(e.to_string())))?;
        let rows = batch.num_rows();
        let mut columns = Vec::with_capacity(target.file_columns.len());
        for (column, file_column) in target.schema.columns.iter().zip(&target.file_columns) {
            let vector = match file_column {
                Some(at) => convert_column(self.schema.field(*at), batch.column(*at), column),
                None => Ok(Vector::constant(column.data_type, &column.default, rows)),
            };
            let vector = vector.map_err(|(row, e)| {
                at_row(
                    &self.path,
                    self.done + row + 1,
                    e.context(format!("column {}", column.name)),
                )
            })?;
            columns.push(Arc::new(vector));
        }
        self.done += rows as u64;
        Ok(Some(Batch::new(columns, rows)))
    }

    fn total(&self) -> u64 {
        self.total.max(self.done)
    }

    fn done(&self) -> u64 {
        self.done
    }
}
