//! Defines the command line. Only parses: opens no files and no databases.

use crate::blob_args::{BlobClient, BlobSettings};
use clap::{Args, Parser, Subcommand, ValueEnum};
use nacredb::{AsOf, OnDuplicate, temporal};
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

const URLS: &str = "A database URL is `memory://`, a path, or `file:///path`.";

/// One table for transactions and analytics.
#[derive(Parser, Debug)]
#[command(name = "nacre", version, about = "One table for transactions and analytics", after_help = URLS, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses a command line that begins with the program's name. Unlike `try_parse_from`, accepts
    /// SQL that begins with a comment (`-- …`), which clap reads as an unknown option.
    ///
    /// `allow_hyphen_values` on the SQL arguments is no alternative: clap then reads every option
    /// after the first statement as another statement.
    pub fn from_arguments(
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Cli, clap::Error> {
        let mut arguments: Vec<OsString> = arguments.into_iter().collect();
        if arguments.get(1).is_some_and(|command| command == "sql" || command == "export") {
            arguments.iter_mut().skip(2).filter(|text| is_hyphenated_sql(text)).for_each(|text| {
                let mut marked = OsString::from(SQL_MARK);
                marked.push(&*text);
                *text = marked;
            });
        }
        Cli::try_parse_from(arguments)
    }
}

/// Hides the hyphen of SQL that begins with a comment from clap. Unambiguous: the operating system
/// cannot pass an argument that contains this character.
const SQL_MARK: &str = "\0";

/// Whether an argument begins like an option but is SQL: no option contains white space, except in
/// a value attached to its name.
fn is_hyphenated_sql(argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    let has_value = ["--param=", "--format="].iter().any(|option| text.starts_with(option));
    text.starts_with('-') && text.contains(char::is_whitespace) && !has_value
}

/// Value parser that removes [`SQL_MARK`].
fn unmarked(text: &str) -> Result<String, Infallible> {
    Ok(text.strip_prefix(SQL_MARK).unwrap_or(text).to_owned())
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Starts an interactive SQL shell
    Shell(ShellArgs),
    /// Runs statements and prints the last result
    Sql(SqlArgs),
    /// Loads files into a table; each file loads completely or not at all
    Import(ImportArgs),
    /// Writes a table or a query result to a file
    Export(ExportArgs),
    /// Generates the eight TPC-H tables and their primary keys
    Tpch(TpchArgs),
    /// Shows each table's segments, rows, deleted rows, encodings and size, and what is in memory
    Inspect(InspectArgs),
    /// Reads and verifies the whole database
    Check(CheckArgs),
    /// Opens a database whose log lacks its end, and reports what is missing
    Recover(RecoverArgs),
    /// Writes a database in blobs, as it was at a time, to a folder
    Restore(RestoreArgs),
    /// Makes a database in blobs begin as another one is or was, without copying it
    Branch(BranchArgs),
}

/// Options of the database that a command opens.
#[derive(Args, Debug, Default)]
pub struct DatabaseOptions {
    /// Memory of the whole database: bytes, or a number with KB, MB or GB; 2GB by default
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<usize>,
    /// Blob store that keeps the database beyond this disk: s3://bucket/prefix, gs://…, az://… or file:///folder
    #[arg(long, value_name = "URL")]
    pub blobs: Option<String>,
    /// With a blob store: only read the database, as it was at a log position or a time (2026-01-31 12:00:00, UTC)
    #[arg(long, value_name = "WHEN", value_parser = as_of)]
    pub as_of: Option<AsOf>,
    #[command(flatten)]
    pub client: BlobClient,
    #[command(flatten)]
    pub settings: BlobSettings,
}

/// Parses a position of the log, or a time.
pub fn as_of(text: &str) -> Result<AsOf, String> {
    let text = text.trim();
    if let Ok(position) = text.parse() {
        return Ok(AsOf::Position(position));
    }
    temporal::parse_timestamp(text).map(AsOf::Time).ok_or_else(|| {
        "a point in time is a log position, or a time in UTC such as 2026-01-31 12:00:00".into()
    })
}

/// Parses a number of bytes; `KB`, `MB` and `GB` are powers of 1024.
pub fn size(text: &str) -> Result<usize, String> {
    let upper = text.trim().to_ascii_uppercase();
    let units = [("KB", 10), ("MB", 20), ("GB", 30), ("", 0)];
    let split = units.iter().find_map(|(unit, shift)| Some((upper.strip_suffix(unit)?, *shift)));
    let (number, shift) = split.unwrap_or((&upper, 0));
    let bytes = number.trim_end().parse::<usize>().ok().and_then(|n| n.checked_mul(1 << shift));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a size is a positive number of bytes, or a number with KB, MB or GB".into())
}

