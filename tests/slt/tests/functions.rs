//! Every example of a function in `docs/SQL.md` answers what the page says, and the page names every function.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_native::block_on;
use nacredb::{Database, Options};
use std::collections::BTreeSet;

/// The code spans of a table's line, one a cell; `\|` is how Markdown writes a bar inside a table.
fn cells(line: &str) -> Vec<String> {
    let line = line.replace("\\|", "\u{1}");
    let cells = line
        .trim_matches('|')
        .split(" | ")
        .map(|cell| cell.trim().trim_matches('`').replace('\u{1}', "|"));
    cells.collect()
}

/// Names of a first cell such as `position(a in s), locate(a, s)`.
fn names(cell: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut depth = 0;
    for part in cell.split_inclusive(['(', ')', ',', '[', ']']) {
        let name: String =
            part.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if depth == 0
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && !part.trim().contains(' ')
        {
            out.push(name);
        }
        match part.chars().last() {
            Some('(' | '[') => depth += 1,
            Some(')' | ']') => depth -= 1,
            _ => {}
        }
    }
    out
}

#[test]
fn the_page_is_right_about_functions() {
    let page = include_str!("../../../docs/SQL.md");
    let section =
        page.split("\n## Functions").nth(1).and_then(|s| s.split("\n## ").next()).unwrap();
    let host = nacre_native::memory_host();
    let database = block_on(Database::open(host, Options::default())).unwrap();
    let mut session = database.session();
    let mut documented = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut examples = 0;
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let [call, example, expected] = cells(line).try_into().unwrap_or_else(|_| panic!("{line}"));
        documented.extend(names(&call));
        examples += 1;
        let answer = match block_on(session.execute(&format!("select {example}"), &[])) {
            Ok(result) => result.row(0).first().map(ToString::to_string).unwrap_or_default(),
            Err(error) => format!("({}) {error}", error.sqlstate()),
        };
        if answer != expected {
            wrong.push(format!("{example}\n    is {answer}\n    the page says {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {examples} examples:\n{}", wrong.len(), wrong.join("\n"));
    let known = block_on(session.execute("show functions", &[])).unwrap();
    let known: BTreeSet<String> = known.to_rows().iter().map(|row| row[0].to_string()).collect();
    let missing: Vec<_> = known.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&known).filter(|name| *name != "extract").collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "not on the page: {missing:?}; not there: {unknown:?}"
    );
    assert!(examples > 150, "{examples}");
}
