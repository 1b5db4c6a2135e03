//! `nacre sql` and `nacre shell`: statements, formats, scripts.

use crate::folder::{Folder, outcome};
use std::process::Stdio;

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
    let commented = "-- one\nselect 1 as a";
    assert_eq!(folder.csv("memory://", commented), "a\n1\n");
    folder.ok(&["export", "d", commented, "commented.csv"]);
    assert_eq!(folder.nacre(&["sql", "d"]).0, 2);
    assert_eq!(folder.nacre(&["nonsense"]).0, 2);
    assert_eq!(folder.nacre(&["tpch", "d", "--scale", "-1"]).0, 2);
    assert_eq!(folder.nacre(&["--help"]).0, 0);
}

#[test]
fn rows_are_printed_before_the_query_ends() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new();
    folder.ok(&["tpch", "d", "--scale", "0.01"]);
    let sql = "select l_orderkey, case when l_orderkey > 50000 then cast(l_orderkey as tinyint) end as x from lineitem";
    // Rows before an error are printed.
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
    // The command ends when its reader does, before the rest of the rows, which would be an error.
    for format in ["csv", "table", "arrow"] {
        let mut command = folder.command(&["sql", "d", sql, "--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        assert!(!reader.fill_buf().unwrap().is_empty());
        drop(reader);
        let (code, _, error) = outcome(&child.wait_with_output().unwrap());
        assert_eq!((code, error.as_str()), (0, ""), "{format}");
    }
    // Streamed rows do not count towards the memory limit.
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
fn scripts_run_verbatim() {
    let folder = Folder::new();
    let shell = |url: &str, text: &str| folder.piped(&["shell", url], text.as_bytes());
    let text = "create table t (s text);\r\ninsert into t values ('a\r\nb'), ('c\nd'), ($$e;\nf$$);\r\n\\d t\r\n";
    let (code, out, error) = shell("d", text);
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    let rows = "{\"s\":\"a\\r\\nb\"}\n{\"s\":\"c\\nd\"}\n{\"s\":\"e;\\nf\"}\n";
    assert_eq!(folder.ok(&["sql", "d", "select s from t order by s", "--format", "ndjson"]), rows);
    // An invalid command is an error; the statements after it run.
    for line in ["\\nonsense", "\\rows many", "\\x now"] {
        let (code, out, error) = shell("memory://", &format!("{line}\nselect 1 as a;\n"));
        assert_eq!((code, out.as_str()), (1, " a\n──\n 1\n(1 row)\n"), "{line}");
        assert!(error.starts_with("error[syntax]: "), "{error}");
    }
    // The help is a table, whose first line is indented like the others.
    let (_, help, _) = shell("memory://", "\\?\n");
    assert!(help.starts_with("  \\d  ") && help.contains("\n  \\x  "), "{help}");
    // Each line is scanned once, so a long script takes linear time.
    let rows: String = (0..200_000).map(|n| format!("({n}, 'row'),\n")).collect();
    let (code, _, error) = shell(
        "m",
        &format!("create table t (a int, s text);\ninsert into t values\n{rows}(-1, '');\n"),
    );
    assert_eq!((code, error.as_str()), (0, ""));
    assert_eq!(folder.csv("m", "select count(*) as n from t"), "n\n200001\n");
}
