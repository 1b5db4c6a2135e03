//! `--blobs`: a database that outlives its disk.

use crate::folder::Folder;

#[test]
fn a_database_is_opened_again_from_its_blobs() {
    let folder = Folder::new();
    let blobs = format!("file://{}", folder.0.join("blobs").display());
    let sql = |place: &str, statement: &str| {
        folder.nacre(&["sql", place, "--blobs", &blobs, "--format", "csv", statement])
    };
    let filled = "create table t (id bigint primary key, note text);
        insert into t select n, repeat(n::text, 20) from generate_series(1, 50000) as g(n);
        optimize table t flush; delete from t where id = 7";
    assert_eq!(sql("first", filled).0, 0);
    std::fs::remove_dir_all(folder.0.join("first")).unwrap();
    let (code, out, error) = sql("second", "select count(*) as n, max(id) as m from t");
    assert_eq!((code, out.as_str()), (0, "n,m\n49999,50000\n"), "{error}");
    let held = ["sql", "second", "--blobs", &blobs, "--hold-commits", "--format", "csv"];
    let again = "insert into t values (7, 'again'); select note from t where id = 7";
    let (_, out, error) = folder.nacre(&[&held[..], &[again]].concat());
    assert_eq!(out, "note\nagain\n", "{error}");
    // With a small disk, and in a third place.
    let small = ["sql", "third", "--blobs", &blobs, "--disk-limit", "100KB", "--format", "csv"];
    let (code, out, error) =
        folder.nacre(&[&small[..], &["select sum(length(note)) as n from t"]].concat());
    assert_eq!((code, out.as_str()), (0, "n\n4777865\n"), "{error}");
}

