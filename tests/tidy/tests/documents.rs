//! Documents name what is there: relative links, anchors, and paths of the source in backticks.

use nacre_tidy::{files, files_ending, read, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

#[test]
fn links_of_documents_lead_somewhere() {
    let documents = files_ending(&[".md"]);
    let anchors: BTreeMap<&String, BTreeSet<String>> =
        documents.iter().map(|file| (file, anchors(&read(file)))).collect();
    assert!(documents.len() > 10, "documents were found");
    let mut findings = String::new();
    for file in &documents {
        for (number, link) in links(&read(file)) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { file.clone() } else { beside(file, path) };
            if MADE.iter().any(|made| target.starts_with(made)) {
                continue;
            }
            if !root().join(&target).exists() {
                let _ = writeln!(findings, "{file}:{number}: no {target}");
            } else if !anchor.is_empty()
                && anchors.get(&target).is_none_or(|all| !all.contains(anchor))
            {
                let _ = writeln!(findings, "{file}:{number}: no heading #{anchor} in {target}");
            }
        }
    }
    assert!(findings.is_empty(), "\n{findings}");
}

#[test]
fn paths_that_documents_name_are_there() {
    let all = files();
    let mut tops: BTreeSet<&str> = all.iter().filter_map(|f| f.split('/').next()).collect();
    // Names that are no paths of the tree: commands, and what a build makes.
    tops.retain(|top| root().join(top).is_dir());
    let mut findings = String::new();
    for file in files_ending(&[".md"]) {
        for (number, word) in code_spans(&read(&file)) {
            let path = word.trim_end_matches(['/', '.', ',']);
            let plain = path.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c));
            let Some((top, _)) = path.split_once('/') else { continue };
            if plain && tops.contains(top) && !root().join(path).exists() && !MADE.contains(&path) {
                let _ = writeln!(findings, "{file}:{number}: no {path}");
            }
        }
    }
    assert!(findings.is_empty(), "\n{findings}");
}

/// Paths that a build makes. `npm run docs` checks the links that lead there.
const MADE: &[&str] = &["docs/reference/api", "docs/.vitepress/dist"];

/// Inline links of Markdown, `[text](target)`, outside code, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            let target = line.get(at + 2..).and_then(|rest| rest.split(')').next());
            found.extend(target.map(|t| (number, t.to_string())));
        }
    }
    found
}

/// What stands in backticks, with its line.
fn code_spans(text: &str) -> Vec<(usize, String)> {
    let spans = prose(text).into_iter().flat_map(|(number, line)| {
        let words: Vec<String> =
            line.split('`').skip(1).step_by(2).map(ToString::to_string).collect();
        words.into_iter().map(move |word| (number, word))
    });
    spans.collect()
}

/// The lines outside fenced code, with their numbers from 1.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            lines.push((at + 1, line));
        }
    }
    lines
}

/// The anchors of a document's headings, made as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for (_, line) in prose(text).iter().filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let anchor: String = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let again = (1..).map(|n| format!("{anchor}-{n}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|a| !found.contains(a));
        found.extend(free);
    }
    found
}

/// A path relative to a file, from the top.
fn beside(file: &str, path: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for step in path.split('/') {
        match step {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}
