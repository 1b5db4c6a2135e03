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
    let (code, _, _) = folder.nacre(&["sql", "db", "--hold-commits", "select 1"]);
    assert_eq!(code, 2);
}
