//! CSV, TSV, TBL and NDJSON: any text is imported or rejected with a typed error; quoted fields are
//! imported unchanged.

use crate::input::Input;
use crate::subject::{Subject, options, printed};
use nacre_native::block_on;
use nacre_server::args::FileFormat;
use nacre_server::source::{self, TextOptions};
use nacredb::{ErrorKind, OnDuplicate, Result};
use std::cell::RefCell;
use std::path::PathBuf;

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut subject = Subject::new(options());
    let kind = input.below(8);
    if kind >= 6 {
        return quoted(&mut subject, kind == 7, &mut input);
    }
    let format =
        [FileFormat::Csv, FileFormat::Tsv, FileFormat::Tbl, FileFormat::Ndjson][kind.min(3)];
    let text_options =
        TextOptions { no_header: input.one_in(3), null: input.one_in(4).then(|| "NA".to_string()) };
    match import(&mut subject, format, input.rest(), &text_options) {
        Ok(()) => drop(subject.must("select * from t")),
        Err(error) => allowed(&error),
    }
    subject.check();
}

/// Asserts that a file may cause this error. Without columns there is no table.
pub fn allowed(error: &nacredb::Error) {
    let kinds = [
        ErrorKind::Corrupt,
        ErrorKind::Unsupported,
        ErrorKind::Limit,
        ErrorKind::Type,
        ErrorKind::AlreadyExists,
    ];
    let kinds =
        [&kinds[..], &[ErrorKind::Syntax, ErrorKind::NotFound, ErrorKind::Constraint]].concat();
    assert!(kinds.contains(&error.kind()), "importing: {}: {error}", error.kind().name());
}

/// Imports quoted fields into text columns, which must keep them unchanged.
fn quoted(subject: &mut Subject, tabs: bool, input: &mut Input<'_>) {
    const PIECES: [&str; 10] = ["a", "", "\"", "\n", ",", "\t", "\r\n", " ", "ä", "NULL"];
    let width = 1 + input.below(4);
    let mut rows: Vec<Vec<String>> = Vec::new();
    while !input.is_empty() && rows.len() < 30 {
        let field = |input: &mut Input<'_>| {
            (0..input.below(5)).map(|_| input.pick(&PIECES)).collect::<String>()
        };
        rows.push((0..width).map(|_| field(input)).collect());
    }
    let (format, comma) = if tabs { (FileFormat::Tsv, "\t") } else { (FileFormat::Csv, ",") };
    let line = |row: &Vec<String>| {
        row.iter()
            .map(|field| format!("\"{}\"", field.replace('"', "\"\"")))
            .collect::<Vec<_>>()
            .join(comma)
    };
    let names: Vec<String> = (0..width).map(|n| format!("c{n}")).collect();
    let text = std::iter::once(&names).chain(&rows).map(line).collect::<Vec<_>>().join("\n");
    let columns = names.iter().map(|name| format!("{name} text")).collect::<Vec<_>>().join(", ");
    subject.must(&format!("create table t ({columns})"));
    load(subject, format, text.as_bytes(), &TextOptions::default())
        .unwrap_or_else(|error| panic!("{text:?}: {error}"));
    assert_eq!(printed(&subject.must("select * from t")), rows, "{text:?}");
}

/// Imports a file into a new table `t`, whose columns are inferred from the file.
pub fn import(
    subject: &mut Subject,
    format: FileFormat,
    bytes: &[u8],
    text_options: &TextOptions,
) -> Result<()> {
    let path = file(bytes);
    let columns =
        source::open(&source::Input::open(&path)?, format, text_options)?.describe(&|_, _| ())?;
    let name = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let columns: Vec<String> =
        columns.iter().map(|c| format!("{} {}", name(&c.name), c.data_type)).collect();
    subject.run(&format!("create table t ({})", columns.join(", ")))?;
    load(subject, format, bytes, text_options)
}

fn load(
    subject: &mut Subject,
    format: FileFormat,
    bytes: &[u8],
    text_options: &TextOptions,
) -> Result<()> {
    let path = file(bytes);
    let mut source = source::open(&source::Input::open(&path)?, format, text_options)?;
    let mut appender = block_on(subject.session.appender("t", OnDuplicate::Error))?;
    source.bind(&appender.schema().clone())?;
    while let Some(batch) = source.next()? {
        appender.append(&batch)?;
    }
    block_on(appender.finish()).map(drop)
}

/// This thread's file, with these bytes; in memory if the machine has such a folder.
fn file(bytes: &[u8]) -> PathBuf {
    struct Mine(PathBuf);
    impl Drop for Mine {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
    thread_local! {
        static MINE: RefCell<Option<Mine>> = const { RefCell::new(None) };
    }
    let path = MINE.with_borrow_mut(|mine| {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let name = format!("nacre-fuzz-{}-{:?}", std::process::id(), std::thread::current().id());
        mine.get_or_insert_with(|| Mine(folder.join(name))).0.clone()
    });
    std::fs::write(&path, bytes).expect("the file can be written");
    path
}
