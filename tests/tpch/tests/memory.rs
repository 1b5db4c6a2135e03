//! The 22 queries with little memory, at scale 0.01: each answers what it answers with plenty, from
//! what it spilled, or ends with `limit`; and nothing is left of what it spilled.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_native::{block_on, open_folder};
use nacredb::{Database, ErrorKind, Options, Result, Session};
use std::path::{Path, PathBuf};

/// What a statement may hold, how many queries spill there at least, and which of the others may
/// end with `limit`.
const LIMITS: [(usize, usize, &[u32]); 4] = [
    (400 << 10, 2, &[]),
    (100 << 10, 4, &[]),
    // The result of query 16 is larger than this.
    (10 << 10, 12, &[16]),
    (100, 5, &[1, 2, 3, 6, 7, 9, 10, 11, 13, 14, 15, 16, 19, 22]),
];

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Rows as text, and how many bytes were spilled for them.
fn answer(session: &mut Session, sql: &str) -> Result<(Vec<String>, u64)> {
    let result = block_on(session.execute(sql, &[]))?;
    let line = |row: &Vec<nacredb::Value>| {
        row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")
    };
    Ok((result.to_rows().iter().map(line).collect(), result.statistics.bytes_spilled))
}

fn temporary(path: &Path) -> usize {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("tmp-")).count()
}

#[test]
fn every_query_is_right_or_ends_with_limit() {
    let folder =
        Folder(std::env::temp_dir().join(format!("nacre-tpch-memory-{}", std::process::id())));
    std::fs::remove_dir_all(&folder.0).ok();
    let database =
        block_on(Database::open(open_folder(&folder.0).unwrap(), Options::default())).unwrap();
    let mut session = database.session();
    nacre_tpch::generate_small(&mut session).unwrap();
    let mut wrong = Vec::new();
    let mut spilling = [0; LIMITS.len()];
    for (query, sql) in nacre_tpch::queries().unwrap() {
        session.set_memory_limit(None);
        session.set_threads(1);
        let (expected, spilled) = answer(&mut session, &sql).unwrap();
        assert!(!expected.is_empty() && spilled == 0, "q{query:02}");
        for ((limit, _, may_fail), spilling) in LIMITS.into_iter().zip(&mut spilling) {
            session.set_memory_limit(Some(limit));
            for threads in [1, 3] {
                session.set_threads(threads);
                match answer(&mut session, &sql) {
                    Ok((rows, spilled)) if rows == expected => {
                        *spilling += usize::from(threads == 1 && spilled > 0)
                    }
                    Err(error) if error.kind() == ErrorKind::Limit && may_fail.contains(&query) => {
                    }
                    other => wrong.push(format!(
                        "q{query:02} with {limit} bytes, {threads} threads: {other:?}"
                    )),
                }
                assert_eq!(temporary(&folder.0), 0);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for ((limit, at_least, _), spilling) in LIMITS.into_iter().zip(spilling) {
        assert!(spilling >= at_least, "{spilling} queries spilled with {limit} bytes");
    }
}
