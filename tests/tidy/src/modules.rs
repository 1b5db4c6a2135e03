//! The module tree of a crate, and the names in it: what Rust's name resolution needs to say which
//! file defines an item, followed through `use`, re-exports and globs.
//!
//! Built from source text alone. Code under `#[cfg(test)]` is left out. Visibility is ignored: a
//! program that compiles names only what it may see. Namespaces are not told apart, so a name can
//! have several targets. Of macros only those are followed that list modules.

use crate::project::root;
use crate::source::{self, is_test_only};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use syn::{Item, UseTree};

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// A module, by its number in the tree.
    Module(usize),
    /// An item, by the number of the file that defines it.
    Item(usize),
}

/// A `use` declaration, one per leaf of its tree.
pub struct Import {
    /// Segments as written.
    pub path: Vec<String>,
    /// The name it brings into scope; `None` for a glob.
    pub name: Option<String>,
}

/// A source file of the crate.
pub struct File {
    /// Relative to the top folder.
    pub name: String,
    /// Parsed, with tests.
    pub syntax: syn::File,
}

/// A module, in a file of its own or inline.
pub struct Module {
    /// The file whose text the module is in.
    pub file: usize,
    root: usize,
    parent: Option<usize>,
    defined: HashMap<String, Vec<Target>>,
    imports: Vec<Import>,
    /// Where `mod x;` looks for files.
    folder: PathBuf,
}

impl Module {
    /// Whether the module's own text defines an item other than a module.
    pub fn defines_items(&self) -> bool {
        self.defined.values().flatten().any(|target| *target == Target::Item(self.file))
    }
}

/// The modules of all targets of one package.
#[derive(Default)]
pub struct Tree {
    /// Every file reached from a target's root.
    pub files: Vec<File>,
    /// Every module; a file's own module comes before those inside it.
    pub modules: Vec<Module>,
    /// `macro_rules!` by name, which reach further than paths.
    macros: HashMap<String, usize>,
    /// The items that a call of a `macro_rules!` defines, and whether it declares modules.
    expansions: HashMap<String, (Vec<String>, bool)>,
    /// What could not be read.
    pub errors: Vec<String>,
}

impl Tree {
    /// Reads a package from the root files of its targets, relative to the top folder.
    pub fn of(roots: &[String]) -> Tree {
        let mut tree = Tree::default();
        for start in roots {
            tree.read(Path::new(start), None);
        }
        tree
    }

    /// Reads a file as a module; answers with its number.
    fn read(&mut self, path: &Path, parent: Option<usize>) -> Option<usize> {
        let name = normal(path);
        let syntax = match source::parse(&name) {
            Ok(syntax) => syntax,
            Err(error) => {
                self.errors.push(format!("{name}: {error}"));
                return None;
            }
        };
        let file = self.files.len();
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let folder = match parent {
            Some(_) if stem != "mod" => folder.join(stem),
            _ => folder,
        };
        self.files.push(File { name, syntax: syntax.clone() });
        let module = self.add(file, parent, folder);
        self.declare(module, &syntax.items);
        Some(module)
    }

    fn add(&mut self, file: usize, parent: Option<usize>, folder: PathBuf) -> usize {
        let number = self.modules.len();
        let root = parent.map_or(number, |p| self.modules[p].root);
        let (defined, imports) = (HashMap::new(), Vec::new());
        self.modules.push(Module { file, root, parent, defined, imports, folder });
        number
    }

    fn define(&mut self, module: usize, name: String, target: Target) {
        self.modules[module].defined.entry(name).or_default().push(target);
    }

    fn declare(&mut self, module: usize, items: &[Item]) {
        let file = self.modules[module].file;
        for item in items {
            if is_test_only(source::attributes(item)) {
                continue;
            }
            match item {
                Item::Mod(inner) => self.declare_module(module, inner),
                Item::Use(one) => {
                    self.modules[module].imports.extend(imports(&one.tree));
                }
                Item::Macro(one) => {
                    if let Some(name) = &one.ident {
                        let name = name.to_string();
                        self.expansions.insert(name.clone(), expansion(&one.mac.tokens));
                        self.macros.insert(name.clone(), file);
                        let root = self.modules[module].root;
                        self.define(root, name.clone(), Target::Item(file));
                        self.define(module, name, Target::Item(file));
                    } else if let Some(name) = one.mac.path.get_ident() {
                        self.declare_by_macro(module, &name.to_string(), &one.mac.tokens);
                    }
                }
                other => {
                    if let Some(name) = source::name_of(other) {
                        self.define(module, name, Target::Item(file));
                    }
                }
            }
        }
    }

    /// A macro of this crate that lists modules: `list! { A = 1, a::A; }` declares `mod a;`.
    fn declare_by_macro(&mut self, module: usize, name: &str, tokens: &TokenStream) {
        let Some((items, modules)) = self.expansions.get(name).cloned() else { return };
        let file = self.modules[module].file;
        for item in items {
            self.define(module, item, Target::Item(file));
        }
        let folder = self.modules[module].folder.clone();
        for token in tokens.clone().into_iter().filter(|_| modules) {
            let TokenTree::Ident(name) = token else { continue };
            let name = name.to_string();
            let places = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
            let Some(path) = places.iter().find(|p| root().join(p).is_file()) else { continue };
            if self.modules[module].defined.contains_key(&name) {
                continue;
            }
            if let Some(child) = self.read(path, Some(module)) {
                self.define(module, name, Target::Module(child));
            }
        }
    }

