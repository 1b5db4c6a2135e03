//! `nacre export`, and importing its files again.

use crate::folder::Folder;
use std::process::Command;

#[test]
fn exported_files_can_be_imported() {
    let folder = Folder::new();
    folder.ok(&[
        "sql",
        "a",
        "create table t (id bigint primary key, n decimal(12,2), s text, b boolean, day date, \
         at_time timestamp, f double, w decimal(30,10))",
        "insert into t values (1, 1.50, 'a,\"b\"', true, '2024-02-29', '2024-02-29 12:00:00.5', 0.1, \
         12345678901234567890.1234567891), \
         (2, null, null, null, null, null, null, null), \
         (3, -0.01, 'line\nbreak', false, '1969-12-31', '1969-12-31 23:59:59', -2e300, 0.5)",
    ]);
    let all = "select * from t order by id";
    let expected = folder.csv("a", all);
    for format in ["csv", "tsv", "parquet", "ndjson", "arrow"] {
        let file = format!("t.{format}");
        folder.ok(&["export", "a", "t", &file]);
        let url = format!("from_{format}");
        let out = folder.ok(&["import", &url, "t", &file, "--primary-key", "id"]);
        assert!(out.contains("3 rows into t"), "{out}");
        assert_eq!(folder.csv(&url, all), expected, "{format}");
        assert!(folder.ok(&["check", &url]).starts_with("ok: 1 table, 3 rows"));
    }
    // The empty text and null stay distinct in formats that distinguish them.
    folder.ok(&[
        "sql",
        "e",
        "create table t (id int primary key, s text)",
        "insert into t values (1, ''), (2, null)",
    ]);
    folder.ok(&["export", "e", "select * from t order by id", "e.csv"]);
    assert_eq!(std::fs::read_to_string(folder.0.join("e.csv")).unwrap(), "id,s\n1,\"\"\n2,\n");
    folder.ok(&["import", "e2", "t", "e.csv"]);
    assert_eq!(folder.csv("e2", "select count(*) as n, count(s) as m from t"), "n,m\n2,1\n");
}

#[test]
fn a_float_converted_to_text_gains_no_digits() {
    let folder = Folder::new();
    folder.ok(&["sql", "d", "create table t (f float)", "insert into t values (0.1)"]);
    folder.ok(&["export", "d", "t", "t.parquet"]);
    assert_eq!(folder.csv("d", "select f, cast(f as text) as s from t"), "f,s\n0.1,0.1\n");
    for (data_type, text) in [("text", "0.1"), ("decimal(18,10)", "0.1000000000")] {
        folder.ok(&[
            "sql",
            "e",
            "drop table if exists t",
            &format!("create table t (f {data_type})"),
        ]);
        folder.ok(&["import", "e", "t", "t.parquet"]);
        assert_eq!(folder.csv("e", "select f from t"), format!("f\n{text}\n"));
    }
}

#[test]
fn exports_replace_regular_files_only() {
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
    let folder = Folder::new();
    folder.ok(&["sql", "d", "create table t (id int)", "insert into t values (1), (2)"]);
    let (rows, path) = ("id\n1\n2\n", |name: &str| folder.0.join(name));
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    // An export to standard output prints nothing but the rows. A link keeps a defect from
    // replacing the system's /dev/stdout.
    symlink("/dev/stdout", path("rows.csv")).unwrap();
    assert_eq!(folder.ok(&["export", "d", "t", "rows.csv"]), rows);
    let out = std::fs::File::options().append(true).create(true).open(path("out.csv")).unwrap();
    for _ in 0..2 {
        let mut command = folder.command(&["export", "d", "t", "rows.csv"]);
        assert!(command.stdout(out.try_clone().unwrap()).status().unwrap().success());
    }
    assert_eq!(read("out.csv"), rows.repeat(2));
    // A pipe is written to, not replaced.
    assert!(Command::new("mkfifo").arg(path("pipe.csv")).status().unwrap().success());
    let pipe = path("pipe.csv");
    let reader = std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap());
    assert!(folder.ok(&["export", "d", "t", "pipe.csv"]).starts_with("pipe.csv: 2 rows in "));
    assert!(path("pipe.csv").metadata().unwrap().file_type().is_fifo());
    assert_eq!(reader.join().unwrap(), rows);
    // Symbolic links are followed, even to a missing file; the mode of the file stays.
    std::fs::create_dir(path("old")).unwrap();
    let target = folder.file("old/target.csv", b"old");
    std::fs::set_permissions(&target, PermissionsExt::from_mode(0o600)).unwrap();
    symlink("old/target.csv", path("latest.csv")).unwrap();
    symlink("latest.csv", path("last.csv")).unwrap();
    symlink("new.csv", path("old/next.csv")).unwrap();
    folder.ok(&["export", "d", "t", "last.csv"]);
    folder.ok(&["export", "d", "t", "old/next.csv"]);
    assert_eq!((read("old/target.csv").as_str(), read("old/new.csv").as_str()), (rows, rows));
    for link in ["rows.csv", "last.csv", "latest.csv", "old/next.csv"] {
        assert!(path(link).is_symlink(), "{link}");
    }
    assert_eq!(target.metadata().unwrap().mode() & 0o777, 0o600);
    // An export overwrites no other file and leaves no temporary file.
    folder.file("x.csv.partial", b"mine");
    folder.ok(&["export", "d", "t", "x.csv"]);
    assert_eq!((read("x.csv").as_str(), read("x.csv.partial").as_str()), (rows, "mine"));
    assert_eq!(folder.nacre(&["export", "d", "select id, id / 0 from t", "x.csv"]).0, 1);
    assert_eq!(read("x.csv"), rows);
    let left = |name: &str| {
        std::fs::read_dir(path(name))
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "partial"))
            .count()
    };
    assert_eq!((left("."), left("old")), (1, 0));
    assert_eq!(folder.nacre(&["export", "d", "t", "old", "--format", "csv"]).0, 1);
}
