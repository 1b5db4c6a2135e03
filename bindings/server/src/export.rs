//! `nacre export`: a table or a query's result into a file, as its rows come. The file appears when it is
//! complete.

use crate::args::{ExportArgs, FileFormat};
use crate::database::{self, Missing, Stream, quoted};
use crate::failure::{Outcome, file_error};
use crate::output::{Delimited, Json, JsonShape, RowFormat, write_rows};
use crate::{source, terminal};
use arrow_ipc::writer::FileWriter;
use nacredb::Error;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Rows of a batch of Arrow, about.
const ARROW_ROWS: usize = 64 << 10;
/// A row group of Parquet is held until it is complete: it is, at the latest, at about this size.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Runs the command.
pub fn run(args: &ExportArgs, out: &mut dyn Write) -> Outcome {
    let format = args.format.map_or_else(|| source::format_of(&args.file), Ok)?;
    let database = database::open(&args.url, Missing::Refuse)?;
    let started = Instant::now();
    let sql =
        if is_name(&args.source) { format!("select * from {}", quoted(&args.source)) } else { args.source.clone() };
    let outcome = Stream::open(&mut database.session(), &sql, &[]).and_then(|mut stream| {
        if stream.rows().columns().is_empty() {
            return Err(Error::type_error("the statement returns no rows, there is nothing to export").into());
        }
        write_file(&args.file, format, &mut stream)
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

fn write_file(path: &Path, format: FileFormat, stream: &mut Stream) -> Outcome<u64> {
    let partial = partial_name(path);
    let file = File::create(&partial).map_err(|e| file_error(&partial, &e))?;
    let written = write(file, format, stream).and_then(|rows| {
        std::fs::rename(&partial, path).map_err(|e| file_error(path, &e))?;
        Ok(rows)
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

/// Writes rows as they come; answers how many they were.
fn write(file: File, format: FileFormat, stream: &mut Stream) -> Outcome<u64> {
    let mut file = BufWriter::with_capacity(256 << 10, file);
    let columns = stream.rows().columns().to_vec();
    let mut text = |format: &mut dyn RowFormat| write_rows(&mut file, format, &columns, &mut || stream.next());
    let rows = match format {
        FileFormat::Csv => text(&mut Delimited::csv())?,
        FileFormat::Tsv => text(&mut Delimited::tsv())?,
        FileFormat::Tbl => text(&mut Delimited::tbl())?,
        FileFormat::Ndjson => text(&mut Json::new(JsonShape::Lines))?,
        FileFormat::Parquet => parquet(&mut file, stream)?,
        FileFormat::Arrow => arrow(&mut file, stream)?,
    };
    file.flush()?;
    file.get_ref().sync_all()?;
    Ok(rows)
}

fn parquet(file: &mut BufWriter<File>, stream: &mut Stream) -> Outcome<u64> {
    let failed = |e: parquet::errors::ParquetError| Error::io(format!("writing Parquet: {e}"));
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(file, stream.rows().arrow_schema(), Some(properties)).map_err(failed)?;
    let mut rows = 0;
    while let Some(batch) = stream.next_record_batch(ARROW_ROWS)? {
        rows += batch.num_rows() as u64;
        writer.write(&batch).map_err(failed)?;
        if writer.in_progress_size() > ROW_GROUP_BYTES {
            writer.flush().map_err(failed)?;
        }
    }
    writer.close().map_err(failed)?;
    Ok(rows)
}

fn arrow(file: &mut BufWriter<File>, stream: &mut Stream) -> Outcome<u64> {
    let failed = |e: arrow_schema::ArrowError| Error::io(format!("writing Arrow: {e}"));
    let mut writer = FileWriter::try_new(file, &stream.rows().arrow_schema()).map_err(failed)?;
    let mut rows = 0;
    while let Some(batch) = stream.next_record_batch(ARROW_ROWS)? {
        rows += batch.num_rows() as u64;
        writer.write(&batch).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    Ok(rows)
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
