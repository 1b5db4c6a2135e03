//! Rust source as a syntax tree: parsing a file, and telling tests from the rest.

use crate::project::{read, root};
use std::collections::HashSet;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Attribute, ImplItem, Item, Meta, Stmt, TraitItem};

/// Parses a file, given relative to the top folder.
pub fn parse(file: &str) -> Result<syn::File, String> {
    let text = std::fs::read_to_string(root().join(file)).map_err(|e| e.to_string())?;
    syn::parse_file(&text).map_err(|e| format!("line {}: {e}", e.span().start().line))
}

/// Whether an item with these attributes is compiled for tests only.
pub fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
    })
}

/// Whether a condition holds in test builds only: `test`, or `all(…)` of it.
fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated)
            .is_ok_and(|parts| parts.iter().any(needs_test)),
        _ => false,
    }
}

/// An item's attributes.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::ExternCrate(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::ForeignMod(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::TraitAlias(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// The name an item adds to its module.
pub fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(i) => &i.ident,
        Item::Enum(i) => &i.ident,
        Item::Fn(i) => &i.sig.ident,
        Item::Static(i) => &i.ident,
        Item::Struct(i) => &i.ident,
        Item::Trait(i) => &i.ident,
        Item::TraitAlias(i) => &i.ident,
        Item::Type(i) => &i.ident,
        Item::Union(i) => &i.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The file that `#[path = "…"]` names.
pub fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

/// Attributes of an item of an `impl` block.
pub fn impl_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(i) => &i.attrs,
        ImplItem::Fn(i) => &i.attrs,
        ImplItem::Type(i) => &i.attrs,
        ImplItem::Macro(i) => &i.attrs,
        _ => &[],
    }
}

/// Attributes of an item of a trait.
pub fn trait_attributes(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(i) => &i.attrs,
        TraitItem::Fn(i) => &i.attrs,
        TraitItem::Type(i) => &i.attrs,
        TraitItem::Macro(i) => &i.attrs,
        _ => &[],
    }
}

/// Attributes of a statement.
pub fn statement_attributes(statement: &Stmt) -> &[Attribute] {
    match statement {
        Stmt::Local(s) => &s.attrs,
        Stmt::Item(item) => attributes(item),
        Stmt::Macro(s) => &s.attrs,
        Stmt::Expr(syn::Expr::Block(b), _) => &b.attrs,
        Stmt::Expr(..) => &[],
    }
}

/// Numbers, from 1, of the lines that belong to test items only.
pub fn test_lines(syntax: &syn::File) -> HashSet<usize> {
    struct Lines(HashSet<usize>);
    impl Lines {
        /// Notes the lines of a test item; answers whether it was one.
        fn take(&mut self, attributes: &[Attribute], whole: impl Spanned) -> bool {
            let test = is_test_only(attributes);
            if test {
                let span = whole.span();
                let first = attributes.iter().map(|a| a.span().start().line).min();
                let first = first.unwrap_or(usize::MAX).min(span.start().line);
                self.0.extend(first..=span.end().line);
            }
            test
        }
    }
    impl<'a> Visit<'a> for Lines {
        fn visit_item(&mut self, item: &'a Item) {
            if !self.take(attributes(item), item) {
                syn::visit::visit_item(self, item);
            }
        }
        fn visit_impl_item(&mut self, item: &'a ImplItem) {
            if !self.take(impl_attributes(item), item) {
                syn::visit::visit_impl_item(self, item);
            }
        }
        fn visit_trait_item(&mut self, item: &'a TraitItem) {
            if !self.take(trait_attributes(item), item) {
                syn::visit::visit_trait_item(self, item);
            }
        }
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            if !self.take(statement_attributes(statement), statement) {
                syn::visit::visit_stmt(self, statement);
            }
        }
    }
    let mut lines = Lines(HashSet::new());
    lines.visit_file(syntax);
    lines.0
}

/// The lines of a Rust file that are product code, with their numbers from 1: test items are left
/// out, wherever they stand.
pub fn without_tests(file: &str) -> Result<Vec<(usize, String)>, String> {
    let tests = test_lines(&parse(file)?);
    let text = read(file);
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.to_string()));
    Ok(lines.filter(|(number, _)| !tests.contains(number)).collect())
}
