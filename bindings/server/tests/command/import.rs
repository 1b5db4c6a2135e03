//! `nacre import`: pipes, many files, damaged files, duplicate keys.

use crate::folder::{Folder, outcome, segments};
use std::process::{Command, Stdio};

/// Each command runs the maintenance that its writes have made due.
#[test]
fn many_small_imports_leave_few_segments() {
    let folder = Folder::new();
    for number in 0..12 {
        folder.file("rows.csv", format!("id,v\n{number},x\n").as_bytes());
        folder.ok(&["import", "d", "t", "rows.csv"]);
    }
    let left = segments(&folder.0.join("d")).len();
    assert!(left < 8, "{left} segments");
    assert_eq!(folder.csv("d", "select count(*), sum(id) from t").lines().last(), Some("12,66"));
}

#[test]
fn pipes_are_imported_completely() {
    let folder = Folder::new();
    let rows: String = (0..20_000).map(|id| format!("{id},row {id}\n")).collect();
    folder.file("rows.csv", format!("id,s\n{rows}").as_bytes());
    folder.ok(&["import", "a", "t", "rows.csv"]);
    let expected = folder.csv("a", "select * from t order by id");
    for format in ["csv", "tsv", "tbl", "ndjson", "parquet", "arrow"] {
        let file = format!("t.{format}");
        folder.ok(&["export", "a", "t", &file]);
        let bytes = std::fs::read(folder.0.join(&file)).unwrap();
        for name in ["-", "/dev/stdin"] {
            let url = format!("{format}{}", name.len());
            if format == "tbl" {
                folder.ok(&["sql", &url, "create table t (id bigint, s text)"]);
            }
            let (code, out, error) =
                folder.piped(&["import", &url, "t", name, "--format", format], &bytes);
            assert_eq!((code, error.as_str()), (0, ""), "{format} {name}");
            assert!(out.starts_with(&format!("{name}: 20,000 rows into t")), "{out}");
            assert_eq!(
                folder.csv(&url, "select * from t order by id"),
                expected,
                "{format} {name}"
            );
        }
    }
    let twice = ["import", "k", "t", "-", "--format", "csv", "--primary-key", "id"];
    let (code, _, error) = folder.piped(&twice, b"id\na-b\na-b\n");
    assert_eq!((code, error.starts_with("error[constraint]: -: ")), (1, true), "{error}");
    // Redirected standard input is a file, whose beginning another process may have read.
    let script = "\"$0\" import r t - --format tbl < t.tbl && (read line && \"$0\" import r t - --format tbl) < t.tbl";
    folder.ok(&["sql", "r", "create table t (id int, s text)"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_nacre")]).current_dir(&folder.0);
    assert_eq!(outcome(&shell.output().unwrap()).0, 0);
    let count = "select count(*) as n, count(distinct id) as m from t";
    assert_eq!(folder.csv("r", count), "n,m\n39999,20000\n");
    // A named pipe can be opened only once.
    assert!(Command::new("mkfifo").arg(folder.0.join("pipe.csv")).status().unwrap().success());
    let (pipe, bytes) = (folder.0.join("pipe.csv"), std::fs::read(folder.0.join("t.csv")).unwrap());
    let writer = std::thread::spawn(move || std::fs::write(pipe, bytes).unwrap());
    assert!(
        folder.ok(&["import", "p", "t", "pipe.csv"]).starts_with("pipe.csv: 20,000 rows into t")
    );
    writer.join().unwrap();
    // `-` has no extension that gives the format.
    assert!(folder.nacre(&["import", "p", "t", "-"]).2.starts_with("error[unsupported]: -: "));
}

#[test]
fn imports_may_exceed_the_open_file_limit() {
    let folder = Folder::new();
    let names: Vec<String> = (0..200).map(|number| format!("part-{number}.csv")).collect();
    names.iter().for_each(|name| drop(folder.file(name, b"id\n")));
    folder.ok(&["sql", "d", "create table t (id int)"]);
    let limited = |limit: &str, arguments: &[&str]| {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            &format!("ulimit {limit} && exec \"$0\" \"$@\""),
            env!("CARGO_BIN_EXE_nacre"),
        ]);
        shell.args(arguments).current_dir(&folder.0).stdin(Stdio::piped());
        outcome(&shell.output().unwrap())
    };
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    let (code, out, error) = limited("-n 64", &[&["import", "d", "t"], &files[..]].concat());
    assert_eq!((code, error.as_str(), out.lines().count()), (0, "", 200));
    // Inputs that must stay open may reach the hard limit.
    let (code, _, error) = limited(
        "-S -n 64",
        &[&["import", "d", "t", "--format", "ndjson"], &["-"; 200][..]].concat(),
    );
    assert_eq!((code, error.as_str()), (0, ""));
}

