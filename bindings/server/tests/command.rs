//! The `nacre` command as its users run it: processes, exit codes, files.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that is removed with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("nacre-command-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, text: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nacre"));
        command.args(arguments).current_dir(&self.0).env_remove("NO_COLOR").stdin(Stdio::null());
        command
    }

    /// Exit code, standard output, standard error.
    fn nacre(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&self.command(arguments).output().unwrap())
    }

    /// The same, with this on standard input, through a pipe.
    fn piped(&self, arguments: &[&str], input: &[u8]) -> (i32, String, String) {
        use std::io::Write;
        let mut command = self.command(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // Whoever has seen enough closes it.
        let _ = pipe.write_all(input);
        drop(pipe);
        told(&child.wait_with_output().unwrap())
    }

    /// Exit code and standard error of a run whose standard output nobody reads, with this on standard input.
    fn unread(&self, arguments: &[&str], input: &str) -> (i32, String) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let input = std::fs::File::open(self.file("input", input.as_bytes())).unwrap();
        let mut command = self.command(arguments);
        let (code, _, error) = told(&command.stdin(input).stdout(writer).output().unwrap());
        (code, error)
    }

    /// Standard output of a run that must succeed.
    fn ok(&self, arguments: &[&str]) -> String {
        let (code, out, error) = self.nacre(arguments);
        assert_eq!(code, 0, "{arguments:?}: {error}");
        out
    }

    fn csv(&self, url: &str, sql: &str) -> String {
        self.ok(&["sql", url, sql, "--format", "csv"])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|p| p.to_string_lossy().contains("/seg")).collect();
    found.sort();
    found
}