#[test]
fn a_place_of_blobs_that_cannot_be_is_refused() {
    let folder = Folder::new();
    let (code, _, error) = folder.nacre(&["sql", "db", "--blobs", "ftp://there", "select 1"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("s3://bucket/prefix"), "{error}");
    let (code, _, _) = folder.nacre(&["sql", "db", "--disk-limit", "1MB", "select 1"]);
    assert_eq!(code, 2);
    let (code, _, error) = folder.nacre(&["sql", "db", "--hold-commits", "select 1"]);
    assert_eq!(code, 2);
    assert!(error.contains("--blobs"), "{error}");
    let given = ["sql", "s3://bucket/shop", "--blobs", "s3://bucket/other", "select 1"];
    assert_eq!(folder.nacre(&given).0, 2);
    // Nothing answers there.
    let server = ["--blob-endpoint", "http://127.0.0.1:9", "--blob-region", "eu-west-3"];
    let more = ["--blob-style", "path", "--blob-header", "x-team: data", "--no-warm"];
    let command = [&["sql", "s3://bucket/shop"][..], &server, &more, &["select 1"]].concat();
    let mut command = folder.command(&command);
    command.envs([("AWS_ACCESS_KEY_ID", "tester"), ("AWS_SECRET_ACCESS_KEY", "not-a-secret")]);
    command.env("TMPDIR", &folder.0);
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("s3://bucket/shop") || error.contains("127.0.0.1:9"), "{error}");
    let left = std::fs::read_dir(&folder.0).unwrap().flatten();
    let left: Vec<_> = left.filter(|entry| entry.path().is_dir()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A database in blobs, the folder that it was written in, and the log position after the first statement.
fn with_history(folder: &Folder) -> (String, String) {
    let blobs = format!("file://{}", folder.0.join("blobs").display());
    let sql = |statement: &str| {
        let (code, _, error) = folder.nacre(&["sql", "db", "--blobs", &blobs, statement]);
        assert_eq!(code, 0, "{error}");
    };
    sql("create table t (id bigint primary key, note text)");
    sql("insert into t select n, repeat(n::text, 20) from generate_series(1, 5000) as g(n)");
    sql("optimize table t flush");
    let (_, out, error) = folder.nacre(&["restore", &blobs, "first"]);
    let position = out.trim().rsplit(' ').next().unwrap().replace(',', "");
    assert!(position.parse::<u64>().is_ok(), "{out} {error}");
    sql("delete from t where id > 100");
    sql("optimize table t full");
    sql("insert into t values (0, 'new')");
    (blobs, position)
}

fn count(folder: &Folder, arguments: &[&str]) -> String {
    let all = [&["sql"], arguments, &["--format", "csv", "select count(*) as n from t"]].concat();
    let (_, out, error) = folder.nacre(&all);
    out.strip_prefix("n\n").unwrap_or(&error).trim().to_string()
}

#[test]
fn a_state_of_the_past_is_read_and_restored() {
    let folder = Folder::new();
    let (blobs, position) = with_history(&folder);
    assert_eq!(count(&folder, &["first"]), "5000");
    let (code, _, error) = folder.nacre(&["restore", &blobs, "--to", &position, "past"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(count(&folder, &["past"]), "5000");
    assert_eq!(folder.nacre(&["check", "past"]).0, 0);
    assert_eq!(folder.nacre(&["sql", "past", "insert into t values (-1, 'mine')"]).0, 0);
    let then = ["memory://", "--blobs", &blobs, "--as-of", &position];
    assert_eq!(count(&folder, &then), "5000");
    assert_eq!(count(&folder, &["db", "--blobs", &blobs]), "101");
    let (code, _, error) = folder.nacre(&["restore", &blobs, "past"]);
    assert!(code == 1 && error.contains("empty folder"), "{error}");
    let (code, _, error) = folder.nacre(&["restore", &blobs, "--to", "1970-01-01", "old"]);
    assert!(code == 1 && error.contains("not kept"), "{error}");
    assert!(!folder.0.join("old").exists(), "nothing is left of what failed");
    let (code, _, _) = folder.nacre(&["restore", &blobs, "--to", "yesterday", "old"]);
    assert_eq!(code, 2);
}

#[test]
fn a_branch_goes_on_beside_its_origin() {
    let folder = Folder::new();
    let (blobs, position) = with_history(&folder);
    let other = format!("file://{}", folder.0.join("branch").display());
    let (code, out, error) = folder.nacre(&["branch", &format!("{blobs}@{position}"), &other]);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("begins at log position"), "{out}");
    let (code, _, error) =
        folder.nacre(&["sql", "two", "--blobs", &other, "insert into t values (-1, 'mine')"]);
    assert_eq!(code, 0, "{error}");
    std::fs::remove_dir_all(folder.0.join("two")).unwrap();
    assert_eq!(count(&folder, &["three", "--blobs", &other]), "5001");
    assert_eq!(count(&folder, &["db", "--blobs", &blobs]), "101");
    let (code, _, error) = folder.nacre(&["branch", &blobs, &other]);
    assert!(code == 1 && error.contains("has a database"), "{error}");
    let (code, _, error) = folder.nacre(&["branch", "--drop", &blobs]);
    assert!(code == 1 && error.contains("no branch"), "{error}");
    assert_eq!(folder.nacre(&["branch", "--drop", &other]).0, 0);
    assert_eq!(count(&folder, &["db", "--blobs", &blobs]), "101");
}

#[test]
fn encrypted_blobs_need_their_key() {
    let folder = Folder::new();
    let blobs = format!("file://{}", folder.0.join("blobs").display());
    for (file, digit) in [("key", "7a"), ("other", "7b")] {
        std::fs::write(folder.0.join(file), format!("{}\n", digit.repeat(32))).unwrap();
    }
    let sql = |place: &str, key: &[&str], statement: &str| {
        let given = [&["sql", place, "--blobs", &blobs, "--format", "csv"], key].concat();
        folder.nacre(&[&given[..], &[statement]].concat())
    };
    let key = ["--blob-key", "key"];
    let filled = "create table t (id bigint primary key, note text);
        insert into t select n, 'a note that is secret' from generate_series(1, 50000) as g(n);
        optimize table t flush; insert into t values (0, 'the last note')";
    let (code, _, error) = sql("first", &key, filled);
    assert_eq!(code, 0, "{error}");
    let (mut files, mut bytes) = (vec![folder.0.join("blobs")], 0);
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let content = std::fs::read(&path).unwrap();
        bytes += content.len();
        for word in [&b"is secret"[..], b"the last note", b"note"] {
            let is_there = content.windows(word.len()).any(|part| part == word);
            assert!(!is_there, "{} is not encrypted", path.display());
        }
    }
    assert!(bytes > 10_000, "{bytes} bytes of blobs");
    let counted = "select count(*) as n, max(length(note)) as l from t";
    let (_, out, error) = sql("second", &[&key[..], &["--disk-limit", "100KB"]].concat(), counted);
    assert_eq!(out, "n,l\n50001,21\n", "{error}");
    for (key, why) in [
        (&[][..], "is encrypted"),
        (&["--blob-key", "other"][..], "encrypted with another key"),
        (&["--blob-key", "missing"], "cannot read the key"),
        (&["--blob-key", "blobs/manifest"], "the key"),
    ] {
        let (code, _, error) = sql("third", key, counted);
        assert!(code == 1 && error.contains(why), "{why}: {error}");
    }
    // The past, and a branch, have the same key.
    let (code, _, error) = folder.nacre(&["restore", &blobs, "past", "--blob-key", "key"]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(count(&folder, &["past"]), "50001");
    let branch = format!("file://{}", folder.0.join("branch").display());
    let (code, _, error) = folder.nacre(&["branch", &blobs, &branch, "--blob-key", "key"]);
    assert_eq!(code, 0, "{error}");
    let given = ["memory://", "--blobs", &branch, "--blob-key", "key"];
    assert_eq!(count(&folder, &given), "50001");
}