    fn declare_module(&mut self, module: usize, inner: &syn::ItemMod) {
        let name = inner.ident.to_string();
        let folder = self.modules[module].folder.clone();
        let child = match &inner.content {
            Some((_, items)) => {
                let file = self.modules[module].file;
                let child = self.add(file, Some(module), folder.join(&name));
                self.declare(child, items);
                Some(child)
            }
            None => {
                // Relative to the folder of the file that says it.
                let here = self.files[self.modules[module].file].name.clone();
                let here = Path::new(&here).parent().unwrap_or(Path::new("")).to_path_buf();
                let beside = source::path_attribute(&inner.attrs).map(|p| here.join(p));
                let places = match beside {
                    Some(path) => vec![path],
                    None => {
                        vec![folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")]
                    }
                };
                let found = places.iter().find(|p| root().join(p).is_file()).cloned();
                match found {
                    Some(path) => self.read(&path, Some(module)),
                    None => {
                        self.errors.push(format!("{places:?}: no file for `mod {name}`"));
                        None
                    }
                }
            }
        };
        if let Some(child) = child {
            self.define(module, name, Target::Module(child));
        }
    }

    /// Adds an import that stands inside a function to what its module sees.
    pub fn import_locally(&mut self, module: usize, tree: &UseTree) {
        self.modules[module].imports.extend(imports(tree));
    }

    /// What a path leads to, as seen from a module; nothing when it leads out of the crate.
    pub fn resolve(&self, module: usize, path: &[String]) -> Vec<Target> {
        let mut found = self.follow(module, path, &mut HashSet::new());
        found.sort();
        found.dedup();
        found
    }

    /// The file of a `macro_rules!` that a bare name may mean.
    pub fn macro_file(&self, name: &str) -> Option<usize> {
        self.macros.get(name).copied()
    }

    fn follow(
        &self,
        module: usize,
        path: &[String],
        seen: &mut HashSet<(usize, String)>,
    ) -> Vec<Target> {
        let Some((first, mut rest)) = path.split_first() else {
            return vec![Target::Module(module)];
        };
        let mut reached = match first.as_str() {
            "crate" | "$crate" => vec![Target::Module(self.modules[module].root)],
            "self" => vec![Target::Module(module)],
            "super" => {
                let mut at = self.modules[module].parent;
                while let Some((step, after)) = rest.split_first()
                    && step == "super"
                {
                    at = at.and_then(|m| self.modules[m].parent);
                    rest = after;
                }
                at.map(Target::Module).into_iter().collect()
            }
            name => self.lookup(module, name, seen),
        };
        for segment in rest {
            // A module and a function may share a name: only the module has something in it.
            if reached.iter().any(|target| matches!(target, Target::Module(_))) {
                reached.retain(|target| matches!(target, Target::Module(_)));
            }
            reached = reached
                .into_iter()
                .flat_map(|target| match target {
                    Target::Module(inner) => self.lookup(inner, segment, seen),
                    // A variant, an associated item.
                    Target::Item(_) => vec![target],
                })
                .collect();
        }
        reached
    }

    /// What a name means in a module. `seen` ends the search among globs that import each other.
    fn lookup(
        &self,
        module: usize,
        name: &str,
        seen: &mut HashSet<(usize, String)>,
    ) -> Vec<Target> {
        if !seen.insert((module, name.to_string())) {
            return Vec::new();
        }
        let scope = &self.modules[module];
        let mut found = scope.defined.get(name).cloned().unwrap_or_default();
        for import in scope.imports.iter().filter(|i| i.name.as_deref() == Some(name)) {
            found.extend(self.follow(module, &import.path, seen));
        }
        if found.is_empty() {
            for import in scope.imports.iter().filter(|i| i.name.is_none()) {
                for target in self.follow(module, &import.path, &mut seen.clone()) {
                    if let Target::Module(inner) = target {
                        found.extend(self.lookup(inner, name, seen));
                    }
                }
            }
        }
        seen.remove(&(module, name.to_string()));
        found
    }
}

/// The names of the items in a macro's rules, outside of other braces, and whether they have
/// `mod $x;`.
fn expansion(rules: &TokenStream) -> (Vec<String>, bool) {
    let mut items = Vec::new();
    let mut modules = false;
    let bodies = rules.clone().into_iter().filter_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
        _ => None,
    });
    for body in bodies {
        modules |= body.to_string().contains("mod $");
        let tokens: Vec<TokenTree> = body.into_iter().collect();
        for pair in tokens.windows(2) {
            if let [TokenTree::Ident(kind), TokenTree::Ident(name)] = pair
                && ["enum", "struct", "trait", "fn", "type", "union"]
                    .contains(&kind.to_string().as_str())
            {
                items.push(name.to_string());
            }
        }
    }
    (items, modules)
}

/// The leaves of a `use` tree.
pub fn imports(tree: &UseTree) -> Vec<Import> {
    fn walk(tree: &UseTree, before: &[String], into: &mut Vec<Import>) {
        let with = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => walk(&path.tree, &with(path.ident.to_string()), into),
            UseTree::Name(name) if name.ident == "self" => {
                let path = before.to_vec();
                into.push(Import { name: path.last().cloned(), path });
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                into.push(Import { path: with(name.clone()), name: Some(name) });
            }
            UseTree::Rename(rename) => {
                let path = match rename.ident.to_string() {
                    own if own == "self" => before.to_vec(),
                    own => with(own),
                };
                into.push(Import { path, name: Some(rename.rename.to_string()) });
            }
            UseTree::Glob(_) => into.push(Import { path: before.to_vec(), name: None }),
            UseTree::Group(group) => group.items.iter().for_each(|t| walk(t, before, into)),
        }
    }
    let mut all = Vec::new();
    walk(tree, &[], &mut all);
    all
}

/// A path with `..` taken out, with `/`.
fn normal(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}
