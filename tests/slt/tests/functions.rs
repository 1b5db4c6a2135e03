//! Checks every function example in `docs/SQL.md`, and that the page lists exactly the functions of
//! the registry. `UPDATE_DOCS=1` writes its tables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_builtin::registry;
use nacre_function::entry::doc::Doc;
use nacre_native::block_on;
use nacredb::{Database, Options};
use std::collections::BTreeSet;
use std::path::Path;

/// The code spans of a table row, one per cell. Markdown writes a bar inside a table as `\|`.
fn cells(line: &str) -> Vec<String> {
    let line = line.replace("\\|", "\u{1}");
    let cells = line
        .trim_matches('|')
        .split(" | ")
        .map(|cell| cell.trim().trim_matches('`').replace('\u{1}', "|"));
    cells.collect()
}

/// The names in a first cell such as `position(a in s), locate(a, s)`.
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

/// The page's table of one chapter of the registry.
fn table(title: &str, docs: &[&Doc]) -> String {
    let code = |text: &str| format!("`{}`", text.replace('|', "\\|"));
    let mut out =
        format!("### {title}\n\n| function | example | result | |\n| --- | --- | --- | --- |\n");
    for doc in docs.iter().filter(|doc| !doc.usage.is_empty()) {
        let [usage, example, result] = [doc.usage, doc.example, doc.result].map(code);
        out += &format!("| {usage} | {example} | {result} | {} |\n", doc.sentence);
    }
    out
}

/// The chapters of the page: the heading, and the entries in the order of their rows.
fn chapters() -> Vec<(&'static str, Vec<&'static Doc>)> {
    let scalars = registry::SCALARS.iter().map(|chapter| {
        let functions = chapter.functions.iter().copied().flatten().map(|entry| &entry.doc);
        let expressions = chapter.expressions.iter().copied().flatten().map(|entry| &entry.doc);
        (chapter.title, functions.chain(expressions).collect())
    });
    let aggregates = registry::aggregates().map(|entry| &entry.doc);
    let expressions = registry::aggregate_expressions().map(|entry| &entry.doc);
    let groupings = registry::groupings().map(|entry| &entry.doc);
    let aggregates = aggregates.chain(expressions).chain(groupings).collect();
    let windows = registry::windows().map(|entry| &entry.doc).collect();
    scalars.chain([("Aggregates", aggregates), ("Window functions", windows)]).collect()
}

fn page_path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SQL.md")
}

#[test]
fn the_page_lists_the_registry() {
    let path = page_path();
    let mut page = std::fs::read_to_string(&path).unwrap();
    let mut missing = Vec::new();
    for (title, docs) in chapters() {
        let expected = table(title, &docs);
        if page.contains(&format!("{expected}\n")) {
            continue;
        }
        missing.push(title);
        let heading = format!("### {title}\n\n");
        let start = page.find(&heading).expect("the chapter's heading");
        let rows = start + heading.len();
        let end = rows + page[rows..].find("\n\n").expect("the end of the table") + 1;
        page.replace_range(start..end, &expected);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, page).unwrap();
        return;
    }
    assert!(missing.is_empty(), "UPDATE_DOCS=1 rewrites the chapters {missing:?}");
}

#[test]
fn every_entry_says_how_it_is_called() {
    let functions = registry::functions().map(|entry| (entry.names, &entry.doc));
    let expressions = registry::expressions().map(|entry| (entry.names, &entry.doc));
    let aggregates = registry::aggregates().map(|entry| (entry.names, &entry.doc));
    let over_aggregates = registry::aggregate_expressions().map(|entry| (entry.names, &entry.doc));
    let groupings = registry::groupings().map(|entry| (entry.names, &entry.doc));
    let windows = registry::windows().map(|entry| (entry.names, &entry.doc));
    let scalars = functions.chain(expressions);
    let all = scalars.chain(aggregates).chain(over_aggregates).chain(groupings).chain(windows);
    for (called, doc) in all {
        let usage = names(doc.usage);
        assert!(called.iter().all(|name| usage.iter().any(|said| said == name)), "{usage:?}");
    }
}

#[test]
fn the_page_is_right_about_functions() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let section =
        page.split("\n## Functions").nth(1).and_then(|s| s.split("\n## ").next()).unwrap();
    let host = nacre_native::memory_host();
    let database = block_on(Database::open(host, Options::default())).unwrap();
    let mut session = database.session();
    let mut documented = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut examples = 0;
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let cells = cells(line);
        let [call, example, expected, ..] = &cells[..] else { panic!("{line}") };
        documented.extend(names(call));
        examples += 1;
        let answer = match block_on(session.execute(&format!("select {example}"), &[])) {
            Ok(result) => result.row(0).first().map(ToString::to_string).unwrap_or_default(),
            Err(error) => format!("({}) {error}", error.sqlstate()),
        };
        if answer != *expected {
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