#[test]
fn a_bad_file_changes_nothing() {
    let folder = Folder::new();
    folder.ok(&[
        "sql",
        "d",
        "create table t (id int primary key, day date)",
        "insert into t values (1, '2026-01-01')",
    ]);
    for (name, text, kind, part) in [
        (
            "a.csv",
            &b"id,day\n2,2026-01-02\n3,soon\n"[..],
            "type",
            "a.csv: line 3: column day: \"soon\"",
        ),
        ("b.csv", b"id,day\n2,2026-01-02\n1,2026-01-03\n", "constraint", "b.csv"),
        ("c.csv", b"id,day\n2\n", "corrupt", "c.csv: line 2"),
        ("d.csv", b"PAR1....", "corrupt", "d.csv: row 1"),
        ("e.parquet", b"id,day\n2,2026-01-02\n", "corrupt", "e.parquet: row 1"),
        ("f.ndjson", b"{\"id\": 2}\n{\"id\": \n", "corrupt", "f.ndjson: line 2"),
        ("g.tbl", b"2|2026-01-02|x|\n", "type", "g.tbl: line 1"),
        ("h.csv", b"id,night\n", "not_found", "night"),
    ] {
        folder.file(name, text);
        let (code, _, error) = folder.nacre(&["import", "d", "t", name]);
        assert_eq!(code, 1, "{name}");
        assert!(error.starts_with(&format!("error[{kind}]: ")) && error.contains(part), "{error}");
        assert_eq!(folder.csv("d", "select * from t"), "id,day\n1,2026-01-01\n", "{name}");
        // A failed import does not leave behind the table it created.
        if name != "h.csv" && name != "g.tbl" && name != "a.csv" && name != "b.csv" {
            assert_eq!(folder.nacre(&["import", "d", "new", name]).0, 1, "{name}");
            assert_eq!(folder.csv("d", "show tables"), "table_name\nt\n", "{name}");
        }
    }
    let twice = folder.file("twice.csv", b"id\n1\n1\n");
    let twice = twice.to_string_lossy();
    assert_eq!(folder.nacre(&["import", "d", "new", &twice, "--primary-key", "id"]).0, 1);
    assert_eq!(folder.csv("d", "show tables"), "table_name\nt\n");
}

#[test]
fn duplicate_policies() {
    let folder = Folder::new();
    folder.ok(&[
        "sql",
        "d",
        "create table t (id int primary key, v text)",
        "insert into t values (1, 'old')",
    ]);
    folder.file("t.csv", b"id,v\n1,new\n2,two\n");
    assert_eq!(folder.nacre(&["import", "d", "t", "t.csv"]).0, 1);
    folder.ok(&["import", "d", "t", "t.csv", "--on-duplicate", "skip"]);
    assert_eq!(folder.csv("d", "select * from t order by id"), "id,v\n1,old\n2,two\n");
    folder.ok(&["import", "d", "t", "t.csv", "--on-duplicate", "replace"]);
    assert_eq!(folder.csv("d", "select * from t order by id"), "id,v\n1,new\n2,two\n");
}
