//! Files as batches. Each format reads its rows into batches of the table's columns, in table
//! order; an error names the file and the line or row. Nothing here touches a database.

mod columnar;
mod delimited;
mod guard;
mod input;
mod ndjson;
mod rows;

pub use input::Input;

use crate::args::FileFormat;
use crate::failure::file_error;
use nacredb::{Batch, DataType, Error, Result, TableSchema};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Rows of a batch.
pub const BATCH_ROWS: usize = 8192;

/// A column of a table that is made from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileColumn {
    pub name: String,
    pub data_type: DataType,
}

/// Called now and then with units done (of [`Source::total`]) and rows.
pub type Tick<'a> = &'a dyn Fn(u64, u64);

/// A file being read.
pub trait Source {
    /// The columns of a table that would hold the file. May read the whole file.
    fn describe(&mut self, tick: Tick<'_>) -> Result<Vec<FileColumn>>;
    /// Says which table the rows are for. A column of the file that the table lacks is an error;
    /// a column that the file lacks takes its default.
    fn bind(&mut self, schema: &Arc<TableSchema>) -> Result<()>;
    /// The next rows, all columns in table order; `None` at the end. After [`Source::bind`].
    fn next(&mut self) -> Result<Option<Batch>>;
    /// Units of work in all: bytes or rows.
    fn total(&self) -> u64;
    /// Units of work done by [`Source::next`].
    fn done(&self) -> u64;
}

/// How text files are read.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// The first line is data.
    pub no_header: bool,
    /// An unquoted field of this text is null, as the empty one is.
    pub null: Option<String>,
}

/// The format that a file's name says.
pub fn format_of(path: &Path) -> Result<FileFormat> {
    let extension =
        path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    Ok(match extension.as_str() {
        "csv" => FileFormat::Csv,
        "tsv" | "tab" => FileFormat::Tsv,
        "tbl" => FileFormat::Tbl,
        "parquet" | "pq" => FileFormat::Parquet,
        "ndjson" | "jsonl" | "json" => FileFormat::Ndjson,
        "arrow" | "arrows" | "ipc" | "feather" => FileFormat::Arrow,
        _ => {
            return Err(Error::unsupported(format!(
                "{}: no known format by that name",
                path.display()
            ))
            .with_hint("say --format csv, tsv, tbl, parquet, ndjson or arrow"));
        }
    })
}

/// Begins to read a file. The first bytes are compared with the format, so that a file that is something
/// else is refused before anything is made of it.
pub fn open(input: &Input, format: FileFormat, options: &TextOptions) -> Result<Box<dyn Source>> {
    let mut head = Vec::new();
    input
        .reader()
        .take(8 << 10)
        .read_to_end(&mut head)
        .map_err(|e| file_error(input.path(), &e))?;
    let looks = looks_like(&head);
    let fits = match format {
        FileFormat::Parquet => looks == Some("Parquet"),
        // An IPC stream has no magic of its own.
        FileFormat::Arrow => looks != Some("Parquet") && looks != Some("gzip"),
        _ => looks.is_none(),
    };
    if !fits {
        let found = looks.map_or_else(|| "something else".into(), |l| format!("{l} data"));
        let message =
            format!("{}: row 1: not a {} file but {found}", input.path().display(), name(format));
        return Err(Error::corrupt(message)
            .with_hint("--format names the format when the file's name does not"));
    }
    Ok(match format {
        FileFormat::Csv => Box::new(delimited::DelimitedSource::csv(input, b',', options)?),
        FileFormat::Tsv => Box::new(delimited::DelimitedSource::csv(input, b'\t', options)?),
        FileFormat::Tbl => Box::new(delimited::DelimitedSource::tbl(input, options)?),
        FileFormat::Ndjson => Box::new(ndjson::NdjsonSource::new(input)),
        FileFormat::Parquet => Box::new(columnar::ColumnarSource::parquet(input)?),
        FileFormat::Arrow => {
            Box::new(columnar::ColumnarSource::arrow(input, head.starts_with(b"ARROW1"))?)
        }
    })
}

