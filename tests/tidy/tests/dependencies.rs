//! Every dependency comes from crates.io under a licence that `deny.toml` allows.
//!
//! Advisories need a download, and are `cargo deny`'s part.

use nacre_tidy::{project, read};
use std::fmt::Write as _;

#[test]
fn dependencies_have_licences_that_are_allowed() {
    let allowed = allowed();
    assert!(allowed.iter().any(|name| name == "MIT"), "deny.toml lists licences");
    let metadata = project::dependencies();
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    assert!(packages.len() > 100, "cargo metadata lists the dependencies");
    let mut findings = String::new();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        if !permits(licence, &allowed) {
            let _ = writeln!(findings, "{name}: licence `{licence}` is not allowed");
        }
        let source = package["source"].as_str();
        if source.is_some_and(|s| !(s.starts_with("registry+") && s.ends_with("/crates.io-index")))
        {
            let _ = writeln!(findings, "{name}: comes from {}", package["source"]);
        }
    }
    assert!(findings.is_empty(), "\n{findings}");
}

/// The list `allow` of `deny.toml`'s licences.
fn allowed() -> Vec<String> {
    let text = read("deny.toml");
    let list = text.split("\nallow = [").nth(1).and_then(|rest| rest.split(']').next());
    let quoted = list.unwrap_or_default().split('"').skip(1).step_by(2);
    quoted.map(ToString::to_string).collect()
}

/// Whether a licence expression can be satisfied: one side of each `OR`, both of each `AND`.
fn permits(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ");
    let holds = |name: &str| {
        let name = name.trim().trim_matches(['(', ')']);
        allowed.iter().any(|a| a == name)
    };
    // `AND` binds tighter, but for what parentheses hold together.
    match expression.strip_prefix('(').and_then(|rest| rest.split_once(") AND ")) {
        Some((inner, other)) => permits(inner, allowed) && permits(other, allowed),
        None => expression.split(" OR ").any(|side| side.split(" AND ").all(holds)),
    }
}

#[test]
fn expressions_of_licences_are_read() {
    let allowed = ["MIT".to_string(), "Zlib".to_string()];
    for yes in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "MIT AND Zlib", "(X OR MIT) AND Zlib"] {
        assert!(permits(yes, &allowed), "{yes}");
    }
    for no in ["", "GPL-3.0", "MIT AND GPL-3.0", "(X OR Y) AND MIT", "(X OR MIT) AND Y"] {
        assert!(!permits(no, &allowed), "{no}");
    }
}
