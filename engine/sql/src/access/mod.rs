//! What the filters of a scan say about keys: which columns they fix, and which indexes can answer them.

mod equality;
mod index;

pub use equality::{Equalities, Equality, equalities};
pub use index::{
    IndexAccess, IndexKeys, fixed_columns, index_access, index_keys, joined_key, key_name,
};
pub(crate) use index::{access_text, probed_index};