#[test]
fn exit_codes_and_formats() {
    let folder = Folder::new();
    assert_eq!(
        folder.ok(&["sql", "memory://", "select 1 as one, 'a' as b"]),
        " one │ b\n─────┼──\n   1 │ a\n(1 row)\n"
    );
    assert_eq!(folder.csv("memory://", "select 1 as one, null as b"), "one,b\n1,\n");
    assert_eq!(
        folder.ok(&["sql", "memory://", "select ? as x", "--param", "7", "--format", "json"]),
        "[{\"x\":7}]\n"
    );
    let as_ =
        |format| folder.ok(&["sql", "memory://", "select 1 as a, 'x' as b", "--format", format]);
    assert_eq!(as_("tsv"), "a\tb\n1\tx\n");
    assert_eq!(as_("ndjson"), "{\"a\":1,\"b\":\"x\"}\n");
    assert_eq!(as_("jsonl"), as_("ndjson"));
    assert_eq!(as_("line"), "─ row 1 ────────────\n a │ 1\n b │ x\n(1 row)\n");
    assert_eq!(
        folder.ok(&["sql", "d", "create table t (a int)", "insert into t values (1), (2)"]),
        "2 rows affected\n"
    );
    assert_eq!(folder.csv("d", "select sum(a) as s from t"), "s\n3\n");

    let (code, out, error) = folder.nacre(&["sql", "d", "select *\nfrom nope"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        error.starts_with("error[not_found]: ") && error.contains("\n2 | from nope\n  |      ^\n"),
        "{error}"
    );
    assert_eq!(folder.nacre(&["sql", "d"]).0, 2);
    assert_eq!(folder.nacre(&["nonsense"]).0, 2);
    assert_eq!(folder.nacre(&["tpch", "d", "--scale", "-1"]).0, 2);
    assert_eq!(folder.nacre(&["--help"]).0, 0);
}

#[test]
fn rows_come_before_the_query_ends() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new();
    folder.ok(&["tpch", "d", "--scale", "0.01"]);
    let sql = "select l_orderkey, case when l_orderkey > 50000 then cast(l_orderkey as tinyint) end as x from lineitem";
    // What came before an error was printed.
    for format in ["csv", "ndjson", "json", "table", "line"] {
        let (code, out, error) = folder.nacre(&["sql", "d", sql, "--format", format]);
        assert_eq!(code, 1);
        assert!(
            out.lines().count() > 10_000 || out.len() > 500_000,
            "{format}: {} bytes",
            out.len()
        );
        assert!(error.starts_with("error[type]: TINYINT out of range"), "{error}");
    }
    // Whoever has seen enough does not wait for the rest, which here would be an error.
    for format in ["csv", "table", "arrow"] {
        let mut command = folder.command(&["sql", "d", sql, "--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        assert!(!reader.fill_buf().unwrap().is_empty());
        drop(reader);
        let (code, _, error) = told(&child.wait_with_output().unwrap());
        assert_eq!((code, error.as_str()), (0, ""), "{format}");
    }
    // The memory limit is for what has to be held.
    let small = |arguments: &[&str]| {
        folder.nacre(
            &[
                &["sql", "d", "set memory_limit = '200KB'", "select * from lineitem", "--format"],
                arguments,
            ]
            .concat(),
        )
    };
    for format in ["csv", "tsv", "ndjson"] {
        let (code, out, error) = small(&[format]);
        assert_eq!((code, error.as_str()), (0, ""));
        assert_eq!(out.lines().count(), 60_175 + usize::from(format != "ndjson"));
    }
    let failing = folder.nacre(&["export", "d", sql, "t.csv"]);
    assert_eq!(failing.0, 1);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn statements_from_standard_input() {
    let folder = Folder::new();
    let run = |arguments: &[&str], text: &str| folder.piped(arguments, text.as_bytes());
    let (code, out, _) =
        run(&["sql", "memory://", "-", "--format", "csv"], "select 1; select 2 as b;");
    assert_eq!((code, out.as_str()), (0, "b\n2\n"));
    let (code, out, error) = run(
        &["shell"],
        "create table t (a int);\nselect\n  count(*) as n from t;\n\\d\nselect x;\n",
    );
    assert_eq!(code, 1, "{error}");
    assert_eq!(out, "ok\n n\n──\n 0\n(1 row)\n table_name\n───────────\n t\n(1 row)\n");
    assert!(error.contains("error[not_found]"), "{error}");
}

#[test]
fn scripts_are_run_as_they_are_written() {
    let folder = Folder::new();
    let shell = |url: &str, text: &str| folder.piped(&["shell", url], text.as_bytes());
    let text = "create table t (s text);\r\ninsert into t values ('a\r\nb'), ('c\nd'), ($$e;\nf$$);\r\n\\d t\r\n";
    let (code, out, error) = shell("d", text);
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    let rows = "{\"s\":\"a\\r\\nb\"}\n{\"s\":\"c\\nd\"}\n{\"s\":\"e;\\nf\"}\n";
    assert_eq!(folder.ok(&["sql", "d", "select s from t order by s", "--format", "ndjson"]), rows);
    // What is no command is an error, and the statements after it run.
    for line in ["\\nonsense", "\\rows many", "\\x now"] {
        let (code, out, error) = shell("memory://", &format!("{line}\nselect 1 as a;\n"));
        assert_eq!((code, out.as_str()), (1, " a\n──\n 1\n(1 row)\n"), "{line}");
        assert!(error.starts_with("error[syntax]: "), "{error}");
    }
    // A line is not looked at again when the next one comes.
    let rows: String = (0..200_000).map(|n| format!("({n}, 'row'),\n")).collect();
    let (code, _, error) = shell(
        "m",
        &format!("create table t (a int, s text);\ninsert into t values\n{rows}(-1, '');\n"),
    );
    assert_eq!((code, error.as_str()), (0, ""));
    assert_eq!(folder.csv("m", "select count(*) as n from t"), "n\n200001\n");
}

#[test]
fn work_is_done_whether_its_report_is_read_or_not() {
    let folder = Folder::new();
    for name in ["a.csv", "b.csv", "c.csv"] {
        folder.file(name, b"id\n1\n");
    }
    assert_eq!(
        folder.unread(&["import", "d", "t", "a.csv", "b.csv", "c.csv"], ""),
        (0, String::new())
    );
    assert_eq!(folder.csv("d", "select count(*) as n from t"), "n\n3\n");
    assert_eq!(folder.unread(&["tpch", "h", "--scale", "0.01"], ""), (0, String::new()));
    assert!(folder.ok(&["check", "h"]).starts_with("ok: 8 tables"));

    // A script ends where the next statement would run, and says so.
    let (code, error) = folder.unread(
        &["shell", "d"],
        "create table u (a int);\nselect id from t;\ninsert into u values (1);\n",
    );
    assert_eq!(code, 1);
    assert!(error.starts_with("error[io]: standard output was closed"), "{error}");
    assert_eq!(folder.csv("d", "select count(*) as n from u"), "n\n0\n");
    let same_line = folder.unread(&["shell", "d"], "select id from t; insert into u values (1);");
    assert_eq!(
        (same_line.0, folder.csv("d", "select count(*) as n from u").as_str()),
        (1, "n\n0\n")
    );
    let (code, error) =
        folder.unread(&["shell", "d"], "insert into u values (1);\nselect id from t;\n\\x\n\\q\n");
    assert_eq!((code, error.as_str()), (0, ""));
    assert_eq!(folder.unread(&["sql", "d", "select id from t"], ""), (0, String::new()));
}

#[test]
fn databases_that_are_not_there() {
    let folder = Folder::new();
    let url = format!("file://{}/none", folder.0.display());
    for arguments in [
        vec!["check", "none"],
        vec!["inspect", "none"],
        vec!["export", "none", "t", "t.csv"],
        vec!["check", &url],
    ] {
        let (code, _, error) = folder.nacre(&arguments);
        assert_eq!(code, 1);
        assert!(error.starts_with("error[not_found]"), "{error}");
    }
    assert!(!folder.0.join("none").exists() && !folder.0.join("t.csv").exists());
    // Nothing is made in a folder of other things.
    std::fs::create_dir(folder.0.join("other")).unwrap();
    folder.file("other/notes.txt", b"");
    for arguments in
        [vec!["check", "other"], vec!["inspect", "other"], vec!["export", "other", "t", "t.csv"]]
    {
        let (code, _, error) = folder.nacre(&arguments);
        assert_eq!(code, 1);
        assert!(error.starts_with("error[not_found]"), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.0.join("other")).unwrap().count(), 1);
    // Other programs' ways to write a URL are not names of folders.
    for url in [":memory:", "file:/tmp/nacre"] {
        let (code, _, error) = folder.nacre(&["sql", url, "select 1"]);
        assert_eq!(code, 1);
        assert!(
            error.starts_with("error[unsupported]") && error.contains("hint: write "),
            "{error}"
        );
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn what_is_exported_comes_back() {
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
        assert!(folder.ok(&["check", &url]).starts_with("ok: 1 tables, 3 rows"));
    }
    // The empty text and null stay two things, where a format can tell them apart.
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
fn a_float_is_no_wider_where_it_becomes_text() {
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
fn exports_replace_the_contents_of_files_only() {
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
    let folder = Folder::new();
    folder.ok(&["sql", "d", "create table t (id int)", "insert into t values (1), (2)"]);
    let (rows, path) = ("id\n1\n2\n", |name: &str| folder.0.join(name));
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    // Standard output has the rows alone, wherever it goes. By a link, lest a mistake replaces the system's own.
    symlink("/dev/stdout", path("rows.csv")).unwrap();
    assert_eq!(folder.ok(&["export", "d", "t", "rows.csv"]), rows);
    let out = std::fs::File::options().append(true).create(true).open(path("out.csv")).unwrap();
    for _ in 0..2 {
        let mut command = folder.command(&["export", "d", "t", "rows.csv"]);
        assert!(command.stdout(out.try_clone().unwrap()).status().unwrap().success());
    }
    assert_eq!(read("out.csv"), rows.repeat(2));
    // What is no file is written to.
    assert!(Command::new("mkfifo").arg(path("pipe.csv")).status().unwrap().success());
    let pipe = path("pipe.csv");
    let reader = std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap());
    assert!(folder.ok(&["export", "d", "t", "pipe.csv"]).starts_with("pipe.csv: 2 rows in "));
    assert!(path("pipe.csv").metadata().unwrap().file_type().is_fifo());
    assert_eq!(reader.join().unwrap(), rows);
    // Links lead to the file, whether it exists or not; the mode stays.
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
    // Nobody else's file is written on the way, and none is left.
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

/// Each command does the house-keeping for what it has written.
#[test]
fn many_small_imports_do_not_leave_as_many_segments() {
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
fn pipes_are_imported_whole() {
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
    // What a redirection opens is a file; somebody may have read of it.
    let script = "\"$0\" import r t - --format tbl < t.tbl && (read line && \"$0\" import r t - --format tbl) < t.tbl";
    folder.ok(&["sql", "r", "create table t (id int, s text)"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_nacre")]).current_dir(&folder.0);
    assert_eq!(told(&shell.output().unwrap()).0, 0);
    let count = "select count(*) as n, count(distinct id) as m from t";
    assert_eq!(folder.csv("r", count), "n,m\n39999,20000\n");
    // A pipe with a name can be opened once only.
    assert!(Command::new("mkfifo").arg(folder.0.join("pipe.csv")).status().unwrap().success());
    let (pipe, bytes) = (folder.0.join("pipe.csv"), std::fs::read(folder.0.join("t.csv")).unwrap());
    let writer = std::thread::spawn(move || std::fs::write(pipe, bytes).unwrap());
    assert!(
        folder.ok(&["import", "p", "t", "pipe.csv"]).starts_with("pipe.csv: 20,000 rows into t")
    );
    writer.join().unwrap();
    // No name says a format here.
    assert!(folder.nacre(&["import", "p", "t", "-"]).2.starts_with("error[unsupported]: -: "));
}

#[test]
fn files_may_be_more_than_can_be_open() {
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
        told(&shell.output().unwrap())
    };
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    let (code, out, error) = limited("-n 64", &[&["import", "d", "t"], &files[..]].concat());
    assert_eq!((code, error.as_str(), out.lines().count()), (0, "", 200));
    // What has to stay open may be as much as the system allows.
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
        // And no table is left behind where there was none.
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
fn duplicates_by_policy() {
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

#[test]
fn tpch_and_damage() {
    let folder = Folder::new();
    folder.ok(&["tpch", "d", "--scale", "0.01"]);
    assert_eq!(folder.csv("d", "select count(*) as n from lineitem"), "n\n60175\n");
    assert_eq!(
        folder.csv("d", "select n_name from nation where n_nationkey = 7"),
        "n_name\nGERMANY\n"
    );
    let (code, _, error) = folder.nacre(&["tpch", "d", "--scale", "0.01"]);
    assert_eq!(code, 1);
    assert!(error.starts_with("error[already_exists]"), "{error}");
    assert!(folder.ok(&["check", "d"]).starts_with("ok: 8 tables"));
    assert!(folder.ok(&["inspect", "d"]).contains("lineitem"));
    assert!(folder.ok(&["inspect", "d", "orders"]).contains("DECIMAL(15,2)"));

    let largest = segments(&folder.0.join("d"))
        .into_iter()
        .max_by_key(|p| p.metadata().unwrap().len())
        .unwrap();
    let mut bytes = std::fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&largest, bytes).unwrap();
    let (code, out, _) = folder.nacre(&["check", "d"]);
    assert_eq!(code, 1, "{out}");
    let name = largest.file_name().unwrap().to_string_lossy().into_owned();
    assert!(out.contains(&name) && out.contains("block"), "{out}");
}

#[test]
fn one_process_at_a_time() {
    let folder = Folder::new();
    folder.ok(&["sql", "d", "create table t (a int)"]);
    let hold = || {
        folder.command(&["shell", "d"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    };
    let mut holder = hold();
    let mut error = String::new();
    for _ in 0..500 {
        let (code, _, told) = folder.nacre(&["sql", "d", "select 1"]);
        error = told;
        if code == 1 {
            break;
        }
        // It may have come while we had the database open, and left.
        if holder.try_wait().unwrap().is_some() {
            holder = hold();
        }
    }
    assert!(error.starts_with("error[in_use]"), "{error}");
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    folder.ok(&["sql", "d", "select 1"]);
}