#[derive(Args, Debug)]
pub struct ShellArgs {
    /// Database; created when it does not exist
    #[arg(default_value = "memory://")]
    pub url: String,
    /// Only read the database, beside a process that may be writing it
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub options: DatabaseOptions,
}

#[derive(Args, Debug)]
pub struct SqlArgs {
    /// Database; created when it does not exist
    pub url: String,
    /// Only read the database, beside a process that may be writing it
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub options: DatabaseOptions,
    /// SQL statements, run in order; `-` reads them from standard input
    #[arg(required = true, value_name = "SQL", value_parser = unmarked)]
    pub sql: Vec<String>,
    /// Output format of the last result
    #[arg(long, value_enum, default_value = "table")]
    pub format: OutputFormat,
    /// Value of the next parameter of the last SQL argument: a number, true, false, null or text
    /// (single quotes force text)
    #[arg(
        long = "param",
        value_name = "VALUE",
        allow_hyphen_values = true,
        value_parser = unmarked
    )]
    pub parameters: Vec<String>,
}

/// Output format of a result.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Aligned columns for reading
    Table,
    /// One line per column, one block per row
    Line,
    /// Comma-separated, with a header line
    Csv,
    /// Tab-separated, with a header line
    Tsv,
    /// One array of objects
    Json,
    /// One object per line
    #[value(alias = "jsonl")]
    Ndjson,
    /// Arrow IPC stream
    Arrow,
}

/// File format of an import or export.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Comma-separated, with a header line
    Csv,
    /// Tab-separated, with a header line
    Tsv,
    /// Pipe-separated, without a header, as written by the TPC generators
    Tbl,
    /// Apache Parquet
    Parquet,
    /// One JSON object per line
    Ndjson,
    /// Arrow IPC file; imports also read Arrow IPC streams
    Arrow,
}

/// What an import does with a row whose primary key is already in the table.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicatePolicy {
    /// Reject the file
    Error,
    /// Keep the existing row
    Skip,
    /// Replace the existing row
    Replace,
}

impl From<DuplicatePolicy> for OnDuplicate {
    fn from(policy: DuplicatePolicy) -> OnDuplicate {
        match policy {
            DuplicatePolicy::Error => OnDuplicate::Error,
            DuplicatePolicy::Skip => OnDuplicate::Skip,
            DuplicatePolicy::Replace => OnDuplicate::Replace,
        }
    }
}

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Database; created when it does not exist
    pub url: String,
    #[command(flatten)]
    pub options: DatabaseOptions,
    /// Table; created with the columns of the first file when it does not exist
    pub table: String,
    /// Files or pipes, or `-` for standard input; the file extension gives the format unless
    /// --format is set
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Format of all the files
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
    /// What to do with a row whose primary key is already in the table
    #[arg(long, value_enum, value_name = "POLICY", default_value = "error")]
    pub on_duplicate: DuplicatePolicy,
    /// Columns of the primary key, if the table is created
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub primary_key: Vec<String>,
    /// CSV and TSV: the first line is data, not column names
    #[arg(long)]
    pub no_header: bool,
    /// CSV, TSV and TBL: also read an unquoted field with exactly this text as null
    #[arg(long, value_name = "TEXT")]
    pub null: Option<String>,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Database
    pub url: String,
    /// Only read the database, beside a process that may be writing it
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub options: DatabaseOptions,
    /// Table name or query
    #[arg(value_parser = unmarked)]
    pub source: String,
    /// File to write; an existing file is replaced, a pipe or device is written to
    pub file: PathBuf,
    /// File format; by default, the file extension gives it
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
}

#[derive(Args, Debug)]
pub struct TpchArgs {
    /// Database; created when it does not exist
    pub url: String,
    #[command(flatten)]
    pub options: DatabaseOptions,
    /// Scale factor; 1 generates about 8.7 million rows
    #[arg(long, value_name = "F", value_parser = scale)]
    pub scale: f64,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale.is_finite() && scale > 0.0 && scale <= 10_000.0 => Ok(scale),
        _ => Err("the scale factor must be greater than 0 and at most 10000".into()),
    }
}

