//! Missing, generated, damaged and locked databases, and commands with closed standard output.

use crate::folder::{Folder, segments};
use std::process::Stdio;

#[test]
fn closed_output_does_not_stop_the_work() {
    let folder = Folder::new();
    for name in ["a.csv", "b.csv", "c.csv"] {
        folder.file(name, b"id\n1\n");
    }
    assert_eq!(
        folder.with_closed_output(&["import", "d", "t", "a.csv", "b.csv", "c.csv"], ""),
        (0, String::new())
    );
    assert_eq!(folder.csv("d", "select count(*) as n from t"), "n\n3\n");
    assert_eq!(
        folder.with_closed_output(&["tpch", "h", "--scale", "0.01"], ""),
        (0, String::new())
    );
    assert!(folder.ok(&["check", "h"]).starts_with("ok: 8 tables"));

    // A script ends with an error before the next statement.
    let (code, error) = folder.with_closed_output(
        &["shell", "d"],
        "create table u (a int);\nselect id from t;\ninsert into u values (1);\n",
    );
    assert_eq!(code, 1);
    assert!(error.starts_with("error[io]: standard output was closed"), "{error}");
    assert_eq!(folder.csv("d", "select count(*) as n from u"), "n\n0\n");
    let same_line =
        folder.with_closed_output(&["shell", "d"], "select id from t; insert into u values (1);");
    assert_eq!(
        (same_line.0, folder.csv("d", "select count(*) as n from u").as_str()),
        (1, "n\n0\n")
    );
    let (code, error) = folder.with_closed_output(
        &["shell", "d"],
        "insert into u values (1);\nselect id from t;\n\\x\n\\q\n",
    );
    assert_eq!((code, error.as_str()), (0, ""));
    assert_eq!(
        folder.with_closed_output(&["sql", "d", "select id from t"], ""),
        (0, String::new())
    );
}

#[test]
fn missing_databases() {
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
    // No database is created in a folder with other files.
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
    // URLs in the style of other programs are not taken as folder names.
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
fn check_finds_damage_in_generated_tables() {
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
fn a_database_is_open_in_one_process_at_a_time() {
    let folder = Folder::new();
    folder.ok(&["sql", "d", "create table t (a int)"]);
    let hold = || {
        folder.command(&["shell", "d"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    };
    let mut holder = hold();
    let mut error = String::new();
    for _ in 0..500 {
        let (code, _, report) = folder.nacre(&["sql", "d", "select 1"]);
        error = report;
        if code == 1 {
            break;
        }
        // The shell exits if it starts while the command above has the database open.
        if holder.try_wait().unwrap().is_some() {
            holder = hold();
        }
    }
    assert!(error.starts_with("error[in_use]"), "{error}");
    let (code, out, error) =
        folder.nacre(&["sql", "--read-only", "d", "select * from t", "--format", "csv"]);
    assert_eq!((code, out.as_str()), (0, "a\n"), "{error}");
    let (code, _, error) = folder.nacre(&["sql", "--read-only", "d", "insert into t values (1)"]);
    assert!(code == 1 && error.starts_with("error[unsupported]"), "{error}");
    folder.ok(&["check", "--read-only", "d"]);
    let (code, _, error) = folder.nacre(&["sql", "--read-only", "none", "select 1"]);
    assert!(code == 1 && error.starts_with("error[not_found]"), "{error}");
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    folder.ok(&["sql", "d", "select 1"]);
}

#[test]
fn recover_opens_a_database_without_the_end_of_its_log() {
    let folder = Folder::new();
    folder.ok(&["sql", "d", "create table t (id int); insert into t values (1)"]);
    folder.ok(&["sql", "d", "insert into t values (2)"]);
    let sound = folder.ok(&["recover", "d"]);
    assert!(sound.starts_with("nothing is missing\n1 table up to log position"), "{sound}");
    let log = folder.0.join("d/log-0000000000000000");
    let bytes = std::fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    std::fs::write(&log, &bytes[..end - 60]).unwrap();
    for command in ["check", "recover"] {
        let (code, _, error) = folder.nacre(&[command, "d"]);
        assert_eq!(code, 1);
        assert!(error.starts_with("error[corrupt]: log-0000000000000000"), "{error}");
        assert!(error.contains("although the log reached position"), "{error}");
        assert_eq!(error.contains("nacre recover --accept-loss"), command == "recover", "{error}");
    }
    let given_up = folder.ok(&["recover", "d", "--accept-loss"]);
    assert!(given_up.starts_with("given up: log-0000000000000000"), "{given_up}");
    assert!(folder.ok(&["recover", "d"]).starts_with("nothing is missing"));
    assert!(folder.ok(&["check", "d"]).starts_with("ok: 1 table"));
    assert_eq!(folder.csv("d", "select id from t"), "id\n1\n");
}
