//! The kinds of errors are one list: the enum in Rust, its constant, and the TypeScript of the
//! package agree.

use nacre_tidy::read;
use std::collections::BTreeMap;

const RUST: &str = "engine/types/src/error.rs";
const TYPESCRIPT: &str = "worker/shared/errors.ts";

#[test]
fn kinds_of_errors_agree_in_rust_and_typescript() {
    let rust = read(RUST);
    let variants = list(&rust, "pub enum ErrorKind {", |line| line.strip_suffix(','));
    let constant = list(&rust, "pub const ALL:", |line| line.strip_suffix(','));
    assert!(variants.len() > 10, "{RUST} declares the kinds");
    assert_eq!(variants, constant, "ErrorKind::ALL lists the variants in order");

    let names = pairs(&rust, "pub fn name(self)", " => ");
    let named: Vec<String> = variants.iter().filter_map(|kind| names.get(kind).cloned()).collect();
    let typescript = read(TYPESCRIPT);
    let kinds = list(&typescript, "export type ErrorKind =", |line| {
        line.trim_end_matches(';').strip_prefix("| '")?.strip_suffix('\'')
    });
    assert_eq!(named, kinds, "{RUST} and {TYPESCRIPT} name the same kinds in the same order");

    let states = pairs(&rust, "pub fn sqlstate(self)", " => ");
    let expected: BTreeMap<String, String> = names
        .iter()
        .filter_map(|(kind, name)| Some((name.clone(), states.get(kind)?.clone())))
        .collect();
    let found = pairs(&typescript, "const SQLSTATES", ": ");
    assert_eq!(expected, found, "{RUST} and {TYPESCRIPT} give each kind the same SQLSTATE");
}

/// The lines after a heading, up to the end of its block or statement.
fn block<'a>(text: &'a str, heading: &str) -> impl Iterator<Item = &'a str> {
    let after = text.split_once(heading).map_or("", |(_, after)| after);
    let indent = text.lines().find(|l| l.contains(heading)).map_or(0, indent_of);
    after.lines().skip(1).take_while(move |line| line.is_empty() || indent_of(line) > indent)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The words of a block that `word` takes out of its lines.
fn list(text: &str, heading: &str, word: impl Fn(&str) -> Option<&str>) -> Vec<String> {
    let plain = |word: &&str| word.chars().all(|c| c.is_alphanumeric() || c == '_');
    block(text, heading)
        .filter_map(|line| word(line.trim()))
        .filter(plain)
        .map(str::to_string)
        .collect()
}

/// The entries of a block: `Key => "value",` or `key: 'value',`.
fn pairs(text: &str, heading: &str, between: &str) -> BTreeMap<String, String> {
    let entry = |line: &str| {
        let (key, value) = line.trim().trim_end_matches(',').split_once(between)?;
        let value = value.trim_matches(['"', '\'']);
        Some((key.to_string(), value.to_string()))
    };
    block(text, heading).filter_map(entry).collect()
}
