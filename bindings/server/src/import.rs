//! `nacre import`: loads files into a table. Each file loads completely or not at all; files loaded
//! before a failing one stay loaded.

use crate::args::ImportArgs;
use crate::database::{self, Missing, Opened, quoted};
use crate::failure::{Failure, Outcome};
use crate::source::{self, FileColumn, Input, Source, TextOptions};
use crate::terminal::{self, Progress};
use nacre_native::block_on;
use nacredb::{Appender, Error, ErrorKind, Session};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Runs the command.
pub fn run(args: &ImportArgs, out: &mut dyn Write) -> Outcome {
    // Reject unreadable files before opening the database, which may create it.
    let mut files = Vec::new();
    for path in &args.files {
        let input = Input::open(path)?;
        open(&input, args)?;
        files.push((path.as_path(), Some(input).filter(|input| !input.can_be_reopened())));
    }
    let database = database::open(
        &args.url,
        Missing::Create,
        database::options_of(&args.url, &args.options)?,
    )?;
    let outcome = load_all(&database, args, files, out);
    database::close(&database, outcome)
}

fn open(input: &Input, args: &ImportArgs) -> Result<Box<dyn Source>, Error> {
    let options = TextOptions { no_header: args.no_header, null: args.null.clone() };
    let format = args.format.map_or_else(|| source::format_of(input.path()), Ok)?;
    source::open(input, format, &options)
}

/// Loads files one after the other. A file without an `Input` is reopened when its turn comes,
/// which keeps the number of open files low.
fn load_all(
    database: &Opened,
    args: &ImportArgs,
    files: Vec<(&Path, Option<Input>)>,
    out: &mut dyn Write,
) -> Outcome {
    let mut session = database.session();
    for (file, input) in files {
        let started = Instant::now();
        let mut source = open(&input.map_or_else(|| Input::open(file), Ok)?, args)?;
        let (rows, changed) = load(&mut session, args, file, &mut *source)?;
        let elapsed = started.elapsed();
        let of_all = if changed == rows {
            String::new()
        } else {
            format!("{} of ", terminal::grouped(changed))
        };
        // A closed standard output must not stop the import of the remaining files.
        let _ = writeln!(
            out,
            "{}: {of_all}{} into {} in {}, {}",
            file.display(),
            terminal::rows(rows),
            args.table,
            terminal::duration(elapsed),
            terminal::rate(rows, elapsed.as_secs_f64())
        )
        .and_then(|()| out.flush());
        database.run_maintenance();
    }
    Ok(())
}

fn load(
    session: &mut Session,
    args: &ImportArgs,
    file: &Path,
    source: &mut dyn Source,
) -> Outcome<(u64, u64)> {
    let label =
        file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let progress = Progress::new(&label, source.total());
    let (appender, created) = match appender(session, args) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            progress.phase("inferring types");
            let columns = source.describe(&|done, rows| progress.update(done, rows))?;
            let ddl = create_table(&args.table, &columns, &args.primary_key)?;
            database::execute(session, &ddl, &[])?;
            (appender(session, args), true)
        }
        other => (other, false),
    };
    let loaded = appender
        .map_err(|error| error.context(file.display()))
        .and_then(|appender| append(appender, source, file, &progress));
    match loaded {
        Ok(rows) => Ok(rows),
        Err(error) => {
            if created {
                database::execute(session, &format!("drop table {}", quoted(&args.table)), &[])?;
            }
            Err(Failure::from(error))
        }
    }
}

fn appender(session: &mut Session, args: &ImportArgs) -> Result<Appender, Error> {
    block_on(session.appender(&args.table, args.on_duplicate.into()))
}

/// Appends the source's rows. Returns the number of rows read and the number of rows inserted or
/// replaced. Errors name the file: those of the source do so themselves.
fn append(
    mut appender: Appender,
    source: &mut dyn Source,
    file: &Path,
    progress: &Progress,
) -> Result<(u64, u64), Error> {
    source.bind(&appender.schema().clone())?;
    let mut rows = 0;
    while let Some(batch) = source.next()? {
        appender.append(&batch).map_err(|error| error.context(file.display()))?;
        rows += batch.rows as u64;
        progress.update(source.done(), rows);
    }
    progress.phase("writing");
    let written = block_on(appender.finish()).map_err(|error| error.context(file.display()))?;
    Ok((rows, written))
}

/// Builds the CREATE TABLE statement for a file's columns.
fn create_table(
    table: &str,
    columns: &[FileColumn],
    primary_key: &[String],
) -> Result<String, Error> {
    let is_key = |name: &str| primary_key.iter().any(|key| key.eq_ignore_ascii_case(name));
    if let Some(key) =
        primary_key.iter().find(|key| !columns.iter().any(|c| c.name.eq_ignore_ascii_case(key)))
    {
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        return Err(Error::not_found(format!("--primary-key: the file has no column {key:?}"))
            .with_hint(format!("its columns are {}", names.join(", "))));
    }
    let mut parts: Vec<String> = columns
        .iter()
        .map(|column| {
            let not_null = if is_key(&column.name) { " NOT NULL" } else { "" };
            format!("{} {}{not_null}", quoted(&column.name), column.data_type)
        })
        .collect();
    if !primary_key.is_empty() {
        let keys: Vec<String> = primary_key.iter().map(|key| quoted(key)).collect();
        parts.push(format!("PRIMARY KEY ({})", keys.join(", ")));
    }
    Ok(format!("CREATE TABLE {} (\n  {}\n)", quoted(table), parts.join(",\n  ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacredb::DataType;

    #[test]
    fn create_table_quotes_names_and_declares_the_key() {
        let columns = [
            FileColumn { name: "id".into(), data_type: DataType::Int64 },
            FileColumn {
                name: "a \"b\"".into(),
                data_type: DataType::Decimal { precision: 18, scale: 2 },
            },
        ];
        assert_eq!(
            create_table("t", &columns, &["ID".into()]).unwrap(),
            "CREATE TABLE \"t\" (\n  \"id\" BIGINT NOT NULL,\n  \"a \"\"b\"\"\" DECIMAL(18,2),\n  PRIMARY KEY (\"ID\")\n)"
        );
        assert!(create_table("t", &columns, &["x".into()]).is_err());
    }
}
