//! Parquet and Arrow IPC. Both yield Arrow record batches, whose columns are matched with the
//! table's by name.

use super::rows::match_names;
use super::{BATCH_ROWS, FileColumn, Source, Tick};
use crate::failure::file_error;
use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType as ArrowType, SchemaRef};
use nacredb::{Batch, DataType, Error, Result, TableSchema, Vector, arrow};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of record batches.
pub struct ColumnarSource {
    path: PathBuf,
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>>>,
    /// Rows in all when the file says so.
    total: u64,
    done: u64,
    target: Option<Target>,
}

/// Where the file's columns go.
struct Target {
    schema: Arc<TableSchema>,
    /// The table without the columns that the file does not have.
    present: TableSchema,
    /// For each of `present`, the file's column.
    projection: Vec<usize>,
    /// For each column of the table, its place in `present`.
    places: Vec<Option<usize>>,
}

impl ColumnarSource {
    /// A Parquet file.
    pub fn parquet(path: &Path) -> Result<ColumnarSource> {
        let file = File::open(path).map_err(|e| file_error(path, &e))?;
        let broken = |e: &dyn std::fmt::Display| at_row(path, 1, Error::corrupt(format!("not a Parquet file: {e}")));
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| broken(&e))?;
        let total = builder.metadata().file_metadata().num_rows().max(0) as u64;
        let schema = builder.schema().clone();
        let reader = builder.with_batch_size(BATCH_ROWS).build().map_err(|e| broken(&e))?;
        Ok(ColumnarSource {
            path: path.to_owned(),
            schema,
            batches: Box::new(reader),
            total,
            done: 0,
            target: None,
        })
    }

    /// An Arrow IPC file, or a stream when it lacks the file's magic.
    pub fn arrow(path: &Path, is_file: bool) -> Result<ColumnarSource> {
        let file = File::open(path).map_err(|e| file_error(path, &e))?;
        let input = BufReader::with_capacity(256 << 10, file);
        let broken = |e: ArrowError| at_row(path, 1, Error::corrupt(format!("not Arrow IPC data: {e}")));
        let (schema, batches): (_, Box<dyn Iterator<Item = _>>) = if is_file {
            let reader = FileReader::try_new(input, None).map_err(broken)?;
            (reader.schema(), Box::new(reader))
        } else {
            let reader = StreamReader::try_new(input, None).map_err(broken)?;
            (reader.schema(), Box::new(reader))
        };
        Ok(ColumnarSource { path: path.to_owned(), schema, batches, total: 0, done: 0, target: None })
    }
}

fn at_row(path: &Path, row: u64, error: Error) -> Error {
    error.context(format!("{}: row {row}", path.display()))
}

/// The type of a table's column that holds an Arrow column.
fn data_type_of(arrow: &ArrowType) -> Option<DataType> {
    Some(match arrow {
        ArrowType::Null | ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::TEXT,
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 => DataType::Int8,
        ArrowType::Int16 => DataType::Int16,
        ArrowType::Int32 => DataType::Int32,
        ArrowType::Int64 => DataType::Int64,
        ArrowType::UInt8 => DataType::UInt8,
        ArrowType::UInt16 => DataType::UInt16,
        ArrowType::UInt32 => DataType::UInt32,
        ArrowType::UInt64 => DataType::UInt64,
        ArrowType::Float16 | ArrowType::Float32 => DataType::Float32,
        ArrowType::Float64 => DataType::Float64,
        ArrowType::Decimal32(p, s) | ArrowType::Decimal64(p, s) | ArrowType::Decimal128(p, s) => {
            DataType::Decimal { precision: *p, scale: u8::try_from(*s).ok().filter(|s| s <= p)? }
        }
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            DataType::BLOB
        }
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
        ArrowType::Timestamp(_, _) => DataType::Timestamp,
        ArrowType::Dictionary(_, values) => return data_type_of(values),
        _ => return None,
    })
}

impl Source for ColumnarSource {
    fn describe(&mut self, _tick: Tick<'_>) -> Result<Vec<FileColumn>> {
        let columns = self.schema.fields().iter().map(|field| {
            let data_type = data_type_of(field.data_type()).ok_or_else(|| {
                Error::unsupported(format!(
                    "{}: column {} of type {}",
                    self.path.display(),
                    field.name(),
                    field.data_type()
                ))
            })?;
            Ok(FileColumn { name: field.name().clone(), data_type })
        });
        columns.collect()
    }

    fn bind(&mut self, schema: &Arc<TableSchema>) -> Result<()> {
        let names: Vec<String> = self.schema.fields().iter().map(|f| f.name().clone()).collect();
        let columns = match_names(schema, &names, &self.path)?;
        let mut present = TableSchema { columns: Vec::new(), primary_key: None, ..(**schema).clone() };
        let mut projection = Vec::new();
        let mut places = Vec::new();
        for (at, column) in schema.columns.iter().enumerate() {
            places.push(columns.iter().position(|c| *c == at).map(|from| {
                projection.push(from);
                present.columns.push(column.clone());
                projection.len() - 1
            }));
            if places[at].is_none() && !column.nullable && column.default.is_null() {
                return Err(Error::constraint(format!(
                    "{}: the file has no column {}, which must not be null",
                    self.path.display(),
                    column.name
                ))
                .with_table(schema.name.clone())
                .with_key(column.name.clone()));
            }
        }
        self.target = Some(Target { schema: schema.clone(), present, projection, places });
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(target) = &self.target else { return Ok(None) };
        let place = |e| at_row(&self.path, self.done + 1, e);
        let Some(batch) = self.batches.next() else { return Ok(None) };
        let batch = batch.map_err(|e| place(Error::corrupt(e.to_string())))?;
        let projected = batch.project(&target.projection).map_err(|e| place(Error::corrupt(e.to_string())))?;
        let read = arrow::batch_from_arrow(&projected, &target.present).map_err(place)?;
        for (column, vector) in target.present.columns.iter().zip(&read.columns) {
            if !column.nullable && vector.null_count() > 0 {
                let row = (0..vector.len()).find(|row| vector.is_null(*row)).unwrap_or(0) as u64;
                let null = column.check(&nacredb::Value::Null).err();
                let null = null.unwrap_or_else(|| Error::constraint("null")).with_table(target.schema.name.clone());
                return Err(at_row(&self.path, self.done + row + 1, null));
            }
        }
        let rows = batch.num_rows();
        self.done += rows as u64;
        let columns = target.schema.columns.iter().zip(&target.places).map(|(column, place)| match place {
            Some(place) => read.columns[*place].clone(),
            None => Arc::new(Vector::constant(column.data_type, &column.default, rows)),
        });
        Ok(Some(Batch::new(columns.collect(), rows)))
    }

    fn total(&self) -> u64 {
        self.total.max(self.done)
    }

    fn done(&self) -> u64 {
        self.done
    }
}
