//! Which TypeScript file imports which, by relative paths.

use crate::graph::Graph;
use crate::project::{files_ending, read, root};

/// The graph of the TypeScript files below a folder, tests left out.
pub fn graph(folder: &str) -> Graph {
    let mut graph = Graph::default();
    let files = files_ending(&[".ts", ".tsx"]).into_iter().filter(|f| f.starts_with(folder));
    for file in files.filter(|f| !f.contains(".test.") && !f.ends_with(".d.ts")) {
        graph.add(&file);
        for (names, target) in imports(&read(&file)) {
            let Some(to) = resolve(&file, &target) else { continue };
            for name in names {
                graph.tie(&file, &to, &name);
            }
        }
    }
    graph
}

/// Relative paths that a module imports or exports from, each with the names it takes.
fn imports(text: &str) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    for ending in [" from '", "import '", "import('"] {
        for (at, _) in text.match_indices(ending) {
            let after = text.get(at + ending.len()..).unwrap_or_default();
            let Some(target) = after.split('\'').next().filter(|t| t.starts_with('.')) else {
                continue;
            };
            let before = text.get(..at).unwrap_or_default();
            let start = ["import ", "export "].iter().filter_map(|w| before.rfind(w)).max();
            let clause = before.get(start.unwrap_or(at)..).unwrap_or_default();
            let words = clause.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
            let names: Vec<String> = words
                .filter(|w| !["", "import", "export", "type", "as"].contains(w))
                .map(ToString::to_string)
                .collect();
            found.push((
                if names.is_empty() { vec!["*".to_string()] } else { names },
                target.into(),
            ));
        }
    }
    found
}

/// The source file that an import means: `./x.js` is written for `x.ts`.
fn resolve(file: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for step in target.split('/') {
        match step {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    let path = parts.join("/");
    let bare = path.strip_suffix(".js").unwrap_or(&path);
    ["", ".ts", ".tsx", "/index.ts"].iter().map(|ending| format!("{bare}{ending}")).find(|name| {
        (name.ends_with(".ts") || name.ends_with(".tsx")) && root().join(name).is_file()
    })
}
