//! What is counted over product code: functions, assertions, public types. Test items are left out.

use crate::modules::Tree;
use crate::project::{files_ending, read};
use crate::source;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::Visit;
use syn::{ImplItem, Item, Stmt, TraitItem, Visibility};

/// What a file holds.
#[derive(Default)]
pub struct Measured {
    /// Functions and methods with a body.
    pub functions: usize,
    /// `invariant!`, `debug_assert…!` and `assert…!`.
    pub assertions: usize,
    /// Types and traits that are `pub`, by name.
    pub public_types: Vec<String>,
}

/// Measures the product code of a library: its name, relative to the top folder, and each file's.
pub fn library(root: &str) -> Vec<(String, Measured)> {
    let tree = Tree::of(&[root.to_string()]);
    let files = tree.files.iter().map(|file| {
        let mut measured = Measured::default();
        measured.visit_file(&file.syntax);
        (file.name.clone(), measured)
    });
    files.collect()
}

/// Assertions a function over these crates of the engine.
pub fn assertions(crates: &[&str]) -> (usize, usize) {
    let (mut assertions, mut functions) = (0, 0);
    for name in crates {
        for (_, measured) in library(&format!("engine/{name}/src/lib.rs")) {
            assertions += measured.assertions;
            functions += measured.functions;
        }
    }
    (assertions, functions)
}

/// The crates of storage, where a wrong value stays.
pub const STORAGE: [&str; 6] = ["column", "rowstore", "format", "segment", "log", "table"];

/// The source folder with the most entries, files and folders, and how many it has.
pub fn largest_folder() -> (String, usize) {
    let mut entries: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files_ending(&[".rs", ".ts", ".tsx", ".css"]) {
        if !file.contains("/src/") {
            continue;
        }
        let mut path = file.as_str();
        while let Some((folder, entry)) = path.rsplit_once('/') {
            entries.entry(folder.to_string()).or_default().insert(entry.to_string());
            if folder.ends_with("/src") {
                break;
            }
            path = folder;
        }
    }
    let sizes = entries.into_iter().map(|(folder, inside)| (folder, inside.len()));
    sizes.max_by_key(|(_, entries)| *entries).unwrap_or_default()
}

/// The median of the lines of Rust and TypeScript files.
pub fn median_lines() -> usize {
    let files = files_ending(&[".rs", ".ts", ".tsx"]);
    let mut lines: Vec<usize> = files.iter().map(|file| read(file).lines().count()).collect();
    lines.sort_unstable();
    lines.get(lines.len() / 2).copied().unwrap_or_default()
}

impl Measured {
    fn public(&mut self, visibility: &Visibility, name: &syn::Ident) {
        if matches!(visibility, Visibility::Public(_)) {
            self.public_types.push(name.to_string());
        }
    }

    /// Assertions inside the arguments of other macros, which syn leaves unparsed.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut before: Option<String> = None;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '!' => {
                    self.assertions += usize::from(before.take().is_some_and(|n| asserts(&n)));
                }
                TokenTree::Ident(name) => before = Some(name.to_string()),
                TokenTree::Group(group) => {
                    before = None;
                    self.tokens(group.stream());
                }
                _ => before = None,
            }
        }
    }
}

/// Whether a macro of this name asserts.
fn asserts(name: &str) -> bool {
    name == "invariant" || name.starts_with("assert") || name.starts_with("debug_assert")
}

impl<'a> Visit<'a> for Measured {
    fn visit_item(&mut self, item: &'a Item) {
        if source::is_test_only(source::attributes(item)) {
            return;
        }
        match item {
            Item::Fn(_) => self.functions += 1,
            Item::Struct(i) => self.public(&i.vis, &i.ident),
            Item::Enum(i) => self.public(&i.vis, &i.ident),
            Item::Trait(i) => self.public(&i.vis, &i.ident),
            Item::Type(i) => self.public(&i.vis, &i.ident),
            Item::Union(i) => self.public(&i.vis, &i.ident),
            _ => {}
        }
        syn::visit::visit_item(self, item);
    }
    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        if !source::is_test_only(source::impl_attributes(item)) {
            self.functions += usize::from(matches!(item, ImplItem::Fn(_)));
            syn::visit::visit_impl_item(self, item);
        }
    }
    fn visit_trait_item(&mut self, item: &'a TraitItem) {
        if !source::is_test_only(source::trait_attributes(item)) {
            let body = matches!(item, TraitItem::Fn(one) if one.default.is_some());
            self.functions += usize::from(body);
            syn::visit::visit_trait_item(self, item);
        }
    }
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !source::is_test_only(source::statement_attributes(statement)) {
            syn::visit::visit_stmt(self, statement);
        }
    }
    fn visit_macro(&mut self, call: &'a syn::Macro) {
        let name = call.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        self.assertions += usize::from(asserts(&name));
        self.tokens(call.tokens.clone());
    }
}
