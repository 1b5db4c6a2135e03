//! Words are spelt as the dictionary has them, and prose is in British English.

use nacre_tidy::{files_ending, read};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const CHECKED: &[&str] =
    &[".rs", ".ts", ".tsx", ".mjs", ".md", ".html", ".css", ".toml", ".yml", ".slt", ".sql"];

/// Words that the dictionary of misspellings has, and why they stay.
const ALLOWED: &[(&str, &str)] = &[
    ("addres", "misspelt by a test"),
    ("adress", "misspelt by a test"),
    ("ands", "several of SQL's AND"),
    ("custmer", "misspelt by a test"),
    ("exceute", "misspelt by a test"),
    ("flate", "a crate"),
    ("fromat", "misspelt by a test"),
    ("lenght", "misspelt by a test"),
    ("nmae", "misspelt by a test, and by the documentation of messages"),
    ("selct", "misspelt by a test"),
    ("selec", "misspelt by a test"),
    ("tabels", "misspelt by a test"),
    ("uper", "misspelt by a test"),
    ("vist", "misspelt by an example of an error"),
];

/// Shorter words are names of variables more often than misspelt.
const SHORTEST: usize = 4;

#[test]
fn words_are_spelt_as_the_dictionary_has_them() {
    let mut findings = String::new();
    let mut used = BTreeSet::new();
    for file in files_ending(CHECKED) {
        // The list of what is allowed does not use it.
        if file == "tests/tidy/tests/spelling.rs" {
            continue;
        }
        for (number, line) in read(&file).lines().enumerate() {
            for word in words(line).filter(|word| word.len() >= SHORTEST) {
                let Some(right) = typos_dict::WORD.find(&word.into()) else { continue };
                let lower = word.to_lowercase();
                if let Some((allowed, _)) = ALLOWED.iter().find(|(allowed, _)| *allowed == lower) {
                    used.insert(*allowed);
                } else {
                    let right = right.join(" or ");
                    let _ = writeln!(findings, "{file}:{}: {word}, not {right}?", number + 1);
                }
            }
        }
    }
    for (allowed, _) in ALLOWED.iter().filter(|(allowed, _)| !used.contains(allowed)) {
        let _ = writeln!(findings, "{allowed}: in no file, take it out of ALLOWED");
    }
    assert!(findings.is_empty(), "\n{findings}");
}

/// The words of a line: what stands between anything but letters, and the parts of `camelCase`.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphabetic()).flat_map(parts)
}

/// The parts of `camelCase` and `PascalCase`. Capitals in a row are one part with what follows.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let mut before = rest.chars().next()?;
        let begins = rest.char_indices().skip(1).find(|(_, c)| {
            let begins = before.is_lowercase() && c.is_uppercase();
            before = *c;
            begins
        });
        let (part, after) = rest.split_at(begins.map_or(rest.len(), |(at, _)| at));
        rest = after;
        Some(part)
    })
}

#[test]
fn words_are_found_in_names() {
    let found: Vec<&str> = words("let lower_bound = HTMLElement.getRow(2); // it's").collect();
    let expected = ["let", "lower", "bound", "HTMLElement", "get", "Row", "it", "s"];
    assert_eq!(found.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>(), expected);
}

/// Beginnings of words that British English spells otherwise. "Optimizer" and "serializable" are
/// the field's terms, and "license" is the verb.
const AMERICAN: &str = "\
    analyze analyzing artifact behavior canceled canceling centered color defense favor \
    fulfill gray honor labeled modeled modeling neighbor signaled signaling traveled capitaliz \
    categoriz customiz finaliz generaliz initializ localiz materializ maximiz minimiz normaliz \
    optimizat optimized optimizing organiz parameteriz prioritiz realiz recogniz serialized \
    serializing serializat stabiliz summariz synchroniz tokeniz vectoriz";

/// Titles of papers, as their authors spell them.
const TITLES: &[&str] = &["Vectorization*", "A Generalized Theory"];

#[test]
fn prose_is_in_british_english() {
    let mut findings = String::new();
    for file in files_ending(&[".rs", ".ts", ".tsx", ".mjs", ".md", ".toml"]) {
        let text = read(&file);
        for (number, line) in prose(&file, &text) {
            let line = TITLES.iter().fold(line, |line, title| line.replace(title, ""));
            for word in words(&line) {
                let lower = word.to_lowercase();
                // Keywords of SQL are in capitals.
                let is_keyword = word.chars().all(char::is_uppercase);
                if !is_keyword && AMERICAN.split(' ').any(|begin| lower.starts_with(begin)) {
                    let _ = writeln!(findings, "{file}:{number}: {word}");
                }
            }
        }
    }
    assert!(findings.is_empty(), "\n{findings}");
}

/// The lines of a document outside its fences, or the comments of a source that take whole lines,
/// with their numbers. Code spans and links are left out: names are spelt as others define them.
fn prose(file: &str, text: &str) -> Vec<(usize, String)> {
    let is_document = file.ends_with(".md");
    let mut fenced = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let words =
            ["//!", "///", "//", "/**", "* ", "# "].iter().find_map(|m| line.strip_prefix(m));
        let words = if is_document { Some(line) } else { words };
        if words.is_some_and(|words| words.trim_start().starts_with("```")) {
            fenced = !fenced;
        } else if let Some(words) = words.filter(|_| !fenced) {
            let outside = words.split('`').step_by(2).collect::<Vec<_>>().join(" ");
            let plain = outside.split_whitespace().filter(|word| !word.contains("://"));
            lines.push((at + 1, plain.collect::<Vec<_>>().join(" ")));
        }
    }
    lines
}
