//! One word, one meaning: type names of the engine, and prose that reads like a translation.

use nacre_tidy::{files_ending, measure, packages, read};
use std::collections::BTreeMap;
use std::fmt::Write as _;

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
        if files.len() > 1 {
            let _ = writeln!(findings, "{name} is defined in {}", files.join(" and in "));
        }
    }
    assert!(findings.is_empty(), "\n{findings}");
}

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
    let mut findings = String::new();
    for file in files_ending(&[".rs", ".ts", ".tsx", ".mjs", ".md", ".css", ".html", ".toml"]) {
        for (number, line) in read(&file).lines().enumerate() {
            let lower = line.to_lowercase();
            if banned.iter().any(|phrase| lower.contains(phrase)) {
                let _ = writeln!(findings, "{file}:{}: {}", number + 1, line.trim());
            }
        }
    }
    assert!(findings.is_empty(), "\n{findings}");
}
