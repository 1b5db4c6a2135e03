//! Which file of a crate uses which: every `use` and every path in expressions, types, patterns
//! and macro arguments, resolved to the file that defines the item it ends at.
//!
//! `pub use` in a `mod.rs`, `lib.rs` or `main.rs` passes a name on and ties nothing, nor does
//! `mod x;`. Code under `#[cfg(test)]` does not count.

use crate::graph::Graph;
use crate::modules::{Target, Tree, imports};
use crate::source;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{ImplItem, Item, Stmt, TraitItem, Visibility};

/// The graph of a package's files, from the root files of its targets.
pub fn graph(roots: &[String]) -> (Graph, Vec<String>) {
    let mut tree = Tree::of(roots);
    let files: Vec<syn::File> = tree.files.iter().map(|f| f.syntax.clone()).collect();
    // The module of each file, and those inside it, in the order in which the visitor meets them.
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); files.len()];
    for (number, module) in tree.modules.iter().enumerate() {
        inside[module.file].push(number);
    }
    for (file, syntax) in files.iter().enumerate() {
        let mut locals = Locals { tree: &mut tree, modules: Walk::new(&inside[file]), depth: 0 };
        locals.visit_file(syntax);
    }
    let mut graph = Graph::default();
    for (file, syntax) in files.iter().enumerate() {
        let name = &tree.files[file].name;
        let passes_on =
            ["/mod.rs", "/lib.rs", "/main.rs"].iter().any(|ending| name.ends_with(ending));
        graph.add(name);
        let mut uses = Uses {
            tree: &tree,
            file,
            passes_on,
            modules: Walk::new(&inside[file]),
            depth: 0,
            graph: &mut graph,
        };
        uses.visit_file(syntax);
    }
    (graph, tree.errors)
}

/// The modules of one file, entered in the order of the text.
struct Walk<'t> {
    order: std::slice::Iter<'t, usize>,
    stack: Vec<usize>,
}

impl<'t> Walk<'t> {
    fn new(inside: &'t [usize]) -> Walk<'t> {
        let mut order = inside.iter();
        let stack = order.next().copied().into_iter().collect();
        Walk { order, stack }
    }

    fn now(&self) -> usize {
        self.stack.last().copied().unwrap_or_default()
    }

    fn enter(&mut self) {
        self.stack.extend(self.order.next());
    }

    fn leave(&mut self) {
        self.stack.pop();
    }
}

/// Adds imports inside functions to their modules.
struct Locals<'t> {
    tree: &'t mut Tree,
    modules: Walk<'t>,
    depth: usize,
}

impl<'a> Visit<'a> for Locals<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        if source::is_test_only(source::attributes(item)) {
            return;
        }
        match item {
            Item::Mod(inner) if inner.content.is_some() && self.depth == 0 => {
                self.modules.enter();
                syn::visit::visit_item(self, item);
                self.modules.leave();
            }
            Item::Use(one) if self.depth > 0 => {
                self.tree.import_locally(self.modules.now(), &one.tree);
            }
            _ => syn::visit::visit_item(self, item),
        }
    }
    fn visit_block(&mut self, block: &'a syn::Block) {
        self.depth += 1;
        syn::visit::visit_block(self, block);
        self.depth -= 1;
    }
}

/// Collects what a file uses.
struct Uses<'t> {
    tree: &'t Tree,
    file: usize,
    passes_on: bool,
    modules: Walk<'t>,
    /// How many blocks the visitor is in: modules inside functions are not in the tree.
    depth: usize,
    graph: &'t mut Graph,
}

