//! Opens the committed databases, compares their contents, writes to them, and verifies that newer
//! versions are rejected.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_golden_tests::{AFTER_SNAPSHOT, CASES, Case, options};
use nacre_native::{block_on, memory_host, open_folder};
use nacre_testing::without_background;
use nacre_types::checksum::checksum;
use nacredb::{Budget, Database, ErrorKind, Session};
use std::path::{Path, PathBuf};

fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

/// A writable copy, removed on drop.
struct Copy(PathBuf);

impl Copy {
    fn of(name: &str, purpose: &str) -> Copy {
        let path = std::env::temp_dir()
            .join(format!("nacre-golden-{name}-{purpose}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).unwrap();
        for file in files(&committed(name)) {
            std::fs::copy(&file, path.join(file.file_name().unwrap())).unwrap();
        }
        Copy(path)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The files of a database.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name == "reach"
            || ["log-", "snap-", "seg-", "idx-", "hsh-"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
    };
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).filter(named).collect();
    files.sort();
    files
}

fn run(session: &mut Session, sql: &str) {
    block_on(session.execute(sql, &[])).unwrap_or_else(|e| panic!("{e}\n{sql:.300}"));
}

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let rows =
        block_on(session.execute(sql, &[])).unwrap_or_else(|e| panic!("{e}\n{sql}")).to_rows();
    rows.iter()
        .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"))
        .collect()
}

/// Runs the statements of a case.
fn make(db: &Database, case: &Case) {
    let mut session = db.session();
    for statement in (case.statements)() {
        run(&mut session, &statement);
    }
    if case.steps > 0 {
        db.maintain(Budget::Steps(case.steps)).unwrap();
    }
    if case.name == "snapshot" {
        run(&mut session, AFTER_SNAPSHOT);
    }
}

#[test]
fn every_folder_holds_what_was_put_into_it() {
    for case in &CASES {
        let copy = Copy::of(case.name, "read");
        let again = block_on(Database::open(memory_host(), options(case))).unwrap();
        make(&again, case);
        for round in 0..2 {
            let db =
                block_on(Database::open(open_folder(&copy.0).unwrap(), options(case))).unwrap();
            let (mut stored, mut made) = (db.session(), again.session());
            assert_eq!(db.check().unwrap(), Vec::<String>::new(), "{}", case.name);
            for (table, order) in case.tables {
                let sql = format!("select * from {table} order by {order}");
                let (mut stored, made) = (rows(&mut stored, &sql), rows(&mut made, &sql));
                assert!(!made.is_empty());
                // Stored before JSON had a normal form: it stays what it was.
                let (before, normal) = (r#"{"a": [1, null]}"#, r#"{"a":[1,null]}"#);
                if case.name == "log" && round == 0 {
                    let given = stored.iter().filter(|row| row.contains(before)).count();
                    assert_eq!(given, usize::from(*table == "every"));
                    stored.iter_mut().for_each(|row| *row = row.replace(before, normal));
                }
                assert_eq!(stored, made, "{}: {table}, round {round}", case.name);
            }
            // The database remains usable: every table can be changed, flushed and merged.
            for (table, _) in case.tables.iter().filter(|(table, _)| *table != "seen") {
                run(&mut stored, &format!("delete from {table}; optimize table {table} full"));
                run(&mut made, &format!("delete from {table}"));
                assert_eq!(rows(&mut stored, &format!("select count(*) from {table}")), ["0"]);
            }
            for statement in (case.statements)().iter().filter(|s| s.starts_with("insert")) {
                if round == 0 && case.name != "altered" {
                    run(&mut stored, statement);
                    run(&mut made, statement);
                }
            }
            if case.name == "altered" {
                break;
            }
            block_on(db.close()).unwrap();
        }
    }
}

/// Rows read alone without a cache: of files with outlines by parts, of older ones from whole blocks.
#[test]
fn every_row_is_found_by_its_key() {
    for (name, table, rows_of_table) in [
        ("outlines", "o", 4_225),
        ("encodings", "e", 600),
        ("tokens", "o", 4_225),
        ("documents", "d", 4_225),
    ] {
        let case = CASES.iter().find(|case| case.name == name).unwrap();
        let copy = Copy::of(name, "points");
        let without_cache = nacredb::Options { cache_bytes: 1, ..options(case) };
        let db = block_on(Database::open(open_folder(&copy.0).unwrap(), without_cache)).unwrap();
        let again = block_on(Database::open(memory_host(), options(case))).unwrap();
        make(&again, case);
        let (mut stored, mut made) = (db.session(), again.session());
        let mut found = 0;
        for id in (0..rows_of_table).step_by(7) {
            let sql = format!("select * from {table} where id = {id}");
            let (stored, made) = (rows(&mut stored, &sql), rows(&mut made, &sql));
            assert_eq!(stored, made, "{name}: row {id}");
            found += made.len();
        }
        assert!(found > rows_of_table / 8, "{name}: {found} rows");
    }
}

#[test]
fn the_folders_have_what_they_are_there_for() {
    let count = |name: &str, prefix: &str| {
        let starts = |f: &&PathBuf| f.file_name().unwrap().to_string_lossy().starts_with(prefix);
        files(&committed(name)).iter().filter(starts).count()
    };
    assert_eq!((count("log", "log-"), count("log", "seg-"), count("log", "snap-")), (1, 0, 0));
    assert!(count("chunks", "log-") >= 2);
    assert_eq!(count("snapshot", "snap-"), 1);
    for case in &CASES {
        let bytes: u64 =
            files(&committed(case.name)).iter().map(|f| f.metadata().unwrap().len()).sum();
        assert!(bytes < 250_000, "{} has {bytes} bytes: {}", case.name, case.why);
    }
    let version =
        |name: &str| std::fs::read(committed(name).join("seg-0000000000000001")).unwrap()[7];
    let names = ["encodings", "contents", "outlines", "tokens", "documents"];
    assert_eq!(names.map(version), [1, 2, 3, 4, 5]);
    let (mut found, mut kinds): (Vec<String>, Vec<String>) = Default::default();
    for name in ["encodings", "tokens", "documents"] {
        let case = CASES.iter().find(|case| case.name == name).unwrap();
        let copy = Copy::of(name, "inspect");
        let db = block_on(Database::open(open_folder(&copy.0).unwrap(), options(case))).unwrap();
        let report = db.inspect().unwrap();
        let columns = report.iter().flat_map(|t| &t.columns);
        found.extend(columns.flat_map(|c| c.encodings.iter().map(|(name, _)| name.clone())));
        let paths = report.iter().flat_map(|t| &t.columns).flat_map(|c| &c.paths);
        kinds.extend(paths.map(|path| path.kind.clone()));
    }
    for kind in
        ["shape", "length", "start", "integer", "double", "string", "boolean", "other", "rest"]
    {
        assert!(kinds.iter().any(|k| k == kind), "no path has a {kind}: {kinds:?}");
    }
    for name in [
        "alp",
        "bitpacked",
        "constant",
        "delta",
        "dictionary",
        "fsst",
        "lz4",
        "onpair",
        "plain",
        "run_length",
        "shredded",
    ] {
        assert!(found.iter().any(|f| f == name), "no column is {name}: {found:?}");
    }
}

/// Log files and snapshots have their version at byte 8, under a checksum of the first 56 bytes.
fn raise_log_version(bytes: &mut [u8]) {
    let version = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
    bytes[8..12].copy_from_slice(&(version + 1).to_le_bytes());
    let sum = checksum(&bytes[..56]);
    bytes[56..64].copy_from_slice(&sum.to_le_bytes());
}

/// Segments have their version in the last byte of the magic number, at both ends.
fn raise_segment_version(bytes: &mut [u8]) {
    bytes[7] = 99;
    let last = bytes.len() - 1;
    bytes[last] = 99;
}

#[test]
fn a_newer_version_is_refused_by_name() {
    for (case, prefix, raise) in [
        ("log", "log-", raise_log_version as fn(&mut [u8])),
        ("snapshot", "snap-", raise_log_version),
        ("encodings", "seg-", raise_segment_version),
    ] {
        let copy = Copy::of(case, "newer");
        let starts = |f: &PathBuf| f.file_name().unwrap().to_string_lossy().starts_with(prefix);
        let file = files(&copy.0).into_iter().find(starts).unwrap();
        let mut bytes = std::fs::read(&file).unwrap();
        raise(&mut bytes);
        std::fs::write(&file, &bytes).unwrap();
        let case = CASES.iter().find(|c| c.name == case).unwrap();
        let Err(error) = block_on(Database::open(open_folder(&copy.0).unwrap(), options(case)))
        else {
            panic!("{prefix} of a newer version was opened")
        };
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{prefix}: {error}");
        assert!(error.message().contains("version"), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "it was left alone");
    }
}

/// Writes the folders that `data/` lacks: `cargo test -p nacre-golden-tests -- --ignored
/// write_the_folders`.
#[test]
#[ignore = "writes committed folders"]
fn write_the_folders() {
    for case in CASES.iter().filter(|case| !committed(case.name).exists()) {
        let path = std::env::temp_dir().join(format!(
            "nacre-golden-{}-write-{}",
            case.name,
            std::process::id()
        ));
        std::fs::remove_dir_all(&path).ok();
        let host = without_background(open_folder(&path).unwrap());
        let db = block_on(Database::open(host, options(case))).unwrap();
        make(&db, case);
        // Not closed, so that the log's tail is as a crash would leave it.
        let to = committed(case.name);
        std::fs::create_dir_all(&to).unwrap();
        for file in files(&path) {
            let name = file.file_name().unwrap();
            let mut bytes = std::fs::read(&file).unwrap();
            if name.to_string_lossy().starts_with("log-") {
                // Trailing zeros are space reserved for later records.
                let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
                bytes.truncate(end.max(64));
            }
            std::fs::write(to.join(name), bytes).unwrap();
        }
        drop(db);
        std::fs::remove_dir_all(&path).ok();
    }
}
