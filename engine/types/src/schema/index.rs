//! The schema of a secondary index: its columns, and whether their values are unique.
//! `engine/table` decides how it is stored.

/// Identifies an index inside its table; never reused.
pub type IndexId = u32;

/// What distinguishes a kind of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexTraits {
    /// Its number in stored schemas: even, never reused. The lowest bit says that the index is
    /// unique.
    pub code: u8,
    /// Keyword after `USING`; `None` for a kind that cannot be declared.
    pub keyword: Option<&'static str>,
    /// Entries of one integer column are kept packed in memory, for a table whose key is one
    /// integer.
    pub packs_integers: bool,
}

/// Defines the enum, `ALL` and `traits` from one list, so that no kind can be missing from one of
/// them: a kind that is stored but not in `ALL` could not be read again.
macro_rules! index_kinds {
    ($($(#[$doc:meta])* $kind:ident = $traits:expr;)*) => {
        /// Kind of an index. Both declared kinds are stored in key order and serve the same
        /// lookups; the kind records the declaration.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum IndexKind {
            $($(#[$doc])* $kind,)*
        }

        impl IndexKind {
            /// All kinds.
            pub const ALL: &'static [IndexKind] = &[$(IndexKind::$kind),*];

            /// What distinguishes the kind.
            pub const fn traits(self) -> IndexTraits {
                match self {
                    $(IndexKind::$kind => $traits,)*
                }
            }
        }
    };
}

index_kinds! {
    /// For equality: `USING HASH`.
    Hash = IndexTraits { code: 0, keyword: Some("HASH"), packs_integers: false };
    /// For equality, ranges and order: `USING BTREE`.
    BTree = IndexTraits { code: 2, keyword: Some("BTREE"), packs_integers: true };
    /// Not declared: over one column that other indexes contain, but that leads none of them
    /// ([`TableSchema::complete_indexes`](crate::TableSchema::complete_indexes)).
    Companion = IndexTraits { code: 4, keyword: None, packs_integers: true };
}

impl IndexKind {
    /// The kind of an index that is declared without `USING`.
    pub const DEFAULT: IndexKind = IndexKind::BTree;

    /// The kind with a number in stored schemas.
    pub fn of_code(code: u8) -> Option<IndexKind> {
        IndexKind::ALL.iter().copied().find(|kind| kind.traits().code == code)
    }

    /// The kind that a word after `USING` declares, without regard to ASCII case.
    pub fn of_keyword(word: &str) -> Option<IndexKind> {
        let has = |kind: &IndexKind| {
            kind.traits().keyword.is_some_and(|keyword| keyword.eq_ignore_ascii_case(word))
        };
        IndexKind::ALL.iter().copied().find(has)
    }
}

/// A secondary index of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSchema {
    /// Identity.
    pub id: IndexId,
    /// Name as written. Compared without regard to ASCII case; unique in its table, primary key
    /// included.
    pub name: String,
    /// Ids of its columns, in key order. Ids, not positions, so that they mean the same columns
    /// when others are added or dropped.
    pub columns: Vec<u32>,
    /// Whether no two rows may have the same values in all its columns. Rows with a null in one of
    /// them never conflict.
    pub unique: bool,
    /// How it was declared.
    pub kind: IndexKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_by_code_and_keyword() {
        for kind in IndexKind::ALL.iter().copied() {
            let IndexTraits { code, keyword, .. } = kind.traits();
            assert_eq!(code & 1, 0, "{kind:?}");
            assert_eq!(IndexKind::of_code(code), Some(kind));
            assert_eq!(keyword.and_then(IndexKind::of_keyword), keyword.map(|_| kind));
        }
    }
}
