//! Which way the arrows point: who may depend on whom, in Cargo and in TypeScript imports.

use nacre_tidy::{files_ending, metadata, read};
use std::collections::BTreeMap;

/// Crates of the workspace and the workspace crates each may use in its product code.
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    let storage = ["nacre-types", "nacre-host", "nacre-column"];
    let operators =
        [&storage[..], &["nacre-table", "nacre-function", "nacre-builtin", "nacre-sql"]].concat();
    BTreeMap::from([
        ("nacre-types", vec![]),
        ("nacre-host", vec!["nacre-types"]),
        ("nacre-column", vec!["nacre-types"]),
        ("nacre-rowstore", storage.to_vec()),
        ("nacre-format", storage.to_vec()),
        ("nacre-segment", [&storage[..], &["nacre-format"]].concat()),
        ("nacre-log", storage.to_vec()),
        ("nacre-table", [&storage[..], &["nacre-rowstore", "nacre-segment", "nacre-log"]].concat()),
        ("nacre-tier", vec!["nacre-types", "nacre-host", "nacre-log"]),
        ("nacre-function", vec!["nacre-types", "nacre-column"]),
        ("nacre-builtin", vec!["nacre-types", "nacre-column", "nacre-function"]),
        ("nacre-sql", vec!["nacre-types", "nacre-function", "nacre-builtin"]),
        ("nacre-operator", operators.to_vec()),
        ("nacre-exec", [&operators[..], &["nacre-operator"]].concat()),
        (
            "nacre-session",
            [&storage[..], &["nacre-table", "nacre-sql", "nacre-operator", "nacre-exec"]].concat(),
        ),
        (
            "nacredb",
            [
                &storage[..],
                &["nacre-table", "nacre-tier", "nacre-sql", "nacre-operator", "nacre-session"],
            ]
            .concat(),
        ),
        // Fixtures: no crate may use it in product code.
        ("nacre-testing", vec!["nacre-types", "nacre-host"]),
        ("nacre-native", vec!["nacredb", "nacre-host"]),
        ("nacre-blobs", vec!["nacredb", "nacre-host"]),
        ("nacre-wasm", vec!["nacredb", "nacre-host"]),
        ("nacre-module", vec!["nacre-wasm"]),
        ("nacre-server", vec!["nacredb", "nacre-blobs", "nacre-host", "nacre-native"]),
        ("nacre-web-tpch", vec![]),
        ("nacre-example-embed", vec!["nacredb", "nacre-native"]),
        ("nacre-bindgen", vec![]),
        ("nacre-divide", vec![]),
    ])
}

#[test]
fn crates_depend_downwards_only() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    assert!(packages.len() >= 10, "cargo metadata lists the workspace");
    let names: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let allowed = allowed();
    let mut findings = Vec::new();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = package["manifest_path"].as_str().unwrap_or_default().replace('\\', "/");
        let is_test = manifest.contains("/tests/") || manifest.contains("/bench/");
        let Some(may) = allowed.get(name) else {
            if !is_test {
                findings.push(format!("{name} is not in the table of tests/tidy/tests/arrows.rs"));
            }
            continue;
        };
        for dependency in package["dependencies"].as_array().cloned().unwrap_or_default() {
            let used = dependency["name"].as_str().unwrap_or_default();
            let product = dependency["kind"].is_null();
            if product && names.contains(&used) && !may.contains(&used) {
                findings.push(format!("{name} must not depend on {used}"));
            }
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Bugs can be planted in the engine for the tests that look for them: by a feature that is off by
/// default, and that no crate but the simulation asks for.
#[test]
fn planted_bugs_are_in_no_build_by_default() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let mut findings = Vec::new();
    let mut plantable = 0;
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let features = package["features"].as_object().cloned().unwrap_or_default();
        plantable += usize::from(features.contains_key("plant"));
        if features.contains_key("plant")
            && !["nacre-types", "nacredb", "nacre-sim"].contains(&name)
        {
            findings.push(format!("{name} has a feature `plant`"));
        }
        for (feature, enables) in &features {
            let plants = enables.as_array().is_some_and(|all| {
                all.iter().filter_map(|e| e.as_str()).any(|e| e == "plant" || e.ends_with("/plant"))
            });
            if plants && feature != "plant" {
                findings.push(format!("{name}: feature {feature} turns on `plant`"));
            }
        }
        for dependency in package["dependencies"].as_array().cloned().unwrap_or_default() {
            let asked = dependency["features"].as_array().cloned().unwrap_or_default();
            if asked.iter().any(|f| f == "plant") {
                findings.push(format!("{name} asks {} for `plant`", dependency["name"]));
            }
        }
    }
    assert_eq!(plantable, 3, "the feature is where this test looks for it");
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Paths of the engine are counted for the simulation only.
#[test]
fn walked_paths_are_counted_by_the_simulation_only() {
    let metadata = metadata();
    let mut findings = Vec::new();
    let mut asking = 0;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        for (feature, enables) in package["features"].as_object().into_iter().flatten() {
            let mut enables = enables.as_array().into_iter().flatten().filter_map(|e| e.as_str());
            if enables.any(|e| e == "walk" || e.ends_with("/walk")) && feature != "walk" {
                findings.push(format!("{name}: feature {feature} turns on `walk`"));
            }
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let mut asked = dependency["features"].as_array().into_iter().flatten();
            if asked.any(|f| f == "walk") {
                asking += 1;
                if name != "nacre-sim" {
                    findings.push(format!("{name} asks {} for `walk`", dependency["name"]));
                }
            }
        }
    }
    assert_eq!(asking, 1, "the simulation asks for the feature");
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Folder of a TypeScript file and the folders it may import from, beside its own.
const LAYERS: [(&str, &[&str]); 7] = [
    ("worker/", &["bindings/wasm/"]),
    ("bindings/js/", &["worker/", "bindings/wasm/"]),
    ("bindings/kysely/", &[]),
    ("bindings/drizzle/", &[]),
    ("bindings/react/", &[]),
    ("web/", &[]),
    ("examples/", &[]),
];

#[test]
fn typescript_imports_downwards_only() {
    let mut findings = Vec::new();
    for file in files_ending(&[".ts", ".tsx"]) {
        let Some((layer, may)) = LAYERS.iter().find(|(folder, _)| file.starts_with(folder)) else {
            continue;
        };
        for line in read(&file).lines().filter(|l| l.contains("from '") || l.contains("import('")) {
            let Some(target) = line.split('\'').nth(1).filter(|t| t.starts_with('.')) else {
                continue;
            };
            let resolved = resolve(&file, target);
            let known = LAYERS.iter().map(|(folder, _)| *folder).chain([
                "bindings/wasm/",
                "engine/",
                "tests/",
                "bench/",
            ]);
            for folder in known {
                if resolved.starts_with(folder) && folder != *layer && !may.contains(&folder) {
                    findings.push(format!("{file} imports {resolved}"));
                }
            }
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

fn resolve(file: &str, target: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for step in target.split('/') {
        match step {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}
