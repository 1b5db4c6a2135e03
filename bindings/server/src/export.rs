//! `nacre export`: streams a table or a query result into a file. A regular file is replaced only
//! once the new one is complete; a pipe or device is written to directly.

use crate::args::{ExportArgs, FileFormat};
use crate::database::{self, Missing, Stream, quoted};
use crate::failure::{Failure, Outcome, file_error};
use crate::output::{Delimited, Json, JsonShape, RowFormat, write_rows};
use crate::{scratch, source, terminal};
use arrow_ipc::writer::FileWriter;
use nacredb::Error;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Approximate number of rows per Arrow batch.
const ARROW_ROWS: usize = 64 << 10;
/// Approximate maximum size of a Parquet row group, in bytes. The writer buffers a row group in
/// memory until it is complete.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Runs the command.
pub fn run(args: &ExportArgs, out: &mut dyn Write) -> Outcome {
    let format = args.format.map_or_else(|| source::format_of(&args.file), Ok)?;
    let target = Target::of(&args.file)?;
    let options = database::options_of(&args.url, &args.options)?;
    let database = database::open_to(&args.url, Missing::Refuse, args.read_only, options)?;
    let started = Instant::now();
    let sql = if is_name(&args.source) {
        format!("select * from {}", quoted(&args.source))
    } else {
        args.source.clone()
    };
    let outcome = Stream::open(&mut database.session(), &sql, &[]).and_then(|mut stream| {
        if stream.rows().columns().is_empty() {
            return Err(Error::type_error("the statement has no result to export").into());
        }
        write_to(&target, &args.file, format, &mut stream)
    });
    let rows = database::close(&database, outcome)?;
    let elapsed = terminal::duration(started.elapsed());
    let size = match &target {
        Target::Stdout => return Ok(()),
        Target::Device => String::new(),
        Target::File { path, .. } => {
            format!(
                ", {}",
                terminal::bytes(std::fs::metadata(path).map_or(0, |metadata| metadata.len()))
            )
        }
    };
    Ok(writeln!(out, "{}: {}{size} in {elapsed}", args.file.display(), terminal::rows(rows))?)
}

/// Whether an export source is a table name: a single word, which no query is.
fn is_name(source: &str) -> bool {
    !source.is_empty() && source.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Destination of an export.
enum Target {
    /// The file, pipe or device that is standard output; the summary line is then omitted.
    Stdout,
    /// A pipe or a device, which is written to directly.
    Device,
    /// A regular file, replaced once the new one is complete. `mode` is that of the existing file.
    File { path: PathBuf, mode: Option<u32> },
}

impl Target {
    fn of(path: &Path) -> Result<Target, Error> {
        let failed = |error: io::Error| file_error(path, &error);
        let mode = match std::fs::metadata(path) {
            Ok(existing) => {
                let stdout = stdout().and_then(|file| file.metadata());
                if stdout.is_ok_and(|stdout| {
                    (stdout.dev(), stdout.ino()) == (existing.dev(), existing.ino())
                }) {
                    return Ok(Target::Stdout);
                }
                if !existing.is_file() {
                    return Ok(Target::Device);
                }
                Some(existing.mode() & 0o7777)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        // Replace the target of a symbolic link, not the link.
        let mut path = path.to_owned();
        while let Ok(link) = std::fs::read_link(&path) {
            path = path.parent().unwrap_or(Path::new("")).join(link);
        }
        Ok(Target::File { path, mode })
    }
}

fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Writes the rows to the target; `path` is its name in error messages.
fn write_to(target: &Target, path: &Path, format: FileFormat, stream: &mut Stream) -> Outcome<u64> {
    match target {
        Target::Stdout => write(&stdout()?, format, stream),
        Target::Device => {
            let file = File::options().write(true).open(path).map_err(|e| file_error(path, &e))?;
            write(&file, format, stream).map_err(|failure| match failure {
                Failure::BrokenPipe => {
                    Error::io(format!("{}: the reader closed the pipe", path.display())).into()
                }
                other => other,
            })
        }
        Target::File { path, mode } => replace(path, *mode, format, stream),
    }
}

/// Writes a temporary file in the same folder, then renames it: a rename is atomic only within one
/// file system.
fn replace(
    path: &Path,
    mode: Option<u32>,
    format: FileFormat,
    stream: &mut Stream,
) -> Outcome<u64> {
    let failed = |error: io::Error| file_error(path, &error);
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().unwrap_or_default();
    let (partial, file) = scratch::create(folder, name, mode.unwrap_or(0o666)).map_err(failed)?;
    let permitted = mode
        .map_or(Ok(()), |mode| file.set_permissions(Permissions::from_mode(mode)).map_err(failed));
    let written = permitted
        .map_err(Failure::from)
        .and_then(|()| write(&file, format, stream))
        .and_then(|rows| {
            file.sync_all().and_then(|()| std::fs::rename(&partial, path)).map_err(failed)?;
            // Best effort: some file systems cannot open or sync a folder.
            let _ = File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
                .and_then(|f| f.sync_all());
            Ok(rows)
        });
    if written.is_err() {
        // Report the error of the export, not that of the clean-up.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

/// Writes rows as they arrive and returns their number.
fn write(file: &File, format: FileFormat, stream: &mut Stream) -> Outcome<u64> {
    let mut file = BufWriter::with_capacity(256 << 10, file);
    let columns = stream.rows().columns().to_vec();
    let mut text =
        |format: &mut dyn RowFormat| write_rows(&mut file, format, &columns, &mut || stream.next());
    let rows = match format {
        FileFormat::Csv => text(&mut Delimited::csv())?,
        FileFormat::Tsv => text(&mut Delimited::tsv())?,
        FileFormat::Tbl => text(&mut Delimited::tbl())?,
        FileFormat::Ndjson => text(&mut Json::new(JsonShape::Lines))?,
        FileFormat::Parquet => parquet(&mut file, stream)?,
        FileFormat::Arrow => arrow(&mut file, stream)?,
    };
    file.flush()?;
    Ok(rows)
}

fn parquet(file: &mut BufWriter<&File>, stream: &mut Stream) -> Outcome<u64> {
    let failed = |e: parquet::errors::ParquetError| Error::io(format!("writing Parquet: {e}"));
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(file, stream.rows().arrow_schema(), Some(properties))
        .map_err(failed)?;
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

fn arrow(file: &mut BufWriter<&File>, stream: &mut Stream) -> Outcome<u64> {
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
    fn table_names_differ_from_queries() {
        assert!(is_name("lineitem"));
        assert!(is_name("été_2026"));
        assert!(!is_name("select 1"));
        assert!(!is_name("(values(1))"));
        assert!(!is_name(""));
    }
}
