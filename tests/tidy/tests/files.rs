//! Rules for single files: a heading, a readable length, no banned words, and that none lies
//! unused.

use nacre_tidy::{files, files_ending, is_test_file, read, without_tests};

/// Files may not be longer than this.
const MAX_LINES: usize = 600;

/// Files that are longer, and how long they may be: may only shrink, and then leave this list.
const RATCHET: [(&str, usize); 0] = [];

#[test]
fn files_stay_readable_in_one_sitting() {
    let mut findings = Vec::new();
    for file in files_ending(&[".rs", ".ts", ".tsx", ".mjs", ".css"]) {
        let lines = read(&file).lines().count();
        let limit =
            RATCHET.iter().find(|(name, _)| *name == file).map_or(MAX_LINES, |(_, limit)| *limit);
        if lines > limit {
            findings.push(format!("{file}: {lines} lines, at most {limit}"));
        }
    }
    for (file, limit) in RATCHET {
        let lines = read(file).lines().count();
        if lines < limit {
            findings
                .push(format!("{file}: has {lines} lines now, tighten the ratchet from {limit}"));
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn files_say_what_they_own() {
    let mut findings = Vec::new();
    for file in files_ending(&[".rs"]) {
        if !read(&file).trim_start_matches("#![no_main]\n").starts_with("//!") {
            findings.push(format!("{file}: does not open with a `//!` paragraph"));
        }
    }
    for file in files_ending(&[".ts", ".tsx", ".mjs"]) {
        let text = read(&file);
        let text = text.strip_prefix("#!/usr/bin/env node\n").unwrap_or(&text);
        let exempt = file.ends_with(".d.ts") || file.ends_with(".test.ts");
        if !text.starts_with("//") && !text.starts_with("/*") && !exempt {
            findings.push(format!("{file}: does not open with a comment that says what it owns"));
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Words that must not appear in engine code outside tests, and what to use instead. Clippy bans
/// most of these too; this catches macros, attributes and what a path rename would hide.
const BANNED: [(&str, &str); 9] = [
    ("std::thread::", "host::Parallelism"),
    ("std::time::", "host::Clock"),
    ("std::fs::", "host::LocalStore"),
    ("std::net::", "host"),
    ("std::env::", "options"),
    ("println!", "errors or results"),
    ("todo!", "the feature, or Error::unsupported with its name"),
    ("unimplemented!", "the feature, or Error::unsupported with its name"),
    ("wasm_bindgen", "bindings/wasm"),
];

#[test]
fn the_engine_reaches_the_world_through_the_host_only() {
    let mut findings = Vec::new();
    for file in
        files_ending(&[".rs"]).into_iter().filter(|f| f.starts_with("engine/") && !is_test_file(f))
    {
        let lines = match without_tests(&file) {
            Ok(lines) => lines,
            Err(error) => {
                findings.push(format!("{file}: {error}"));
                continue;
            }
        };
        for (number, line) in lines {
            let code = line.trim_start();
            for (word, instead) in BANNED {
                if code.contains(word) && !code.starts_with("//") {
                    findings.push(format!("{file}:{number}: {word} (use {instead})"));
                }
            }
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn no_rust_file_lies_unused() {
    let all = files_ending(&[".rs"]);
    let mut findings = Vec::new();
    for file in &all {
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        let entry = matches!(name, "lib.rs" | "main.rs" | "build.rs")
            || folder.ends_with("/tests") && !folder.contains("/src")
            || folder.ends_with("/bin")
            || folder.ends_with("/examples")
            || folder.ends_with("/benches")
            || folder.ends_with("/fuzz_targets");
        if entry {
            continue;
        }
        // `a/b.rs` is declared in `a/mod.rs`, `a.rs`, `a/lib.rs` or `a/main.rs`; `a/b/mod.rs` one
        // level up.
        let (module, parent) = match name {
            "mod.rs" => folder.rsplit_once('/').map_or((folder, ""), |(up, last)| (last, up)),
            _ => (name.trim_end_matches(".rs"), folder),
        };
        let candidates = [
            format!("{parent}/mod.rs"),
            format!("{parent}.rs"),
            format!("{parent}/lib.rs"),
            format!("{parent}/main.rs"),
        ];
        let declared = candidates.iter().any(|c| {
            let text = read(c);
            let by_path = text.contains(&format!("#[path = \"{name}\"]"));
            // A macro that lists modules: `mod $name;`, called with `a::A`.
            let listed = text.contains("mod $") && text.contains(&format!(" {module}::"));
            by_path
                || listed
                || text.lines().any(|l| l.trim_end().ends_with(&format!("mod {module};")))
        });
        if !declared {
            findings.push(format!("{file}: no `mod {module};` names it"));
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

/// A module with children is `x/mod.rs`.
#[test]
fn no_module_file_stands_beside_its_folder() {
    let all = files_ending(&[".rs"]);
    let beside = |file: &&String| {
        let stem = file.trim_end_matches(".rs");
        let folder = format!("{stem}/");
        all.iter().any(|other| other.starts_with(&folder))
    };
    let findings: Vec<&String> = all.iter().filter(beside).collect();
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn no_script_lies_unused() {
    let all = files();
    let sources: Vec<String> =
        files_ending(&[".ts", ".tsx", ".mjs", ".json", ".html", ".md", ".yml", "/run"]);
    let texts: Vec<(String, String)> = sources.iter().map(|f| (f.clone(), read(f))).collect();
    let mut findings = Vec::new();
    for file in
        all.iter().filter(|f| f.ends_with(".ts") || f.ends_with(".mjs") || f.ends_with(".css"))
    {
        let name = file.rsplit('/').next().unwrap_or(file);
        // `npm run tidy` finds the dummies by their kind.
        if file.starts_with("tests/tidy/dummies/")
            || name.contains(".test.")
            || name.ends_with(".d.ts")
            || name.contains(".config.")
        {
            continue;
        }
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        // Imports name the built file (`./x.js` for `x.ts`), the file itself, or leave the ending
        // out; Vite takes `./x?worker` for a worker made of it.
        let forms = [
            format!("/{stem}.js"),
            format!("/{name}"),
            format!("/{stem}'"),
            format!("/{stem}?worker'"),
        ];
        let used = texts
            .iter()
            .any(|(other, text)| other != file && forms.iter().any(|form| text.contains(form)));
        if !used {
            findings.push(format!("{file}: nothing names it"));
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn nothing_names_one_machine() {
    // Put together here, so that this file does not find itself.
    let folders: Vec<String> =
        ["work", "root", "farm", "home"].iter().map(|f| format!("/{f}/")).collect();
    let mut findings = Vec::new();
    for file in files().into_iter().filter(|f| !f.ends_with(".lock") && !f.contains("corpora/")) {
        for (number, line) in read(&file).lines().enumerate() {
            let outside = |at: usize| {
                let before = line.get(..at).and_then(|b| b.chars().last());
                before.is_none_or(|c| !c.is_alphanumeric() && !"/.-_*})".contains(c))
            };
            if folders.iter().any(|f| line.match_indices(f.as_str()).any(|(at, _)| outside(at))) {
                findings.push(format!("{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}
