//! Every kind of statement has a syntax: a binder constructs it.

const FAMILIES: [(&str, &str); 4] = [
    ("RowStatement", include_str!("../statement/bound.rs")),
    ("WriteStatement", include_str!("../statement/bound.rs")),
    ("CatalogStatement", include_str!("../statement/catalog.rs")),
    ("ControlStatement", include_str!("../statement/control.rs")),
];

const BINDERS: [&str; 14] = [
    include_str!("../bind/query/lock.rs"),
    include_str!("../bind/statement/alter_table.rs"),
    include_str!("../bind/statement/change.rs"),
    include_str!("../bind/statement/create_table.rs"),
    include_str!("../bind/statement/dispatch.rs"),
    include_str!("../bind/statement/dml.rs"),
    include_str!("../bind/statement/index.rs"),
    include_str!("../bind/statement/merge.rs"),
    include_str!("../bind/statement/prepared.rs"),
    include_str!("../bind/statement/set_option.rs"),
    include_str!("../bind/statement/upsert.rs"),
    include_str!("../bind/statement/view.rs"),
    include_str!("../bind/statement/wait_for.rs"),
    include_str!("../statement/bound.rs"),
];

/// Returns the names of the variants of an enum, given its layout by `rustfmt`.
fn variants<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let head = format!("pub enum {name} {{\n");
    let (_, body) = source.split_once(&head).unwrap();
    let (body, _) = body.split_once("\n}\n").unwrap();
    let is_variant = |line: &&str| {
        line.starts_with("    ") && line.chars().nth(4).is_some_and(|c| c.is_ascii_uppercase())
    };
    let name = |line: &'a str| line.trim().split(|c: char| !c.is_alphanumeric()).next().unwrap();
    body.lines().filter(is_variant).map(name).collect()
}

#[test]
fn every_statement_can_be_written() {
    for (family, source) in FAMILIES {
        let variants = variants(source, family);
        assert!(variants.len() >= 5, "{family}: {variants:?}");
        for variant in variants {
            let made = format!("{family}::{variant}");
            assert!(BINDERS.iter().any(|binder| binder.contains(&made)), "nothing binds {made}");
        }
    }
}
