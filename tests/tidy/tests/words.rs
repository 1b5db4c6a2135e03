//! One word, one meaning: type names of the engine, and prose that reads like a translation.

use nacre_tidy::{files_ending, measure, packages, read};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Names that two public types of the engine may share, and why.
const SHARED: &[(&str, &str)] = &[
    ("Bound", "to be renamed"),
    ("Frame", "to be renamed"),
    ("Given", "to be renamed"),
    ("Rows", "to be renamed"),
    ("Write", "to be renamed"),
];

#[test]
fn a_public_type_name_means_one_thing_in_the_engine() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for root in packages().into_iter().flat_map(|(_, roots)| roots) {
        // Fixtures are no part of the engine.
        if root.starts_with("engine/testing/")
            || !root.starts_with("engine/")
            || !root.ends_with("/src/lib.rs")
        {
            continue;
        }
        for (file, measured) in measure::library(&root) {
            for name in measured.public_types {
                places.entry(name).or_default().push(file.clone());
            }
        }
    }
    assert!(places.len() > 100, "the engine's types were found");
    let mut findings = String::new();
    for (name, files) in &places {
        let shared = SHARED.iter().any(|(word, _)| word == name);
        if files.len() > 1 && !shared {
            let _ = writeln!(findings, "{name} is defined in {}", files.join(" and in "));
        }
    }
    assert!(findings.is_empty(), "\n{findings}");
}

/// Where people read prose, and how many lines there may have a banned phrase: numbers only fall.
const RATCHET: &[(&str, usize)] = &[
    ("engine/", 22),
    ("bindings/", 0),
    ("worker/", 0),
    ("web/", 0),
    ("docs/", 0),
    ("README.md", 0),
    ("examples/", 0),
    ("tests/", 0),
    ("bench/", 0),
    ("tools/", 0),
];

/// Phrases that make a person of a thread or hide a plain noun. Put together here, so that this
/// file does not find itself.
fn banned() -> Vec<Vec<String>> {
    let phrases = ["who|ever", "no|body", "so |many"].map(|p| vec![p.replace('|', "")]);
    let persons =
        ["is", "has", "waits", "asks", "reads", "gives"].map(|verb| format!("who {verb}"));
    phrases.into_iter().chain([persons.to_vec()]).collect()
}

#[test]
fn prose_names_what_it_speaks_of() {
    let banned: Vec<String> = banned().concat();
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files_ending(&[".rs", ".ts", ".tsx", ".mjs", ".md", ".css", ".html", ".toml"]) {
        let Some((folder, _)) = RATCHET.iter().find(|(f, _)| file.starts_with(f)) else { continue };
        for (number, line) in read(&file).lines().enumerate() {
            let lower = line.to_lowercase();
            if banned.iter().any(|phrase| lower.contains(phrase)) {
                let at = format!("{file}:{}: {}", number + 1, line.trim());
                found.entry(folder).or_default().push(at);
            }
        }
    }
    let mut findings = String::new();
    for (folder, most) in RATCHET {
        let lines = found.get(folder).map(Vec::as_slice).unwrap_or_default();
        if lines.len() > *most {
            let _ = writeln!(findings, "{folder}: {} lines, at most {most}", lines.len());
            let _ = lines.iter().try_for_each(|line| writeln!(findings, "  {line}"));
        }
    }
    assert!(findings.is_empty(), "\n{findings}");
}