#[derive(Args, Debug)]
pub struct InspectArgs {
    /// Database
    pub url: String,
    /// Only read the database, beside a process that may be writing it
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub options: DatabaseOptions,
    /// Show the columns and segments of this table only
    pub table: Option<String>,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Database
    pub url: String,
    /// Only read the database, beside a process that may be writing it
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub options: DatabaseOptions,
}

#[derive(Args, Debug)]
pub struct RecoverArgs {
    /// Database
    pub url: String,
    #[command(flatten)]
    pub options: DatabaseOptions,
    /// Give up the commits that are missing; what remains is the state before them
    #[arg(long)]
    pub accept_loss: bool,
}

#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// Blob store that has the database: s3://bucket/prefix, gs://…, az://… or file:///folder
    #[arg(value_name = "URL")]
    pub blobs: String,
    /// Empty folder to write to; created when it does not exist
    #[arg(value_name = "DIR")]
    pub folder: String,
    /// Log position or time (2026-01-31 12:00:00, UTC) of the state to restore; by default the newest
    #[arg(long, value_name = "WHEN", value_parser = as_of)]
    pub to: Option<AsOf>,
    #[command(flatten)]
    pub client: BlobClient,
}

#[derive(Args, Debug)]
pub struct BranchArgs {
    /// Blob store that has the database; `@` and a log position or a time may follow: s3://bucket/prefix@4096
    #[arg(value_name = "URL")]
    pub url: String,
    /// Blob store without a database, for the branch
    #[arg(value_name = "URL2", required_unless_present = "drop")]
    pub to: Option<String>,
    /// Removes the branch at URL instead
    #[arg(long, conflicts_with = "to")]
    pub drop: bool,
    #[command(flatten)]
    pub client: BlobClient,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_definitions_are_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn scale_factor_is_validated() {
        assert_eq!(scale("0.01"), Ok(0.01));
        for bad in ["0", "-1", "nan", "inf", "x", ""] {
            assert!(scale(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_point_in_time_is_a_position_or_a_time() {
        assert_eq!(as_of("4096"), Ok(AsOf::Position(4_096)));
        for text in ["1970-01-02 00:00:01", "1970-01-02T00:00:01Z"] {
            assert_eq!(as_of(text), Ok(AsOf::Time(86_401_000_000)), "{text}");
        }
        for bad in ["", "yesterday", "-1", "1970-13-01 00:00:00"] {
            assert!(as_of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4096"), Ok(4_096));
        assert_eq!(
            (size("64kb"), size("512MB"), size("2 GB")),
            (Ok(64 << 10), Ok(512 << 20), Ok(2 << 30))
        );
        for bad in ["", "0", "-1", "MB", "1.5MB", "12 apples", "99999999999GB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        let Command::Inspect(args) = parse(&["inspect", "d", "--memory", "64MB"]).unwrap().command
        else {
            panic!("not inspect")
        };
        assert_eq!(args.options.memory, Some(64 << 20));
    }

    #[test]
    fn parameters_may_be_negative_numbers() {
        let cli = Cli::try_parse_from(["nacre", "sql", "memory://", "select ?", "--param", "-1"])
            .unwrap();
        let Command::Sql(sql) = cli.command else { panic!("not sql") };
        assert_eq!(sql.parameters, ["-1"]);
    }

    fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
        Cli::from_arguments(["nacre"].iter().chain(arguments).map(OsString::from))
    }

    #[test]
    fn sql_may_begin_with_a_comment() {
        let sql = ["-- one\nselect 1", "select 2", "--three\nselect ?, ?"];
        let arguments = [
            &["sql", "memory://", "--param=a b"],
            &sql[..],
            &["--format", "csv", "--param", "-- b c"],
        ];
        let Command::Sql(parsed) = parse(&arguments.concat()).unwrap().command else {
            panic!("not sql")
        };
        assert_eq!(parsed.sql, sql);
        assert_eq!(parsed.format, OutputFormat::Csv);
        assert_eq!(parsed.parameters, ["a b", "-- b c"]);

        let arguments = ["export", "d", sql[0], "t.csv", "--format", "tsv"];
        let Command::Export(parsed) = parse(&arguments).unwrap().command else {
            panic!("not export")
        };
        assert_eq!((parsed.source.as_str(), parsed.format), (sql[0], Some(FileFormat::Tsv)));
    }

    #[test]
    fn misspelt_options_are_not_sql() {
        for arguments in [
            &["sql", "memory://", "select 1", "--fromat", "csv"][..],
            &["sql", "memory://", "--fromat=csv", "select 1"],
            &["import", "d", "t", "-- a file"],
        ] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }
}
