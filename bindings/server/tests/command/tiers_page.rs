//! The examples of `docs/TIERS.md`, in the order of the page, over a folder in place of a bucket.

use crate::folder::Folder;
use std::process::Command;

/// What the examples find.
const TABLES: &str = "create table lineitem (id bigint primary key);
    insert into lineitem select * from generate_series(1, 100);
    create table orders (id bigint primary key, customer int, price int, quantity int, created date, key by_customer (customer));
    insert into orders select n, n % 7, n, 1, date '2026-11-01' from generate_series(1, 3000) as g(n);
    optimize table orders full";

struct Page {
    folder: Folder,
    bucket: String,
}

impl Page {
    /// Runs a line of a terminal; what it writes.
    fn shell(&self, line: &str) -> String {
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_nacre"));
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", program.parent().unwrap().display());
        let mut command = Command::new("sh");
        command.args(["-c", line]).env("PATH", path).current_dir(&self.folder.0);
        let ran = command.output().unwrap();
        let error = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{line}: {error}");
        String::from_utf8(ran.stdout).unwrap()
    }

    /// Runs SQL in the database of the bucket.
    fn sql(&self, sql: &str) -> String {
        let bucket = &self.bucket;
        self.shell(&format!("nacre sql shop --blobs {bucket}/shop --format csv \"{sql}\""))
    }
}

/// The fences without a language of a page, without empty lines.
fn fences(page: &str) -> Vec<Vec<String>> {
    let (mut found, mut open) = (Vec::new(), None::<Vec<String>>);
    for line in page.lines() {
        match (line, &mut open) {
            ("```text", None) => open = Some(Vec::new()),
            ("```", Some(_)) => found.extend(open.take()),
            (line, Some(lines)) if !line.is_empty() => lines.push(line.to_string()),
            _ => {}
        }
    }
    found
}

#[test]
fn the_examples_of_the_page_run() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/TIERS.md");
    let fences = fences(&std::fs::read_to_string(page).unwrap());
    assert!(fences.len() >= 7, "{fences:?}");
    let folder = Folder::new();
    let bucket = format!("file://{}", folder.0.join("bucket").display());
    let page = Page { folder, bucket };
    page.sql(TABLES);
    let position = page.sql("select log_position from information_schema.lag");
    let position = position.lines().last().unwrap().to_string();
    page.sql("insert into lineitem values (101)");
    for lines in fences {
        let is_secret = lines.iter().any(|line| line.contains("--blob-key"));
        for line in lines {
            let mut line = line.replace("4711", &position);
            if is_secret {
                // A database is encrypted from its beginning.
                line = line
                    .replace("nacre sql shop", "nacre sql secret")
                    .replace("/shop ", "/secret ");
                line = line.replace("select count(*) from lineitem", "create table t (id int)");
            }
            // The URL of a folder names a database to be written.
            line = line.replace(
                "sql s3://bucket/shop",
                "sql memory:// --read-only --blobs s3://bucket/shop",
            );
            line = line.replace("2026-01-31 12:00:00", "2999-01-31 12:00:00");
            line = line.replace("s3://bucket", &page.bucket);
            match line.starts_with("nacre") || line.starts_with("openssl") {
                true => drop(page.shell(&line)),
                false => drop(page.sql(&line)),
            }
        }
    }
    let restored = page.shell("nacre sql shop-before --format csv 'select count(*) from lineitem'");
    assert_eq!(restored.lines().last(), Some("100"));
    let branch = format!("nacre sql before --blobs {}/before --format csv", page.bucket);
    let rows = page.shell(&format!("{branch} 'select count(*) from lineitem'"));
    assert_eq!(rows.lines().last(), Some("100"), "a branch of the same position");
}
