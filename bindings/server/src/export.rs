//! `nacre export`: a table or a query's result into a file. The file appears when it is complete.

use crate::args::{ExportArgs, FileFormat};
use crate::database::{self, Missing, quoted};
use crate::failure::{Outcome, file_error};
use crate::output::{Delimited, Json, JsonShape, RowFormat, write_rows};
use crate::{source, terminal};
use arrow_ipc::writer::FileWriter;
use nacredb::{Error, QueryResult};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Runs the command.
pub fn run(args: &ExportArgs, out: &mut dyn Write) -> Outcome {
    let format = args.format.map_or_else(|| source::format_of(&args.file), Ok)?;
    let database = database::open(&args.url, Missing::Refuse)?;
    let started = Instant::now();
    let sql =
        if is_name(&args.source) { format!("select * from {}", quoted(&args.source)) } else { args.source.clone() };
    let outcome = database::execute(&mut database.session(), &sql, &[]).and_then(|result| {
        if result.columns.is_empty() {
            return Err(Error::type_error("the statement returns no rows, there is nothing to export").into());
        }
        write_file(&args.file, format, &result)?;
        Ok(result.rows() as u64)
    });
    let rows = database::close(&database, outcome)?;
    let elapsed = started.elapsed();
    let size = std::fs::metadata(&args.file).map_or(0, |m| m.len());
    writeln!(
        out,
        "{}: {}, {} in {}",
        args.file.display(),
        terminal::rows(rows),
        terminal::bytes(size),
        terminal::duration(elapsed)
    )?;
    Ok(())
}

/// One word is a table's name; statements have more.
fn is_name(source: &str) -> bool {
    !source.is_empty() && source.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn write_file(path: &Path, format: FileFormat, result: &QueryResult) -> Outcome {
    let partial = partial_name(path);
    let file = File::create(&partial).map_err(|e| file_error(&partial, &e))?;
    let written = write(file, format, result).and_then(|()| {
        std::fs::rename(&partial, path).map_err(|e| file_error(path, &e))?;
        Ok(())
    });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

/// Beside the file, so that the rename stays on one file system.
fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

fn write(file: File, format: FileFormat, result: &QueryResult) -> Outcome {
    let mut file = BufWriter::with_capacity(256 << 10, file);
    let mut rows = |format: &mut dyn RowFormat| -> Outcome {
        Ok(write_rows(&mut file, format, &result.columns, &result.batches)??)
    };
    match format {
        FileFormat::Csv => rows(&mut Delimited::csv())?,
        FileFormat::Tsv => rows(&mut Delimited::tsv())?,
        FileFormat::Tbl => rows(&mut Delimited::tbl())?,
        FileFormat::Ndjson => rows(&mut Json::new(JsonShape::Lines))?,
        FileFormat::Parquet => parquet(&mut file, result)?,
        FileFormat::Arrow => arrow(&mut file, result)?,
    }
    file.flush()?;
    Ok(file.get_ref().sync_all()?)
}

fn parquet(file: &mut BufWriter<File>, result: &QueryResult) -> Outcome {
    let failed = |e: parquet::errors::ParquetError| Error::io(format!("writing Parquet: {e}"));
    let batches = result.to_record_batches()?;
    let schema = result.arrow_schema();
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(failed)?;
    for batch in batches {
        writer.write(&batch).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(())
}

fn arrow(file: &mut BufWriter<File>, result: &QueryResult) -> Outcome {
    let failed = |e: arrow_schema::ArrowError| Error::io(format!("writing Arrow: {e}"));
    let mut writer = FileWriter::try_new(file, &result.arrow_schema()).map_err(failed)?;
    for batch in result.to_record_batches()? {
        writer.write(&batch).map_err(failed)?;
    }
    Ok(writer.finish().map_err(failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_statements() {
        assert!(is_name("lineitem"));
        assert!(is_name("été_2026"));
        assert!(!is_name("select 1"));
        assert!(!is_name("(values(1))"));
        assert!(!is_name(""));
    }

    #[test]
    fn partial_file_is_beside_the_file() {
        assert_eq!(partial_name(Path::new("/a/b.csv")), Path::new("/a/b.csv.partial"));
    }
}