fn name(format: FileFormat) -> &'static str {
    match format {
        FileFormat::Csv => "CSV",
        FileFormat::Tsv => "TSV",
        FileFormat::Tbl => "TBL",
        FileFormat::Parquet => "Parquet",
        FileFormat::Ndjson => "NDJSON",
        FileFormat::Arrow => "Arrow",
    }
}

/// What the first bytes of a file say it is, when they say anything but text.
fn looks_like(head: &[u8]) -> Option<&'static str> {
    let magic: [(&[u8], &str); 5] = [
        (b"PAR1", "Parquet"),
        (b"ARROW1", "Arrow"),
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "Zstandard"),
        (b"PK\x03\x04", "ZIP"),
    ];
    let known = magic.iter().find(|(bytes, _)| head.starts_with(bytes)).map(|(_, name)| *name);
    known.or_else(|| head.contains(&0).then_some("binary"))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use nacredb::{Column, ErrorKind, Value};
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A file that is removed with its owner.
    pub struct TempFile(pub PathBuf);

    impl Drop for TempFile {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// A new file of these bytes; the name ends in `suffix`.
    pub fn temp(suffix: &str, bytes: &[u8]) -> TempFile {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("nacre-{}-{number}{suffix}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        TempFile(path)
    }

    /// A schema without keys; a name ending in `!` is not null.
    pub fn schema(columns: &[(&str, DataType)]) -> Arc<TableSchema> {
        let columns = columns.iter().enumerate().map(|(at, (name, data_type))| Column {
            id: at as u32,
            name: name.trim_end_matches('!').into(),
            data_type: *data_type,
            nullable: !name.ends_with('!'),
            default: Value::Null,
        });
        Arc::new(TableSchema {
            id: 1,
            name: "t".into(),
            columns: columns.collect(),
            ..TableSchema::default()
        })
    }

    /// All rows of a file.
    pub fn rows(source: &mut dyn Source) -> Result<Vec<Vec<Value>>> {
        let mut out = Vec::new();
        while let Some(batch) = source.next()? {
            for row in 0..batch.rows {
                out.push(batch.columns.iter().map(|c| c.value(row)).collect());
            }
        }
        Ok(out)
    }

    #[test]
    fn names_say_formats() {
        for (name, format) in [
            ("a.CSV", FileFormat::Csv),
            ("a.tbl", FileFormat::Tbl),
            ("x/y.parquet", FileFormat::Parquet),
            ("a.jsonl", FileFormat::Ndjson),
            ("a.arrow", FileFormat::Arrow),
        ] {
            assert_eq!(format_of(Path::new(name)).unwrap(), format);
        }
        assert_eq!(format_of(Path::new("a.xls")).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(format_of(Path::new("a")).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn a_file_that_is_something_else_is_refused() {
        let options = TextOptions::default();
        for (suffix, bytes) in [
            (".csv", &b"PAR1\x15\x04"[..]),
            (".csv", b"a,b\n\0\0"),
            (".tbl", b"\x1f\x8b\x08"),
            (".ndjson", b"ARROW1\0\0"),
            (".parquet", b"a,b\n1,2\n"),
            (".parquet", b"PAR1 but nothing more"),
            (".parquet", b""),
            (".arrow", b"a,b\n1,2\n"),
            (".arrow", b"ARROW1\0\0nothing"),
        ] {
            let file = temp(suffix, bytes);
            let format = format_of(&file.0).unwrap();
            let error = match open(&Input::open(&file.0).unwrap(), format, &options) {
                Err(error) => error,
                Ok(mut source) => source.describe(&|_, _| ()).unwrap_err(),
            };
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{suffix} {error}");
            assert!(error.message().contains(&*file.0.to_string_lossy()), "{error}");
        }
        let missing = Input::open(Path::new("/nowhere/x.csv")).err().map(|e| e.kind());
        assert_eq!(missing, Some(ErrorKind::NotFound));
    }
}
