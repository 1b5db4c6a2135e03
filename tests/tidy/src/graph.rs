//! A graph of files: which uses which and by which names, and the circles in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Files and what ties them.
#[derive(Default)]
pub struct Graph {
    files: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

/// Files that use each other in a loop, every one reachable from every other.
pub struct Circle {
    /// The files, sorted.
    pub files: Vec<String>,
    /// From, to, and the names that tie them.
    pub ties: Vec<(String, String, Vec<String>)>,
}

impl Graph {
    /// Adds a file.
    pub fn add(&mut self, file: &str) {
        self.files.entry(file.to_string()).or_default();
    }

    /// Adds a name by which one file uses another.
    pub fn tie(&mut self, from: &str, to: &str, name: &str) {
        let uses = self.files.entry(from.to_string()).or_default();
        uses.entry(to.to_string()).or_default().insert(name.to_string());
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The circles, largest first.
    pub fn circles(&self) -> Vec<Circle> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.files.keys().map(|file| (file.as_str(), self.reachable(file))).collect();
        let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
        let mut circles: Vec<Circle> = Vec::new();
        let mut placed: BTreeSet<&str> = BTreeSet::new();
        for file in self.files.keys() {
            if placed.contains(file.as_str()) || !reaches(file, file) {
                continue;
            }
            let together = |other: &&String| reaches(file, other) && reaches(other, file);
            let files: Vec<String> = self.files.keys().filter(together).cloned().collect();
            placed.extend(self.files.keys().filter(together).map(String::as_str));
            let mut ties = Vec::new();
            for from in &files {
                for (to, names) in &self.files[from] {
                    if files.contains(to) {
                        ties.push((from.clone(), to.clone(), names.iter().cloned().collect()));
                    }
                }
            }
            circles.push(Circle { files, ties });
        }
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.files.len()));
        circles
    }

    fn reachable(&self, from: &str) -> BTreeSet<&str> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = vec![from];
        while let Some(file) = open.pop() {
            for next in self.files.get(file).into_iter().flat_map(|uses| uses.keys()) {
                if seen.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        seen
    }
}

impl std::fmt::Display for Circle {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        writeln!(out, "circle of {} files:", self.files.len())?;
        for (from, to, names) in &self.ties {
            let mut listed = String::new();
            for (at, name) in names.iter().enumerate() {
                write!(listed, "{}{name}", if at == 0 { "" } else { ", " })?;
            }
            writeln!(out, "  {from} -> {to}: {listed}")?;
        }
        Ok(())
    }
}
