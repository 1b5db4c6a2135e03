//! Reads files as batches. Each format reads its rows into batches of the table's columns, in table
//! order; an error names the file and the line or row. Does not access a database.

mod columnar;
mod definition;
mod delimited;
mod guard;
mod input;
mod ndjson;
mod rows;

pub use definition::{FileColumn, Source, TextOptions, Tick};
pub use input::Input;

use crate::args::FileFormat;
use crate::failure::file_error;
use nacredb::{Error, Result};
use std::io::Read;
use std::path::Path;

/// Returns the format that a file extension stands for.
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
            return Err(Error::unsupported(format!("{}: unknown file format", path.display()))
                .with_hint("use --format csv, tsv, tbl, parquet, ndjson or arrow"));
        }
    })
}

/// Opens a file. Compares its first bytes with the format, so that a file in another format is
/// rejected before any table is created from it.
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
        // An IPC stream has no magic number.
        FileFormat::Arrow => looks != Some("Parquet") && looks != Some("gzip"),
        _ => looks.is_none(),
    };
    if !fits {
        let found = looks.map_or_else(|| "other data".into(), |l| format!("{l} data"));
        let message =
            format!("{}: row 1: expected {}, found {found}", input.path().display(), name(format));
        return Err(Error::corrupt(message)
            .with_hint("--format sets the format if the file extension does not match it"));
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

/// Detects a binary format from the first bytes of a file; `None` means text.
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
    use nacredb::{Column, ColumnRule, DataType, ErrorKind, TableSchema, Value};
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A file that is removed on drop.
    pub struct TempFile(pub PathBuf);

    impl Drop for TempFile {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Creates a file with these bytes and a name that ends in `suffix`.
    pub fn temp(suffix: &str, bytes: &[u8]) -> TempFile {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("nacre-{}-{number}{suffix}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        TempFile(path)
    }

    /// Returns a schema without keys; a `!` after the name makes the column NOT NULL.
    pub fn schema(columns: &[(&str, DataType)]) -> Arc<TableSchema> {
        let columns = columns.iter().enumerate().map(|(at, (name, data_type))| Column {
            id: at as u32,
            name: name.trim_end_matches('!').into(),
            data_type: *data_type,
            nullable: !name.ends_with('!'),
            default: Value::Null,
            rule: ColumnRule::Constant,
        });
        Arc::new(TableSchema {
            id: 1,
            name: "t".into(),
            columns: columns.collect(),
            ..TableSchema::default()
        })
    }

    /// Reads all rows of a file.
    pub fn rows(source: &mut dyn Source) -> Result<Vec<Vec<Value>>> {
        let mut out = Vec::new();
        while let Some(batch) = source.next()? {
            for row in 0..batch.rows {
                out.push(batch.row(row));
            }
        }
        Ok(out)
    }

    #[test]
    fn extensions_determine_formats() {
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
    fn a_file_in_another_format_is_rejected() {
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