impl Uses<'_> {
    /// Notes a path and the file in which it ends.
    fn path(&mut self, path: &[String]) {
        for target in self.tree.resolve(self.modules.now(), path) {
            if let Target::Item(file) = target {
                // `Thing::new` says more than `new`.
                let from = path.len().saturating_sub(2);
                let shown = path.get(from..).unwrap_or_default().iter();
                let shown = shown.filter(|s| !["crate", "self", "super"].contains(&s.as_str()));
                let name = shown.cloned().collect::<Vec<_>>().join("::");
                self.tie(file, Some(&name));
            }
        }
    }

    fn tie(&mut self, file: usize, name: Option<&String>) {
        if file != self.file {
            let (from, to) = (&self.tree.files[self.file].name, &self.tree.files[file].name);
            self.graph.tie(from, to, name.map_or("*", String::as_str));
        }
    }

    /// A `use` ties to the items it names; a glob, to the file of its module if that defines any.
    fn import(&mut self, tree: &syn::UseTree) {
        for import in imports(tree) {
            if import.name.is_some() {
                self.path(&import.path);
                continue;
            }
            for target in self.tree.resolve(self.modules.now(), &import.path) {
                match target {
                    Target::Item(file) => self.tie(file, import.path.last()),
                    Target::Module(module) => {
                        let module = &self.tree.modules[module];
                        if module.defines_items() {
                            self.tie(module.file, None);
                        }
                    }
                }
            }
        }
    }

    /// Paths in the arguments of a macro, which syn leaves unparsed.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut after_dot = false;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 || path.is_empty() {
                        self.end(&mut path, after_dot);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                }
                TokenTree::Punct(mark) => {
                    self.end(&mut path, after_dot);
                    after_dot = mark.as_char() == '.';
                    colons = 0;
                }
                TokenTree::Group(group) => {
                    if colons == 2 && group.delimiter() == Delimiter::Brace && !path.is_empty() {
                        // `use a::{b, c}` in a macro: each begins with the path before it.
                        for inner in group.stream() {
                            if let TokenTree::Ident(name) = inner {
                                self.path(&[&path[..], &[name.to_string()]].concat());
                            }
                        }
                        path.clear();
                    }
                    self.end(&mut path, after_dot);
                    (colons, after_dot) = (0, false);
                    self.tokens(group.stream());
                }
                TokenTree::Literal(_) => {
                    self.end(&mut path, after_dot);
                    (colons, after_dot) = (0, false);
                }
            }
        }
        self.end(&mut path, after_dot);
    }

    fn end(&mut self, path: &mut Vec<String>, after_dot: bool) {
        let path = std::mem::take(path);
        if !path.is_empty() && !after_dot {
            self.path(&path);
        }
    }
}

impl<'a> Visit<'a> for Uses<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        if source::is_test_only(source::attributes(item)) {
            return;
        }
        match item {
            Item::Mod(inner) if inner.content.is_some() && self.depth == 0 => {
                self.modules.enter();
                syn::visit::visit_item(self, item);
                self.modules.leave();
            }
            Item::Use(one) => {
                let handed_on = !matches!(one.vis, Visibility::Inherited);
                if !(self.passes_on && handed_on) && one.leading_colon.is_none() {
                    self.import(&one.tree);
                }
            }
            _ => syn::visit::visit_item(self, item),
        }
    }
    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        if !source::is_test_only(source::impl_attributes(item)) {
            syn::visit::visit_impl_item(self, item);
        }
    }
    fn visit_trait_item(&mut self, item: &'a TraitItem) {
        if !source::is_test_only(source::trait_attributes(item)) {
            syn::visit::visit_trait_item(self, item);
        }
    }
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !source::is_test_only(source::statement_attributes(statement)) {
            syn::visit::visit_stmt(self, statement);
        }
    }
    fn visit_block(&mut self, block: &'a syn::Block) {
        self.depth += 1;
        syn::visit::visit_block(self, block);
        self.depth -= 1;
    }
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() {
            let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
            self.path(&segments);
        }
        syn::visit::visit_path(self, path);
    }
    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}
    fn visit_macro(&mut self, call: &'a syn::Macro) {
        if let Some(name) = call.path.get_ident()
            && let Some(file) = self.tree.macro_file(&name.to_string())
        {
            self.tie(file, Some(&name.to_string()));
        }
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }
}
