//! Shredded JSON: the documents of a column as sub-columns with the ordinary encodings.
//!
//! A *node* is a place in documents: the root, a key of the objects at a node, or the elements of
//! the arrays at a node. What occurs at a node is in its sub-columns, one for each kind of value, at
//! most one of which has a value in a row; if none has, the value is `null`. The rows of the root
//! are those of the segment, and keys share the rows of their object, so a path of keys is a column
//! like any other. The elements of arrays have rows of their own, in the order of the arrays.
//!
//! An object has a *shape*: which keys it has, in which order. What has no node (rare keys, deep
//! levels, odd shapes) stays text: rare keys in an object of the rest, other values as text at their
//! node. So every text in its normal form comes back byte by byte, by reading single rows of
//! sub-columns. `docs/decisions/0050-shredded-json.md` has the reasons.

mod assemble;
mod collect;
mod infer;
mod number;
mod schema;
mod shred;
#[cfg(test)]
mod tests;
mod tree;

pub use assemble::{Source, assemble};
pub use collect::SubColumn;
pub use infer::Inference;
pub use schema::{DocumentNode, DocumentStep, Kind, Schema};
pub use shred::Shredder;

/// Greatest number of nodes of a column. Values elsewhere stay text.
pub const MAX_NODES: usize = 1000;
/// Greatest level of a node; the root has level 0.
pub const MAX_LEVEL: usize = 32;
/// Greatest number of shapes of a column. Objects with others stay text.
pub const MAX_SHAPES: usize = 1 << 14;
/// Greatest number of keys of a shape.
pub const MAX_SHAPE_KEYS: usize = 1 << 12;
/// A key becomes a node if it occurs in one of this many documents.
pub const RARE_ONE_IN: u64 = 10_000;
/// Greatest number of elements of all arrays at a node.
pub const MAX_ELEMENTS: usize = 1 << 26;
