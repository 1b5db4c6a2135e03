//! The command line as data. Parsing only: nothing here opens a file or a database.

use clap::{Args, Parser, Subcommand, ValueEnum};
use nacredb::OnDuplicate;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

const URLS: &str = "A database is named by `memory://`, a path, or `file:///path`.";

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
    /// Interactive SQL
    Shell(ShellArgs),
    /// Runs statements and prints the last result
    Sql(SqlArgs),
    /// Loads files into a table, all or nothing per file
    Import(ImportArgs),
    /// Writes a table or the result of a query to a file
    Export(ExportArgs),
    /// Makes the eight TPC-H tables, with their keys
    Tpch(TpchArgs),
    /// Shows segments, rows, deleted rows, encodings and bytes
    Inspect(InspectArgs),
    /// Reads everything and verifies it
    Check(CheckArgs),
}

#[derive(Args, Debug)]
pub struct ShellArgs {
    /// Database; created when it does not exist
    #[arg(default_value = "memory://")]
    pub url: String,
}

#[derive(Args, Debug)]
pub struct SqlArgs {
    /// Database; created when it does not exist
    pub url: String,
    /// Statements, run in order; `-` reads them from standard input
    #[arg(required = true, value_name = "SQL", value_parser = unmarked)]
    pub sql: Vec<String>,
    /// How the last result is printed
    #[arg(long, value_enum, default_value = "table")]
    pub format: OutputFormat,
    /// Value of the next parameter of the last SQL argument: a number, true, false, null, or text (quote it with ' to force text)
    #[arg(long = "param", value_name = "VALUE", allow_hyphen_values = true, value_parser = unmarked)]
    pub parameters: Vec<String>,
}

/// How a result is printed.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// For people
    Table,
    /// For people: a block of lines for each row
    Line,
    /// With a header line
    Csv,
    /// Tab-separated, with a header line
    Tsv,
    /// One array of objects
    Json,
    /// One object a line
    #[value(alias = "jsonl")]
    Ndjson,
    /// Arrow IPC stream
    Arrow,
}

/// Formats of files.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Comma-separated, with a header line
    Csv,
    /// Tab-separated, with a header line
    Tsv,
    /// Pipe-separated without a header, as TPC's generators write it
    Tbl,
    /// Apache Parquet
    Parquet,
    /// One JSON object a line
    Ndjson,
    /// Arrow IPC, file or stream
    Arrow,
}

/// What happens to a row whose key exists.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicatePolicy {
    /// The file is not loaded
    Error,
    /// The row in the table stays
    Skip,
    /// The new row takes its place
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
    /// Table; created from the first file when it does not exist
    pub table: String,
    /// Files, pipes too; the format follows the name unless --format says otherwise. `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Format of all files
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
    /// What happens to a row whose key exists
    #[arg(long, value_enum, default_value = "error")]
    pub on_duplicate: DuplicatePolicy,
    /// Primary key of the table when it is created, as column names
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub primary_key: Vec<String>,
    /// CSV and TSV: the first line is data, not names
    #[arg(long)]
    pub no_header: bool,
    /// CSV, TSV and TBL: an unquoted field of exactly this text is null, as the empty one is
    #[arg(long, value_name = "TEXT")]
    pub null: Option<String>,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Database
    pub url: String,
    /// A table's name or a query
    #[arg(value_parser = unmarked)]
    pub source: String,
    /// File to write; replaced when it exists, unless it is a pipe or a device, which is written to
    pub file: PathBuf,
    /// Format; follows the file's name otherwise
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
}

#[derive(Args, Debug)]
pub struct TpchArgs {
    /// Database; created when it does not exist
    pub url: String,
    /// Scale factor: 1 is about 8.7 million rows
    #[arg(long, value_name = "F", value_parser = scale)]
    pub scale: f64,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale.is_finite() && scale > 0.0 && scale <= 10_000.0 => Ok(scale),
        _ => Err("a scale factor is a number above 0, up to 10000".into()),
    }
}

#[derive(Args, Debug)]
pub struct InspectArgs {
    /// Database
    pub url: String,
    /// Only this table, with its segments and columns
    pub table: Option<String>,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Database
    pub url: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn commands_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn scale_is_checked() {
        assert_eq!(scale("0.01"), Ok(0.01));
        for bad in ["0", "-1", "nan", "inf", "x", ""] {
            assert!(scale(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn negative_parameters_are_values() {
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
