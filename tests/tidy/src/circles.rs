//! The parts of the project that may have no import circle among their files: each crate, and each
//! folder of TypeScript.

use crate::graph::Circle;
use crate::project::packages;
use crate::{imports, script};

/// A crate or a folder of TypeScript.
pub struct Part {
    /// The crate's name, or the folder.
    pub name: String,
    /// How many files it has.
    pub files: usize,
    /// Largest first.
    pub circles: Vec<Circle>,
    /// Files that could not be read.
    pub errors: Vec<String>,
}

impl Part {
    /// How many files are in a circle.
    pub fn tied(&self) -> usize {
        self.circles.iter().map(|circle| circle.files.len()).sum()
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let (circles, tied) = (self.circles.len(), self.tied());
        write!(out, "{}: {} files, {circles} circles, {tied} files in them", self.name, self.files)
    }
}

/// Every part, with its circles.
pub fn parts() -> Vec<Part> {
    let crates = packages().into_iter().map(|(name, roots)| {
        let (graph, errors) = imports::graph(&roots);
        Part { name, files: graph.len(), circles: graph.circles(), errors }
    });
    let scripts = ["bindings/js", "worker", "web", "examples"].into_iter().map(|folder| {
        let graph = script::graph(folder);
        let (name, errors) = (folder.to_string(), Vec::new());
        Part { name, files: graph.len(), circles: graph.circles(), errors }
    });
    crates.chain(scripts).collect()
}
